"""How to throw a box so that it comes to rest on a target: gradients through flight, impact and sliding, with PyTorch.

The unknown is the velocity at the release, 1 m above the ground; the box spins about its vertical axis and lands
flat. Loss: squared distance of the resting place from the target, and a little for the effort of the throw.
torch.optim.LBFGS on coulomb.torch.rollout. (A box that tumbles lands on one corner or another: its resting place
jumps, and a local method may stop between two jumps.)

    python examples/applications/torch_throw.py [--quick] [--output FOLDER]
"""

import argparse
from pathlib import Path

import numpy as np
import torch

import coulomb
import coulomb.torch

TIMESTEP, DURATION = 2e-3, 1.6
TARGET = torch.tensor([2.0, 0.6], dtype=torch.float64)
SPIN = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)  # rad/s
EFFORT = 1e-5  # m^2 per (m/s)^2
TOLERANCE = 0.01  # m


def make_simulator():
    scene = coulomb.Scene(timestep=TIMESTEP)
    scene.add_ground(friction=0.5)
    scene.add_box(size=(0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 1), name="box")
    return coulomb.Simulator(scene.build())


def throw(sim, velocity):
    """The trajectory (T + 1, 7) of the box."""
    q, _ = sim.model.neutral()
    return coulomb.torch.rollout(sim, q, torch.cat([velocity, SPIN]), steps=round(DURATION / TIMESTEP))[0]


def optimize(sim, throws):
    """The velocity of the closest throw, the distances from the target (m), and the trajectories."""
    velocity = torch.tensor([1.5, 0.0, 1.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([velocity], max_iter=throws, max_eval=throws, line_search_fn="strong_wolfe")
    tried, distances, paths = [], [], []

    def loss():
        optimizer.zero_grad()
        path = throw(sim, velocity)
        miss = path[-1, :2] - TARGET
        value = miss.square().sum() + EFFORT * velocity.square().sum()
        value.backward()
        tried.append(velocity.detach().numpy().copy())
        distances.append(miss.norm().item())
        paths.append(path.detach().numpy())
        return value

    optimizer.step(loss)
    return tried[int(np.argmin(distances))], distances, paths


def picture(distances, paths, file):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (side, top, curve) = plt.subplots(1, 3, figsize=(12, 3.4))
    shown = range(min(5, len(paths)))
    for k in shown:
        color = plt.cm.viridis(k / len(shown))
        side.plot(paths[k][:, 0], paths[k][:, 2], color=color, label=f"throw {k + 1}")
        top.plot(paths[k][:, 0], paths[k][:, 1], color=color)
    side.plot(TARGET[0], 0.1, "rx")
    top.plot(*TARGET, "rx")
    side.set(xlabel="x [m]", ylabel="height [m]", title="centre of the box, from the side")
    top.set(xlabel="x [m]", ylabel="y [m]", title="from above; cross: target")
    side.legend(fontsize=7)
    curve.semilogy(range(1, len(distances) + 1), distances)
    curve.axhline(TOLERANCE, color="0.6", linestyle="--", label="near enough")
    curve.set(xlabel="throw", ylabel="distance [m]", title="distance from the target")
    curve.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(file, dpi=130)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer throws")
    parser.add_argument("--output", default="output/examples", help="folder of the plot (default: %(default)s)")
    options = parser.parse_args()
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    velocity, distances, paths = optimize(make_simulator(), 12 if options.quick else 25)
    for k, distance in enumerate(distances[:12]):
        print(f"throw {k + 1:2d}: {100 * distance:9.4f} cm from the target")
    print(
        f"closest of {len(distances)}: {100 * min(distances):.4f} cm; velocity at the release {velocity.round(3)} m/s"
    )
    picture(distances, paths, folder / "torch_throw.png")
    print(folder / "torch_throw.png")
    assert min(distances) < TOLERANCE, f"{min(distances)} m from the target"


if __name__ == "__main__":
    main()
