#!/usr/bin/python3
"""Cuts 3,671 JPEG crops (320 to 640 pixels wide, quality 92) from the photographs of Debian's packages mate-backgrounds and
lomiri-wallpapers-16.04: an image classification task of the size of tf_flowers, class = photograph.

    bench/make_photographs.py FOLDER

writes FOLDER/train/CLASS/NNNN.jpg and FOLDER/validation/CLASS/NNNN.jpg. Validation crops come from cells of 640 x 480 pixels,
spread over a photograph, training crops from what is around them: no pixel is in both. The same packages give the same files.

FOLDER/cut.txt says how a folder was cut. One that is cut like this already is left as it is; one of another cut is made anew."""

import pathlib
import random
import shutil
import sys

from PIL import Image

TRAIN, VALIDATION = 3303, 368
SOURCES = ["/usr/share/backgrounds/*.jpg", "/usr/share/backgrounds/mate/nature/*.jpg"]
QUALITY = 92
NARROW, WIDE = 320, 640
FLAT, TALL = 0.65, 1.35  # height / width; a validation crop is no higher than its cell
CELL = (640, 480)
CELL_EVERY = (1500, 1000)  # about so many pixels of a photograph have a cell in them
SMALLEST = (1200, 1000)  # photographs that have room for both

SPLITS = ("train", "validation")
MANIFEST = "cut.txt"


def photographs():
    """The photographs that are large enough for crops of both parts, by name: {path: (width, height)}."""
    found = {}
    for pattern in SOURCES:
        for path in sorted(pathlib.Path("/").glob(pattern[1:])):
            with Image.open(path) as image:
                if image.width >= SMALLEST[0] and image.height >= SMALLEST[1]:
                    found[path] = image.size
    if len(found) < 10:
        sys.exit(f"only {len(found)} photographs were found: install mate-backgrounds and lomiri-wallpapers-16.04 "
                 "(./dev setup photographs)")
    return found


def describe(paths):
    """How the photographs are cut: whatever changes a crop changes this."""
    return "".join(f"{line}\n" for line in (
        f"{TRAIN} + {VALIDATION} crops, {NARROW} to {WIDE} pixels wide, height {FLAT} to {TALL} of it, quality {QUALITY}",
        f"validation from cells of {CELL} pixels, one for about {CELL_EVERY}, training from around them",
        *(f"{path} {width} x {height}, {path.stat().st_size} bytes" for path, (width, height) in paths.items())))


def cells(width, height):
    """Boxes (left, top, right, bottom) that validation crops come from: rows of cells, every second row moved aside."""
    rows = max(1, round((height - CELL[1]) / CELL_EVERY[1]))
    columns = max(1, round(width / CELL_EVERY[0]))
    found = []
    for row in range(rows):
        side = 0.5 if rows == 1 else (0.25, 0.75)[row % 2]
        top = min(max(round(height * (row + 0.5) / rows) - CELL[1] // 2, 0), height - CELL[1])
        for column in range(columns):
            left = min(max(round(width * (column + side) / columns) - CELL[0] // 2, 0), width - CELL[0])
            found.append((left, top, left + CELL[0], top + CELL[1]))
    return found


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def draw_box(draw, region, width):
    """A random box of that width inside of the region."""
    left, top, right, bottom = region
    height = min(bottom - top, round(width * draw.uniform(FLAT, TALL)))
    x, y = draw.randint(left, right - width), draw.randint(top, bottom - height)
    return x, y, x + width, y + height


def boxes(name, size, split, count):
    """`count` random boxes (left, top, right, bottom) of one split of a photograph."""
    draw = random.Random(f"{split} {name}")
    kept_out = cells(*size)
    found = []
    while len(found) < count:
        # The width is drawn once, then a place for it: widths are spread evenly although wide boxes find fewer places.
        width = draw.randint(NARROW, WIDE)
        if split == "validation":
            found.append(draw_box(draw, kept_out[len(found) % len(kept_out)], width))
            continue
        for _ in range(1000):
            box = draw_box(draw, (0, 0, *size), width)
            if not any(overlap(box, cell) for cell in kept_out):
                found.append(box)
                break
    return found


def cut(paths, root):
    for number, (path, size) in enumerate(paths.items()):
        with Image.open(path) as image:
            image = image.convert("RGB")
        for split, total in zip(SPLITS, (TRAIN, VALIDATION)):
            folder = root / split / path.stem
            folder.mkdir(parents=True)
            count = total // len(paths) + (number < total % len(paths))
            for i, box in enumerate(boxes(path.name, size, split, count)):
                image.crop(box).save(folder / f"{i:04}.jpg", quality=QUALITY)
        print(f"{number + 1} of {len(paths)}: {path.stem}", flush=True)


def remove_old(root, paths):
    """Takes away what an earlier cut wrote, and nothing else."""
    if not root.exists():
        return
    entries = [*root.iterdir(), *(entry for split in SPLITS for entry in root.glob(f"{split}/*"))]
    others = {entry.name for entry in entries} - {*SPLITS, MANIFEST, *(path.stem for path in paths)}
    if others:
        sys.exit(f"'{root}' holds other things than a cut of the photographs: {', '.join(sorted(others))}; name another folder")
    print(f"'{root}' was cut in another way and is made anew", flush=True)
    shutil.rmtree(root)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    paths = photographs()
    manifest = root / MANIFEST
    if manifest.is_file() and manifest.read_text() == describe(paths):
        print(f"'{root}' is cut already")
        return
    remove_old(root, paths)
    unfinished = root.with_name(root.name + ".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    cut(paths, unfinished)
    (unfinished / MANIFEST).write_text(describe(paths))
    unfinished.rename(root)


if __name__ == "__main__":
    main()
