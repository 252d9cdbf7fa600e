"""Learning through the simulator: policies whose gradient goes through the physics (docs/learning.md). Needs the extra `learn`.

    python -m coulomb.learn.shac --env Hopper --seed 0 --output runs/hopper
    python -m coulomb.learn.play runs/hopper --video hopper.mp4

- shac: Short-Horizon Actor-Critic [Xu2022], in one file.
- policy: what a run has learned, as a function; play: an episode of it.
- worlds: n environments of a task with states that are tensors, for algorithms of your own.
"""
