"""Viewers of a test, closed at its end."""

import pytest

import coulomb


@pytest.fixture
def open_viewer():
    viewers = []

    def make(model, **options):
        viewers.append(coulomb.Viewer(model, **{"port": 0, "verbose": False, **options}))
        return viewers[-1]

    yield make
    for viewer in viewers:
        viewer.close()
