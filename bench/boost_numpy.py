#!/usr/bin/env python3
"""boost_numpy.py DIRECTORY COMPONENTS: the principal components of a directory of snapshots with NumPy's SVD, as a script of a
few lines computes them: all snapshots in memory, the mean taken off, signs as svd_flip has them. Prints the seconds."""
import json
import pathlib
import struct
import sys
import time

import numpy as np


def weights(path):
    with open(path, 'rb') as file:
        length, = struct.unpack('<Q', file.read(8))
        header = json.loads(file.read(length))
        begin, end = header['weights']['data_offsets']
        file.seek(8 + length + begin)
        return np.fromfile(file, np.float32, (end - begin) // 4)


directory, components = pathlib.Path(sys.argv[1]), int(sys.argv[2])
start = time.monotonic()
paths = sorted(directory.glob('snapshot-*.safetensors'), key=lambda path: int(path.stem.split('-')[1]))
x = np.stack([weights(path) for path in paths])
x -= x.mean(0)
u, s, v = np.linalg.svd(x, full_matrices=False)
signs = np.sign(u[np.abs(u).argmax(0), range(u.shape[1])])
basis = (v * signs[:, None])[:components]
print(time.monotonic() - start)
