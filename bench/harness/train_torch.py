"""The PyTorch side of bench/train: networks of torchvision (and the CIFAR ResNet) trained on one random batch.

Started by bench/train with a Python that has torch and torchvision; see harness/peer.py for how they talk. Argument: threads. A
request names a model, a batch size, a precision (fp32, or bf16: autocast), whether memory is channels-last, and a number of
steps after a warm-up; the answer is the rate of images. With "memory", the answer is the peak of resident memory in MiB, for
which the process must have measured nothing else.
"""

import gc
import json
import resource
import sys
import time

import torch
import torch.nn.functional as F
import torchvision
from torch import nn


class Block(nn.Module):
    """The residual unit of the small networks: zeros for the new channels of a shortcut. He et al. (2016), section 4.2."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.stride, self.new_channels = stride, after - before

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        if self.stride != 1:
            before = self.new_channels // 2
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, before, self.new_channels - before))
        return F.relu(y + x, inplace=True)


def resnet20():
    layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)]
    before = 16
    for after in (16, 32, 64):
        for unit in range(3):
            layers.append(Block(before, after, 2 if after > 16 and unit == 0 else 1))
            before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


# Our names: a function that makes the network, image size, classes.
MODELS = {
    "resnet_v1_18": (torchvision.models.resnet18, 224, 1000),
    "resnet_v1_34": (torchvision.models.resnet34, 224, 1000),
    "resnet_v1_50": (torchvision.models.resnet50, 224, 1000),
    "resnet_v1_101": (torchvision.models.resnet101, 224, 1000),
    "resnet_v1_152": (torchvision.models.resnet152, 224, 1000),
    "resnet_v1_20": (resnet20, 32, 10),
    "vgg_a": (torchvision.models.vgg11, 224, 1000),
    "vgg_16": (torchvision.models.vgg16, 224, 1000),
    "vgg_16_bn": (torchvision.models.vgg16_bn, 224, 1000),
    "vgg_19": (torchvision.models.vgg19, 224, 1000),
    "mobilenet_v2": (torchvision.models.mobilenet_v2, 224, 1000),
}


class Trainer:
    def __init__(self, model, batch_size, precision, channels_last):
        make, size, classes = MODELS[model]
        memory_format = torch.channels_last if channels_last else torch.contiguous_format
        self.model = make().to(memory_format=memory_format)
        self.images = torch.rand(batch_size, 3, size, size).to(memory_format=memory_format)
        self.labels = torch.randint(classes, (batch_size,))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9, foreach=True)
        self.autocast = precision == "bf16"

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            loss = F.cross_entropy(self.model(self.images), self.labels)
        loss.backward()
        self.optimizer.step()

    def rate(self, steps):
        """Images a second."""
        start = time.perf_counter()
        for _ in range(steps):
            self.step()
        return steps * len(self.labels) / (time.perf_counter() - start)


def main():
    torch.set_num_threads(int(sys.argv[1]))
    torch.manual_seed(1)
    trainer, current = None, None
    for line in sys.stdin:
        request = json.loads(line)
        steps, memory = request.pop("steps"), request.pop("memory", False)
        if request != current:  # one network at a time in memory
            trainer = None
            gc.collect()
            trainer, current = Trainer(**request), dict(request)
            trainer.rate(1)
        rate = trainer.rate(steps)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"peak_resident_memory": peak} if memory else {"images_per_second": rate}), flush=True)


if __name__ == "__main__":
    main()
