#!/usr/bin/python3
"""Cuts 3,671 JPEG crops (320 to 640 pixels wide, quality 92) from the photographs of Debian's packages mate-backgrounds and
lomiri-wallpapers-16.04: an image classification task of the size of tf_flowers, class = photograph.

    bench/make_photographs.py FOLDER

writes FOLDER/train/CLASS/NNNN.jpg and FOLDER/validation/CLASS/NNNN.jpg. Training crops come from the left three quarters of a
photograph, validation crops from the right quarter, so that no pixel is in both. The same packages give the same files."""

import pathlib
import random
import sys

from PIL import Image

TRAIN, VALIDATION = 3303, 368
SOURCES = ["/usr/share/backgrounds/*.jpg", "/usr/share/backgrounds/mate/nature/*.jpg"]
QUALITY = 92
BORDER = 0.75  # of the width, between the two parts
NARROW, WIDE = 320, 640


def photographs():
    """The photographs that are large enough for a crop of each part, by name."""
    found = []
    for pattern in SOURCES:
        for path in sorted(pathlib.Path("/").glob(pattern[1:])):
            with Image.open(path) as image:
                if image.width * (1 - BORDER) >= NARROW and image.height >= NARROW:
                    found.append(path)
    if len(found) < 10:
        sys.exit(f"only {len(found)} photographs were found: install mate-backgrounds and lomiri-wallpapers-16.04 "
                 "(./dev setup photographs)")
    return found


def crop(image, left, right, draw):
    width = draw.randint(NARROW, min(WIDE, right - left))
    height = min(image.height, round(width * draw.uniform(0.65, 1.35)))
    x = draw.randint(left, right - width)
    y = draw.randint(0, image.height - height)
    return image.crop((x, y, x + width, y + height))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    paths = photographs()
    for number, path in enumerate(paths):
        with Image.open(path) as image:
            image = image.convert("RGB")
        border = round(image.width * BORDER)
        for split, total, left, right in (("train", TRAIN, 0, border), ("validation", VALIDATION, border, image.width)):
            draw = random.Random(f"{split} {path.name}")
            folder = root / split / path.stem
            folder.mkdir(parents=True, exist_ok=True)
            for i in range(total // len(paths) + (number < total % len(paths))):
                target = folder / f"{i:04}.jpg"
                if not target.exists():
                    crop(image, left, right, draw).save(target, quality=QUALITY)
                else:
                    crop(image, left, right, draw)
        print(f"{number + 1} of {len(paths)}: {path.stem}", flush=True)


main()
