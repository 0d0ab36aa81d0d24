"""Translation by tfstudy and by JoeyNMT (Kreutzer et al. 2019, D19-3019): quality and speed side by side.

    python -m benchmarks.peers.joeynmt --root CORPUS --target-language de --train-pairs 2000 --minutes 10

Both are trained on the same subwords of the same pairs with the same size, batches and learning rate, one after the
other on the same number of threads, for as many updates as the preset has or for the same time. Both translate the
test set with the same beam size, and the same sacreBLEU scores the outputs. Without `--root` the pair of synthetic
languages is used. JoeyNMT has no convolutional network.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch
import yaml

import tfstudy
from benchmarks.peers.comparison import System, record, score, table
from benchmarks.peers.environments import environment, errors_in_one_line, own_versions, versions
from benchmarks.peers.joeynmt_data import TEST, decoding_order, read_outputs, sentences_per_batch, write_data
from benchmarks.peers.joeynmt_environment import PACKAGES, Training, joeynmt, read_decoding_seconds, read_training
from benchmarks.peers.joeynmt_settings import DECODING_BATCH, check, differences, settings
from tfstudy.config.resolve import overrides
from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree, flatten, merge
from tfstudy.data.vocabulary import PAD
from tfstudy.errors import one_of
from tfstudy.evaluation.decoding import beam, greedy
from tfstudy.evaluation.limits import generation_limit, limits_of
from tfstudy.experiment.api import compose_config
from tfstudy.experiment.finished import FinishedRun, load
from tfstudy.tasks.base import Tokens
from tfstudy.tasks.translation import Translation

CALIBRATION = 60  # updates that are timed to find how many fit in the given time


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default="", help="folder of a corpus (data.root); default: the synthetic languages")
    parser.add_argument("--source-language", default="", help="code of the source language (data.source_language)")
    parser.add_argument("--target-language", default="", help="code of the target language (data.target_language)")
    parser.add_argument("--train-pairs", type=int, default=0, help="number of train pairs (0: all)")
    parser.add_argument("--arch", choices=("transformer", "lstm"), default="transformer", help="architecture")
    parser.add_argument(
        "--minutes", type=float, default=0.0, help="training time of each system (0: the preset's number of updates)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of both systems")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="CPU threads of both systems")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of tfstudy, carried over to JoeyNMT"
    )
    parser.add_argument("--joeynmt", action="append", default=[], metavar="KEY=VALUE", help="a setting of JoeyNMT")
    parser.add_argument("--preset", default="small", help="preset of our run (default: small)")
    parser.add_argument("--out", type=Path, default=Path("results-peers"), help="folder of all files")
    return parser.parse_args()


def config_of(chosen: argparse.Namespace) -> RunConfig:
    """Return the config of our run: the preset, with the settings of the command line."""
    names = {"root", "source_language", "target_language", "train_pairs"}
    data = {name: value for name, value in vars(chosen).items() if name in names and value}
    interval = {"log_interval": 50, "validation_interval": 1_000_000}  # as in JoeyNMT: no validation in between
    given = merge({"data": data, "train": interval}, overrides(chosen.set))
    split = "corpus" if chosen.root else "embedded"
    last = {"eval": {"checkpoint": "last"}}  # JoeyNMT does not validate before the end
    return compose_config("translation", chosen.arch, chosen.preset, merge(last, given), split, chosen.seed)


def train_tfstudy(config: RunConfig, folder: Path, **changes: int) -> FinishedRun:
    """Train and evaluate our model in `folder`, unless it has been, and return the run."""
    values = flatten(config.model_dump(exclude={"task", "arch", "smoke"})) | changes
    outcome = tfstudy.run(config.task, arch=config.arch, results=folder, **values)
    if outcome.result.status != "finished":
        raise RuntimeError(f"tfstudy {outcome.result.status}: {outcome.result.reason}")
    return load(outcome.path)


def translate(run: FinishedRun) -> tuple[list[Tokens], float]:
    """Return our outputs for the test set and the seconds of decoding them, in batches of similar length."""
    task, data, decode = run.prepared.task, run.prepared.data, run.prepared.config.decode
    examples = task.examples(TEST)
    encoded = data.encode(examples)
    limit, outputs, start = generation_limit(task, decode), {}, time.perf_counter()
    for index in torch.tensor(decoding_order(examples)).split(DECODING_BATCH):
        source = encoded.rows(index).source
        inputs = run.model, source, source != PAD, limits_of(limit, encoded.source_lengths[index] - 1)
        ids = beam(*inputs, decode.beam_size, decode.length_penalty) if decode.method == "beam" else greedy(*inputs)
        outputs |= zip(index.tolist(), map(data.target_vocab.decode, ids), strict=True)
    return [outputs[row] for row in range(len(encoded))], time.perf_counter() - start


def train_joeynmt(python: Path, tree: Tree, folder: Path, threads: int) -> Training:
    """Train JoeyNMT with a config, and return what it reports."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "train.yaml"
    file.write_text(yaml.safe_dump(tree, allow_unicode=True), encoding="utf-8")
    joeynmt(python, "train", file, "--skip-test", threads=threads)
    return read_training(Path(tree["model_dir"]))


def translate_joeynmt(
    python: Path, tree: Tree, folder: Path, threads: int, order: Sequence[int]
) -> tuple[list[Tokens], float]:
    """Return JoeyNMT's outputs for the test set, which was written in this order, and the seconds of decoding them."""
    file = folder / "test.yaml"
    data = {key: value for key, value in tree["data"].items() if key != "dev"}
    file.write_text(yaml.safe_dump(tree | {"data": data}, allow_unicode=True), encoding="utf-8")
    joeynmt(python, "test", file, "--output-path", str(folder / "outputs"), threads=threads)
    return read_outputs(folder / "outputs.test", order), read_decoding_seconds(Path(tree["model_dir"]))


def of_updates(config: RunConfig, updates: int) -> RunConfig:
    """Return the config with this number of updates, of which at most a quarter are warm-up."""
    train = {"steps": updates, "warmup_steps": min(config.train.warmup_steps, updates // 4)}
    return config.model_copy(update={"train": config.train.model_copy(update=train)})


def within(config: RunConfig, seconds: float, measured: float) -> RunConfig:
    """Return the config with the updates that fit in `seconds`, if `CALIBRATION` of them took `measured` seconds."""
    return of_updates(config, max(1, round(CALIBRATION * seconds / max(measured, 1e-3))))


def run_tfstudy(config: RunConfig, chosen: argparse.Namespace) -> System:
    """Train our model, and translate the test set."""
    if chosen.minutes:
        with tempfile.TemporaryDirectory() as folder:
            short = train_tfstudy(of_updates(config, CALIBRATION), Path(folder), **{"eval.max_examples": 1})
        config = within(config, 60 * chosen.minutes, short.result.train_seconds)
    run = train_tfstudy(config, chosen.out / "tfstudy")
    outputs, seconds = translate(run)
    result, numbers = run.result, {"tfstudy": tfstudy.__version__, **own_versions("torch", "sacrebleu")}
    return System(
        *("tfstudy", result.parameters, result.step, int(result.train_tokens), result.train_seconds),
        *(seconds, outputs, numbers),
    )


def run_joeynmt(config: RunConfig, task: Translation, batch: int, python: Path, chosen: argparse.Namespace) -> System:
    """Train JoeyNMT on the same data, and translate the test set."""
    folder, threads = (chosen.out / "joeynmt").resolve(), chosen.threads
    write_data(task, folder / "data", config.model.share_embeddings)

    def train(config: RunConfig) -> tuple[Tree, Training]:
        tree = merge(settings(config, folder, batch), overrides(chosen.joeynmt))
        return tree, train_joeynmt(python, tree, folder, threads)

    if chosen.minutes:
        measured = train(of_updates(config, CALIBRATION))[1].seconds
        config = within(config, 60 * chosen.minutes, measured)
    tree, training = train(config)
    outputs, seconds = translate_joeynmt(python, tree, folder, threads, decoding_order(task.examples(TEST)))
    cost = (training.parameters, training.updates, training.tokens, training.seconds, seconds)
    return System("JoeyNMT", *cost, outputs, versions(python, "joeynmt", "torch"))


def compare(chosen: argparse.Namespace) -> str:
    """Train both systems and return the table, which is also written to the output folder."""
    config = config_of(chosen)
    check(config)
    task = Translation(config.data)
    sentences, batch = len(task.examples(TEST)), sentences_per_batch(config, task.examples("train"))
    known = flatten(settings(config, chosen.out, batch))
    for key in flatten(overrides(chosen.joeynmt)):  # JoeyNMT itself ignores keys that it does not know
        one_of("setting of JoeyNMT", key, known)
    python = environment("joeynmt", PACKAGES)
    torch.set_num_threads(chosen.threads)
    systems = [run_tfstudy(config, chosen), run_joeynmt(config, task, batch, python, chosen)]
    scores = score(task, TEST, systems)
    changed = [f"JoeyNMT with {', '.join(chosen.joeynmt)}"] if chosen.joeynmt else []
    notes = [f"threads: {chosen.threads}", *differences(config, batch), *changed]
    write_json(chosen.out / "comparison.json", record(systems, scores, notes))
    text = table(systems, scores, sentences, notes)
    (chosen.out / "comparison.md").write_text(text, encoding="utf-8")
    return text


def write_json(path: Path, content: Tree) -> None:
    """Write a tree of plain values to a file."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    with errors_in_one_line():
        print(compare(arguments()))


if __name__ == "__main__":
    main()
