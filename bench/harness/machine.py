"""This machine: its description, our programs, and its measured limits."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TWO_HOSTS = ROOT / "bench" / "harness" / "two_hosts"
NO_HOSTS = 77  # its exit status where the machine makes no such hosts


# Sets of instructions as ./dev names them, to what ONEDNN_MAX_CPU_ISA takes. Without AVX-512 its limit limits nothing.
INSTRUCTION_LIMITS = {"avx2": "AVX2", "avx512": "AVX512_CORE"}


def instructions():
    """Those of INSTRUCTION_LIMITS that this processor has."""
    flags = set(re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)[1].split())
    return [isa for isa in INSTRUCTION_LIMITS if isa == "avx2" or {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= flags]


def describe():
    """"AMD EPYC, 2 cores"."""
    model = "unknown CPU"
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {len(os.sched_getaffinity(0))} cores"


def others_load():
    """Cores that other work keeps busy, over half a second in which this process sleeps."""
    def busy_ticks():
        fields = [int(field) for field in pathlib.Path("/proc/stat").read_text(encoding="utf-8").split("\n")[0].split()[1:9]]
        return sum(fields) - fields[3] - fields[4]  # all but idle and waiting for input and output
    before, start = busy_ticks(), time.monotonic()
    time.sleep(0.5)
    return (busy_ticks() - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - start)


def run_program(name, *arguments):
    """Runs build/bin/`name` with --json and returns its measurements by (case, metric)."""
    program = ROOT / "build" / "bin" / name
    if not program.exists():
        sys.exit(f"bench: {program} is not built; './dev bench' and './dev build' build it")
    done = subprocess.run([program, *arguments, "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"bench: {name} {' '.join(arguments)} ended with status {done.returncode}:\n{done.stderr}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {(line["case"], line["metric"]): line["value"] for line in lines}


def limits():
    """(float32 FLOP/s of all cores, bytes/s from memory)."""
    values = {metric: value for (_, metric), value in run_program("bench_peak").items()}
    return values["fma_peak"] * 1e9, values["memory_bandwidth"] * 1e9
