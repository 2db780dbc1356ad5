"""The peer of bench/data: torchvision's ImageFolder and DataLoader. Answers {"workers": n, "images": i}
with {"images_per_second": x}, over a pass that ends after i images (0: after all)."""

import json
import sys
import time

import torch
from torchvision import datasets, transforms

torch.set_num_threads(1)
dataset = datasets.ImageFolder(sys.argv[1], transforms.Compose([
    transforms.RandomResizedCrop(224),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
]))
loaders = {}
for line in sys.stdin:
    request = json.loads(line)
    workers = request["workers"]
    if workers not in loaders:
        loaders[workers] = torch.utils.data.DataLoader(
            dataset, batch_size=32, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    batches = iter(loaders[workers])  # starts the workers, the first time
    next(batches)
    start, images = time.perf_counter(), 0
    for pixels, _ in batches:
        images += len(pixels)
        if 0 < request["images"] <= images:
            break
    print(json.dumps({"images_per_second": images / (time.perf_counter() - start)}), flush=True)
