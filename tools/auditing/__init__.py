"""What `tools/audit.py` is made of: random scenes (drafts, *_scenes), trials, rules that need no reference (*_rules), and the report."""

from . import comparison_rules, run_rules  # noqa: F401  (they register their rules)
