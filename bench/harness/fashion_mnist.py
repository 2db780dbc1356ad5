"""Fashion-MNIST as NumPy arrays, for peers."""

import gzip
import pathlib

import numpy


def _read_idx(path):
    with gzip.open(path, "rb") as file:
        content = file.read()
    dimensions = content[3]
    shape = numpy.frombuffer(content, ">i4", dimensions, 4)
    return numpy.frombuffer(content, numpy.uint8, offset=4 + 4 * dimensions).reshape(shape)


def training_set(directory):
    """(images float32[60000, 784] in [0, 1], labels int64[60000])"""
    directory = pathlib.Path(directory)
    images = _read_idx(directory / "train-images-idx3-ubyte.gz")
    labels = _read_idx(directory / "train-labels-idx1-ubyte.gz")
    return images.reshape(len(images), -1).astype(numpy.float32) / 255, labels.astype(numpy.int64)
