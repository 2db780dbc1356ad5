"""Training jobs that take turns: what a machine computes in a second changes within minutes, so two of them are compared by
letting each run for a few seconds, then the other, and so on; the one whose turn it is not is stopped (SIGSTOP)."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

STEP = re.compile(r"^step: \d+\b")  # what a program prints at the end of a step
START_S = 300  # until the first step has ended
END_S = 30  # for a job to end by itself

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no job is left behind, stopped or at work


def descendants(pid):
    """The process and all that it and its children started."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # it has ended
        children.setdefault(int(text.rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
    found = [pid]
    for parent in found:
        found.extend(children.get(parent, []))
    return found


def below_this_process():
    """The words before a command with which it cannot keep this process from seeing at once that a step has ended, should
    this process run in a real-time class (chrt --rr 5 ./dev bench ...)."""
    if os.sched_getscheduler(0) not in (os.SCHED_FIFO, os.SCHED_RR):
        return []
    # Two lower: the communication thread of a job takes the one between.
    return ["chrt", "--rr", str(max(1, os.sched_getparam(0).sched_priority - 2))]


class Process:
    """One command of a job, and when its steps ended on the clock of its job."""

    def __init__(self, command, environment, clock):
        self.command, self.clock = [*below_this_process(), *map(str, command)], clock
        self.steps, self.output = [], []
        self.popen = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.popen.stdout:
            if STEP.match(line):
                self.steps.append(self.clock())
            else:
                self.output.append(line)

    def fail_if_ended(self):
        if self.popen.poll() is not None:
            self.reader.join()
            sys.exit(f"bench: '{' '.join(self.command)}' ended with status {self.popen.returncode}:\n{''.join(self.output)}")


class Job:
    """Commands that run at the same time, together in their turns and together stopped. They print a line "step: 1(..." at
    the end of each step, and would train for ever. After the constructor each has made a step, and the job is stopped."""

    def __init__(self, commands, samples_of_a_step, environments=None):
        self.samples_of_a_step = samples_of_a_step  # of each command
        self.ran, self.since = 0.0, time.monotonic()  # seconds of the turns before this one; when this one began
        self.processes, self.pids = [], []
        try:
            for command, environment in zip(commands, environments or [None] * len(commands)):
                self.processes.append(Process(command, environment, self.clock))
            latest = time.monotonic() + START_S
            while not all(process.steps for process in self.processes):
                if time.monotonic() > latest:
                    sys.exit(f"bench: no step of '{' '.join(self.processes[0].command)}' within {START_S} s")
                time.sleep(0.01)
                self.check()
            self.pids = self.descendants()
            self.let_mpirun_report()
            self.stop()
        except BaseException:
            self.end()
            raise

    def clock(self):
        """The seconds for which the job has run: it stands still while the job is stopped."""
        since = self.since
        return self.ran + (time.monotonic() - since if since is not None else 0)

    def check(self):
        for process in self.processes:
            process.fail_if_ended()

    def descendants(self):
        return [pid for process in self.processes for pid in descendants(process.popen.pid)]

    def let_mpirun_report(self):
        """Through it comes what a rank prints: in a real-time class its threads must not wait for those who compute."""
        for pid in self.pids:
            if pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() != "mpirun":
                continue
            for thread in map(int, os.listdir(f"/proc/{pid}/task")):
                if os.sched_getscheduler(thread) == os.SCHED_RR:
                    priority = os.sched_getparam(thread).sched_priority + 1
                    os.sched_setscheduler(thread, os.SCHED_RR, os.sched_param(priority))

    def signal(self, number):
        for pid in self.pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def stop(self):
        self.signal(signal.SIGSTOP)
        self.ran, self.since = self.clock(), None

    def turn(self, seconds):
        """Lets the job run for so long, and on until each command has made at least two steps in it. Returns the samples a
        second of all commands together in this turn, between the ends of its first and of its last step."""
        before = [len(process.steps) for process in self.processes]
        self.since = time.monotonic()
        self.signal(signal.SIGCONT)
        begun = time.monotonic()
        while (time.monotonic() - begun < seconds or
               any(len(process.steps) < count + 2 for process, count in zip(self.processes, before))):
            time.sleep(0.005)
            self.check()
        self.stop()
        rate = 0.0
        for process, count in zip(self.processes, before):
            # The step before the turn ended when the job was still running, so its end counts too.
            ends = process.steps[count - 1:]
            rate += self.samples_of_a_step * (len(ends) - 1) / (ends[-1] - ends[0])
        return rate

    def end(self):
        self.pids = self.descendants()
        for number in (signal.SIGCONT, signal.SIGTERM):
            self.signal(number)
        for process in self.processes:
            try:
                process.popen.wait(END_S)
            except subprocess.TimeoutExpired:
                self.signal(signal.SIGKILL)
                process.popen.wait()
            process.reader.join()  # the end of its output is that of all it has started

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
