"""Files that a run goes on from: whole or not there, and read by what wrote them only. Read only those that you trust: they are pickles."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from pathlib import Path

import torch

from coulomb.learn.config import Config

FORMAT = 2
MAY_CHANGE = ("epochs", "num_threads", "evaluate_every", "evaluations", "output", "logger")  # when a run goes on


def write(path, config, contents):
    """Replaces a file at once: who is interrupted leaves the old one."""
    part = Path(f"{path}.part")
    torch.save({"format": FORMAT, "config": dataclasses.asdict(config), **contents}, part)
    os.replace(part, path)


def read(path):
    """(config, contents). ValueError: no file, a damaged one, or one of another format, by its name."""
    if not Path(path).is_file():
        raise ValueError(f"{path}: no such checkpoint; expected a file of a run's output folder")
    try:
        saved = torch.load(path, weights_only=False)
    except Exception as error:
        raise ValueError(f"{path}: damaged, or no checkpoint: {error}") from error
    found = saved.pop("format", None) if isinstance(saved, dict) else None
    if found != FORMAT:
        raise ValueError(f"{path}: its format is {found}, expected {FORMAT}: another version of coulomb.learn wrote it")
    return Config(**saved.pop("config")), saved


def check_same(config, saved, path):
    """ValueError: an option that a run which goes on cannot change."""
    for field in dataclasses.fields(Config):
        now, then = getattr(config, field.name), getattr(saved, field.name)
        if now != then and field.name not in MAY_CHANGE:
            raise ValueError(
                f"{field.name} is {now!r}, but the run of {path} was made with {then!r} and cannot change that"
            )


class Interruption:
    """Within it Ctrl-C is a request that a loop looks at between two epochs; the second one raises KeyboardInterrupt at once.

    Only the main thread receives signals: elsewhere, and where SIGINT is ignored, nothing changes.
    """

    def __init__(self):
        self.requested = False
        self._before = None

    def __enter__(self):
        ignored = signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None)
        if threading.current_thread() is threading.main_thread() and not ignored:
            self._before = signal.signal(signal.SIGINT, self._request)
        return self

    def __exit__(self, *error):
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _request(self, number, frame):
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
