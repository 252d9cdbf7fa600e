"""System identification: parameters of a model from measured trajectories (docs/identify.md).

    window = coulomb.identify.Window(q=Q, u=U, deviation=1e-3)
    fit = coulomb.identify.fit(model, [window], ["mass/link", Unknown("friction/box", log=True)])
    print(fit)                                  # values, standard errors, what the data do not determine
    fit.model                                   # the model with these values

unknowns.py: what is looked for; windows.py: what was measured; trajectories.py: rollouts and their Jacobians, in parallel; problem.py:
residuals and noise; losses.py: outliers; checks.py: arguments; report.py: what the data say; fit.py: the loop, which is scipy.optimize.least_squares.
"""

from .fit import fit
from .report import Direction, Fit
from .unknowns import Block, Coordinates, Inertia, Unknown, Unknowns
from .windows import Window

__all__ = ["Block", "Coordinates", "Direction", "Fit", "Inertia", "Unknown", "Unknowns", "Window", "fit"]
