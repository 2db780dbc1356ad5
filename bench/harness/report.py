"""Results: a table for people, JSON lines for programs."""

import json
import sys


def measurement(bench, case, metric, value, unit, peer=None, peer_value=None, ratio=None):
    """One line of --json."""
    return {"bench": bench, "case": case, "metric": metric, "value": value, "unit": unit,
            "peer": peer, "peer_value": peer_value, "ratio": ratio}


def print_json(measurements):
    for line in measurements:
        print(json.dumps(line), flush=True)


def print_table(header, rows):
    """Left-aligned first column, right-aligned others."""
    columns = list(zip(header, *rows))
    widths = [max(len(str(cell)) for cell in column) for column in columns]
    for row in [header, ["-" * width for width in widths], *rows]:
        first, *others = [str(cell) for cell in row]
        print("  ".join([first.ljust(widths[0])] + [c.rjust(w) for c, w in zip(others, widths[1:])]))


def say(text):
    """Progress, for a person who waits; never on stdout."""
    print(text, file=sys.stderr, flush=True)
