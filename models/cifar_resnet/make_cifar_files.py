#!/usr/bin/env python3
"""Makes files of CIFAR-10's formats from Fashion-MNIST, for machines that cannot download CIFAR.

    make_cifar_files.py FOLDER [--source DIRECTORY] [--samples N]

writes FOLDER/cifar-10-batches-bin (five training files and a test file) and FOLDER/cifar-10-batches-py (pickles of protocol 2).
The 28 x 28 grey images get a border of two black pixels and three equal colours. It needs nothing but Python; the pickles
are written as Python 2 wrote the originals."""

import argparse
import gzip
import pathlib
import struct

SIDE, BORDER, PIXELS = 28, 2, 32 * 32


def read_idx(source, split, kind):
    for suffix, opener in (("", open), (".gz", gzip.open)):
        path = source / f"{split}-{kind}-ubyte{suffix}"
        if path.exists():
            with opener(path, "rb") as file:
                content = file.read()
            return content[4 + 4 * content[3]:]
    raise SystemExit(f"{source} has no {split}-{kind}-ubyte[.gz]")


def colour_image(grey):
    """The 3,072 bytes of CIFAR's image: planes of red, green and blue."""
    empty = bytes(32 * BORDER)
    rows = b"".join(bytes(BORDER) + grey[y * SIDE:(y + 1) * SIDE] + bytes(BORDER) for y in range(SIDE))
    return (empty + rows + empty) * 3


def pickled(labels, images):
    """What cPickle.dump({'labels': [...], 'data': uint8 array}, file, 2) writes."""
    data = b"".join(images)
    numbers = b"".join(b"K" + bytes([label]) for label in labels)
    array = (b"cnumpy.core.multiarray\n_reconstruct\nq\x05cnumpy\nndarray\nq\x06K\x00\x85U\x01b\x87Rq\x07(K\x01"
             b"J" + struct.pack("<i", len(labels)) + b"M" + struct.pack("<H", 3 * PIXELS) + b"\x86"
             b"cnumpy\ndtype\nq\x08U\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
             b"\x89T" + struct.pack("<I", len(data)) + data + b"tb")
    return b"\x80\x02}q\x01(U\x06labelsq\x02]q\x03(" + numbers + b"eU\x04dataq\x04" + array + b"u."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--source", type=pathlib.Path, default=pathlib.Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--samples", type=int, default=10000, help="images a file (default: %(default)s, as in CIFAR)")
    options = parser.parse_args()
    if not 1 <= options.samples <= 10000:
        parser.error("--samples must be 1 to 10000")
    for form in ("bin", "py"):
        (options.folder / f"cifar-10-batches-{form}").mkdir(parents=True, exist_ok=True)
    for split, names in (("train", [f"data_batch_{i}" for i in range(1, 6)]), ("t10k", ["test_batch"])):
        images = read_idx(options.source, split, "images-idx3")
        labels = read_idx(options.source, split, "labels-idx1")
        for number, name in enumerate(names):
            part = range(number * options.samples, (number + 1) * options.samples)
            colours = [colour_image(images[i * SIDE * SIDE:(i + 1) * SIDE * SIDE]) for i in part]
            records = b"".join(bytes([labels[i]]) + image for i, image in zip(part, colours))
            (options.folder / "cifar-10-batches-bin" / f"{name}.bin").write_bytes(records)
            (options.folder / "cifar-10-batches-py" / name).write_bytes(pickled([labels[i] for i in part], colours))


main()
