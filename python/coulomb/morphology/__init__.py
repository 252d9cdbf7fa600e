"""Design by cages: handles carry joints, geometries, contact points and mass, with exact derivatives (docs/design.md).

cage = Cage.box((0, -0.01, -0.01), (0.1, 0.01, 0.01))
finger = Morphology(model, [Part("link", cage, density=1000)], [Link("tip_joint", cage)])
values = finger.parameters(x)                 # name -> numbers, for Model.with_parameters
sim = coulomb.Simulator(finger.model_of(x))
g = sim.rollout(q, v, U).vjp(dQ, dV, wrt=finger.names)
by_x = finger.vjp(x, g)
"""

from .assembly import Morphology
from .cage import Cage, mean_value_coordinates
from .chain import ChainCage, Piece, finger_pieces, scales_of
from .designs import Handles, Scales
from .parts import Link, Marker, Part
from .points import BodyPoints
from .volume import Solid, mass_description, solid_properties

__all__ = [
    "BodyPoints",
    "Cage",
    "ChainCage",
    "Handles",
    "Link",
    "Marker",
    "Morphology",
    "Part",
    "Piece",
    "Scales",
    "Solid",
    "finger_pieces",
    "mass_description",
    "mean_value_coordinates",
    "scales_of",
    "solid_properties",
]
