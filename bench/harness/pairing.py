"""Two sides measured in turn, A B A B ..., so that what else the machine does meets both alike."""

import statistics
import time


class Pairs:
    """The values of both sides, pair by pair; more is better."""

    def __init__(self, ours, theirs):
        self.ours, self.theirs = ours, theirs

    @property
    def value(self):
        return statistics.median(self.ours)

    @property
    def peer_value(self):
        return statistics.median(self.theirs)

    @property
    def ratios(self):
        return [a / b for a, b in zip(self.ours, self.theirs)]

    @property
    def ratio(self):
        """The median of the pairs' ratios. (The ratio of the medians is value / peer_value.)"""
        return statistics.median(self.ratios)


def run_pairs(count, ours, theirs, progress=lambda pair, a, b: None, until=float("inf")):
    """Calls ours() and theirs() `count` times each, in turn, and keeps what they return. After `until` (time.monotonic())
    no further pair is begun; there is always one."""
    pairs = Pairs([], [])
    for pair in range(count):
        if pair > 0 and time.monotonic() >= until:
            break
        a, b = ours(), theirs()
        pairs.ours.append(a)
        pairs.theirs.append(b)
        progress(pair, a, b)
    return pairs
