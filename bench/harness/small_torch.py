"""The PyTorch side of bench/small: softmax regression and LeNet on Fashion-MNIST.

Started by bench/small with a Python that has torch; see harness/peer.py for how they talk. Arguments: data set
directory, threads. A request names a model, a batch size, a memory format, whether the optimizer works on lists of
tensors (`foreach`), a least number of steps and a least time; the answer is the rate of steps after a warm-up.
"""

import json
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

from fashion_mnist import training_set


def softmax():
    return nn.Linear(784, 10)


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 1024), nn.ReLU(inplace=True), nn.Dropout(0.4),
        nn.Linear(1024, 10))


class Trainer:
    """Steps over batches that are slices of a tensor that was shuffled beforehand."""

    def __init__(self, images, labels, model, batch_size, channels_last, foreach):
        memory_format = torch.channels_last if channels_last else torch.contiguous_format
        if model == "softmax":
            self.images = images
            self.model = softmax()
            options = {"lr": 0.5}
        else:
            self.images = images.view(-1, 1, 28, 28).contiguous(memory_format=memory_format)
            self.model = lenet().to(memory_format=memory_format)
            options = {"lr": 0.01, "momentum": 0.9}
        self.labels = labels
        self.optimizer = torch.optim.SGD(self.model.parameters(), foreach=foreach, **options)
        self.batch_size = batch_size
        self.position = 0

    def step(self):
        end = self.position + self.batch_size
        if end > len(self.labels):
            self.position, end = 0, self.batch_size
        images, labels = self.images[self.position:end], self.labels[self.position:end]
        self.position = end
        self.optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(self.model(images), labels).backward()
        self.optimizer.step()

    def rate(self, steps, seconds):
        """Steps a second over at least `steps` steps and `seconds` seconds."""
        done, start = 0, time.perf_counter()
        while True:
            for _ in range(steps):
                self.step()
            done += steps
            elapsed = time.perf_counter() - start
            if elapsed >= seconds:
                return done / elapsed


def main():
    directory, threads = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    images, labels = (torch.from_numpy(array) for array in training_set(directory))
    order = torch.randperm(len(labels))
    images, labels = images[order], labels[order]
    trainers = {}
    for line in sys.stdin:
        request = json.loads(line)
        steps, seconds = request.pop("steps"), request.pop("seconds")
        key = tuple(sorted(request.items()))
        if key not in trainers:
            trainers[key] = Trainer(images, labels, **request)
        trainer = trainers[key]
        trainer.rate(max(1, steps // 10), 0.1 * seconds)
        print(json.dumps({"steps_per_second": trainer.rate(steps, seconds)}), flush=True)


if __name__ == "__main__":
    main()
