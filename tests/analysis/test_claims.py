"""Claims: how they are read, judged and shown; and papers' figures beside ours. From made records."""

import json
import math
import re
import shlex
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest
import yaml
from typer.main import get_command

from tasks.errors import UserError
from tests.commands import tfstudy
from tests.example_records import result, write
from tfstudy.analysis import reproduction, statements
from tfstudy.analysis.selection import as_preset, chosen, rows_of
from tfstudy.analysis.claims import judge, weigh
from tfstudy.analysis.collection import flat, read
from tfstudy.analysis.conditions import Condition, conditions
from tfstudy.cli import app
from tfstudy.grids import expand
from tfstudy.report.claims import markdown
from tfstudy.report.markup import MINUS
from tfstudy.report.reproduction import markdown as compared_markdown

ROOT = Path(__file__).parents[2]
PLACE = {"task": "scan", "split": "length"}


def claim(*parts, **more):
    tree = {"id": "L1", "claim": "It is so.", "source": "here", "where": PLACE, "parts": list(parts), "grid": "scan"}
    return statements._checked(tree | more, "here")


def values(study, arch, *shares, name="", **more):
    """Runs of one experiment, one a seed from 0 on; tight intervals within runs."""
    name = name or arch
    made = []
    for seed, share in enumerate(shares):
        one = result(seed, share, arch=arch, experiment=name, run=f"{name}{seed}", **more)
        one["splits"]["test"]["exact_match_interval"] = [max(0, share - 0.001), min(1, share + 0.001)]
        made.append(one)
    return write(study, *made)


def judged(study, *parts, **more):
    one = claim(*parts, **more)
    return judge(one, rows_of([one], read(study).runs))


# How claims are judged

NEAR = (0.49, 0.5, 0.51, 0.505, 0.495)


@pytest.mark.parametrize(
    ("part", "verdict"),
    [
        ({"is": 50, "within": 5}, "supported"),
        ({"is": 60, "within": 5}, "refuted"),
        ({"is": 51, "within": 1}, "undecided"),
        ({"above": 45}, "supported"),
        ({"above": 55}, "refuted"),
        ({"above": 50.2}, "undecided"),
        ({"below": 55}, "supported"),
        ({"below": 45}, "refuted"),
        ({"below": 49.8}, "undecided"),
    ],
)
def test_a_mean_is_judged_by_its_whole_interval(tmp_path, part, verdict):
    found = judged(values(tmp_path, "lstm", *NEAR), {"of": {"arch": "lstm"}, **part})
    assert found.verdict == verdict
    assert (verdict == "undecided") == ("does not tell it from" in found.why)


@pytest.mark.parametrize(
    ("part", "verdict"),
    [
        ({"above": 0}, "supported"),
        ({"above": 20}, "supported"),
        ({"above": 30}, "undecided"),  # higher, but by how much can't be told
        ({"above": 55}, "refuted"),  # the claimed margin is excluded
        ({"below": 0}, "refuted"),  # significant in the other direction
        ({"is": 30, "within": 5}, "supported"),
        ({"is": 0, "within": 5}, "refuted"),
    ],
)
def test_a_difference_is_judged_by_its_margin(tmp_path, part, verdict):
    values(tmp_path, "lstm", 0.79, 0.8, 0.81, 0.8, 0.8)
    values(tmp_path, "cnn", 0.49, 0.52, 0.5, 0.51, 0.48)
    found = judged(tmp_path, {"of": {"arch": "lstm"}, "minus": {"arch": "cnn"}, **part})
    assert found.verdict == verdict
    assert found.findings[0].weighed.found.mean == pytest.approx(30)


@pytest.mark.parametrize("seeds", [1, 2, 3, 4])
@pytest.mark.parametrize("said", [{"is": 50, "within": 5}, {"is": 90, "within": 5}])
def test_too_few_seeds_decide_nothing(tmp_path, seeds, said):
    study = values(tmp_path, "lstm", *(0.5 + 0.001 * seed for seed in range(seeds)))
    found = judged(study, {"of": {"arch": "lstm"}, **said}, seeds=5)
    assert found.verdict == "undecided"
    assert found.why == f"{seeds} of at least 5 seeds; about {5 - seeds} more"


def test_splits_of_large_variance_need_five_seeds():
    part = {"of": {"arch": "lstm"}, "above": 0}
    leasts = [claim(part, where={"task": "scan", "split": s}).least for s in ("length", "addprim_jump", "mcd1")]
    assert leasts == [3, 5, 5]
    with pytest.raises(UserError, match="seeds must be at least 2"):
        claim(part, seeds=1)


def test_seeds_that_are_all_alike_are_judged_by_the_interval_within_a_run(tmp_path):
    values(tmp_path, "lstm", 0, 0, 0)
    found = judged(tmp_path, {"of": {"arch": "lstm"}, "below": 5})
    assert (found.verdict, found.findings[0].weighed.test) == ("supported", "")
    assert "0.0 [0.0, 0.1] within a run (n = 3);" in markdown([found])
    assert judged(tmp_path, {"of": {"arch": "lstm"}, "above": 0}).verdict == "undecided"  # it touches 0
    values(tmp_path, "cnn", 0, 0, 0)
    part = {"of": {"arch": "lstm"}, "minus": {"arch": "cnn"}, "above": 0}
    assert judged(tmp_path, part).verdict == "undecided"


def test_all_parts_must_hold_and_one_refutes(tmp_path):
    values(tmp_path, "lstm", *NEAR)
    true, false = {"of": {"arch": "lstm"}, "above": 20}, {"of": {"arch": "lstm"}, "above": 80}
    open_, missing = {"of": {"arch": "lstm"}, "above": 50}, {"of": {"arch": "cnn"}, "above": 0}
    told = [judged(tmp_path, *parts)[1:3] for parts in ([true] * 2, [true, false], [true, open_], [true, missing])]
    assert [verdict for verdict, _ in told] == ["supported", "refuted", "undecided", "undecided"]
    assert told[3][1] == "supported: part 1; not run: part 2"
    found = judged(tmp_path, missing, missing)
    assert (found.verdict, found.why) == ("not run", "no finished run of this kind")


def test_p_is_corrected_over_the_parts_of_a_claim(tmp_path):
    values(tmp_path, "lstm", 0.5, 0.54, 0.58, 0.53, 0.55)
    part = {"of": {"arch": "lstm"}, "above": 50}
    alone, both = judged(tmp_path, part), judged(tmp_path, part, part)
    assert 0.025 < alone.findings[0].p < 0.05
    assert both.findings[0].p == pytest.approx(2 * alone.findings[0].p)
    assert (alone.verdict, both.verdict) == ("supported", "undecided")
    assert "after correction; about" in both.findings[0].why


def test_a_mean_of_survivors_decides_nothing_but_divergence_itself_is_counted(tmp_path):
    values(tmp_path, "lstm", *NEAR[:4])
    lost = result(4, arch="lstm", experiment="lstm", run="l4", status="diverged")
    write(tmp_path, {k: v for k, v in lost.items() if k != "splits"})
    found = judged(tmp_path, {"of": {"arch": "lstm"}, "above": 20})
    assert (found.verdict, found.why[:10]) == ("undecided", "1 diverged")
    found = judged(tmp_path, {"of": {"arch": "lstm"}, "metric": "diverged", "below": 90})
    assert (found.verdict, found.findings[0].weighed.found.mean) == ("supported", 20)


def test_of_several_rows_the_one_like_its_preset_is_judged_then_the_one_with_most_seeds(tmp_path):
    usual = dict(as_preset("scan", "length", "lstm", "default"))
    for name, config, seeds in (("few", {}, 1), ("usual", {}, 3), ("other", {"train.steps": 7}, 5)):
        values(tmp_path, "lstm", *(0.5 + 0.01 * seed for seed in range(seeds)), name=name)
        for folder in tmp_path.glob(f"*/*/s*-{name}*"):
            (folder / "config.yaml").write_text(json.dumps(expand.nested(usual | config)))
    [finding] = judged(tmp_path, {"of": {"arch": "lstm"}, "above": 20}).findings
    assert [run.result.run for run in finding.conditions[0].runs] == ["usual0", "usual1", "usual2"]
    assert finding.unused == 2
    [finding] = judged(tmp_path, {"of": {"arch": "lstm", "train.steps": 7}, "above": 20}).findings
    assert len(finding.conditions[0].runs) == 5


def test_rows_of_other_data_are_not_compared(tmp_path):
    for arch, pairs in (("lstm", 1), ("cnn", 2)):
        values(tmp_path, arch, *NEAR)
        for folder in tmp_path.glob(f"*/{arch}/s*"):
            (folder / "config.yaml").write_text(json.dumps({"data": {"pairs": pairs}}))
    part = {"of": {"arch": "lstm"}, "minus": {"arch": "cnn"}, "above": 0}
    assert judged(tmp_path, part)[1:3] == ("not run", "no two runs share data and settings")


def shares(draws, test):
    """How often a test on drawn figures comes out in each way."""
    random = np.random.default_rng(0)
    counts = Counter(test(random) for _ in range(draws))
    return {side: count / draws for side, count in counts.items()}


@pytest.mark.parametrize("seeds", [3, 5, 8])
def test_what_is_on_the_edge_of_the_claim_is_rarely_decided(seeds):
    """The truth lies on a bound, where `supported` and `refuted` are both errors: .025 each is what is promised."""

    def side(random):
        first = dict(enumerate(55 + 2 * random.standard_normal(seeds)))
        found = weigh((45, 55), first)
        return found.side if not found.p >= 0.05 else "across"

    def direction(random):
        first, second = (dict(enumerate(50 + 2 * random.standard_normal(seeds))) for _ in range(2))
        found = weigh((0, np.inf), first, second, paired=False)
        return found.side if not found.p >= 0.05 else "across"

    for test in (side, direction):
        found = shares(400, test)
        assert found["across"] > 0.9
        assert max(found.get(wrong, 0) for wrong in ("within", "above", "below")) <= 0.045


def test_of_many_true_statements_one_is_rarely_refuted(tmp_path):
    """Four statements whose truth is on the bound: refuted falsely, over all of them, in .025 of cases."""
    from tfstudy.analysis.significance import holm

    def any_refuted(random):
        found = [weigh((50, np.inf), dict(enumerate(50 + 2 * random.standard_normal(5)))) for _ in range(4)]
        corrected = holm([one.p for one in found])
        return any(one.side == "below" and p < 0.05 for one, p in zip(found, corrected, strict=True))

    assert shares(300, any_refuted).get(True, 0) <= 0.05


# The files of claims

ALL = statements.read()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"clam": 1}, "did you mean 'claim'?"),
        ({"parts": [{"of": {"arch": "lstm"}, "over": 1}]}, "part 1: unknown key"),
        ({"parts": [{"of": {"arch": "lstm"}, "above": 1, "below": 2}]}, "must say one of"),
        ({"parts": [{"of": {"arch": "lstm"}, "is": 1}]}, "must say one of"),
        ({"parts": [{"of": {"arch": "lstm"}, "is": 1, "within": 0}]}, "'within' must be above 0"),
        ({"parts": [{"of": {"arch": "lstm"}, "above": "x"}]}, "Expected `float"),
        ({"parts": [{"of": {}, "above": 1}]}, "rows must be told by their arch"),
        ({"parts": [{"of": {"arch": "lstm", "archh": 1}, "above": 1}]}, "did you mean 'arch'?"),
        ({"parts": [{"of": {"arch": "lstm"}, "above": 1, "metric": "exact"}]}, "did you mean 'exact_match'?"),
        ({"parts": ["x"]}, "parts"),
        ({"grid": ""}, "must say what makes its runs"),
        ({"parts": []}, "it must have parts, or"),
        ({"id": "X"}, "an id must be L or P"),
    ],
)
def test_a_bad_claim_is_refused(tmp_path, change, said):
    good = {"id": "L1", "claim": "So.", "source": "me", "where": PLACE, "grid": "scan"}
    good["parts"] = [{"of": {"arch": "lstm"}, "above": 1}]
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({"claims": [good]}))
    assert list(statements.read(tmp_path)) == ["L1"]
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({"claims": [good | change]}))
    with pytest.raises(UserError, match=re.escape(said)) as error:
        statements.read(tmp_path)
    assert "a.yaml, entry 1" in str(error.value)


@pytest.mark.parametrize("files", [("a", "a"), ("a", "b")])
def test_an_id_is_there_once(tmp_path, files):
    good = {"id": "L1", "claim": "So.", "source": "me", "needs": "time"}
    for name in set(files):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump({"claims": [good] * (3 - len(set(files)))}))
    with pytest.raises(UserError, match="every claim must have an id of its own, but L1 is there twice"):
        statements.read(tmp_path)


def test_every_claim_of_the_list_is_there():
    assert [name for name in ALL if name[0] == "L"] == [f"L{number}" for number in range(1, 33)]
    assert [name for name in ALL if name[0] == "P"] == [f"P{number}" for number in range(1, 19)]


def test_what_is_said_to_show_a_claim_exists():
    for one in ALL.values():
        texts = f"{one.tested_by} {one.untested} {one.run}"
        for file, test in re.findall(r"(tests/\w+\.py)::(\w+)", texts):
            assert f"def {test}(" in (ROOT / file).read_text(), one.id
        for script in re.findall(r"benchmarks/\w+\.py", texts):
            assert (ROOT / script).exists(), one.id


def made_by(command):
    """The rows of the runs that a command of a claim would make, and their seeds."""
    cells = []
    for words in (shlex.split(part) for part in command.split("&&")):
        assert words[:2] == ["tfstudy", "grid"]
        told = get_command(app).commands["grid"].make_context("grid", words[2:]).params
        flags = {"task": told["task"], "data.split": told["split"], "arch": told["arch"]}
        axes = {key: text.split(",") for key, text in flags.items() if text} | expand.assigned(told["set_"] or [])
        tree = expand.read(told["name"]) if told["name"] else {}
        cells += expand.expand(expand.put_over(expand.tier(tree, ""), axes, told["seed"]))
    for config, preset in cells:
        here = flat(config.model_dump(mode="json"))
        yield Condition(config.task, config.data.split, "test", config.arch, preset, "", [], [], here, "e"), config.seed


@pytest.mark.parametrize("one", [one for one in ALL.values() if one.parts], ids=lambda one: one.id)
def test_the_command_of_a_claim_makes_the_runs_that_it_is_judged_by(one):
    made = list(made_by(one.command))
    for statement in one.statements:
        seeds = set()
        plain = {"test": "test", "tag": "", "value": ""}
        asked = msgspec.structs.replace(
            statement, of=statement.of | plain, minus=statement.minus and statement.minus | plain
        )
        for number in {seed for _, seed in made}:
            found, _ = chosen(asked, [row for row, seed in made if seed == number])
            seeds |= {number} if len(found) == 1 + bool(asked.minus) else set()
        assert len(seeds) >= one.least, statement


def test_runs_of_two_presets_may_validate_on_other_shares(tmp_path):
    for arch, preset, share in (("lstm", "default", 0.05), ("cnn", "dessi-2019", 0)):
        values(tmp_path, arch, *NEAR, preset=preset)
        for folder in tmp_path.glob(f"*/{arch}/s*"):
            (folder / "config.yaml").write_text(json.dumps({"data": {"validation": share}}))
    part = {"of": {"arch": "cnn", "preset": "dessi-2019"}, "minus": {"arch": "lstm"}, "below": 5}
    assert judged(tmp_path, part).findings[0].weighed.found.method == "Welch"


# Commands


def test_the_command_shows_all_and_some_claims(tmp_path, capsys):
    study = values(tmp_path / "results", "lstm", 0.14, 0.15, 0.13, 0.14, 0.14)
    values(study, "transformer", 0, 0.001, 0, 0.002, 0)
    assert tfstudy("claims", "--results", str(study)) == 0
    out = capsys.readouterr().out
    assert re.search(r"\| L23 \| theorem \|.*tested by tests/models/test_positions.py::", out)
    assert re.search(r"\| L17 \| not run \|.*needs a setting that leaves", out)
    assert re.search(r"\| L3 \| refuted \|.*refuted: part 2; undecided: part 1", out)
    assert re.search(r"\| L1 \| not run \|.*: `tfstudy grid --task scan --split simple", out)
    assert f"lstm [s0]({study.as_posix()}/scan-length/lstm/s0-lstm0), [s1](" in out
    assert tfstudy("claims", "L3", "L1", "--results", str(study), "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)["claims"]
    assert [one["id"] for one in found] == ["L3", "L1"]
    part = found[0]["parts"][1]
    assert (part["verdict"], part["n"], part["said_low"]) == ("refuted", 5, 10.8)
    assert part["rows"][0]["each_seed"]["3"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("claims", "L33"), "unknown claim"),
        (("claims", "--format", "mdd"), "did you mean 'md'?"),
        (("claims", "--results", "nowhere"), "there is no study"),
        (("reproduce", "lake-2019"), "did you mean 'lake-2018'?"),
        (("reproduce", "newman-2020", "--run"), "--run needs a grid of the paper's name"),
        (("reproduce", "lake-2018", "--tier", "quick"), "--tier goes with --run"),
    ],
)
def test_a_mistake_is_one_message(tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    assert tfstudy(*words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_run_makes_the_runs_of_the_papers_grid(tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr("tfstudy.cli.grids.grid", lambda name, **more: asked.append((name, more)))
    study = values(tmp_path, "lstm", *NEAR)
    assert tfstudy("reproduce", "lake-2018", "--run", "--tier", "quick", "--results", str(study)) == 0
    assert asked == [("lake-2018", {"tier": "quick", "results": study})]
    assert tfstudy("reproduce") == 0
    assert "deletang-2022      31 figures" in capsys.readouterr().out


# Figures of papers


def beside(study, paper, tolerance=5.0, **figure):
    [found] = [
        one
        for one in reproduction.compare(paper, conditions(read(study).runs), tolerance)
        if all(one.published[key] == value for key, value in figure.items())
    ]
    return found


LAKE = {"split": "length", "arch": "LSTM", "metric": "exact match"}  # 13.8, without a spread


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ((0.135, 0.145, 0.14, 0.13), "agrees"),
        ((0.235, 0.245, 0.24, 0.23), "differs"),
        ((0.02, 0.14, 0.25), "underpowered"),
        ((0.138, 0.137), "underpowered"),
        ((), "not run"),
    ],
)
def test_a_figure_without_spread_is_compared_with_our_interval(tmp_path, shares, verdict):
    values(tmp_path, "lstm", *shares)
    found = beside(tmp_path, "lake-2018", **LAKE)
    assert found.verdict == verdict
    assert beside(tmp_path, "lake-2018", split="simple", arch="SRN").verdict == "no counterpart"


def test_a_figure_with_a_standard_deviation_is_compared_by_welch(tmp_path):
    from scipy import stats

    shares = (0.4, 0.45, 0.38, 0.5, 0.41)
    values(tmp_path, "cnn", *shares, split="addprim_jump", preset="dessi-2019")
    found = beside(tmp_path, "dessi-2019", split="addprim_jump", value="69.2")
    ours = 100 * np.array(shares)
    expected = stats.ttest_ind_from_stats(ours.mean(), ours.std(ddof=1), 5, 69.2, 8.2, 5, equal_var=False)
    ends = stats.t.interval(0.95, stats_degrees(ours, 8.2, 5), ours.mean() - 69.2, standard_error(ours, 8.2, 5))
    assert found.difference[:3] == pytest.approx((ours.mean() - 69.2, *ends))
    assert (found.verdict, expected.pvalue < 0.05, found.unlike) == ("differs", True, "")
    other = beside(tmp_path, "dessi-2019", split="addprim_jump", value="60.67")
    assert other.unlike == "the paper's settings, but not those of this figure"


def standard_error(x, sd, n):
    return np.sqrt(x.var(ddof=1) / len(x) + sd**2 / n)


def stats_degrees(x, sd, n):
    a, b = x.var(ddof=1) / len(x), sd**2 / n
    return (a + b) ** 2 / (a**2 / (len(x) - 1) + b**2 / (n - 1))


def test_the_papers_preset_comes_first_and_what_is_unlike_is_said(tmp_path):
    values(tmp_path, "lstm", 0.3, 0.31, 0.32)
    assert "not the paper's settings" in beside(tmp_path, "lake-2018", **LAKE).unlike
    values(tmp_path, "lstm", 0.14, 0.15, 0.13, name="theirs", preset="lake-2018")
    found = beside(tmp_path, "lake-2018", **LAKE)
    assert (found.rows[0].preset, found.unlike, found.verdict) == ("lake-2018", "", "agrees")
    text = compared_markdown([found, beside(tmp_path, "lake-2018", **(LAKE | {"arch": "GRU+attention"}))], 5, "")
    assert "| 14.0 [11.5, 16.5] | 3 | lstm lake-2018 | +0.2 [-2.3, +2.7] | agrees |" in text.replace(MINUS, "-")
    assert "without attention, theirs with; an LSTM, theirs a GRU" in text
    assert "underpowered, unlike" in text  # -6.8 [-9.3, -4.3] is neither within 5 points nor outside


@pytest.mark.parametrize(("seeds", "verdict"), [(9, "underpowered"), (10, "agrees")])
def test_the_best_of_ten_seeds_is_compared_with_our_best_of_ten_on_the_same_lengths(tmp_path, seeds, verdict):
    for test in ("test_41_500", "test_41_60"):
        for seed in range(seeds):
            part = result(seed)["splits"]["test"] | {"mean_over_lengths": {"token_accuracy": 0.05 * seed + 0.1}}
            one = {"task": "chomsky", "split": "parity", "splits": {test: part}, "experiment": test}
            write(tmp_path, result(seed, run=f"{test}{seed}", **one))
    found = beside(tmp_path, "deletang-2022", split="parity", arch="LSTM")
    assert [row.test for row in found.conditions] == ["test_41_500"]
    assert found.ours.mean == pytest.approx(5 * (seeds - 1) + 10)
    assert beside(tmp_path, "deletang-2022", 50.0, split="parity", arch="LSTM").verdict == verdict


def test_every_paper_has_a_command_or_no_counterpart():
    for name in reproduction.papers():
        command = reproduction.command(name)
        assert command.startswith("tfstudy grid") or all(reproduction._missing(one) for one in reproduction.paper(name))
    assert {"lake-2018", "dessi-2019", "csordas-2021", "deletang-2022"} <= set(expand.names())


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"of": {"arch": "lstm"}, "above": math.nan}, "must be finite"),
        ({"of": {"arch": "lstm"}, "above": math.inf}, "must be finite"),
        ({"of": {"arch": ["lstm"]}, "above": 1}, "'arch' must be a name"),
        ({"of": {"arch": "lstm", "model.dim": [1]}, "above": 1}, "'model.dim' must be a value"),
        ({"of": {"arch": "lstm", "task": "scann"}, "above": 1}, "did you mean 'scan'?"),
        ({"of": {"arch": "lstm", "split": "lenght"}, "above": 1}, "did you mean 'length'?"),
    ],
)
def test_what_could_never_be_judged_is_refused(part, said):
    with pytest.raises(UserError) as error:
        claim(part)
    assert said in str(error.value)


def test_experiments_with_numbers_in_their_names_are_known():
    assert claim({"of": {"arch": "lstm", "split": "fewshot_num2_rep1"}, "above": 1}).statements
