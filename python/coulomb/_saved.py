"""Models, scenes, memories, simulators and batches as bytes: what pickle, copy, Model.save and coulomb.load use.

The bytes of models, scenes and memories are archives of the core (src/coulomb/base/archive.hpp), with a format and a checksum of their own; what is
written here around them has FORMAT. Functions of this module are named in pickles: they keep their names.
"""

from __future__ import annotations

import os

from . import _core
from ._files import checked_path, write_whole
from .view.visuals import attach, sources_of

FORMAT = 1


def reduce_model(model):
    """The archive, and where the model's visuals are: these are no part of it (docs/viewer.md)."""
    return model_of, (_core._save_models([model]), sources_of(model))


def model_of(archive, visuals=()):
    model = _core._load_models(archive)[0]
    attach(model, visuals)
    return model


def reduce_scene(scene):
    return scene_of, (type(scene), _core._save_scene(scene)), getattr(scene, "__dict__", None)


def scene_of(cls, archive):
    scene = cls.__new__(cls)
    _core.Scene.__init__(scene)
    _core._load_scene(scene, archive)
    return scene


def reduce_memory(memory):
    return memory_of, (_core._save_memories([memory]),)


def memory_of(archive):
    return _core._load_memories(archive)[0]


def reduce_batch_memory(memory):
    return batch_memory_of, (_core._save_memories(memory.environments),)


def batch_memory_of(archive):
    return _core.BatchMemory(_core._load_memories(archive))


def reduce_simulator(sim):
    """Model, options and memory; not what the last step found."""
    state = _sealed(model=sim.model, options=sim.options, memory=sim.memory, frozen=sim._memory_frozen)
    return simulator_of, (type(sim), state), getattr(sim, "__dict__", None)


def simulator_of(cls, state):
    _check("Simulator", state)
    sim = cls.__new__(cls)
    _core.Simulator.__init__(sim, state["model"], **state["options"])
    sim.memory = state["memory"]
    sim.freeze_memory(state["frozen"])
    return sim


def reduce_batch(batch):
    """Models, options and memories of the environments; not what the last step found."""
    state = _sealed(
        models=_core._save_models(batch._models),
        options=batch._options,
        memory=batch.memory,
        num_threads=batch._requested_threads,
    )
    if batch.model.mocap_bodies:
        state["mocap"] = batch.mocap
    return batch_of, (type(batch), state), getattr(batch, "__dict__", None)


def batch_of(cls, state):
    _check("BatchSimulator", state)
    models = _core._load_models(state["models"])
    batch = cls.__new__(cls)
    _core.BatchSimulator.__init__(batch, models[0], len(models), state["num_threads"], **state["options"])
    if any(model is not models[0] for model in models):
        batch._models = models
    batch.memory = state["memory"]
    if "mocap" in state:
        batch._move_mocap_bodies(state["mocap"])
    return batch


def save(model, path):
    """Model.save: the archive as a file, which is there whole or not at all."""
    path = checked_path(path)
    write_whole(path, _core._save_models([model]))


def read(path):
    """The Model of a file that save has written; None: it is no such file. ValueError names a file that cannot be read."""
    if path.lstrip().startswith("<") or not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        if not _core._is_archive(file.read(64)):
            return None
        file.seek(0)
        archive = file.read()
    try:
        return model_of(archive)
    except ValueError as error:
        raise ValueError(f"{path!r}: {error}") from None


def _sealed(**state):
    return {"format": FORMAT, "version": _core.__version__, **state}


def _check(kind, state):
    if state.get("format") != FORMAT:
        raise ValueError(
            f"{kind}: written by Coulomb {state.get('version', '?')} in format {state.get('format')}; this is Coulomb "
            f"{_core.__version__}, which reads format {FORMAT}: read it with that version, or make it again"
        )
