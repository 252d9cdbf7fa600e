"""Makes the helper package `scenes` (beside `tests`) importable from every test."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
