"""Two hosts of one machine for jobs among strangers: network namespaces that a wire with latency joins. Needs root."""

import ctypes
import os
import shlex
import signal
import socket
import subprocess
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
RELAY = os.path.join(HERE, "..", "..", "bench", "harness", "delaying_relay.py")
ADDRESSES = ("10.78.0.1", "10.78.0.2")
NETWORK = "10.78.0.0/24"
# Both hosts have it, as hosts have docker0: rank 0's is among those that the ranks are told.
SHARED_ADDRESS = "172.17.0.1"
CLONE_NEWNET = 0x40000000
ETH_P_IP = 0x0800

# Where the kernel takes the ports from that nobody asks for by number. Those of rank 0's host are all held on the loopback of
# the other one, where Open MPI's own are left free.
EPHEMERAL = ((32768, 59999), (60000, 60999))
BTL = (1024, 1123)
# Where mpirun listens for its daemons (at all of them), so that these are known from rank 0's port.
OOB = (20000, 20001)


def in_namespace(name, work):
    """What `work` returns on a thread that has joined the namespace: sockets that it opens stay there."""
    result = []

    def run():
        with open(f"/var/run/netns/{name}", "rb") as there:
            if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"setns to {name}")
        result.append(work())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return result[0]


class Hosts:
    def __init__(self, name, place, latency):
        self.names = [f"mox{os.getpid()}-{name}{host}" for host in (0, 1)]
        self.place = os.path.join(place, name)
        os.mkdir(self.place)
        os.chmod(self.place, 0o755)
        self.relay = None
        try:
            self.make(latency)
        except BaseException:
            self.remove()
            raise

    def make(self, latency):
        for name in self.names:
            self.ip("netns", "add", name)
            self.ip("-n", name, "tuntap", "add", "bridge0", "mode", "tap")
            self.ip("-n", name, "addr", "add", f"{SHARED_ADDRESS}/16", "dev", "bridge0")
            self.ip("-n", name, "link", "set", "bridge0", "up")
        self.relay = subprocess.Popen(
            ["/usr/bin/python3", "-B", RELAY, str(latency)] + [f"{name}:link0" for name in self.names], stdout=subprocess.PIPE)
        if self.relay.stdout.readline() != b"ready\n":
            raise OSError("no wire between the namespaces can be made here")
        for host, name in enumerate(self.names):
            self.ip("-n", name, "addr", "add", f"{ADDRESSES[host]}/24", "dev", "link0")
            self.ip("-n", name, "link", "set", "link0", "up")
            self.ip("-n", name, "link", "set", "lo", "up")
            self.run_on(host, ["sh", "-c", "echo {} {} > /proc/sys/net/ipv4/ip_local_port_range".format(*EPHEMERAL[host])])
        # hwloc, by which Open MPI knows its machine, has a plugin that asks for X displays: also at localhost:6000 to 6009, where a
        # stranger lets it wait for ever. A test of just that sets the variable to "".
        plugins = os.environ.get("HWLOC_COMPONENTS", "-gl")
        agent = os.path.join(self.place, "enter")
        with open(agent, "w") as script:
            script.write(f"""#!/bin/bash
host=$1
shift
case $host in {ADDRESSES[0]}) n=0 name={self.names[0]} ;; *) n=1 name={self.names[1]} ;; esac
export HWLOC_COMPONENTS={plugins}
exec ip netns exec $name unshare --uts bash -c "hostname host$n; exec bash -c \\"\\$1\\"" enter "$*"
""")
        os.chmod(agent, 0o755)
        with open(os.path.join(self.place, "hosts"), "w") as hosts:
            hosts.writelines(f"{address} slots=1\n" for address in ADDRESSES)
        self.agent = agent

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def run_on(self, host, command):
        subprocess.run(["ip", "netns", "exec", self.names[host], *command], check=True, stdout=subprocess.DEVNULL)

    def job(self, program):
        """The command of a job of one rank on each host."""
        mpirun = ["mpirun", "--allow-run-as-root", "-n", "2", "--hostfile", os.path.join(self.place, "hosts"), "--bind-to", "none",
                  "--mca", "plm_rsh_agent", self.agent, "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", NETWORK,
                  "--mca", "btl_tcp_port_min_v4", str(BTL[0]), "--mca", "btl_tcp_port_range_v4", str(BTL[1] - BTL[0] + 1),
                  "--mca", "oob_tcp_if_include", NETWORK, "--mca", "oob_tcp_dynamic_ipv4_ports", "{}-{}".format(*OOB)]
        return [self.agent, ADDRESSES[0], shlex.join([*mpirun, *program])]

    def processes(self):
        """The ids of what runs on either host."""
        ids = []
        for name in self.names:
            out = subprocess.run(["ip", "netns", "pids", name], stdout=subprocess.PIPE, text=True).stdout
            ids += [int(word) for word in out.split()]
        return ids

    def wire(self):
        """A socket that sees every packet of rank 0's host."""
        def tap():
            sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
            sniffer.bind(("link0", ETH_P_IP))
            return sniffer
        return in_namespace(self.names[0], tap)

    def remove(self):
        for process in self.processes():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.relay:
            self.relay.kill()
            self.relay.wait()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)
