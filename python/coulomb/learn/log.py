"""Logs of runs: one row an epoch, as CSV."""

from __future__ import annotations

import csv


def read(path, epochs):
    """The rows up to that epoch, dicts without empty cells; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = [{key: float(value) for key, value in row.items() if value} for row in csv.DictReader(file)]
    return [
        row | {"epoch": int(row["epoch"]), "samples": int(row["samples"])} for row in rows if row["epoch"] <= epochs
    ]


def write(path, rows):
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
