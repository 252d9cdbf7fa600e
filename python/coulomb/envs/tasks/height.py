"""The reward for height that DiffRL's hopper and humanoid share."""

from __future__ import annotations

from ..arrays import clip, where


def height_reward(excess, most, scale):
    """-200 d^2 below, scale d above, of d = excess within [-1, most]."""
    excess = clip(excess, -1.0, most)
    return where(excess < 0, -200 * excess * excess, scale * excess)
