#!/usr/bin/env python3
"""boost_plot.py MEASURED.jsonl OUT.svg: draws what bench_boost_effect --json has printed.

A row is a way to end a training: a dot for each seed, a bar at their mean, and how many ordinary epochs its forward and
backward passes are worth.
"""
import json
import re
import sys

WORDS = {
    "before": "stage 1 alone",
    "boost": "stage 2 of dimension-reduced training",
    "ordinary_further": "further ordinary epochs",
    "ordinary_equal": "ordinary epochs, equal passes",
    "falling_rate": "a falling learning rate",
    "swa": "stochastic weight averaging",
    "twa": "trainable weight averaging",
}


def read(path):
    seeds, means, epochs = {}, {}, {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            measured = json.loads(line)
            case, metric, value = measured["case"], measured["metric"], measured["value"]
            if metric == "test_accuracy":
                seeds.setdefault(re.sub(r"_seed_\d+$", "", case), []).append(value)
            elif metric == "mean_test_accuracy":
                means[case] = value
            else:
                epochs[case] = value
    return seeds, means, epochs


def draw(seeds, means, epochs):
    left, width, top, height = 250, 400, 34, 30
    values = [value for row in seeds.values() for value in row]
    low, high = min(values) - 0.01, max(values) + 0.01

    def x(value):
        return left + (value - low) / (high - low) * width

    rows = sorted(means, key=lambda case: means[case])
    bottom = top + height * len(rows)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 110} {bottom + 44}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{left + width + 110}" height="{bottom + 44}" fill="white"/>',
    ]
    step = 0.05
    tick = round(low / step + 0.5) * step
    while tick < high:
        out.append(f'<line x1="{x(tick):.1f}" y1="{top}" x2="{x(tick):.1f}" y2="{bottom}" stroke="#ddd"/>')
        out.append(f'<text x="{x(tick):.1f}" y="{bottom + 16}" text-anchor="middle">{tick:.2f}</text>')
        tick += step
    out.append(f'<text x="{left + width / 2}" y="{bottom + 36}" text-anchor="middle">test accuracy</text>')
    out.append(f'<text x="{left + width + 100}" y="20" text-anchor="end">epochs\' worth</text>')
    for index, case in enumerate(rows):
        y = top + height * index + height / 2
        colour = "#c0392b" if case == "boost" else "#34495e"
        out.append(f'<text x="{left - 12}" y="{y + 4}" text-anchor="end">{WORDS[case]}</text>')
        for value in seeds[case]:
            out.append(f'<circle cx="{x(value):.1f}" cy="{y}" r="4" fill="{colour}" fill-opacity="0.4"/>')
        out.append(f'<line x1="{x(means[case]):.1f}" y1="{y - 10}" x2="{x(means[case]):.1f}" y2="{y + 10}" '
                   f'stroke="{colour}" stroke-width="3"/>')
        out.append(f'<text x="{left + width + 100}" y="{y + 4}" text-anchor="end">{epochs[case]:.1f}</text>')
    return "\n".join(out + ["</svg>", ""])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(draw(*read(sys.argv[1])))
