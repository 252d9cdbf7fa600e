"""What a picture of coulomb.Renderer costs: python benchmarks/pictures.py. 640 x 480 pixels, floor, shadow and contact forces, one thread.

The least of many pictures: by the clock, and in seconds of the processor, which count where the machine does other things too.
"""

import time

import numpy as np

import coulomb
from coulomb.demo import go1

PICTURES = 100


def heap():
    """50 bodies that fall onto one another."""
    random = np.random.default_rng(0)
    scene = coulomb.Scene(timestep=5e-3)
    scene.add_ground()
    for k in range(50):
        position = (*random.uniform(-0.8, 0.8, 2), 0.1 + 0.3 * (k // 10))
        if k % 3 == 0:
            scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=position)
        elif k % 3 == 1:
            scene.add_sphere(0.1, mass=1.0, position=position)
        else:
            scene.add_capsule(0.06, 0.2, mass=1.0, position=position)
    return scene.build()


def least(draw):
    """(ms by the clock, ms of the processor)."""
    found = []
    for _ in range(PICTURES):
        clock, processor = time.perf_counter(), time.process_time()
        draw()
        found.append((time.perf_counter() - clock, time.process_time() - processor))
    return 1e3 * np.min(found, axis=0)


def main():
    print("| | first picture, ms | a picture, ms | of the processor, ms |\n|---|---|---|---|")
    for name, model, steps in (("Go1, its meshes", go1(), 300), ("50 bodies", heap(), 100)):
        sim = coulomb.Simulator(model)
        q, v = model.neutral()
        for _ in range(steps):
            q, v = sim.step(q, v)
        began = time.perf_counter()
        renderer = coulomb.Renderer(model)
        renderer.render(q)
        opened = 1e3 * (time.perf_counter() - began)
        clock, processor = least(lambda r=renderer, q=q, sim=sim: r.render(q, sim.contacts))
        print(f"| {name} | {opened:.0f} | {clock:.1f} | {processor:.1f} |")


if __name__ == "__main__":
    main()
