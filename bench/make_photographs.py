#!/usr/bin/python3
"""Cuts 3,671 JPEG crops (320 to 640 pixels wide, quality 92) from the photographs of Debian's packages mate-backgrounds and
lomiri-wallpapers-16.04: an image classification task of the size of tf_flowers, class = photograph.

    bench/make_photographs.py FOLDER

writes FOLDER/train/CLASS/NNNN.jpg and FOLDER/validation/CLASS/NNNN.jpg. Validation crops come from small squares of a photograph,
in zigzag over its whole width so that they are a fair sample of it; training crops from what is around them: no pixel is in
both. The same packages give the same files."""

import pathlib
import random
import sys

from PIL import Image

TRAIN, VALIDATION = 3303, 368
SOURCES = ["/usr/share/backgrounds/*.jpg", "/usr/share/backgrounds/mate/nature/*.jpg"]
QUALITY = 92
NARROW, WIDE = 320, 640
FLAT, TALL = 0.65, 1.35  # height / width
SQUARE_EVERY, MOST_SQUARES = 420, 8  # a square for so many pixels of the width, and how many at most
SMALLEST = (1200, 1000)  # photographs that have room for both


def photographs():
    """The photographs that are large enough for crops of both parts, by name."""
    found = []
    for pattern in SOURCES:
        for path in sorted(pathlib.Path("/").glob(pattern[1:])):
            with Image.open(path) as image:
                if image.width >= SMALLEST[0] and image.height >= SMALLEST[1]:
                    found.append(path)
    if len(found) < 10:
        sys.exit(f"only {len(found)} photographs were found: install mate-backgrounds and lomiri-wallpapers-16.04 "
                 "(./dev setup photographs)")
    return found


def validation_squares(width, height):
    """Boxes (left, top, right, bottom), high and low in turn."""
    count = min(max(3, width // SQUARE_EVERY), MOST_SQUARES)
    centres = [(round(width * (i + 0.5) / count), round(height * (0.25 if i % 2 == 0 else 0.75))) for i in range(count)]
    half = NARROW // 2
    return [(x - half, y - half, x + half, y + half) for x, y in centres]


def draw_box(draw, region):
    """A random box inside of the region."""
    left, top, right, bottom = region
    width = draw.randint(NARROW, min(WIDE, right - left))
    height = min(bottom - top, round(width * draw.uniform(FLAT, TALL)))
    x, y = draw.randint(left, right - width), draw.randint(top, bottom - height)
    return x, y, x + width, y + height


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def boxes(size, split, count, draw):
    """`count` random boxes of one of the two parts."""
    squares = validation_squares(*size)
    if split == "validation":
        return [draw_box(draw, squares[i % len(squares)]) for i in range(count)]
    found = []
    while len(found) < count:
        box = draw_box(draw, (0, 0, *size))
        if not any(overlap(box, square) for square in squares):
            found.append(box)
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    paths = photographs()
    for number, path in enumerate(paths):
        with Image.open(path) as image:
            image = image.convert("RGB")
        for split, total in (("train", TRAIN), ("validation", VALIDATION)):
            folder = root / split / path.stem
            folder.mkdir(parents=True, exist_ok=True)
            count = total // len(paths) + (number < total % len(paths))
            for i, box in enumerate(boxes(image.size, split, count, random.Random(f"{split} {path.name}"))):
                target = folder / f"{i:04}.jpg"
                if not target.exists():
                    image.crop(box).save(target, quality=QUALITY)
        print(f"{number + 1} of {len(paths)}: {path.stem}", flush=True)


main()
