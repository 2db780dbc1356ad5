"""The rate of a training whose photographs are streamed from an object store, beside one that reads them from the disk."""

import json
import pathlib
import shutil
import statistics
import subprocess

from harness import pairing

LOG_EVERY = 10  # steps
WARM_UP = 2    # lines of metrics.jsonl: the first steps measure threads and fill buffers


def rate_of(program, data_url, train_url, options):
    """Images a second: the median over the lines of metrics.jsonl after those of the start."""
    shutil.rmtree(train_url, ignore_errors=True)
    command = [str(program), f"--data_url={data_url}", f"--train_url={train_url}", "--data.cache=none", "--model.name=resnet_v1_18",
               f"--model.image_size={options.image_size}", f"--batch_size={options.batch_size}", f"--log_every_n_steps={LOG_EVERY}",
               f"--max_number_of_steps={options.steps}", "--eval_every_n_steps=0", "--log_level=warning"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit("the training of %s has failed:\n%s" % (data_url, done.stderr[-2000:]))
    lines = [json.loads(line) for line in (pathlib.Path(train_url) / "metrics.jsonl").read_text().splitlines()]
    rates = [line["samples_per_second"] for line in lines if "samples_per_second" in line][WARM_UP:]
    if len(rates) < 3:
        raise SystemExit("--steps %d gives %d rates after the start; give more steps" % (options.steps, len(rates)))
    return statistics.median(rates)


def pairs_of(program, local, stored, scratch, options):
    """`local` and `stored`: data_url of the same photographs."""
    return pairing.run_pairs(options.rounds, lambda: rate_of(program, stored, scratch / "stored", options),
                             lambda: rate_of(program, local, scratch / "local", options))
