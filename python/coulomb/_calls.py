"""Explains a call that fits no signature: which argument is wrong, what was given, what to do.

The core (python/bindings/calls.cpp) asks explain() when a call did not get as far as the function's own checks: an argument is missing,
unknown, or of a type that cannot be converted.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import os
import re

_LARGEST = 2**31 - 1  # the integers of the core
_WORDS = {
    "None": "None",
    "bool": "True or False",
    "float": "a number",
    "int": "an integer",
    "str": "a string",
    "ndarray": "an array of numbers",
    "ArrayLike": "an array of numbers",
    "Callable": "a callable",
    "object": "a value",
    "PathLike": "a path",
    "dict": "a dict",
}


@dataclasses.dataclass
class _Argument:
    name: str
    annotation: ast.expr | None
    required: bool
    by_name_only: bool


@dataclasses.dataclass
class _Signature:
    arguments: list  # without self
    takes_keywords: bool  # **keywords

    @property
    def positional(self):
        return [a for a in self.arguments if not a.by_name_only]


def explain(function, positional, by_name):
    """The message for a call of a function of the core with these arguments; None: nothing better is known."""
    found = [_parsed(text) for text, *_ in function.__nb_signature__]
    if None in found:
        return None
    signature = max(found, key=lambda s: len(s.arguments))
    for argument in signature.arguments:  # an overload may do without
        argument.required = all(any(a.name == argument.name and a.required for a in s.arguments) for s in found)

    is_method = type(function).__name__ == "nb_method"
    values = list(positional[1:] if is_method else positional)
    where = _where(function, positional[0] if is_method and positional else None)
    wrong = _wrong(signature, values, by_name)
    return f"{where}: {wrong}" if wrong else None


def unknown_name(name, known):
    """The message for an argument of a name that is not known."""
    near = difflib.get_close_matches(name, known, 1, 0.5)
    advice = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(known)}"
    return f"there is no argument '{name}'; {advice}"


def wrong_value(name, value, annotation):
    """The message for a keyword's value that is not of its type, "float | None"."""
    annotation = ast.parse(annotation, mode="eval").body
    expected = _misfit(annotation, value) or _expected(annotation)
    return f"{name}: got {_told(value)}, expected {expected}{_advice(name, annotation, value)}"


def not_an_array(name, value, error):
    """The message for an argument that numpy cannot read."""
    package = type(value).__module__.split(".")[0]
    if package == "torch" and getattr(value, "requires_grad", False):
        return f"{name}: a tensor that requires grad; coulomb.torch knows its gradient, or give {name}.detach()"
    if package in ("jax", "jaxlib"):
        return f"{name}: has no numbers inside a transformation of JAX; coulomb.jax works there"
    return f"{name}: not an array of numbers: {str(error).splitlines()[0] if str(error) else type(error).__name__}"


def _parsed(text):
    """The _Signature of "def name(self, a: int = ...)"; None if it cannot be read."""
    text = re.sub(r"\\\d+", "...", text)  # defaults that are listed elsewhere
    text = text.replace("def (", "def _(", 1)  # setters
    try:
        arguments = ast.parse(text + ": ...").body[0].args
    except SyntaxError:
        return None
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    out = [_Argument(a.arg, a.annotation, d is None, False) for a, d in zip(plain, defaults) if a.arg != "self"]
    out += [
        _Argument(a.arg, a.annotation, d is None, True) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults)
    ]
    return _Signature(out, arguments.kwarg is not None)


def _where(function, this):
    """The function as the caller knows it."""
    name = function.__name__
    if this is None:
        return f"{name}()"
    if name == "__init__":
        return f"{type(this).__name__}()"
    for cls in type(this).__mro__:
        for key, value in vars(cls).items():
            if getattr(value, "fset", None) is function:
                return f"{type(this).__name__}.{key}"
    return f"{type(this).__name__}.{name}()"


def _wrong(signature, values, by_name):
    names = [a.name for a in signature.arguments]
    positional = signature.positional
    if len(values) > len(positional):
        rest = [f"{a.name}=" for a in signature.arguments if a.by_name_only]
        advice = f"; given by name: {', '.join(rest)}" if rest else ""
        listed = f"at most {len(positional)}: {', '.join(a.name for a in positional)}" if positional else "none"
        several = "argument" if len(values) == 1 else "arguments"
        return f"{len(values)} {several} given by place, expected {listed}{advice}"

    given = {a.name: value for a, value in zip(positional, values)}
    for name in by_name:
        if name in given:
            return f"{name}: given twice, by its place and by its name"
        if name not in names and not signature.takes_keywords:
            return unknown_name(name, names)
    given.update(by_name)

    for argument in signature.arguments:
        if argument.name not in given:
            if argument.required:
                return f"{argument.name}: is missing, expected {_expected(argument.annotation)}"
            continue
        value = given[argument.name]
        wrong = _misfit(argument.annotation, value)
        if wrong:
            name = "value" if argument.name == "arg" else argument.name
            return f"{name}: got {_told(value)}, expected {wrong}{_advice(name, argument.annotation, value)}"
    told = ", ".join(f"{name}={_told(value)}" for name, value in given.items())
    return f"these arguments are not accepted together: {told}" if told else None


def _alternatives(annotation):
    """The types of a union."""
    if isinstance(annotation, ast.BinOp):
        return _alternatives(annotation.left) + _alternatives(annotation.right)
    return [annotation]


def _name(annotation):
    """The last word of a type: "Model" of coulomb._core.Model, "list" of list[str]."""
    if isinstance(annotation, ast.Subscript):
        return _name(annotation.value)
    if isinstance(annotation, ast.Attribute):
        return annotation.attr
    return "None" if isinstance(annotation, ast.Constant) else getattr(annotation, "id", "object")


def _item(annotation):
    """The type of a list's items."""
    return annotation.slice if isinstance(annotation, ast.Subscript) else None


def _expected(annotation):
    if annotation is None:
        return "a value"
    words = []
    for one in _alternatives(annotation):
        name = _name(one)
        if name in ("list", "Sequence"):
            inner = _item(one)
            plural = {"str": "strings", "int": "integers", "float": "numbers"}.get(inner and _name(inner), "values")
            words.append(f"a list of {plural}")
        else:
            words.append(_WORDS.get(name) or f"a coulomb.{name}")
    return " or ".join(dict.fromkeys(words))


def _misfit(annotation, value):
    """The expected type or shape, if the value does not fit; None: it fits."""
    if annotation is None:
        return None
    found = [_misfit_of_one(one, value) for one in _alternatives(annotation)]
    if None in found:
        return None
    special = [text for text in found if text not in ("", "None")]
    return special[0] if len(found) == 1 and special else _range_of(found) or _expected(annotation)


def _range_of(found):
    return next((text for text in found if text.startswith("an integer from")), None)


def _misfit_of_one(one, value):
    """None: it fits; else what to expect, or "" for no more than the type says."""
    name = _name(one)
    if name == "None":
        return None if value is None else ""
    if name in ("object", "Any", "ndarray", "ArrayLike"):
        return "" if value is None else None
    if name == "bool":
        return None if isinstance(value, bool) else ""
    if name == "str":
        return None if isinstance(value, str) else ""
    if name == "float":
        return None if hasattr(value, "__float__") or hasattr(value, "__index__") else ""
    if name == "int":
        if not hasattr(value, "__index__"):
            return ""
        return None if 0 <= value.__index__() <= _LARGEST else f"an integer from 0 to {_LARGEST}"
    if name == "Callable":
        return None if callable(value) else ""
    if name == "dict":
        return None if isinstance(value, dict) else ""
    if name in ("list", "Sequence"):
        if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
            return ""
        inner = _item(one)
        return None if inner is None or all(_misfit(inner, item) is None for item in value) else ""
    return None if any(cls.__name__ == name for cls in type(value).__mro__) else ""


def _told(value):
    """A value in a message: itself if it is short, else its type."""
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:37] + "...")
    if isinstance(value, (list, tuple)) and len(repr(value)) <= 40:
        return repr(value)
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else kind.__module__.split(".")[0] + "."
    return f"{'an' if not module and kind.__name__[0] in 'aeiou' else 'a'} {module}{kind.__name__}"


def _advice(name, annotation, value):
    """Advice, if there is any."""
    wanted = {_name(one) for one in _alternatives(annotation)} if annotation is not None else set()
    kind = type(value).__name__
    package = type(value).__module__.split(".")[0]
    if "Model" in wanted:
        if hasattr(value, "build"):
            return "; build it first: scene.build()"
        if isinstance(value, (str, os.PathLike)):
            return "; read the file first: coulomb.load(path)"
        if package == "mujoco":
            return "; Scene.add_mujoco_model takes it"
        if package == "pinocchio":
            return "; Scene.add_pinocchio takes it"
        if hasattr(value, "model"):
            return f"; give the {kind}'s .model"
    if "Simulator" in wanted and kind == "Model":
        return "; make one first: coulomb.Simulator(model)"
    if wanted & {"list", "Sequence"} and isinstance(value, str):
        return f"; give a list: {name}=[{value!r}]"
    if wanted & {"float", "int"} and isinstance(value, str):
        return "; in SI units, without quotes" if "float" in wanted else "; without quotes"
    if "int" in wanted and isinstance(value, float):
        return "; without a fraction: int(...)"
    if wanted & {"StepMemory", "BatchMemory"}:
        return "; what .memory gave"
    return ""
