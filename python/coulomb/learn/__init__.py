"""Learning through the simulator: policies whose gradient goes through the physics (docs/learning.md). Needs the extra `learn`.

    python -m coulomb.learn.shac --env Hopper --seed 0

- shac: Short-Horizon Actor-Critic [Xu2022], in one file.
- worlds: n environments of a task with states that are tensors, for algorithms of your own.
"""
