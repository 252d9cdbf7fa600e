"""Which frame of a motion is shown: a clock from 0 to the end, that runs at a speed, once or again and again."""

from __future__ import annotations

import math

from .motion import number


class Playback:
    """num_frames frames, frame_time seconds from one to the next. It knows no other clock than the one it is advanced by.

    time: s, always between 0 and duration; speed: > 0. ValueError: a number that is none of these.
    """

    def __init__(self, num_frames, frame_time, loop=True):
        self.num_frames = num_frames
        self.frame_time = frame_time
        self.loop = loop
        self.speed = 1.0
        self.time = 0.0
        self.playing = False

    @property
    def duration(self):
        return (self.num_frames - 1) * self.frame_time

    @property
    def speed(self):
        return self._speed

    @speed.setter
    def speed(self, speed):
        self._speed = number("speed", speed)

    @property
    def time(self):
        return self._time

    @time.setter
    def time(self, time):
        self._time = min(max(number("time", time, "seconds", least=-math.inf), 0.0), self.duration)

    @property
    def frame(self):
        """The frame at hand: the last one whose time has come."""
        return max(0, min(self.num_frames - 1, math.floor(self.time / self.frame_time + 1e-9)))

    def play(self):
        """Goes on, from the start if the end is reached."""
        if self.time >= self.duration:
            self.time = 0.0
        self.playing = self.duration > 0

    def pause(self):
        self.playing = False

    def seek(self, time):
        """To this time, or the end that is nearer."""
        self.time = time

    def advance(self, elapsed):
        """Moves on by `elapsed` seconds of the watch; returns the frame."""
        if not self.playing:
            return self.frame
        time = self.time + self.speed * elapsed
        if time > self.duration:
            if self.loop:
                time %= self.duration
            else:
                time = self.duration
                self.playing = False
        self.time = time
        return self.frame
