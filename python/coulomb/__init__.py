"""Coulomb: a differentiable rigid-body simulator for robotics."""

from ._core import Model, __version__

__all__ = ["Model", "__version__"]
