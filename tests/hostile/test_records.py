"""Damaged and hostile records: no other number, nothing written elsewhere, no hang, and one line that says why."""

import json
import os
import resource
import shutil
import signal
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from tests.commands import tfstudy
from tests.example_records import edit_result, put, put_predictions, result, set_environments
from tests.interrupted_runs import COPYING_RUN, at_row, killed
from tfstudy.errors import UserError
from tfstudy.runs import store
from tfstudy.runs.files import SEAL, digest_of
from tfstudy.runs.find import find_run
from tfstudy.runs.store import read_measurement, read_predictions, read_result
from tfstudy.training.checkpoints import STATE_KEY, DamagedError, load_checkpoint, load_weights, save_checkpoint
from tfstudy.training.checkpoints import save_weights as share

CONTROL = "\x1b[2J\x1b]0;title\x07"
DEEP = b"[" * 100_000


@pytest.fixture
def runs(trained, empty_folder) -> list[Path]:
    """The two runs, copied to `results` of the working folder."""
    shutil.copytree(trained, "results")
    return [find_run(Path("results"), f"study/lstm/s{seed}") for seed in (0, 1)]


def said(capsys, *words) -> tuple[int, str, str]:
    """The exit code and output of a command, which must end within a minute, with one line if it refuses."""
    capsys.readouterr()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(60)
    code = tfstudy(*words)
    signal.alarm(0)
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    assert not {"\x1b", "\x07"} & set(out + err)
    if code == 2:
        assert [line[:7] for line in err.splitlines()].count("error: ") == 1, err
    return code, out, err


# Every file, damaged in every way, and what commands make of it

FILES = ("config.yaml", "events.jsonl", "metrics.csv", "result.json")
FILES += ("predictions/test.jsonl.gz", "checkpoints/last.ckpt", "instruments/entropy.json")
OF_UNFINISHED = ("config.yaml", "events.jsonl", "metrics.csv", "checkpoints/last.ckpt")


def flipped(content: bytes, place: float = 0.5, bit: int = 0) -> bytes:
    at = int(len(content) * place)
    return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


DAMAGES: dict[str, Callable[[Path, Path], object]] = {
    "a flipped bit": lambda file, other: file.write_bytes(flipped(file.read_bytes())),
    "the first half": lambda file, other: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "empty": lambda file, other: file.write_bytes(b""),
    "missing": lambda file, other: file.unlink(),
    "of another run": lambda file, other: shutil.copyfile(other, file),
}


def numbers(path: Path) -> object:
    return {name: (scores.n, scores.metrics, scores.slices) for name, scores in read_result(path).splits.items()}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_no_damaged_file_gives_another_number(name, damage, runs, capsys):
    run, other = runs
    before, predictions, measured = numbers(run), read_predictions(run, "test"), read_measurement(run, "entropy")
    _, table, _ = said(capsys, "table", "study", "--format", "md")
    _, output, _ = said(capsys, "predict", run, "a b", "b a", "--quiet")
    DAMAGES[damage](run / name, other / name)

    code, out, _ = said(capsys, "table", "study", "--format", "md")
    assert code == 0
    if out != table:
        assert run.name in out.split("left out")[1]
        assert f"{name} is damaged" in out or (name, damage) == ("result.json", "missing")
    else:
        assert "/" in name, "every file that is not one of a folder counts"
    code, out, err = said(capsys, "predict", run, "a b", "b a", "--quiet")
    assert (out, code) == (output, 0) or (code == 2 and run.name in err)
    for read, sound in ((read_predictions, predictions), (read_measurement, measured)):
        try:
            assert read(run, "test" if read is read_predictions else "entropy") == sound
        except UserError:
            continue
    code, _, err = said(capsys, *COPYING_RUN, "--seed", "0")
    assert (code == 0 and numbers(run) == before) or (code == 2 and run.name in err)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory) -> Path:
    """The results of a study of two runs that were killed after step 6, with a checkpoint at 4."""
    results = tmp_path_factory.mktemp("interrupted") / "results"
    for seed in "01":
        killed([*COPYING_RUN, "--seed", seed, "--results", results], at_row(6))
    return results


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", OF_UNFINISHED)
def test_no_damaged_file_changes_what_a_resumed_run_becomes(name, damage, interrupted, trained, empty_folder, capsys):
    shutil.copytree(interrupted, "results")
    run, other = sorted(Path("results").glob("study/*/*/s*"))
    DAMAGES[damage](run / name, other / name)
    code, _, err = said(capsys, *COPYING_RUN, "--seed", "0")
    sound = find_run(trained, "study/lstm/s0")
    if code == 0:
        assert numbers(run) == numbers(sound)
        assert (run / "metrics.csv").read_bytes() == (sound / "metrics.csv").read_bytes()
        assert read_result(run).test_reads == read_result(sound).test_reads
    else:
        assert (code, run.name in err) == (2, True)
    if name == "metrics.csv":
        assert (code, "metrics.csv is damaged: it was changed after step 4 was saved" in err) == (2, True)


# Records made to do harm


def link(name: str, target: str = "outside") -> Callable[[Path], object]:
    def change(run: Path) -> None:
        shutil.rmtree(run / name) if (run / name).is_dir() else (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(Path(target).resolve())

    return change


def deep_slices(run: Path) -> None:
    body = (run / "result.json").read_bytes().rpartition(SEAL[0])[0] + b',"more":{"a":' + DEEP
    (run / "result.json").write_bytes(body + SEAL[0] + digest_of(body).encode() + SEAL[1])


BOMB = ['{"source":"a","target":"a","prediction":"a"}'] * 99_999
MODULES = dict.fromkeys(["payload", "..x", "", "tasks.../payload", "os." * 5000], "0" * 16)
PLUGIN = {"arguments": ["--plugin", "payload.py"], "syntax_trees": {"plug-in task payload.py": "0" * 16}}
HOSTILE: dict[str, Callable[[Path], object]] = {
    "a lock that is a link": link(".lock"),
    "predictions in a linked folder": link("predictions", "folder"),
    "a device": link("metrics.csv", "/dev/zero"),
    "a pipe": lambda run: ((run / "result.json").unlink(), os.mkfifo(run / "result.json")),
    "a terabyte without a byte on the disk": lambda run: os.truncate(run / "result.json", 1 << 40),
    "a bomb of predictions": lambda run: put_predictions(run, "test", BOMB),
    "deep JSON": deep_slices,
    "code in the config": lambda run: put(run, "config.yaml", "a: !!python/object/apply:os.system [touch ran]\n"),
    "paths as names": lambda run: edit_result(run, arch="../../x", splits={"../../../x": result()["splits"]["test"]}),
    "control characters": lambda run: edit_result(run, preset=CONTROL, task="a\nb", status=f"{CONTROL}done"),
    "a pipe as its preset": lambda run: (os.mkfifo("results/pipe"), edit_result(run, preset="results/pipe:x")),
    "a long name as its preset": lambda run: edit_result(run, preset=f"{'x' * 300}:x"),
    "modules of others": lambda run: set_environments(run, {"syntax_trees": MODULES}),
    "a plug-in": lambda run: set_environments(run, PLUGIN),
    "a task that is a file": lambda run: put(run, "config.yaml", "task: payload.py\narch: lstm\n"),
}


COMMANDS = """
table study
status study
list runs
result RUN --log
result RUN --changes
result RUN OTHER
errors RUN
predict RUN a --quiet
evaluate RUN --quiet
measure RUN entropy --save --quiet
export RUN --quiet
grid --resume study --dry-run
report study --out report
pack study
"""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_record_breaks_no_command_and_reaches_nothing_else(name, runs, capsys, monkeypatch):
    run, other = runs
    Path("outside").write_text("mine")
    Path("folder").mkdir()
    Path("payload.py").write_text("open('ran', 'w')\n")
    monkeypatch.syspath_prepend(".")
    outside = {path: path.stat().st_mtime_ns for path in (Path("outside"), Path("folder"))}
    HOSTILE[name](run)
    monkeypatch.setattr(store, "MAX_PREDICTIONS", 1 << 20)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for line in [*COMMANDS.strip().splitlines(), " ".join([*COPYING_RUN, "--seed", "0"])]:
        words = [{"RUN": run, "OTHER": other}.get(word, word) for word in line.split()]
        code, out, err = said(capsys, *words)
        assert code in (0, 1, 2), (words, err)
        if words[0] == "table":
            assert run.name in out or "left out" not in out
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 300_000, "kB"
    assert Path("outside").read_text() == "mine"
    assert {path: path.stat().st_mtime_ns for path in outside} == outside
    assert not Path("ran").exists()
    assert "payload" not in sys.modules
    assert {path.name for path in Path().iterdir()} <= {"results", "outside", "folder", "payload.py", "report"}


def test_links_of_a_study_get_no_run_and_its_plans_and_zip_files_are_read_within_bounds(runs, capsys):
    Path("outside").mkdir()
    Path("results/linked").mkdir()
    Path("results/linked/copying-copy").symlink_to(Path("outside").resolve())
    code, _, err = said(capsys, *COPYING_RUN, "--study", "linked")
    assert (code, "nothing is written through links" in err) == (2, True)
    assert not list(Path("outside").iterdir())
    plans = Path("results/study/.plans")
    plans.mkdir()
    for number, content in enumerate((DEEP, b'{"runs": {"a": 3}}', b'{"runs": [1]}', b"\xff")):
        (plans / f"{number}.json").write_bytes(content)
    os.mkfifo(plans / "pipe.json")
    os.mkfifo("results/study/runs.zip")
    code, out, err = said(capsys, "status", "study")
    assert (code, "2 of 2 runs finished" in out) == (0, True)
    assert "left out: results/study/runs.zip" in err


# Weights


class Command:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


HASH = "a" * 64
WEIGHTS = {"layer.weight": torch.arange(300.0).reshape(20, 15), "layer.bias": torch.zeros(7), "count": torch.tensor(3)}


def damaged(data: bytes) -> Iterator[bytes]:
    """The same with a flipped bit at a hundred places, cut at many, and longer."""
    yield from (flipped(data, place / 100, place % 8) for place in range(100))
    yield from (data[:length] for length in range(0, len(data), 200))
    yield data + b"\0"


def test_no_damaged_or_foreign_checkpoint_is_loaded_and_no_code_in_it_runs(tmp_path):
    path = tmp_path / "last.ckpt"
    content = {"state_dict": {"model.weight": torch.arange(300.0)}, "global_step": 10}
    sound = content | {"callbacks": {STATE_KEY: {"run": HASH, "best": 1.0}}}
    save_checkpoint(sound, path)
    assert torch.equal(load_checkpoint(path, HASH)["state_dict"]["model.weight"], torch.arange(300.0))
    with pytest.raises(UserError, match="belongs to another run"):
        load_checkpoint(path, "b" * 64)
    for one in damaged(path.read_bytes()):
        path.write_bytes(one)
        with pytest.raises(DamagedError):
            load_checkpoint(path, HASH)
    for foreign in ({}, 3, {"callbacks": 5}, content, sound | {"more": Command(tmp_path / "ran")}):
        save_checkpoint(foreign, path)
        with pytest.raises(UserError) as error:
            load_checkpoint(path, HASH)
        assert not isinstance(error.value, DamagedError)
    assert not (tmp_path / "ran").exists()


def test_no_damaged_or_foreign_shared_weights_are_loaded(tmp_path):
    path = tmp_path / "weights.safetensors"

    def refused(run: str = HASH) -> str:
        with pytest.raises(UserError) as error:
            load_weights(path, WEIGHTS, run)
        assert "\n" not in str(error.value)
        return str(error.value)

    share(WEIGHTS, path, HASH)
    loaded, data = load_weights(path, WEIGHTS, HASH), path.read_bytes()
    assert all(torch.equal(loaded[name], WEIGHTS[name]) for name in WEIGHTS)
    assert "belongs to another run (aaaaaaaa" in refused("b" * 64)
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:end])
    header["layer.bias"]["data_offsets"] = [0, 28]  # overlaps another
    foreign = [struct.pack("<Q", len(one)) + one + data[end:] for one in (DEEP[:5000], json.dumps(header).encode())]
    for one in [*foreign, struct.pack("<Q", (1 << 64) - 1) + data[8:], *damaged(data)]:
        path.write_bytes(one)
        refused()
    for name, other in {"layer.bias": torch.zeros(7, 1), "another": torch.zeros(1)}.items():
        share(WEIGHTS | {name: other}, path, HASH)
        assert f"'{name}' differs in name, shape or type" in refused()
    os.truncate(path, 1 << 40)
    assert "longer than" in refused()
