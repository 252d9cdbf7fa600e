"""Tests that take more than a few seconds, by the beginnings of their ids: they have the marker `slow`, which `make quick` leaves out."""

SLOW = []


def is_slow(nodeid: str) -> bool:
    return nodeid.startswith(tuple(SLOW))
