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
LAST_WORDS_S = 2  # for what a command that has failed has printed to arrive

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no job is left behind, stopped or at work


def running():
    """Of each process on this machine that has not ended: its parent, its session, and when it began, by its id."""
    found = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if fields[0] not in "ZX":
            found[int(stat.parent.name)] = int(fields[1]), int(fields[3]), int(fields[19])
    return found


def family(leaders):
    """The processes that these and their children started, and when each began, by its id: those whose parents have ended too,
    unless they have made a session of their own."""
    processes = running()
    children = {}
    for pid, (parent, _, _) in processes.items():
        children.setdefault(parent, []).append(pid)
    found = [pid for pid, (_, session, _) in processes.items() if pid in leaders or session in leaders]
    for parent in found:
        found.extend(child for child in children.get(parent, []) if child not in found)
    return {pid: processes[pid][2] for pid in found}


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
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.popen.stdout:
            if STEP.match(line):
                self.steps.append(self.clock())
            else:
                self.output.append(line)

    def fail_if_ended(self):
        if self.popen.poll() is not None:
            self.reader.join(LAST_WORDS_S)  # what it has started may still hold its output
            sys.exit(f"bench: '{' '.join(self.command)}' ended with status {self.popen.returncode}:\n{''.join(self.output)}")


class Job:
    """Commands that run at the same time, together in their turns and together stopped. They print a line "step: 1(..." at
    the end of each step, and would train for ever. After the constructor each has made a step, and the job is stopped."""

    def __init__(self, commands, samples_of_a_step, environments=None):
        self.samples_of_a_step = samples_of_a_step  # of each command
        self.ran, self.since = 0.0, time.monotonic()  # seconds of the turns before this one; when this one began
        self.processes = []
        self.pids = {}  # of all that belongs to the job, as far as it is known: when each began
        try:
            for command, environment in zip(commands, environments or [None] * len(commands)):
                self.processes.append(Process(command, environment, self.clock))
            latest = time.monotonic() + START_S
            while not all(process.steps for process in self.processes):
                if time.monotonic() > latest:
                    sys.exit(f"bench: no step of '{' '.join(self.processes[0].command)}' within {START_S} s")
                time.sleep(0.01)
                self.check()
            self.find_all()
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

    def find_all(self):
        self.pids.update(family({process.popen.pid for process in self.processes}))

    def alive(self):
        """The ids, as far as they have not ended (and another process has got the number)."""
        processes = running()
        return [pid for pid, began in self.pids.items() if pid in processes and processes[pid][2] == began]

    def let_mpirun_report(self):
        """Through it comes what a rank prints: in a real-time class its threads must not wait for those who compute."""
        for pid in self.pids:
            try:
                name = pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
            except OSError:
                continue  # it has ended
            if name != "mpirun":
                continue
            for thread in map(int, os.listdir(f"/proc/{pid}/task")):
                if os.sched_getscheduler(thread) == os.SCHED_RR:
                    priority = os.sched_getparam(thread).sched_priority + 1
                    os.sched_setscheduler(thread, os.SCHED_RR, os.sched_param(priority))

    @staticmethod
    def signal(pids, number):
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def stop(self):
        self.signal(self.alive(), signal.SIGSTOP)
        self.ran, self.since = self.clock(), None

    def turn(self, seconds):
        """Lets the job run for so long, and on until each command has made at least two steps in it. Returns the samples a
        second of all commands together in this turn, between the ends of its first and of its last step."""
        before = [len(process.steps) for process in self.processes]
        pids = self.alive()
        self.since = begun = time.monotonic()
        self.signal(pids, signal.SIGCONT)
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
        self.find_all()
        for number in (signal.SIGCONT, signal.SIGTERM):
            self.signal(self.alive(), number)
        latest = time.monotonic() + END_S
        while self.alive():
            if time.monotonic() > latest:
                self.find_all()
                self.signal(self.alive(), signal.SIGKILL)
            time.sleep(0.01)
            for process in self.processes:
                process.popen.poll()
        for process in self.processes:
            process.popen.wait()
            process.reader.join(LAST_WORDS_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
