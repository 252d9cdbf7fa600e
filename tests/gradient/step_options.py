"""Options of a Simulator that derivatives of forces are tried with: every law of contact and every stepper."""

OPTIONS = {
    "ncp": {},
    "explicit": {"joint_forces": "explicit"},
    "lcp": {"contact": "lcp"},
    "penalty": {"contact": "penalty"},
    "bdf1": {"stepper": "bdf1", "contact": "penalty"},
    "bdf2": {"stepper": "bdf2", "contact": "penalty"},
}
