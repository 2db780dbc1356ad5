"""Peers: programs that measure another framework, as processes of their own.

A peer process reads requests from stdin, one JSON object a line, and answers each with one on stdout. It stays alive
between requests, blocked on stdin, so that both sides of a comparison take turns without paying for start-up.
"""

import json
import os
import shutil
import subprocess
import sys

# Settings of OpenBLAS that are meant for other machines or other work and would slow the peer down.
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")

# The environment of a PyTorch that keeps its memory. By default glibc gives large arrays back to the kernel, which clears their pages
# for the next step; where the kernel takes long for it, as in some virtual machines, that is two thirds of PyTorch's time.
KEEPING_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**32), "MALLOC_TRIM_THRESHOLD_": str(2**33),
                  "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


def find_python(module):
    """The path of a Python 3 that can import `module`: Debian's own first, then whatever PATH has."""
    candidates = ["/usr/bin/python3", sys.executable, shutil.which("python3")]
    for candidate in dict.fromkeys(c for c in candidates if c and os.access(c, os.X_OK)):
        found = subprocess.run(
            [candidate, "-c", f"import {module}"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if found.returncode == 0:
            return candidate
    sys.exit(f"bench: no Python here can import {module} (tried {', '.join(dict.fromkeys(filter(None, candidates)))}); "
             "install Debian's packages for the benchmarks with: ./dev setup bench")


class Peer:
    """One peer process. `ask` blocks until it has answered; the process ends with `close`."""

    def __init__(self, command, environment=None):
        variables = {k: v for k, v in os.environ.items() if k not in UNSET}
        variables.update(environment or {})
        self._command = command
        self._process = subprocess.Popen(
            command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **request):
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            status = self._process.wait()
            sys.exit(f"bench: the peer '{' '.join(self._command)}' ended with status {status}; its error is above")
        return json.loads(answer)

    def close(self):
        self._process.stdin.close()
        self._process.wait()
