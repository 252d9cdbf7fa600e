"""Looking at models and motions in a browser: ``coulomb.Viewer``, ``coulomb view FILE`` (docs/viewer.md). Needs ``coulomb[view]``."""

from .recording import Recording, recorded_steps
from .viewer import Viewer
from .visuals import Visual

__all__ = ["Recording", "Viewer", "Visual", "recorded_steps"]
