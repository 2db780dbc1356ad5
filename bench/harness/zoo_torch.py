"""The networks of models/zoo in PyTorch, for train_torch.py: torchvision's where it has them, else as their papers say.

MODELS maps our names to a function that makes the network, the image's channels and size, and the classes. Where the zoo pads a
convolution of stride 2 on one side, PyTorch's pads both: the work is the same.
"""

import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torchvision.models import mobilenet_v2
from torchvision.models.resnet import Bottleneck, ResNet


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


def cifar_resnet(units):
    layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)]
    before = 16
    for after in (16, 32, 64):
        for unit in range(units):
            layers.append(Block(before, after, 2 if after > 16 and unit == 0 else 1))
            before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class PreactivationUnit(nn.Module):
    """The bottleneck with normalisation in front of its convolutions. He et al., arXiv 1603.05027."""

    def __init__(self, before, filters, stride):
        super().__init__()
        self.preact = nn.BatchNorm2d(before)
        self.conv1 = nn.Conv2d(before, filters, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(filters)
        self.conv2 = nn.Conv2d(filters, filters, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(filters)
        self.conv3 = nn.Conv2d(filters, 4 * filters, 1, bias=False)
        self.shortcut = None if before == 4 * filters else nn.Conv2d(before, 4 * filters, 1, stride, bias=False)

    def forward(self, x):
        activated = F.relu(self.preact(x), inplace=True)
        shortcut = x if self.shortcut is None else self.shortcut(activated)
        y = F.relu(self.bn1(self.conv1(activated)), inplace=True)
        return self.conv3(F.relu(self.bn2(self.conv2(y)), inplace=True)) + shortcut


def resnet_v2(units):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for block, count in enumerate(units):
        for unit in range(count):
            layers.append(PreactivationUnit(before, 64 << block, 2 if block > 0 and unit == 0 else 1))
            before = 4 * (64 << block)
    return nn.Sequential(*layers, nn.BatchNorm2d(before), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(before, 1000))


def mobilenet_v1(multiplier):
    """Howard et al., arXiv 1704.04861, table 1."""
    def normalised(before, after, size, stride, groups=1):
        return [nn.Conv2d(before, after, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(after),
                nn.ReLU6(inplace=True)]

    before = int(32 * multiplier)
    layers = normalised(3, before, 3, 2)
    for stride, filters in [(1, 64), (2, 128), (1, 128), (2, 256), (1, 256), (2, 512), *[(1, 512)] * 5, (2, 1024), (1, 1024)]:
        after = int(filters * multiplier)
        layers += normalised(before, before, 3, stride, before) + normalised(before, after, 1, 1)
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.001), nn.Linear(before, 1000))


def alexnet_v2():
    """The single column of Krizhevsky, arXiv 1404.5997, figure 2."""
    def conv(before, after, size, **options):
        return [nn.Conv2d(before, after, size, **options), nn.ReLU(inplace=True)]

    return nn.Sequential(
        *conv(3, 64, 11, stride=4), nn.MaxPool2d(3, 2), *conv(64, 192, 5, padding=2), nn.MaxPool2d(3, 2),
        *conv(192, 384, 3, padding=1), *conv(384, 384, 3, padding=1), *conv(384, 256, 3, padding=1), nn.MaxPool2d(3, 2),
        nn.Flatten(), nn.Linear(256 * 5 * 5, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 4096),
        nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 1000))


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 7 * 7, 1024), nn.ReLU(inplace=True), nn.Dropout(),
        nn.Linear(1024, 10))


def cifarnet():
    return nn.Sequential(
        nn.Conv2d(3, 64, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.LocalResponseNorm(9, 0.001),
        nn.Conv2d(64, 64, 5, padding=2), nn.ReLU(inplace=True), nn.LocalResponseNorm(9, 0.001), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(64 * 8 * 8, 384), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(384, 192), nn.ReLU(inplace=True),
        nn.Linear(192, 10))


def on_photographs(make):
    return make, (3, 224), 1000


MODELS = {
    "lenet": (lenet, (1, 28), 10),
    "cifarnet": (cifarnet, (3, 32), 10),
    "alexnet_v2": on_photographs(alexnet_v2),
    "vgg_a": on_photographs(torchvision.models.vgg11),
    "vgg_a_bn": on_photographs(torchvision.models.vgg11_bn),
    "vgg_16": on_photographs(torchvision.models.vgg16),
    "vgg_16_bn": on_photographs(torchvision.models.vgg16_bn),
    "vgg_19": on_photographs(torchvision.models.vgg19),
    "vgg_19_bn": on_photographs(torchvision.models.vgg19_bn),
    "resnet_v1_18": on_photographs(torchvision.models.resnet18),
    "resnet_v1_20": (lambda: cifar_resnet(3), (3, 32), 10),
    "resnet_v1_34": on_photographs(torchvision.models.resnet34),
    "resnet_v1_50": on_photographs(torchvision.models.resnet50),
    "resnet_v1_101": on_photographs(torchvision.models.resnet101),
    "resnet_v1_110": (lambda: cifar_resnet(18), (3, 32), 10),
    "resnet_v1_152": on_photographs(torchvision.models.resnet152),
    "resnet_v1_200": on_photographs(lambda: ResNet(Bottleneck, [3, 24, 36, 3])),
    "resnet_v2_50": on_photographs(lambda: resnet_v2((3, 4, 6, 3))),
    "resnet_v2_101": on_photographs(lambda: resnet_v2((3, 4, 23, 3))),
    "resnet_v2_152": on_photographs(lambda: resnet_v2((3, 8, 36, 3))),
    "resnet_v2_200": on_photographs(lambda: resnet_v2((3, 24, 36, 3))),
    "mobilenet_v1": on_photographs(lambda: mobilenet_v1(1.0)),
    "mobilenet_v1_075": on_photographs(lambda: mobilenet_v1(0.75)),
    "mobilenet_v1_050": on_photographs(lambda: mobilenet_v1(0.5)),
    "mobilenet_v1_025": on_photographs(lambda: mobilenet_v1(0.25)),
    "mobilenet_v2": on_photographs(mobilenet_v2),
    "mobilenet_v2_140": on_photographs(lambda: mobilenet_v2(width_mult=1.4)),
    "mobilenet_v2_035": on_photographs(lambda: mobilenet_v2(width_mult=0.35)),
}
