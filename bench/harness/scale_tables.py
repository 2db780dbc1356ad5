"""The tables of bench/scale in the form of MoXing's benchmarks: the devices of one machine, and nodes of such devices."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from harness import machine, pairing, peer, report, turns

BIN = machine.ROOT / "build" / "bin"
TORCH = machine.ROOT / "bench" / "harness" / "scale_torch.py"
PHOTOGRAPHS = machine.ROOT / "runs" / "photographs-data"
SCHEMES = ("replicated_host", "replicated", "parameter_server")
PYTORCH = "PyTorch DDP"
DEVICES = (1, 2, 4, 8)
NODES = (1, 2, 4, 8, 16)
PROFILE_STEPS = 4
EFFICIENCY = "0.956"  # what the headers of Ethernet, IP and TCP leave of frames of 1,500 bytes
ENDLESS = ("--max_number_of_steps=1000000", "--log_every_n_steps=1", "--stall_warning_s=1000000", "--stall_abort_s=1000000")


def cores():
    return sorted(os.sched_getaffinity(0))


def ours(data, model, batch_size, devices, scheme, hosts=()):
    """Our job on one node, or on each of the two that the command `hosts` makes."""
    flags = [f"--batch_size={batch_size}", f"--num_devices={devices}", f"--threads={devices}", f"--variable_update={scheme}"]
    if data == "synthetic":
        command = [BIN / "bench_scale", f"--model={model}", "--steps=1000000", "--json", *ENDLESS[1:]]
    else:
        # Each pass decodes, crops and mirrors the files anew, as PyTorch's side does.
        command = [BIN / "image_classifier", f"--data_url={PHOTOGRAPHS}", "--data.format=image_folder", f"--model.name={model}",
                   "--model.image_size=224", *ENDLESS]
    nodes_of_it = 2 if hosts else 1
    return turns.Job([[*hosts, *command, *flags]], nodes_of_it * devices * batch_size, [environment_of(devices)])


def environment_of(devices):
    """For two_hosts: how many cores each host has."""
    return {**os.environ, "MOX_HOST_CORES": str(devices)}


def torch_ranks(data, model, batch_size, ranks):
    """One thread on a core of its own for each rank, and one more that decodes where there are photographs."""
    python = peer.find_python("torchvision")
    variables = {k: v for k, v in os.environ.items() if k not in peer.UNSET}
    variables.update(peer.KEEPING_MEMORY, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    folder = [PHOTOGRAPHS / "train"] if data == "photographs" else []
    with tempfile.TemporaryDirectory() as place:  # for the rendezvous, which is over when each rank has made a step
        return turns.Job(
            [["taskset", "-c", core, python, "-B", TORCH, model, batch_size, rank, ranks, f"{place}/store", *folder]
             for rank, core in enumerate(cores()[:ranks])], batch_size, [variables] * ranks)


class Against:
    """A placement that takes turns with the one device: medians of its samples a second, and of the ratio."""

    def __init__(self, job, one, options):
        with job:
            self.pairs = pairing.run_pairs(options.turns, lambda: job.turn(options.seconds), lambda: one.turn(options.seconds))
        self.rate, self.ratio = self.pairs.value, self.pairs.ratio


def single_of(data, model, batch_size, options):
    """{(side, devices): (samples a second, ratio to our one device)}"""
    found = {}
    with ours(data, model, batch_size, 1, SCHEMES[0]) as one:
        for devices in options.devices:
            sides = [PYTORCH] + [scheme for scheme in SCHEMES if devices > 1]
            for side in sides:
                job = (torch_ranks(data, model, batch_size, devices) if side == PYTORCH else
                       ours(data, model, batch_size, devices, side))
                measured = Against(job, one, options)
                found[side, devices] = measured.rate, measured.ratio
                report.say(f"{data}, {devices} devices, {side}: {measured.rate:.2f} samples/s, {measured.ratio:.3f} of our one "
                           f"device ({min(measured.pairs.ratios):.3f} - {max(measured.pairs.ratios):.3f})")
                found.setdefault((SCHEMES[0], 1), (measured.pairs.peer_value, 1.0))
        if (SCHEMES[0], 1) not in found:
            found[SCHEMES[0], 1] = one.turn(options.seconds), 1.0
    return found


def single(options):
    model, batch_size = options.model
    if "photographs" in options.data:
        subprocess.run([machine.ROOT / "bench" / "make_photographs.py", PHOTOGRAPHS], check=True, stdout=sys.stderr)
    rows = []
    for data in options.data:
        found = single_of(data, model, batch_size, options)
        for (side, devices), (rate, ratio) in sorted(found.items(), key=lambda item: (item[0][1], item[0][0] == PYTORCH)):
            alone = found.get((PYTORCH, 1) if side == PYTORCH else (SCHEMES[0], 1))
            torch = found.get((PYTORCH, devices)) if side != PYTORCH else None
            rows.append({"data": data, "scheme": side, "devices": devices, "batch_per_second": rate / batch_size / devices,
                         "batch_size": batch_size * devices, "FPS": rate, "speedup": ratio / alone[1] if alone else None,
                         "of_pytorch": ratio / torch[1] if torch else None})
    show(options, f"{model}, {batch_size} samples a device, one machine ({machine.describe()})", rows)


def has_hosts():
    """Whether this machine makes two hosts with a shaped link; says why not."""
    done = subprocess.run([machine.TWO_HOSTS, "1gbit", "0", "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        report.say(done.stderr.strip())
    return done.returncode == 0


def profile_of(devices, model, batch_size, folder, two_hosts):
    """What a step of a node with so many devices is made of."""
    path = pathlib.Path(folder) / f"{devices}.json"
    command = [BIN / "bench_scale", f"--model={model}", f"--batch_size={batch_size}", f"--steps={PROFILE_STEPS}", "--json",
               f"--num_devices={devices}", f"--threads={devices}", f"--step_profile={path}"]
    if two_hosts and 2 * devices <= len(cores()):  # of two ranks: it then says what sending takes of the processor
        command = [machine.TWO_HOSTS, "unlimited", "0", *command]
    run_to_end(command, devices)
    return path


def run_to_end(command, devices):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=environment_of(devices), check=False)
    if done.returncode != 0:
        sys.exit(f"bench: '{' '.join(map(str, command))}' ended with status {done.returncode}:\n{done.stdout}{done.stderr}")


def forecast(profile, options):
    """{nodes: what is forecast for so many}"""
    nodes = ",".join(map(str, sorted({1, *options.ranks})))
    done = subprocess.run([BIN / "mox", "forecast", profile, "--nodes", nodes, "--link", options.link[1], "--efficiency",
                           EFFICIENCY, "--json"], stdout=subprocess.PIPE, text=True, check=True)
    return {line["nodes"]: line for line in map(json.loads, done.stdout.splitlines())}


def nodes(options):
    model, batch_size = options.model
    measured, simulated, two_hosts = {}, {}, has_hosts()
    with ours("synthetic", model, batch_size, 1, SCHEMES[0]) as one, tempfile.TemporaryDirectory() as folder:
        for devices in options.devices:
            if devices == 1:
                measured[1, 1] = statistics.median(one.turn(options.seconds) for _ in range(options.turns)), 1.0
            else:
                measured[1, devices] = said(Against(ours("synthetic", model, batch_size, devices, SCHEMES[0]), one, options),
                                            f"1 node, {devices} devices")
            if two_hosts and 2 in options.ranks and 2 * devices <= len(cores()):
                job = ours("synthetic", model, batch_size, devices, SCHEMES[0], (machine.TWO_HOSTS, options.link[0], "0"))
                measured[2, devices] = said(Against(job, one, options), f"2 nodes of {devices} devices, link of {options.link[0]}")
            profile = profile_of(devices, model, batch_size, folder, two_hosts)
            simulated.update({(count, devices): line for count, line in forecast(profile, options).items()})
    rows = []
    for count, devices in sorted({*measured, *simulated}):
        if count not in options.ranks:
            continue
        alone = measured.get((1, devices))
        if (count, devices) in measured:
            rate, ratio = measured[count, devices]
            rows.append(row(count, devices, batch_size, rate, ratio, ratio / alone[1], "measured"))
        if count > 1 and (count, devices) in simulated:
            # The forecast's own single node is the base, and what that is beside one device was measured.
            line = simulated[count, devices]
            dist = line["samples_per_second"] / simulated[1, devices]["samples_per_second"]
            rows.append(row(count, devices, batch_size, alone[0] * dist, alone[1] * dist, dist, "simulated"))
    show(options, f"{model}, {batch_size} samples a device, link of {options.link[0]} a node ({machine.describe()})", rows)


def said(against, what):
    report.say(f"{what}: {against.rate:.2f} samples/s, {against.ratio:.3f} of one device")
    return against.rate, against.ratio


def row(count, devices, batch_size, rate, speedup, dist, how):
    samples = count * devices * batch_size
    return {"nodes": count, "devices": devices, "batch_per_second": rate / samples, "batch_size": samples, "FPS": rate,
            "speedup": speedup, "dist_speedup": dist, "how": how}


def show(options, title, rows):
    if options.json:
        for line in rows:
            print(json.dumps({"bench": "scale", "table": options.table, **line}), flush=True)
        return
    print(f"\n{title}\n")
    cells = [["" if value is None else f"{value:.2f}" if isinstance(value, float) else value for value in line.values()]
             for line in rows]
    report.print_table([name.replace("_per_second", "/s").replace("_", " ") for name in rows[0]], cells)
