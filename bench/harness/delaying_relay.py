"""A wire with latency between two network namespaces, where the kernel has no netem.

    delaying_relay.py SECONDS NAMESPACE:DEVICE NAMESPACE:DEVICE

makes a TAP device in each namespace and hands every frame from one to the other SECONDS later. Frames may be large (the devices'
MTU), so that there are few of them to handle. It prints "ready", and runs until it is ended.
"""

import collections
import ctypes
import errno
import fcntl
import os
import select
import struct
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
LARGEST_FRAME = 1 << 17


def open_tap(place):
    """A TAP device that lives in the namespace, as a file descriptor that works from here."""
    namespace, device = place.split(":")
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/var/run/netns/{namespace}", "rb") as there, open("/proc/self/ns/net", "rb") as here:
        for target in (there, here):
            if libc.setns(target.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"setns to {namespace}")
            if target is there:
                tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
                fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH", device.encode(), IFF_TAP | IFF_NO_PI))
    return tap


def run_before_all_else():
    """A wire waits for nobody: in a real-time class it comes before those who compute, and their communication threads."""
    policy = os.sched_getscheduler(0)
    if policy in (os.SCHED_FIFO, os.SCHED_RR):
        os.sched_setscheduler(0, policy, os.sched_param(os.sched_getparam(0).sched_priority + 2))


def main():
    run_before_all_else()
    delay = float(sys.argv[1])
    taps = [open_tap(place) for place in sys.argv[2:4]]
    waiting = [collections.deque(), collections.deque()]  # (when it is due, frame) on the way to each side
    print("ready", flush=True)
    while True:
        due = min((queue[0][0] for queue in waiting if queue), default=None)
        select.select(taps, [], [], None if due is None else max(0.0, due - time.monotonic()))
        for side, tap in enumerate(taps):
            try:
                while True:
                    waiting[1 - side].append((time.monotonic() + delay, os.read(tap, LARGEST_FRAME)))
            except BlockingIOError:
                pass
        now = time.monotonic()
        for side, queue in enumerate(waiting):
            while queue and queue[0][0] <= now:
                try:
                    os.write(taps[side], queue.popleft()[1])
                except OSError as error:  # a frame for a device that is not up yet is lost, as on any wire
                    if error.errno != errno.EIO:
                        raise


if __name__ == "__main__":
    main()
