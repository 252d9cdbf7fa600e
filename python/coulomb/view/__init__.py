"""Looking at models and motions: in a browser by ``coulomb.Viewer``, ``coulomb view FILE`` (docs/viewer.md; needs ``coulomb[view]``); as pictures
and videos by ``coulomb.Renderer`` and ``coulomb.save_video`` (docs/pictures.md; videos need ``coulomb[video]``)."""

from .recording import Recording, recorded_steps
from .renderer import Renderer
from .video import save_video
from .viewer import Viewer
from .visuals import Visual

__all__ = ["Recording", "Renderer", "Viewer", "Visual", "recorded_steps", "save_video"]
