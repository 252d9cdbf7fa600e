"""Frames of a learned policy, as one picture and as an animation: learned_hopper.gif, .png.

python docs/pictures/learned_hopper.py runs/hopper/best.pt      # of the command in README.md
"""

import sys
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import torch

from coulomb.envs.rendering import Camera, Pictures
from coulomb.learn import shac
from coulomb.learn.worlds import Worlds

STEPS = 72  # control steps, from the 60th on: 1.2 s
EVERY = 2


@torch.no_grad()
def main(checkpoint):
    torch.set_num_threads(1)
    run = shac.Shac.saved(checkpoint)
    worlds = Worlds(run.task, 1, seed=0)
    pictures = Pictures(run.task, "rgb_array", Camera(320, 240, "track", None, None))

    frames = []
    for step in range(60 + STEPS):
        worlds.step(run.actor(run.normalizer(worlds.observe())))
        if step >= 60 and step % EVERY == 0:
            frames.append(pictures.frame(worlds.state.q[0].numpy(), worlds.state.v[0].numpy()))
    out = Path(__file__).with_suffix(".gif")
    imageio.imwrite(out, np.stack(frames), duration=1000 * EVERY / 60, loop=0)
    imageio.imwrite(out.with_suffix(".png"), np.concatenate(frames[:: len(frames) // 6][:6], axis=1))


if __name__ == "__main__":
    main(sys.argv[1])
