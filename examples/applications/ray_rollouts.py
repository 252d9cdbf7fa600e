"""Rollouts and gradients on many machines, by Ray: each actor holds a batch of its own, gets parameters, returns trajectories and products.

Boxes slide on a floor until they rest; from how far each one comes the friction of the floor is found, by Gauss-Newton: an actor simulates
its share of the boxes at the friction of the day, and returns where they went and the derivative of that, one reverse sweep each.
Shares are put together in the order of the boxes, so the answer has the same bits for any number of actors, and for none.

    python examples/applications/ray_rollouts.py [--workers 2] [--threads 1] [--address auto] [--quick] [--output FOLDER]

On a cluster that `ray start` has made: --address auto, one worker a node, as many threads as it has cores. Needs '.[cluster]'.
"""

import argparse
from pathlib import Path

import numpy as np
import ray

import coulomb

FRICTION, GUESS = 0.45, 0.7
TIMESTEP, DURATION = 5e-3, 1.0
NAME = "friction/ground"


def make_model():
    scene = coulomb.Scene(timestep=TIMESTEP)
    scene.add_ground(friction=GUESS)
    scene.add_box(size=(0.2, 0.2, 0.1), mass=1.0, position=(0, 0, 0.05), name="box")
    return scene.build()


def make_starts(model, count):
    """Q (n, nq) and V (n, nv) of boxes pushed along x, each at a speed of its own."""
    q, v = model.neutral()
    Q, V = np.tile(q, (count, 1)), np.tile(v, (count, 1))
    V[:, 0] = np.linspace(1.0, 3.0, count)
    return Q, V


class Share:
    """Some of the boxes, with a batch for them. Knows nothing of Ray: an actor is made of it, and so is the test beside."""

    def __init__(self, model, Q, V, threads):
        self.batch = coulomb.BatchSimulator(model, len(Q), threads)
        self.Q, self.V = Q, V
        self.U = np.zeros((len(Q), round(DURATION / TIMESTEP), model.nu))

    def rollout(self, friction):
        """Where the boxes were (m, T + 1, nq), and how far each one's end moves with the friction (m,)."""
        m, T = self.U.shape[:2]
        self.batch.set_parameters({NAME: np.full((m, 1), friction)})
        rollout = self.batch.rollout(self.Q, self.V, self.U)
        dQ, dV = np.zeros((2, m, T + 1, self.V.shape[1]))
        dQ[:, -1, 0] = 1  # x, at the end; boxes do not turn
        return rollout.q, rollout.vjp(dQ, dV, wrt=[NAME])[NAME][:, 0]


class Actors:
    """The boxes over `count` actors: the same rows, whatever their number."""

    def __init__(self, count, model, Q, V, threads):
        rows = np.array_split(np.arange(len(Q)), count)
        actor = ray.remote(num_cpus=threads)(Share)
        self.actors = [actor.remote(model, Q[mine], V[mine], threads) for mine in rows]

    def rollout(self, friction):
        shares = ray.get([actor.rollout.remote(friction) for actor in self.actors])
        return tuple(np.concatenate(parts) for parts in zip(*shares))


def fit(boxes, measured, iterations):
    """Gauss-Newton from the guess: the friction after every iteration, and the last trajectories and derivatives."""
    friction = [GUESS]
    for _ in range(iterations):
        q, d = boxes.rollout(friction[-1])
        friction.append(friction[-1] - d @ (q[:, -1, 0] - measured) / (d @ d))
    return friction, q, d


def picture(boxes, start, found, measured, file):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5, 3.2), layout="constrained")
    times = TIMESTEP * np.arange(found.shape[1])
    axis.plot(times, start[:, :, 0].T, color="0.8", lw=1)
    axis.plot(times, found[:, :, 0].T, color="C0", lw=1)
    axis.plot(np.full(len(measured), times[-1]), measured, "k.", ms=4)
    axis.set(xlabel="s", ylabel="x [m]", title="boxes at the guess (grey), at the friction found; dots: measured")
    figure.savefig(file, dpi=130)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2, help="actors")
    parser.add_argument("--threads", type=int, default=1, help="of each actor's batch")
    parser.add_argument("--address", help="of a cluster; without it, actors on this machine")
    parser.add_argument("--quick", action="store_true", help="fewer boxes")
    parser.add_argument("--output", default="output/examples", help="folder of the plot (default: %(default)s)")
    options = parser.parse_args()
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)

    model = make_model()
    Q, V = make_starts(model, 12 if options.quick else 240)
    alone = Share(model, Q, V, options.threads)
    measured = alone.rollout(FRICTION)[0][:, -1, 0]

    here = {} if options.address else {"num_cpus": options.workers * options.threads, "include_dashboard": False}
    ray.init(options.address, log_to_driver=False, logging_level="ERROR", **here)
    try:
        actors = Actors(options.workers, model, Q, V, options.threads)
        friction, q, d = fit(actors, measured, iterations=8)
    finally:
        ray.shutdown()
    for iteration, value in enumerate(friction):
        print(f"iteration {iteration}: friction {value:.12f}")

    # The same in this process.
    friction_alone, q_alone, d_alone = fit(alone, measured, iterations=8)
    same = friction == friction_alone and np.array_equal(q, q_alone) and np.array_equal(d, d_alone)
    print(f"{options.workers} actors and one process: {'the same bits' if same else 'DIFFERENT BITS'}")
    picture(alone, alone.rollout(GUESS)[0], q, measured, folder / "ray_rollouts.png")
    print(folder / "ray_rollouts.png")
    assert same and abs(friction[-1] - FRICTION) < 1e-9


if __name__ == "__main__":
    main()
