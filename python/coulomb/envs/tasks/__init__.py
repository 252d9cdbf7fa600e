"""The tasks: one file each. `task_of` makes one from its name."""

from __future__ import annotations

from importlib import import_module

from ..task import Task


def task_of(task, options):
    """A Task: itself, or made of "module:Class" with its options. TypeError: options that it does not take."""
    if isinstance(task, Task):
        if options:
            raise TypeError(f"{', '.join(options)}: the task is there already and takes no options")
        return task
    if not isinstance(task, str) or ":" not in task:
        raise TypeError(f"task is {task!r}, expected a coulomb.envs.Task, or 'module:Class' of one")
    module, name = task.split(":")
    return getattr(import_module(module), name)(**options)
