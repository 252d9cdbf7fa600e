"""Tests that take more than a few seconds, by the beginnings of their ids: they have the marker `slow`, which `make quick` leaves out.

Tests that ask whether every kind of parameter was compared make the comparisons themselves where the others did not run.
"""

SLOW = [
    "tests/analytic/test_penalty_flat_sides.py::test_no_force_jumps_while_the_outline_changes",
    "tests/examples/test_documentation.py::test_cpp_of_the_readme_compiles_and_runs",
    "tests/examples/test_examples.py::test_demo",
    "tests/examples/test_examples.py::test_example",
    "tests/examples/test_examples.py::test_first_step[first_steps/05",
    "tests/examples/test_examples.py::test_first_step[first_steps/07",
    "tests/examples/test_examples.py::test_first_step[first_steps/08",
    "tests/gradient/test_design_gradients.py::test_two_hundred_steps_by_every_kind",
    "tests/gradient/test_impact_gradients.py::test_a_split_step_is_differentiated",
    "tests/gradient/test_impact_gradients.py::test_every_kind_was_compared_and_every_number_of_impacts",
    "tests/gradient/test_impacts_of_overlaps.py::test_scenes",
    "tests/gradient/test_implicit_gradients.py::test_steps_in_penalty_contact",
    "tests/gradient/test_implicit_gradients.py::test_steps_of_a_chain",
    "tests/gradient/test_implicit_gradients.py::test_trajectories_in_penalty_contact",
    "tests/gradient/test_lcp_gradients.py::test_every_kind_of_parameter_was_compared",
    "tests/gradient/test_lcp_gradients.py::test_law_on_robots",
    "tests/gradient/test_lcp_gradients.py::test_parameters_of_robots",
    "tests/gradient/test_lcp_gradients.py::test_parameters_of_scenes",
    "tests/gradient/test_lcp_gradients.py::test_reverse_is_forward_by_parameters_of_robots",
    "tests/gradient/test_lcp_gradients.py::test_robots",
    "tests/gradient/test_lcp_gradients.py::test_rollouts",
    "tests/gradient/test_lcp_gradients.py::test_scenes",
    "tests/gradient/test_long_rollouts.py::test_keyboard_interrupt",
    "tests/gradient/test_long_rollouts.py::test_memory_of_a_hundred_thousand_steps",
    "tests/gradient/test_long_rollouts.py::test_the_budget_is_kept",
    "tests/gradient/test_parameters.py::test_every_kind_was_compared",
    "tests/gradient/test_parameters.py::test_robots",
    "tests/gradient/test_parameters.py::test_scenes",
    "tests/gradient/test_penalty_gradients.py::test_every_kind_was_felt",
    "tests/gradient/test_penalty_gradients.py::test_every_kind_was_resolved",
    "tests/gradient/test_penalty_gradients.py::test_steps_against_differences",
    "tests/gradient/test_penalty_gradients.py::test_two_hundred_steps_against_differences",
    "tests/gradient/test_random_trees.py::test_no_column_of_a_step_is_wrong_unflagged",
    "tests/gradient/test_scenes_of_every_stepper.py::test_rollouts",
    "tests/gradient/test_scenes_of_every_stepper.py::test_steps",
    "tests/gradient/test_seven_robots.py::test_contact_law_and_jacobian_at_every_state",
    "tests/python/test_jax.py::test_forward_and_reverse_agree",
    "tests/python/test_jax.py::test_implicit_steppers",
    "tests/python/test_jax.py::test_vmap_and_jit",
    "tests/python/test_jax.py::test_wrenches_and_forces_agree_with_torch",
    "tests/python/test_morphology.py::test_jacobian_against_differences",
    "tests/python/test_morphology_rollout.py::test_jax_chains",
    "tests/python/test_torch.py::test_implicit_steppers",
    "tests/python/test_types.py::test_good_code_has_no_errors",
    "tests/robustness/test_random_scenes.py::test_collisions_of_spheres_keep_angular_momentum",
    "tests/robustness/test_split_steps_rest.py::test_a_tossed_box_lies_still",
    "tests/robustness/test_trajectories.py::test_a_robot_under_random_controls",
]


def is_slow(nodeid: str) -> bool:
    return nodeid.startswith(tuple(SLOW))
