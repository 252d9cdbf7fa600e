"""A learned policy with its contact forces, as an animation and as a row of pictures.

python docs/pictures/learned.py RUN PICTURE.gif [--start 3] [--seconds 1.5] [--seed 0] [--azimuth 115] [--distance 4]

RUN is the output folder of coulomb.learn.shac, or a checkpoint. Writes PICTURE.gif and, beside it, PICTURE.png. Needs coulomb[learn,video].
"""

import argparse
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import torch

import coulomb
from coulomb.envs.single import Env
from coulomb.learn.policy import Policy

EVERY = 2  # control steps from picture to picture
IN_A_ROW = 6
ARROW = 0.3  # m, for a force of the robot's weight
GRAVITY = 9.81


def frames(policy, options):
    """Pictures (n, height, width, 3) of the episode between two times."""
    task = policy.task
    env = Env(task=task)
    observation, _ = env.reset(seed=options.seed)
    sim = coulomb.Simulator(task.model, timestep=task.timestep, **task.options)
    renderer = coulomb.Renderer(task.model, options.width, options.width * 9 // 16)
    renderer.orbit(azimuth=options.azimuth, elevation=-14, distance=options.distance, track=task.model.body_names[1])

    scale = ARROW / (GRAVITY * sum(task.model.body_mass))

    begin, end = (round(time / env.dt) for time in (options.start, options.start + options.seconds))
    pictures = []
    for step in range(end):
        action = policy(observation)
        if step >= begin and (step - begin) % EVERY == 0:
            # The forces are those of the step that begins in this state.
            q, v = env.state.q[0], env.state.v[0]
            sim.step(q, v, task.control(action[None])[0])
            pictures.append(renderer.render(q, contacts=sim.contacts, contact_time=task.timestep, force_scale=scale))
        observation, _, fell, *_ = env.step(action)
        if fell:
            break
    if len(pictures) < IN_A_ROW:
        raise SystemExit(f"the episode ends after {(step + 1) * env.dt:.1f} s: choose another --start or --seed")
    return np.stack(pictures), EVERY * env.dt


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run")
    parser.add_argument("picture", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=float, default=3.0, help="s")
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--azimuth", type=float, default=115.0, help="degrees")
    parser.add_argument("--distance", type=float, default=3.0, help="m")
    parser.add_argument("--width", type=int, default=480)
    options = parser.parse_args()

    torch.set_num_threads(1)
    pictures, seconds = frames(Policy.load(options.run), options)
    imageio.imwrite(options.picture, pictures, duration=1000 * seconds, loop=0, subrectangles=True)
    row = pictures[:: len(pictures) // IN_A_ROW][:IN_A_ROW]
    imageio.imwrite(options.picture.with_suffix(".png"), np.concatenate(row[:, ::2, ::2], axis=1))
    print(options.picture, options.picture.stat().st_size)


if __name__ == "__main__":
    main()
