"""Coulomb's step inside optimisers of others (docs/glue.md). Nothing is imported before it is asked for:

- coulomb.glue.crocoddyl: State, ActionModel, residuals; for SolverFDDP, SolverBoxFDDP and the others.
- coulomb.glue.casadi: Steps, all shooting nodes as one function with its Jacobian; for Opti, nlpsol, IPOPT.
- coulomb.glue.aligator: space(model), Dynamics.
"""
