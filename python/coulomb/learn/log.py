"""Logs of runs: one row an epoch, as CSV, and for TensorBoard."""

from __future__ import annotations

import csv
import math
import os


def read(path, epochs):
    """The rows up to that epoch, dicts without empty cells; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = [{key: float(value) for key, value in row.items() if value} for row in csv.DictReader(file)]
    return [
        row | {"epoch": int(row["epoch"]), "samples": int(row["samples"])} for row in rows if row["epoch"] <= epochs
    ]


def write(path, rows, columns=None):
    """A whole log. columns: in this order; the default is those of the rows, as they appear."""
    columns = columns or list(dict.fromkeys(key for row in rows for key in row))
    part = path.with_suffix(".part")  # an interruption leaves the old file
    with part.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    os.replace(part, path)


class Table:
    """log.csv of a run. A row is in the file as soon as it is added, so that a run can be watched.

    rows: those that a resumed run already has. rare: columns that not every row has.
    """

    def __init__(self, path, rows=(), rare=("return",)):
        self.path = path
        self.rows = list(rows)
        self.rare = rare
        self.columns = None

    def add(self, row):
        self.rows.append(row)
        if self.columns is None:
            self.columns = list(dict.fromkeys([*(key for old in self.rows for key in old), *self.rare]))
            write(self.path, self.rows, self.columns)
            return
        with self.path.open("a", newline="") as file:
            csv.DictWriter(file, self.columns).writerow(row)


class Events:
    """Rows for TensorBoard, over samples, in a folder (None: TensorBoard's own choice, runs/<time>_<host>).

    kind: "tensorboard"; "": nothing is written. start: samples of a run that is gone on with; what was written of later ones is
    void. ValueError: names another kind. ImportError: says what to install.
    """

    def __init__(self, kind, folder, start=0):
        self.writer = None
        if kind not in ("", "tensorboard"):
            raise ValueError(f"logger is {kind!r}, expected 'tensorboard' or ''")
        if not kind:
            return
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ImportError(
                "logger='tensorboard' needs the 'tensorboard' package: pip install tensorboard"
            ) from error
        self.writer = SummaryWriter(folder, purge_step=start + 1 if start else None)

    def add(self, row):
        """Every number of a row under its name in log.csv; those with a return without noise reach the disk at once."""
        if self.writer is None:
            return
        for name, value in row.items():
            if name not in ("epoch", "samples") and math.isfinite(value):
                self.writer.add_scalar(name, value, row["samples"])
        if "return" in row:
            self.writer.flush()

    def close(self):
        if self.writer is not None:
            self.writer.close()
