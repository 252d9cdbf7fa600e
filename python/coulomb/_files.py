"""Files that are there whole or not at all."""

from __future__ import annotations

import os


def checked_path(path):
    """The path as text. FileNotFoundError names a folder that is not there."""
    path = os.fspath(path)
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise FileNotFoundError(
            f"path: the folder {os.path.dirname(path)!r} does not exist, so {path!r} cannot be written"
        )
    return path


def write_whole(path, data):
    """Writes the bytes beside the path and moves them there: an interruption leaves what was there before."""
    path = checked_path(path)
    beside = f"{path}.{os.getpid()}.part"
    try:
        with open(beside, "wb") as file:
            file.write(data)
        os.replace(beside, path)
    except BaseException:
        if os.path.exists(beside):
            os.remove(beside)
        raise
