"""Training and decoding speed on SCAN simple against yoyodyne 0.5.27 (github.com/CUNY-CL/yoyodyne).

    python -m benchmarks.peers.yoyodyne --threads 1 --cpu

Both train the same size on the same examples in batches of as many rows for as many steps, and write outputs of the
same length by greedy search, with weights that are not trained. They take turns, so that the load of the machine
affects both; the ratio is that of each pair. Yoyodyne runs in an environment of its own (`.venv-yoyodyne`, 1.2 GB,
installed on first use). It has no convolutional network. Its CPU time leaves out the process that loads its data.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from benchmarks.against_plain_lightning import SKIP, Speed
from benchmarks.timing import Clock, now, quiet, ratios, scan, widths
from tfstudy.errors import UserError
from tfstudy.evaluation.decoding import greedy_of_lengths
from tfstudy.experiment.prepare import Prepared
from tfstudy.experiment.train import training_data
from tfstudy.models.tokens import Tokens
from tfstudy.tasks.base import Example
from tfstudy.training.fit import fit
from tfstudy.training.module import Seq2Seq

HERE = Path(__file__).parent
CONSTRAINTS = HERE / "yoyodyne-constraints.txt"  # the versions of all that is installed
ENVIRONMENT = HERE.parents[1] / ".venv-yoyodyne"
Rate = tuple[float, int]  # examples per second, and the number of parameters


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", action="append", choices=("transformer", "lstm"), help="repeatable; default: both")
    parser.add_argument("--width", type=int, default=0, help="width of the models (0: that of the preset)")
    parser.add_argument("--batch-size", type=int, default=64, help="rows of a batch")
    parser.add_argument("--steps", type=int, default=60, help=f"steps of a training, the first {SKIP} not measured")
    parser.add_argument("--sources", type=int, default=128, help="test examples to decode")
    parser.add_argument("--pairs", type=int, default=5, help="measurements of each")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="CPU threads of both")
    parser.add_argument("--cpu", action="store_true", help="measure CPU time, for a busy machine; use with --threads 1")
    return parser.parse_args()


def environment() -> Path:
    """Return the Python of yoyodyne's environment, which is installed first unless it has the versions of CONSTRAINTS.

    `UserError` if pip fails.
    """
    python, installed = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "constraints.txt"
    wanted = CONSTRAINTS.read_text(encoding="utf-8")
    if installed.exists() and installed.read_text(encoding="utf-8") == wanted:
        return python
    print(f"installing yoyodyne in {ENVIRONMENT} (minutes)", flush=True)
    venv.create(ENVIRONMENT, clear=True, with_pip=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--constraint", str(CONSTRAINTS)]
    for wave in (["torch"], ["--no-deps", "--requirement", str(CONSTRAINTS)]):  # torch first: the others use this build
        if subprocess.run([*install, *wave]).returncode:
            raise UserError(f"pip could not install yoyodyne in {ENVIRONMENT}: see its messages above")
    installed.write_text(wanted, encoding="utf-8")
    return python


def versions(python: Path, *packages: str) -> dict[str, str]:
    """Return the versions of packages in the environment of an interpreter."""
    code = "import sys, importlib.metadata as m; print(*map(m.version, sys.argv[1:]))"
    output = subprocess.run([str(python), "-c", code, *packages], check=True, capture_output=True, text=True).stdout
    return dict(zip(packages, output.split(), strict=True))


class Yoyodyne:
    """Yoyodyne in a process of its own, which measures when it is asked to."""

    def __init__(self, python: Path, settings: dict[str, Any], cpu: bool) -> None:
        self._cpu = cpu
        command = [str(python), "-I", str(HERE / "yoyodyne_worker.py"), json.dumps(settings)]
        threads = {name: str(settings["threads"]) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        folder = Path(settings["folder"])
        self._log = (folder / "yoyodyne.log").open("w", encoding="utf-8")
        self._process = subprocess.Popen(
            command, stdin=-1, stdout=-1, stderr=self._log, text=True, env={**os.environ, **threads}, cwd=folder
        )

    def rate(self, work: str) -> Rate:
        """Return the speed of `train` or `decode`; `RuntimeError` if the process fails."""
        asked, answers = self._process.stdin, self._process.stdout
        assert asked
        assert answers
        with suppress(BrokenPipeError):  # it has ended; its log says why
            asked.write(f"{work}\n")
            asked.flush()
        for line in answers:
            if line.startswith("measured "):
                found = json.loads(line.removeprefix("measured "))
                return found["examples"] / found["cpu_seconds" if self._cpu else "seconds"], found["parameters"]
        last = "\n".join(Path(self._log.name).read_text(encoding="utf-8").splitlines()[-5:])
        raise RuntimeError(f"yoyodyne ended with exit code {self._process.wait()}:\n{last}")

    def stop(self) -> None:
        """End the process."""
        with suppress(BrokenPipeError):
            self._process.communicate()
        self._log.close()


def write_tsv(path: Path, examples: Sequence[Example]) -> str:
    """Write sources and targets as yoyodyne reads them, tokens separated by spaces, and return the path."""
    lines = (f"{' '.join(example.source)}\t{' '.join(example.target)}\n" for example in examples)
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


def settings_of(prepared: Prepared, chosen: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return what yoyodyne is given: the data as files, and the sizes of our model."""
    config, train, test = prepared.config, *(prepared.task.examples(split) for split in ("train", "test"))
    model = config.model.model_dump()
    layers = model.get("layers")
    return {
        "arch": config.arch,
        "dim": config.model.dim,
        "hidden": model.get("feedforward") or model["hidden"],
        "encoder_layers": layers or model["encoder_layers"],
        "decoder_layers": layers or model["decoder_layers"],
        "heads": model.get("heads"),
        "bidirectional": model.get("bidirectional"),
        "dropout": config.model.dropout,
        "batch_size": config.train.batch_size,
        "steps": config.train.steps,
        "learning_rate": config.train.learning_rate,
        "clip": config.train.gradient_clip_norm,
        "seed": config.seed,
        "skip": SKIP,
        "longest": 1 + max(len(example.target) for example in (*train, *test)),  # with END
        "threads": chosen.threads,
        "train": write_tsv(folder / "train.tsv", train),
        "test": write_tsv(folder / "test.tsv", test[: chosen.sources]),
        "folder": str(folder),
    }


def train(prepared: Prepared) -> Rate:
    """Return our speed of training, in examples per second."""
    speed, model = Speed(), prepared.model
    module = Seq2Seq(model, len(prepared.data.target_vocab), prepared.config.train)
    fit(module, training_data(prepared), callbacks=[speed], accelerator="cpu")
    examples = sum(len(target) for _, target in speed.groups)
    return examples / (speed.ended - speed.began), sum(parameter.numel() for parameter in model.parameters())


def decode(prepared: Prepared, sources: int, length: int) -> Rate:
    """Return our speed of greedy search, in examples per second; every output has `length` tokens."""
    encoded, model = prepared.data.encode(prepared.task.examples("test")[:sources]), prepared.model.eval()
    start = now()
    for index in torch.arange(len(encoded)).split(prepared.config.train.batch_size):
        source = encoded.rows(index).source
        greedy_of_lengths(model, Tokens.of(source), torch.full((len(index),), length))
    return len(encoded) / (now() - start), sum(parameter.numel() for parameter in model.parameters())


def compare(arch: str, python: Path, chosen: argparse.Namespace, folder: Path) -> str:
    """Measure both systems in turn, and return the two rows of an architecture."""
    model = widths(arch, chosen.width) if chosen.width else {}
    prepared = scan(arch, model, steps=chosen.steps, batch_size=chosen.batch_size)
    settings = settings_of(prepared, chosen, folder)
    peer, lines = Yoyodyne(python, settings, chosen.cpu), []
    ways = {"train": lambda: train(prepared), "decode": lambda: decode(prepared, chosen.sources, settings["longest"])}
    try:
        for work, ours in ways.items():
            measured = [(ours(), peer.rate(work)) for _ in range(chosen.pairs)]
            (own, other), sizes = zip(*((a[0], b[0]) for a, b in measured), strict=True), [m[1] for m in measured[0]]
            pairs = ratios(own, other)
            lines.append(
                f"  {arch:<12}{work:<8}{sizes[0]:>10,}{sizes[1]:>10,}{statistics.median(own):>11,.1f}"
                f"{statistics.median(other):>11,.1f}{statistics.median(pairs):>9.2f}{min(pairs):>9.2f}{max(pairs):>9.2f}"
            )
    finally:
        peer.stop()
    return "\n".join(lines)


def measure(chosen: argparse.Namespace) -> None:
    """Measure the architectures and print a row for each kind of work."""
    python = environment()
    quiet()
    torch.set_num_threads(chosen.threads)
    Clock.cpu = chosen.cpu
    with tempfile.TemporaryDirectory() as folder:
        found = versions(python, "yoyodyne", "torch") | {"our torch": torch.__version__}
        print(", ".join(f"{name} {version}" for name, version in found.items()))
        timed = "CPU" if chosen.cpu else "wall-clock"
        print(f"{chosen.threads} threads, batches of {chosen.batch_size}, {timed} time")
        print(f"{'':<22}{'parameters':>10}{'theirs':>10}{'examples/s':>11}{'theirs':>11}", end="")
        print(f"{'ratio':>9}{'min':>9}{'max':>9}")
        for arch in chosen.arch or ("transformer", "lstm"):
            print(compare(arch, python, chosen, Path(folder)), flush=True)


def main() -> None:
    chosen = arguments()
    try:
        measure(chosen)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except RuntimeError as error:  # of yoyodyne
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
