"""The PyTorch side of bench/ops: one op on random inputs. See harness/peer.py for how they talk. Argument: threads.

A request names a case of bench/ops_main.cc, a metric of it (forward, gradient, input_gradient, filter_gradient) and the
seconds to spend; the answer is the least time of a run in milliseconds, or null where PyTorch has no such op.
"""

import json
import re
import sys
import time

import torch
import torch.nn.functional as F

BATCH_NORM_EPSILON = 1e-3


def convolution(shape, metric, layout):
    batch, channels, size, filters, kernel, stride, groups = shape
    x = torch.rand(batch, channels, size, size).to(memory_format=layout)
    w = torch.rand(filters, channels // groups, kernel, kernel).to(memory_format=layout)
    padding = (kernel - 1) // 2
    if metric == "forward":
        return lambda: F.conv2d(x, w, None, stride, padding, 1, groups)
    dy = torch.rand_like(F.conv2d(x, w, None, stride, padding, 1, groups))
    mask = [metric == "input_gradient", metric == "filter_gradient", False]
    return lambda: torch.ops.aten.convolution_backward(dy, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups,
                                                       mask)


def differentiable(function, x, metric):
    x.requires_grad_()
    if metric == "forward":
        return lambda: function(x)
    y = function(x)
    dy = torch.rand_like(y)
    return lambda: torch.autograd.grad(y, x, dy, retain_graph=True)


def work_of(case, metric, layout):
    numbers = [int(number) for number in re.findall(r"\d+", case)]
    if case.startswith("conv2d"):
        batch, channels, size, _, filters, kernel, _, stride, *groups = numbers[1:]  # the first is the 2 of conv2d
        return convolution((batch, channels, size, filters, kernel, stride, *(groups or [1])), metric, layout)
    if case.startswith("matmul"):
        rows, inner, columns = numbers
        a, b = torch.rand(rows, inner), torch.rand(inner, columns)
        return lambda: a @ b
    shape = numbers[:4] if not case.startswith("softmax") else numbers
    x = torch.rand(shape)
    if len(shape) == 4:
        x = x.to(memory_format=layout)
        weights = torch.rand(shape[1])
    functions = {"batch_norm": lambda x: F.batch_norm(x, None, None, weights, weights, True, 0.1, BATCH_NORM_EPSILON),
                 "max_pool": lambda x: F.max_pool2d(x, 2), "relu": F.relu, "softmax": lambda x: F.softmax(x, 1)}
    name = re.match(r"[a-z_]+?(?=_\d)", case)[0]
    return differentiable(functions[name], x, metric)


def least_time(work, seconds):
    work()
    best, spent, runs = float("inf"), 0, 0
    while spent < seconds or runs < 3:
        start = time.perf_counter()
        work()
        elapsed = time.perf_counter() - start
        best, spent, runs = min(best, elapsed), spent + elapsed, runs + 1
    return 1e3 * best


def main():
    torch.set_num_threads(int(sys.argv[1]))
    for line in sys.stdin:
        request = json.loads(line)
        times = [least_time(work_of(request["case"], request["metric"], layout), request["seconds"] / 2)
                 for layout in (torch.contiguous_format, torch.channels_last)]
        print(json.dumps({"milliseconds": min(times)}), flush=True)


if __name__ == "__main__":
    main()
