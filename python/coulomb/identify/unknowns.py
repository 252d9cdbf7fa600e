"""The unknowns: numbers x, and the model's parameters as functions of them.

An Unknown is a parameter itself or its logarithm. Inertia writes the ten inertial numbers of a body so that every x is a physical body:
with the pseudo-inertia P = [[S, m c], [m c^T, m]] (S: second moments of mass) and its Cholesky factor C in the model,
P = (C T)(C T)^T, T lower triangular with exponentials on its diagonal. Block is what both are: derive from it for other functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .checks import by_element, numbers

# Kinds of parameters whose values have bounds of their own (docs/parameters.md).
_NOT_NEGATIVE = (
    "mass friction pair_friction compliance size joint_stiffness joint_damping armature joint_friction timestep "
    "contact_stiffness contact_dashpot contact_damping contact_friction_stiffness contact_scale "
    "pair_stiffness pair_dashpot pair_inertia joint_limit_stiffness joint_limit_dashpot tendon_stiffness tendon_damping "
    "equality_stiffness equality_dashpot equality_inertia tendon_limit_stiffness tendon_limit_dashpot tendon_limit_inertia "
    "joint_friction_dashpot joint_friction_inertia tendon_friction_dashpot tendon_friction_inertia "
    "tendon_friction tendon_armature actuator_kp actuator_kd muscle_force density viscosity "
    "torsional_friction rolling_friction pair_torsional_friction pair_rolling_friction"
).split()
_SHARES = ("restitution", "pair_restitution")  # in [0, 1]
_ROW, _COLUMN = np.tril_indices(4)
_DIAGONAL = np.flatnonzero(_ROW == _COLUMN)


@dataclass
class Coordinates:
    """The numbers x (k,) of a block: names, start, bounds, prior (mean, deviation; inf: none) and scale, a change that matters.

    sets: names of the parameters that they set, which no other block may.
    """

    labels: list
    start: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    scale: np.ndarray
    sets: list


class Block:
    """Some unknowns x (k,), and the parameters that they set: what to derive from for functions of one's own.

    bind(model): the Coordinates of x. values(x): {parameter: value (size,)}. jacobian(x): {parameter: (size, k)}. shown(x): x as tables
    print it, and the derivative of that, (k,) each.
    """

    def bind(self, model):
        raise NotImplementedError

    def values(self, x):
        raise NotImplementedError

    def jacobian(self, x):
        raise NotImplementedError

    def shown(self, x):
        return np.array(x), np.ones(len(x))


@dataclass
class Unknown(Block):
    """A named parameter of the model (Model.parameters()).

    start: first guess; None: the model's value. lower, upper: bounds of the value; None: those of its kind (masses are positive,
    restitution is in [0, 1]). log: its logarithm is the unknown: for positive values known by their order of magnitude. mean, deviation:
    a prior, normal about mean (None: start); with log, deviation is of the logarithm, 0.1 for ten percent. scale: a change that
    matters, by which it is judged whether the data determine it; None: the deviation, else the size of the start, with log 1. elements:
    which numbers of the parameter are unknown (None: all); the others keep the model's value. Numbers, or one per element.
    """

    name: str
    start: ArrayLike | None = None
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None
    mean: ArrayLike | None = None
    deviation: ArrayLike | None = None
    scale: ArrayLike | None = None
    log: bool = False
    elements: Sequence[int] | None = None

    def bind(self, model):
        # The model names what it knows, and what resembles a name that it does not.
        parameters = model.parameters()
        if not isinstance(self.name, str):
            raise TypeError(f"unknown: got {self.name!r}, expected the name of a parameter")
        if self.name not in parameters:
            model.with_parameters({self.name: 0.0})
            raise ValueError(f"unknown '{self.name}': not a parameter of the model; model.parameters() lists them")
        self.base = np.array(parameters[self.name].value, float)
        size = len(self.base)
        chosen = np.arange(size) if self.elements is None else np.atleast_1d(np.asarray(self.elements))
        whole = chosen.ndim == 1 and len(chosen) and chosen.dtype.kind in "iu"
        if not whole or len(np.unique(chosen)) < len(chosen) or not np.all((chosen >= 0) & (chosen < size)):
            raise ValueError(
                f"unknown '{self.name}': elements {chosen.tolist()} are not different indices below {size}, one or more"
            )
        self.free = chosen
        labels = [self.name] if size == 1 else [f"{self.name}[{e}]" for e in self.free]

        # Start and bounds as values of the parameter.
        start = self._numbers("start", self.start, self.base[self.free])
        kind = self.name.split("/")[0]
        positive = self.log or kind in _NOT_NEGATIVE or kind in _SHARES
        lower = self._numbers("lower", self.lower, 0.0 if positive else -np.inf, bound=True)
        upper = self._numbers("upper", self.upper, 1.0 if kind in _SHARES else np.inf, bound=True)
        for label, low, value, high in zip(labels, lower, start, upper):
            if not low < high:
                raise ValueError(f"unknown '{label}': its lower bound {low:g} is not below the upper {high:g}")
            if not low <= value <= high:
                raise ValueError(
                    f"unknown '{label}': starts at {value:g}, outside its bounds {low:g} to {high:g}; give start="
                )
            if self.log and not (value > 0 and low >= 0):
                worst = min(value, low)
                raise ValueError(f"unknown '{label}': {worst:g} has no logarithm; give a positive start, or log=False")

        # Prior and scale, in the coordinate that is fitted.
        mean = self._numbers("mean", self.mean, start)
        if self.log and not np.all(mean > 0):
            raise ValueError(f"unknown '{self.name}': mean {mean.min():g} has no logarithm")
        deviation = self._numbers("deviation", self.deviation, np.inf, bound=True)
        size_of_start = np.ones(len(start)) if self.log else np.where(start != 0, np.abs(start), 1.0)
        scale = self._numbers("scale", self.scale, np.where(np.isfinite(deviation), deviation, size_of_start))
        for what, value in (("deviation", deviation), ("scale", scale)):
            if not np.all(value > 0):
                raise ValueError(f"unknown '{self.name}': {what} {np.min(value):g} is not positive")
        with np.errstate(divide="ignore"):
            start, lower, upper, mean = (np.log(x) if self.log else x for x in (start, lower, upper, mean))
        return Coordinates(labels, start, lower, upper, mean, deviation, scale, [self.name])

    def values(self, x):
        value = self.base.copy()
        value[self.free] = self.shown(x)[0]
        return {self.name: value}

    def jacobian(self, x):
        D = np.zeros((len(self.base), len(x)))
        D[self.free, np.arange(len(x))] = self.shown(x)[1]
        return {self.name: D}

    def shown(self, x):
        if not self.log:
            return np.array(x), np.ones(len(x))
        with np.errstate(over="ignore"):  # the model refuses infinite values
            return np.exp(x), np.exp(x)

    def _numbers(self, what, value, otherwise, bound=False):
        """(k,) from a number, one per element, or None."""
        value = numbers(f"unknown '{self.name}': {what}", otherwise if value is None else value)
        count = len(self.free)
        if value.shape not in ((), (1,), (count,)):
            raise ValueError(f"unknown '{self.name}': {what} has shape {value.shape}, expected a number or ({count},)")
        if np.isnan(value).any() or not (bound or np.isfinite(value).all()):
            raise ValueError(f"unknown '{self.name}': {what} is {value}, expected finite numbers")
        return np.broadcast_to(value, (count,)).astype(float)


@dataclass
class Inertia(Block):
    """Mass, centre of mass and inertia of a body, relative to the model's, all guesses physical: T of the head of this module.

    Unknowns are the entries of T: logarithms of its diagonal T00, T11, T22 (lengths of the second moments), T33 (square root of the
    mass), and the six below; zero is the model. diagonal: only the four. deviation: of a prior about zero (0.3: thirty percent of lengths,
    sixty of the mass); None: none.
    """

    body: str
    deviation: ArrayLike | None = None
    diagonal: bool = False

    def bind(self, model):
        # The factor of the model's pseudo-inertia, which a body without extent does not have.
        self.name = f"inertia/{self.body}"
        parameters = model.parameters()
        if self.name not in parameters:
            model.with_parameters({self.name: np.zeros(10)})
        ten = np.array(parameters[self.name].value)
        try:
            self.factor = np.linalg.cholesky(pseudo_inertia(ten))
        except np.linalg.LinAlgError:
            raise ValueError(
                f"unknown '{self.name}': the model's inertia is that of no body with extent: {ten}"
            ) from None

        # Ten coordinates, or those of the diagonal.
        self.kept = _DIAGONAL if self.diagonal else np.arange(10)
        count = len(self.kept)
        labels = [f"{self.name} T{_ROW[k]}{_COLUMN[k]}" for k in self.kept]
        deviation = np.inf if self.deviation is None else self.deviation
        what = f"unknown '{self.name}': deviation"
        deviation = by_element(what, deviation, count, lambda x: x > 0, "positive")
        scale = np.where(np.isfinite(deviation), deviation, 1.0)
        zero, inf = np.zeros(count), np.full(count, np.inf)
        return Coordinates(labels, zero, -inf, inf, zero, deviation, scale, [self.name])

    def values(self, x):
        half = self.factor @ self._triangle(x)
        return {self.name: ten_parameters(half @ half.T)}

    def jacobian(self, x):
        T, columns = self._triangle(x), []
        for k in self.kept:
            row, column = _ROW[k], _COLUMN[k]
            dT = np.zeros((4, 4))
            dT[row, column] = T[row, row] if row == column else 1.0
            half = self.factor @ dT @ T.T @ self.factor.T
            columns.append(ten_parameters(half + half.T))
        return {self.name: np.stack(columns, axis=1)}

    def _triangle(self, x):
        ten = np.zeros(10)
        ten[self.kept] = x
        T = np.zeros((4, 4))
        T[_ROW, _COLUMN] = ten
        with np.errstate(over="ignore"):
            T[np.diag_indices(4)] = np.exp(np.diag(T))
        return T


def pseudo_inertia(ten):
    """(4, 4) from m, m c, Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the frame's origin."""
    inertia = np.array([[ten[4], ten[5], ten[7]], [ten[5], ten[6], ten[8]], [ten[7], ten[8], ten[9]]])
    S = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    return np.block([[S, ten[1:4, None]], [ten[None, 1:4], ten[:1, None]]])


def ten_parameters(P):
    """The ten numbers of a pseudo-inertia."""
    inertia = np.trace(P[:3, :3]) * np.eye(3) - P[:3, :3]
    return np.r_[P[3, 3], P[:3, 3], inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]]


class Unknowns:
    """All blocks as one vector x (p,): labels, start, lower, upper, mean, deviation, scale as in Coordinates."""

    def __init__(self, model, parameters):
        # Names alone are unknowns with the defaults.
        if isinstance(parameters, (str, Block)):
            parameters = [parameters]
        self.model = model
        self.blocks = [Unknown(p) if isinstance(p, str) else p for p in parameters]
        for k, block in enumerate(self.blocks):
            if not isinstance(block, Block):
                raise TypeError(
                    f"parameters[{k}]: got {type(block).__name__}, expected a name, Unknown, Inertia or another Block"
                )
        if not self.blocks:
            raise ValueError("parameters: names nothing to identify")

        # One vector, and where each block's part of it is.
        bound = [block.bind(model) for block in self.blocks]
        _refuse_doubles([name for coordinates in bound for name in coordinates.sets])
        self.labels = [label for coordinates in bound for label in coordinates.labels]
        for name in ("start", "lower", "upper", "mean", "deviation", "scale"):
            setattr(self, name, np.concatenate([getattr(coordinates, name) for coordinates in bound]))
        ends = np.cumsum([0, *(len(coordinates.labels) for coordinates in bound)])
        self.parts = [slice(a, b) for a, b in zip(ends, ends[1:])]
        self.names = list(self.values(self.start))
        self.size = len(self.labels)

    def values(self, x):
        """{parameter: value}."""
        out = {}
        for block, part in zip(self.blocks, self.parts):
            for name, value in block.values(x[part]).items():
                out[name] = np.array(value, float)
        return out

    def jacobian(self, x):
        """{parameter: (its size, p)}."""
        out = {}
        for block, part in zip(self.blocks, self.parts):
            for name, D in block.jacobian(x[part]).items():
                out.setdefault(name, np.zeros((len(D), len(x))))[:, part] += D
        return out

    def at(self, x):
        """The Model with these values."""
        return self.model.with_parameters(self.values(x))

    def shown(self, x):
        """(p,) numbers as tables print them, and their derivatives by x."""
        parts = [block.shown(x[part]) for block, part in zip(self.blocks, self.parts)]
        return tuple(np.concatenate(side) for side in zip(*parts))


def _refuse_doubles(names):
    """No parameter twice, and no two descriptions of one body."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"parameters: '{name}' appears twice")
        kind, _, body = name.partition("/")
        if kind == "inertia" and (twin := {f"mass/{body}", f"com/{body}"} & set(names)):
            raise ValueError(f"parameters: '{name}' and '{min(twin)}' describe the same body; take one of them")
