"""The core: tests that hang on rounding if any do, by the beginnings of their ids.

Closed forms, the law, derivatives, same bits, hard states, pages and optimisers of others. `make test-simd` runs them
with each instruction set: two minutes on two cores for one.
"""

CORE = [
    "tests/analytic/test_contacts_ahead.py",
    "tests/analytic/test_frictionless.py",
    "tests/analytic/test_impacts.py",
    "tests/analytic/test_lcp_contact.py",
    "tests/analytic/test_rolling.py",
    "tests/analytic/test_sliding.py",
    "tests/analytic/test_spin.py",
    "tests/analytic/test_statics.py",
    "tests/analytic/test_turning_friction.py",
    "tests/examples/test_documentation.py::test_python_runs_as_printed[control",
    "tests/examples/test_documentation.py::test_python_runs_as_printed[conventions",
    "tests/examples/test_documentation.py::test_python_runs_as_printed[glue",
    "tests/examples/test_documentation.py::test_python_runs_as_printed[identify",
    "tests/examples/test_documentation.py::test_python_runs_as_printed[impacts",
    "tests/examples/test_documentation.py::test_python_runs_as_printed[trajectories",
    "tests/gradient/test_ambiguous.py",
    "tests/gradient/test_contact_law.py",
    "tests/gradient/test_labels_of_levels.py",
    "tests/gradient/test_lcp_gradients.py::test_forward_and_reverse_mode_on_robots",
    "tests/gradient/test_lcp_gradients.py::test_law_on_robots",
    "tests/gradient/test_pair_materials.py",
    "tests/gradient/test_parameters.py::test_reverse_is_forward",
    "tests/gradient/test_rollout_gradients.py",
    "tests/gradient/test_seven_robots.py::test_forward_and_reverse_mode_at_every_state",
    "tests/gradient/test_step_gradients.py",
    "tests/python/test_contradictions.py",
    "tests/python/test_glue_aligator.py",
    "tests/python/test_glue_casadi.py",
    "tests/python/test_glue_crocoddyl.py",
    "tests/python/test_instruction_set.py",
    "tests/python/test_lcp.py",
    "tests/python/test_morphology_rollout.py::test_gradient_of_a_rollout",
    "tests/robustness/test_degenerate.py",
    "tests/robustness/test_determinism.py",
    "tests/robustness/test_hard_states.py",
]


def is_core(nodeid: str) -> bool:
    return nodeid.startswith(tuple(CORE))
