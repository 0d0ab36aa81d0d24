"""One run: its result, its wrong predictions, what changed since it started, and how it differs from another one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.text import Text

from tfstudy import tasks
from tfstudy.analysis.summary import length_threshold
from tfstudy.config.resolve import check_local, resolve
from tfstudy.config.trees import flatten
from tfstudy.errors import UserError, one_of
from tfstudy.evaluation.breakdown import CORRECT, count_errors, first_error
from tfstudy.experiment.code_versions import declared_versions, missing_plugin
from tfstudy.report.markup import MINUS, number, plural
from tfstudy.report.render import Cells, Listing
from tfstudy.runs.find import DIVERGED, FINISHED, run_status
from tfstudy.runs.identity import commit, plugin_digests, settings_of
from tfstudy.runs.schema import Environment, Result, Slice, SplitScores, metric_name
from tfstudy.runs.store import Run, how_to_continue, open_run, read_config, read_predictions, read_result
from tfstudy.tasks.base import fingerprint
from tfstudy.tasks.scoring import compared

# Its result

HEADS = {  # of metrics in their order; those that are a task's own come after them
    "bleu": "BLEU",
    "chrf": "chrF",
    "exact_match": "exact match [95 %]",
    "token_accuracy": "token accuracy",
    "oracle_length_exact_match": "exact, oracle length",
    "teacher_forced_accuracy": "teacher-forced",
}


def listing(result: Result, by: str = "", path: Path | None = None, short: bool = False) -> Listing:
    """Return a result: what was measured on each split and of trivial systems; with `by` for each value of this tag.

    If `short`, only the main metrics are returned, and the length thresholds. `path` is the folder of the run, for
    JSON. `UserError` for an unknown tag.
    """
    if by:
        one_of("tag", by, sorted({tag for scores in result.splits.values() for tag in scores.slices}))
    values = ({"path": str(path)} if path else {}) | msgspec.json.decode(msgspec.json.encode(result))
    title = f"{result.task} {result.split}, {result.arch}, seed {result.seed}"
    if result.smoke:
        title = f"SMOKE RUN, its numbers mean nothing: {title}"
    if result.status != "finished":
        return Listing([Text(f"{title}: {result.status} ({result.reason})", "red")], (), values)
    cells = _scores(f"{title} (percent)", result.splits, by, short)
    return Listing([cells], _notes(result, short or bool(by)), values)


def _scores(title: str, splits: Mapping[str, SplitScores], by: str, short: bool) -> Cells:
    """Return the table of metrics: a row for each split, its trivial systems, or the values of a tag."""
    rows: list[dict[str, str]] = []
    for name, scores in splits.items():
        rows.append({"split": name, "by": "all", **_texts(scores)})
        rows += [{"by": value, **_texts(part)} for value, part in scores.slices.get(by, {}).items()]
        for system, metrics in scores.baselines.items() if not (short or by) else ():
            rows.append({"split": f"{name}: {system}", **_texts(Slice(0, metrics))})
    own = dict.fromkeys(metric for row in rows for metric in row if metric not in ("split", "by", "n", *HEADS))
    main = {next(iter(scores.metrics), "") for scores in splits.values()}
    keys = ["split", *["by"] * bool(by), "n", *HEADS, *(metric for metric in own if not short or metric in main)]
    heads = {metric: metric_name(metric) for metric in own} | HEADS | {"by": by}
    frame = {heads.get(key, key): [row.get(key, "") for row in rows] for key in keys if any(key in row for row in rows)}
    tests = [row.get("split") in splits and splits[row["split"]].role == "test" for row in rows]
    exact = HEADS["exact_match"]
    return Cells(frame, title, ("split", exact), bold={exact: tests}, names=1 + bool(by))


def _texts(scores: Slice) -> dict[str, str]:
    texts = {metric: f"{100 * share:.1f}" for metric, share in scores.metrics.items()}
    if "exact_match" in texts and scores.exact_match_interval:
        low, high = scores.exact_match_interval
        texts["exact_match"] += f" [{100 * low:.1f}, {100 * high:.1f}]"
    return texts | ({"n": f"{scores.n:,}"} if scores.n else {})


def _notes(result: Result, short: bool) -> list[str]:
    """Return lines on length thresholds, and unless `short` on the maximum length of outputs, beams and metrics."""
    lines, limit, lengths = list[str](), result.generation_limit, result.lengths
    if lengths:
        found = ", ".join(f"{name} {length_threshold([lengths], name)}" for name in ("L90", "L50"))
        text = "the longest length up to which exact match is at least 90 % and 50 %"
        lines.append(f"{found}: {text} (longest tested: {lengths.longest_tested})")
    if short:
        return lines
    if limit.constant:  # older records lack it
        relative = f"{limit.per_source_token:g} x source length + " if limit.per_source_token else ""
        cut = [f"{one.limit_hits:,} of {one.n:,} on {name}" for name, one in result.splits.items() if one.limit_hits]
        lines.append(f"outputs of at most {relative}{limit.constant} tokens; cut there: {', '.join(cut) or 'none'}")
    if result.decode.method == "beam":
        lines.append(f"oracle length is decoded greedily, all else by beam search of size {result.decode.beam_size}")
    return lines + [f"{name}: {text}" for name, text in result.signatures.items()]


# Its wrong predictions

CONTEXT = 5  # tokens before and after the first wrong one
DOTS, END = "...", "(end)"  # what is left out, and the end of a prediction or a target


def errors(path: Path, split: str, examples: int) -> Listing:
    """Return the number of predictions of each kind, and examples of the wrong ones.

    Correct ones are first, then the most frequent. `UserError` if the run has no predictions.
    """
    one_of("test set", split, list(read_result(path).splits))
    characters = read_config(path).get("data", {}).get("tokens") == "characters"
    counts = count_errors(read_predictions(path, split), examples, characters)
    kinds = dict(sorted(counts.kinds.items(), key=lambda item: (item[0] != CORRECT, -item[1])))
    frame = {
        "kind": [*kinds],
        "n": [f"{count:,}" for count in kinds.values()],
        "share": [f"{100 * count / counts.n:.1f} %" for count in kinds.values()],
        "first error at": [f"{100 * counts.first_error[kind]:.0f} %" if kind != CORRECT else "" for kind in kinds],
    }
    title = f"{path.parent.name} {path.name}, {split}: {plural(counts.n, 'prediction')}"
    rows, found = list[tuple[str, str, str]](), dict[str, Any]()
    for kind, n in kinds.items():
        found[kind] = {"n": n, "first_error_share": counts.first_error.get(kind), "examples": []}
        for one in counts.examples.get(kind, []):
            target, prediction = compared(one.target, one.prediction, characters)
            at = first_error(target, prediction)
            rows += [
                (kind, "source", one.source),
                ("" if at is None else f"token {at + 1} of {len(target)}", "target", marked(target, at)),
                ("", "prediction", marked(prediction, at)),
            ]
            texts = {"source": one.source, "target": one.target, "prediction": one.prediction}
            found[kind]["examples"].append(texts | {"first_error": None if at is None else at + 1})  # from 1
    columns = {key: [row[i] for row in rows] for i, key in enumerate(("kind", "of", "tokens"))}
    parts = [Cells(frame, title=title), *[Cells.listed(columns, folded=("tokens",))] * bool(rows)]
    return Listing(parts, (), {"run": str(path), "test_set": split, "n": counts.n, "kinds": found})


def marked(tokens: Sequence[str], at: int | None) -> str:
    """Return the tokens of a target or a prediction around the first wrong one, with a bar before it."""
    if at is None:
        return " ".join(tokens)
    shown = [*tokens[max(0, at - CONTEXT) : at], "|", *(tokens[at : at + CONTEXT] or [END])]
    return " ".join([*[DOTS] * (at > CONTEXT), *shown, *[DOTS] * (len(tokens) > at + CONTEXT)])


# What changed since it started, and how two runs differ

OUTDATED, CURRENT, UNFINISHED, UNKNOWN = "outdated", "up to date", "not finished", "unknown"
COLOURS = {OUTDATED: "bold red", CURRENT: "bold green", UNFINISHED: "bold yellow", UNKNOWN: "bold yellow"}
MACHINE = ("platform", "device", "threads", "processors", "preloaded")
NOTE = "other code of the same version changes results by rounding and the order of random draws only"
Differences = dict[str, tuple[str, str]]  # two values by what differs


def changes(path: Path, online: bool = False) -> Listing:
    """Return a run's state, whether it is what its command would give now, and what changed since it started.

    The verdict is up to date, not finished (its settings, data and versions are the same), outdated or unknown. Data
    of the Hugging Face hub, which the config of somebody else may name, are compared only with `online`.
    """
    opened = open_run(path)
    run = run_status(opened)
    ended, state = run is not None and run.state in (FINISHED, DIVERGED), run.state if run else "not started"
    if run and not ended:
        at = f" at step {run.step} of {run.steps}" * bool(run.steps)
        state += f"{at}{f': {run.reason}' * bool(run.reason)}; {how_to_continue(opened)}"
    verdict, reason, found = _examined(opened, online)
    verdict = UNFINISHED if verdict == CURRENT and not ended else verdict
    line = Text(f"{verdict}: {reason}" if reason else verdict)
    line.stylize(COLOURS[verdict], 0, len(verdict))
    values: dict[str, Any] = {"path": str(path), "state": state, "verdict": verdict, "reason": reason}
    values["differences"] = {key: {"then": x, "now": y} for key, (x, y) in found.items()}
    table = [_table(found, ("then", "now"))] if found else []
    return Listing([str(path), f"  {state}", line, *table], [NOTE] * bool(found), values)


def _examined(opened: Run, online: bool) -> tuple[str, str, Differences]:
    """Return a verdict, its reason, and what changed: its values when the run started, and now."""
    environments = opened.environments
    if opened.broken:
        return UNKNOWN, str(opened.broken), {}
    try:
        tree = read_config(opened.path)
        if missing := missing_plugin(environments, str(tree.get("task")), str(tree.get("arch"))):
            return UNKNOWN, missing, {}
        config = resolve(tree)
    except UserError as error:
        return OUTDATED, f"its config is no longer valid: {error}", {}
    if not environments:
        return UNKNOWN, "it has no sound record of its code and data", {}
    entry, reason = environments[-1], ""
    now = flatten(settings_of(config) | {"seed": config.seed})
    found = _differing(flatten(entry.settings), now, "its default")
    found |= _differing(entry.code_versions, declared_versions(config.task, config.arch), 1, " version")
    try:
        if not online:
            check_local(config)
        found |= _differing({"data": entry.data[:8]}, {"data": fingerprint(tasks.build(config.task, config.data))[:8]})
    except UserError as error:
        reason = f"its data were not compared ({error})"
    if not found:
        reason = "; ".join(filter(None, ["its settings, data and declared versions have not changed", reason]))
    verdict, code = OUTDATED if found else CURRENT, plugin_digests(config.task, config.arch)
    code |= {"commit": _short(commit())}
    for one in environments:  # the processes that worked on the run
        then = one.syntax_trees | {"commit": _short(one.commit)}
        found |= _differing({key: then.get(key) or now for key, now in code.items()}, code)
    return verdict, reason, found


def difference(a: Path, b: Path) -> Listing:
    """Return what differs between two runs, with the values of A and B, and the metrics that both measured."""
    found = _differing(flatten(read_config(a)), flatten(read_config(b))) | _differing(_code(a), _code(b))
    try:
        one, other = _percent(a), _percent(b)
        metrics, why = {name: (one[name], other[name]) for name in one if name in other}, "the runs have none in common"
    except UserError as error:
        metrics, why = {}, f"not compared, because {error}"
    rows = {name: (number(x), number(y), number(round(y - x, 1) + 0.0, "+")) for name, (x, y) in metrics.items()}
    table = _table(rows, ("A", "B", f"B {MINUS} A"), "metrics in percent") if rows else f"metrics: {why}"
    differing = _table(found, ("A", "B")) if found else "no difference"
    values: dict[str, Any] = {"a": str(a), "b": str(b)}
    values["differences"] = {key: {"a": x, "b": y} for key, (x, y) in found.items()}
    values["metrics"] = {key: {"a": x, "b": y} for key, (x, y) in metrics.items()}
    return Listing([f"A {a}", f"B {b}", "", differing, "", table], (), values)


def _code(path: Path) -> dict[str, Any]:
    """Return the data, versions and machine of a run, as its last process recorded them."""
    last = (open_run(path).environments or [Environment()])[-1]
    machine = {name: getattr(last, name) or "-" for name in MACHINE}
    versions = {f"{name} version": one for name, one in last.code_versions.items()}
    plugins = {key: one for key, one in last.syntax_trees.items() if key.startswith("plug-in")}
    return {"data": last.data[:8]} | versions | {"commit": _short(last.commit)} | machine | last.versions | plugins


def _table(rows: Mapping[str, tuple[str, ...]], heads: tuple[str, ...], first: str = "") -> Cells:
    columns = {head: [row[i] for row in rows.values()] for i, head in enumerate(heads)}
    keys = frozenset([first, *heads])
    return Cells({first: [*rows], **columns}, left=None if first else keys, folded=keys)


def _percent(path: Path) -> dict[str, float]:
    found = [(split, metric) for split, one in read_result(path).splits.items() for metric in one.metrics.items()]
    return {f"{split} {metric_name(name)}": round(100 * share, 1) for split, (name, share) in found}


def _short(commit: str | None) -> str:
    return commit[:8] + "+" * commit.endswith("+") if commit else ""


def _differing(a: Mapping[str, Any], b: Mapping[str, Any], missing: object = "-", of: str = "") -> Differences:
    """Return what differs, with the values of A and B; one that is `missing` has this value."""
    values = {key: (a.get(key, missing), b.get(key, missing)) for key in dict.fromkeys([*a, *b])}
    return {key + of: (str(x), str(y)) for key, (x, y) in values.items() if x != y}
