"""The clock of a motion: which frame is shown when."""

import pytest

from coulomb.view.playback import Playback


def test_it_stands_until_it_is_played():
    clock = Playback(11, 0.1)
    assert (clock.duration, clock.frame, clock.playing) == (pytest.approx(1.0), 0, False)
    assert clock.advance(0.5) == 0
    clock.play()
    assert clock.advance(0.5) == 5
    clock.pause()
    assert clock.advance(0.2) == 5


@pytest.mark.parametrize("k", range(11))
def test_a_frame_is_shown_from_its_time_on(k):
    """k times 0.1 is not always the tenth of k: rounding loses no frame."""
    clock = Playback(11, 0.1)
    clock.seek(k * 0.1)
    assert clock.frame == k
    clock.seek(k * 0.1 + 0.09)
    assert clock.frame == k


def test_speed():
    clock = Playback(11, 0.1)
    clock.play()
    clock.speed = 0.25
    assert clock.advance(0.8) == 2 and clock.time == pytest.approx(0.2)


def test_a_loop_goes_on_from_the_start():
    clock = Playback(11, 0.1)
    clock.play()
    assert clock.advance(1.0) == 10
    assert clock.advance(0.25) == 2 and clock.playing


def test_once():
    clock = Playback(11, 0.1, loop=False)
    clock.play()
    assert clock.advance(7.0) == 10 and not clock.playing
    clock.play()
    assert clock.frame == 0 and clock.playing


def test_seeking_stays_inside():
    clock = Playback(11, 0.1)
    clock.seek(-3)
    assert clock.frame == 0
    clock.seek(99)
    assert clock.frame == 10


def test_a_single_frame_does_not_play():
    clock = Playback(1, 0.1)
    clock.play()
    assert not clock.playing and clock.advance(1.0) == 0
