"""The PyTorch side of bench/train: the networks of zoo_torch.py trained on one random batch.

Started by bench/train with a Python that has torch and torchvision; see harness/peer.py for how they talk. Argument: threads. A
request names a model, a batch size, a precision (fp32, or bf16: autocast), whether memory is channels-last, and a number of
steps after a warm-up; the answer is the rate of images. With "memory", the answer is the peak of resident memory in MiB, for
which the process must have measured nothing else.
"""

import ctypes
import gc
import json
import resource
import sys
import time

import torch
import torch.nn.functional as F

from zoo_torch import MODELS


class Trainer:
    def __init__(self, model, batch_size, precision, channels_last):
        make, (channels, size), classes = MODELS[model]
        memory_format = torch.channels_last if channels_last else torch.contiguous_format
        self.model = make().to(memory_format=memory_format)
        self.images = torch.rand(batch_size, channels, size, size).to(memory_format=memory_format)
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
        trainer.rate(1)  # a warm-up, which also takes memory again that the last turn gave back
        rate = trainer.rate(steps)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        # bench/train may tell the allocator to keep what is freed: from step to step, but not while the other side takes its turn.
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        print(json.dumps({"peak_resident_memory": peak} if memory else {"images_per_second": rate}), flush=True)


if __name__ == "__main__":
    main()
