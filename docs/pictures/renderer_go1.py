"""The picture of docs/pictures.md: python docs/pictures/renderer_go1.py. Needs coulomb[video], pillow and example-robot-data."""

import pathlib

from PIL import Image
from viewer_go1 import SEEN_AT, TIMESTEP, motion

import coulomb

PICTURE = pathlib.Path(__file__).with_suffix(".png")


def main():
    model, run = motion()
    frame = round(SEEN_AT / (10 * TIMESTEP))
    renderer = coulomb.Renderer(model, 960, 560)
    renderer.orbit(azimuth=132, elevation=-16, distance=1.0, track="base", target=(0.03, 0, -0.1))
    picture = renderer.render(run.q[frame], contacts=run.contacts[frame], contact_time=run.contact_time)
    Image.fromarray(picture).save(PICTURE, optimize=True)
    print(PICTURE, PICTURE.stat().st_size)


if __name__ == "__main__":
    main()
