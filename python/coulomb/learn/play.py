"""Plays a learned policy: prints its return, and shows the episode as a video or in a browser.

python -m coulomb.learn.play runs/hopper                         # the return of one episode
python -m coulomb.learn.play runs/hopper --video hopper.mp4      # needs the extra `video`
python -m coulomb.learn.play runs/hopper --view                  # needs the extra `view`
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

import coulomb
from coulomb.envs.single import Env
from coulomb.learn.policy import Policy
from coulomb.progress import Bar


class Episode(NamedTuple):
    """An episode from its first state to its last. ended: "fell", "time is up", or what failed."""

    q: np.ndarray  # (T + 1, nq)
    v: np.ndarray  # (T + 1, nv)
    rewards: np.ndarray  # (T,)
    timestep: float  # s between two rows
    ended: str


def play(policy, seed=0, seconds=None, progress=None):
    """An Episode of the policy in its task, started from random numbers of `seed`; at most `seconds` long.

    progress: called with (steps done, steps in all).
    """
    task = policy.task
    env = Env(task=task, simulator_options={"contact": policy.config.contact})
    longest = task.episode_length or 1000
    if seconds is not None:
        longest = min(longest, max(1, round(seconds / env.dt)))

    observation, _ = env.reset(seed=seed)
    q, v, rewards = [env.state.q[0].copy()], [env.state.v[0].copy()], []
    ended = "time is up"
    for step in range(longest):
        observation, reward, terminated, _, info = env.step(policy(observation))
        q.append(env.state.q[0].copy())
        v.append(env.state.v[0].copy())
        rewards.append(reward)
        if progress is not None:
            progress(step + 1, longest)
        if terminated or "failure" in info:
            ended = "fell" if terminated else info["failure"]
            break
    return Episode(np.array(q), np.array(v), np.array(rewards), env.dt, ended)


def film(policy, episode, path, width=640, height=480):
    """Writes an episode as a video (docs/pictures.md)."""
    from coulomb.envs.rendering import Camera, Pictures

    pictures = Pictures(policy.task, "rgb_array", Camera(width, height, None, None, None))
    bar = Bar("picture")
    frames = []
    for k, (q, v) in enumerate(zip(episode.q, episode.v, strict=True)):
        frames.append(pictures.frame(q, v))
        bar(k + 1, len(episode.q))
    bar.close()
    coulomb.save_video(path, frames, fps=1 / episode.timestep)


def _number(low):
    def parse(text):
        value = float(text)
        if not value > low:
            raise argparse.ArgumentTypeError(f"must be above {low}, got {text}")
        return value

    return parse


def _arguments(arguments):
    parser = argparse.ArgumentParser("python -m coulomb.learn.play", description=__doc__.split("\n")[0])
    parser.add_argument("run", help="the output folder of a run, or a checkpoint")
    parser.add_argument("--seed", type=int, default=0, help="of the start (default: 0)")
    parser.add_argument("--seconds", type=_number(0), help="the longest time that is played (default: a whole episode)")
    parser.add_argument("--video", metavar="FILE", help="write the episode as a video, such as run.mp4")
    parser.add_argument("--view", action="store_true", help="show the episode in a browser until Ctrl-C")
    parser.add_argument("--port", type=int, default=8080, help="of --view (default: 8080; 0: any free port)")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = _arguments(arguments)
    try:
        if options.seed < 0:
            raise ValueError(f"--seed: must be at least 0, got {options.seed}")
        if options.video and not Path(options.video).resolve().parent.is_dir():
            raise ValueError(f"--video: the folder {str(Path(options.video).resolve().parent)!r} does not exist")
        policy = Policy.load(options.run)
        bar = Bar("step")
        episode = play(policy, options.seed, options.seconds, bar)
        bar.close()
        length = len(episode.rewards)
        print(
            f"{policy.config.env}: return {episode.rewards.sum():.0f} in {length} control steps, {length * episode.timestep:.1f} s of motion; "
            f"{episode.ended}"
        )
        if options.video:
            film(policy, episode, options.video)
            print(options.video)
        if options.view:
            viewer = coulomb.Viewer(policy.task.model, port=options.port)
            viewer.show(episode.q, timestep=episode.timestep)
            viewer.wait()
    except (ImportError, ValueError) as error:
        sys.exit(f"python -m coulomb.learn.play: {error}")


if __name__ == "__main__":
    main()
