"""The PyTorch side of bench/scale: DistributedDataParallel over Gloo, one thread a rank, on one random batch.

Arguments: model, batch size, rank, ranks, a file for the rendezvous; and a folder with a folder of JPEG files for each class, to
train on these instead: a worker process of each rank reads, crops and mirrors them. Trains until it is ended, and prints a line
"step: 1" at the end of each step.
"""

import itertools
import sys

import torch
import torch.distributed
import torch.nn.functional as F
import torchvision
from torch import nn
from torchvision import transforms

WIDTH, CLASSES = 4096, 1000


def mlp():
    layers = []
    for _ in range(4):
        layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers, nn.Linear(WIDTH, CLASSES))


def photographs(folder, batch_size, rank, ranks):
    dataset = torchvision.datasets.ImageFolder(folder, transforms.Compose([
        transforms.RandomResizedCrop(224),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ]))
    sampler = torch.utils.data.distributed.DistributedSampler(dataset, ranks, rank)
    loader = torch.utils.data.DataLoader(dataset, batch_size, sampler=sampler, num_workers=1, persistent_workers=True,
                                         drop_last=True)
    for epoch in itertools.count():
        sampler.set_epoch(epoch)
        for samples, labels in loader:
            yield samples.to(memory_format=torch.channels_last), labels


def main():
    name, batch_size, rank, ranks, store = sys.argv[1:6]
    batch_size, rank, ranks = int(batch_size), int(rank), int(ranks)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    if name == "mlp":
        network, samples = mlp(), torch.rand(batch_size, WIDTH)
    else:
        network = getattr(torchvision.models, name.replace("_v1_", ""))().to(memory_format=torch.channels_last)
        samples = torch.rand(batch_size, 3, 224, 224).to(memory_format=torch.channels_last)
    labels = torch.randint(CLASSES, (batch_size,))
    batches = photographs(sys.argv[6], batch_size, rank, ranks) if len(sys.argv) > 6 else itertools.repeat((samples, labels))
    model = nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, foreach=True)

    for number, (samples, labels) in enumerate(batches, 1):
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(samples), labels).backward()
        optimizer.step()
        print(f"step: {number}", flush=True)


if __name__ == "__main__":
    main()
