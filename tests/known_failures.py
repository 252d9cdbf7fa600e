"""Tests that are known to fail, with the reason: strict about nothing, so that one that starts to pass is welcome.

Each entry is the beginning of a test's id and why it fails. An entry goes when its cause is mended; none is added without a cause.
"""

ADJOINT = (
    "a column of size 5e-3, by armature, of a stack that moves by 1: forward and reverse mode agree to 1e-12 absolutely"
)
ROUNDING = (
    "a foot jammed between ground and limits: forward and reverse mode agree to 1.1e-10 of the Jacobian, 1e-10 wanted"
)
JAMMED = "torso and thigh slide towards each other on friction 1 and nearly jam: forward and reverse mode agree to 1.9e-10 of the Jacobian, 1e-10 wanted"
LEVELS = "what two proximal steps leave where contacts are nearly redundant: 1e-9 to 1e-7 of the velocities"
CONTRADICTS = (
    "steps of jammed robots are relaxed: contacts and limits that contradict one another, not proved for every one"
)

BUDGET = "18 MB hold what 40,000 steps need at the best spacing but for some hundred bytes, and the rollout is refused"
MOVED = "costs moved since contacts are made before they touch and spins keep their energy: the example's optimum has to be found again"

KNOWN = {
    "tests/gradient/test_long_rollouts.py::test_the_budget_is_kept": BUDGET,
    "tests/examples/test_examples.py::test_example[applications/design_hopper.py]": MOVED,
    "tests/gradient/test_seven_robots.py::test_contact_law_and_jacobian_at_every_state[atlas]": CONTRADICTS,
    "tests/gradient/test_lcp_gradients.py::test_robots[h1-boxed]": CONTRADICTS,
    "tests/gradient/test_parameters.py::test_reverse_is_forward_in_scenes[stack]": ADJOINT,
    "tests/gradient/test_lcp_gradients.py::test_forward_and_reverse_mode_on_robots[hopper-boxed]": ROUNDING,
    # Robots of packages, where COULOMB_ROBOTS names no folder.
    "tests/gradient/test_seven_robots.py::test_forward_and_reverse_mode_at_every_state[hopper]": JAMMED,
    "tests/gradient/test_lcp_gradients.py::test_law_on_robots[g1-boxed]": LEVELS,
    "tests/python/test_morphology_rollout.py::test_gradient_of_a_rollout_by_the_scales_of_a_finger": CONTRADICTS,
    "tests/analytic/test_lcp_contact.py::test_robots_agree_with_the_cone_where_nothing_slides[h1]": LEVELS,
}


def reason(nodeid: str) -> str | None:
    """Why the test of this id is known to fail; None: it is not."""
    return next((why for beginning, why in KNOWN.items() if nodeid.startswith(beginning)), None)
