"""What can be done with finished runs: predict, read predictions, evaluate again, measure."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, overload

import msgspec
import torch

from tfstudy import instruments
from tfstudy.config.resolve import check_local, resolve, resolve_section
from tfstudy.config.trees import unflatten
from tfstudy.errors import UserError, one_of, quoted
from tfstudy.evaluation.evaluate import Generated, cut_outputs, generated
from tfstudy.experiment.api import DEFAULTS, RunOptions, device_of
from tfstudy.experiment.prepare import Prepared, prepare, restore, undisturbed, with_decoding
from tfstudy.experiment.score import score, scored_splits
from tfstudy.instruments.attention import Attention, Read, measure_attention, read
from tfstudy.instruments.base import Subject
from tfstudy.instruments.examples import ExampleSettings, chosen_examples, given_source, split_of
from tfstudy.instruments.hooks import logits_of, record_states
from tfstudy.models.base import Model
from tfstudy.plugins import command
from tfstudy.runs import store
from tfstudy.runs.files import check_writable, read_bytes
from tfstudy.runs.find import find_run
from tfstudy.runs.identity import Identity
from tfstudy.runs.schema import DecodingSettings, Event, Measurement, Prediction, Result
from tfstudy.training.checkpoints import load_checkpoint, load_weights, model_weights, save_weights

Measured = tuple[Path, Result, Measurement]


class FinishedRun:
    """A finished run with its weights, as `tfstudy.load` returns it.

    Attributes:
        path: The run folder.
        result: What the run is and what it measured, as recorded in `result.json`.
        model: The trained model, a `torch.nn.Module` in eval mode.
        weights: The file from which the weights were loaded.
        prepared: The config, the task and its vocabularies.
    """

    def __init__(
        self, path: Path, result: Result, prepared: Prepared, weights: Path, missing: UserError | None = None
    ) -> None:
        self.path, self.result, self.prepared, self.weights = path, result, prepared, weights
        self._missing = missing  # why the data can't be read, if they can't

    def _needs_data(self) -> None:
        if self._missing:
            raise UserError(f"{self.path} can predict, but its data are needed for this: {self._missing}")

    def __repr__(self) -> str:
        return f"FinishedRun({str(self.path)!r}: {self.result})"

    @property
    def model(self) -> Model:
        """The trained model."""
        return self.prepared.model

    @property
    def subject(self) -> Subject:
        """The run as instruments see it."""
        return Subject(self.model.eval(), self.prepared.task, self.prepared.data, self.prepared.config)

    @overload
    def predict(self, source: str) -> str: ...  # type: ignore[overload-overlap]  # a text is a sequence of texts
    @overload
    def predict(self, source: Sequence[str]) -> list[str]: ...
    def predict(self, source: str | Sequence[str]) -> str | list[str]:
        """Return the output of the model for one source, or a list with the output for each of several sources.

        Decoding is that of the run's config; how many outputs reached the generation limit is said on standard error.

        Args:
            source: Tokens separated by spaces, such as `"jump twice"`; or a sequence of such texts.

        Raises:
            UserError: If a source is empty or too long, or has an unknown token (see `tokens`).
        """
        if not isinstance(source, str | Iterable):
            raise UserError(f"a source must be text, or several in a list, but is {quoted(source)}")
        named = {"": source} if isinstance(source, str) else {f"source {n}: ": one for n, one in enumerate(source)}
        outputs = self.outputs([self.tokens(one, place) for place, one in named.items()])
        if cut := sum(output.cut for output in outputs):
            print(cut_outputs(cut, len(outputs)), file=sys.stderr)
        return outputs[0].text if isinstance(source, str) else [output.text for output in outputs]

    def outputs(self, sources: Sequence[Sequence[str]]) -> list[Generated]:
        """Return the output for each source, given as tokens."""
        one = self.prepared
        return generated(one.model, one.data, one.config.decode, one.config.eval, sources)

    def tokens(self, source: str, place: str = "") -> tuple[str, ...]:
        """Return the tokens of a source; `UserError`, which begins with `place`, if the model can't read it.

        An unknown token is an error where the task generates its examples, and in a corpus an unknown word.
        """
        try:
            return given_source(self.subject, source)
        except UserError as error:
            raise UserError(f"{place}{error}") from None

    def unknown(self, tokens: Iterable[str]) -> list[str]:
        """Return those of the tokens that the model does not know."""
        return [token for token in tokens if token not in self.prepared.data.source_vocab]

    def attention(self, source: str, target: str | None = None) -> Attention:
        """Return the attention weights for a source, and the model's own greedy output or a given target."""
        found = measure_attention(self.subject, self.tokens(source), self._target(target))
        return found.readable(self.prepared.task.readable)

    def logits(self, source: str, target: str | None = None) -> torch.Tensor:
        """Return the logits (target, vocabulary) of the tokens of `target` (default: the greedy output) and EOS.

        A row is predicted from the source and the tokens before it (teacher forcing). The columns are the tokens of
        `run.prepared.data.target_vocab.tokens`. `UserError` if the model cannot read the source or the target.
        """
        given = self._read(source, target)
        with torch.no_grad():
            return logits_of(self.model, given.source, given.inputs)[0]

    def hidden_states(self, source: str, target: str | None = None) -> dict[tuple[str, int], torch.Tensor]:
        """Return the hidden states (positions, width) of each stack and layer, with teacher forcing as for `logits`.

        They have names such as `states["decoder", 2]`; layer 0 is the embeddings. In the `encoder` a row belongs to a
        source token or the final EOS, and in the `decoder` to the output token that is predicted from it, also where
        one stack reads both. `UserError` as for `logits`, or if the model shows no hidden states.
        """
        given = self._read(source, target)
        with torch.no_grad():
            recorded = record_states(self.model, given.source, given.inputs)
        return {(site.kind, site.layer): states[0] for site, states in recorded.states().items()}

    def _read(self, source: str, target: str | None) -> Read:
        return read(self.subject, self.tokens(source), self._target(target))

    def _target(self, text: str | None) -> tuple[str, ...] | None:
        return None if text is None else self.prepared.task.target_tokens(text)

    def measure(self, instrument: str, save: bool = False, **settings: Any) -> Measurement:
        """Measure the run with an instrument, such as `run.measure("entropy", examples=50)`.

        A test set that it reads is counted in `events.jsonl`.

        Args:
            instrument: The name of an instrument (`tfstudy list instruments`).
            save: Whether to save the measurement in the run folder, where the report finds it.
            settings: Settings of the instrument.

        Raises:
            UserError: If there is no such instrument, setting or split, or if it does not apply to this model.
        """
        self._needs_data()
        cls = instruments.find(instrument)
        config, subject = resolve_section(cls.Config, settings), self.subject
        examples, test = 0, ""
        if isinstance(config, ExampleSettings):
            config = config.model_copy(update={"split": split_of(subject, config)})
            examples = len(chosen_examples(subject, config))
            reads = config.split in subject.task.splits().tests and not getattr(config, "source", "")
            test = config.split if reads else ""
        if test:
            check_writable(self.path)
        rows = cls(config).measure(subject)
        if test:
            with store.write_run(self.path, subject.config, self.prepared.identity) as folder:
                folder.record(Event(event="test read", split=test, reason=f"measure {instrument}"))
        facts = self.result.run, instrument, cls.version, config.model_dump(), cls.chart
        record = Measurement.of(rows, *facts, examples=examples)
        if save:
            store.save_measurement(self.path, record)
        return record

    def predictions(self, split: str = "test") -> list[Prediction]:
        """Return the recorded predictions of a split, each with `source`, `target` and `prediction` as text.

        `UserError` if it is no split of `result.splits`, or if its predictions were not kept or can't be read.
        """
        one_of("test set", split, self.result.splits)
        return store.read_predictions(self.path, split)

    def save_weights(self) -> Path:
        """Write `weights.safetensors` into the run folder, which `tfstudy.load` reads without pickle; return its path.

        `UserError` if a weight is not finite.
        """
        check_writable(self.path)
        save_weights(self.model.state_dict(), self.path / store.WEIGHTS, self.result.run)
        return self.path / store.WEIGHTS

    def evaluate(self, splits: Sequence[str] = (), /, **settings: Any) -> Result:
        """Decode and score splits again and return the result with what was measured on them.

        Each evaluation of a test set is counted in `events.jsonl`; the recorded result and predictions stay.

        Args:
            splits: Names of splits, such as `["test"]`; by default all that the run was evaluated on.
            **settings: Values of section `decode` other than those of the run, such as `**{"decode.method": "beam"}`.
        """
        self._needs_data()
        check_writable(self.path)
        prepared = with_decoding(self.prepared, unflatten(settings))
        all_splits = scored_splits(self.prepared.task, RunOptions(tuning=self.result.tuning))
        names = [one_of("test set", name, all_splits) for name in splits] or all_splits
        with store.write_run(self.path, self.prepared.config, self.prepared.identity) as folder:
            scored = score(prepared, device_of(DEFAULTS), names)
            tests = [name for name, one in scored["splits"].items() if one.role == "test"]
            folder.record(*(Event(event="test read", split=name, reason="evaluate") for name in tests))
            scored["decode"] = msgspec.convert(prepared.config.decode.model_dump(), DecodingSettings)
            return msgspec.structs.replace(self.result, **scored, test_reads=store.open_run(self.path).test_reads)


@undisturbed()
def load(run: str | Path, results: str | Path = "results", online: bool = False) -> FinishedRun:
    """Load a finished run with its weights.

    The weights come from the run's checkpoint or, if there is none, from `weights.safetensors` in its folder. Both
    are verified before use: the digest, the run they belong to, and the names, shapes and types of all weights.

    Args:
        run: The run's folder; the start of its hash; or study, task and split scheme, architecture and seed, as far
            as they are needed: `"first/lstm"`, `"scan-length/lstm/s3"`.
        results: The folder of all results, in which the run is looked up.
        online: Whether data may be loaded from the Hugging Face hub: the config may be somebody else's.

    Raises:
        UserError: If no run or several runs match, if the run did not finish or has no weights, or if its data or
            code version differ from the current ones. A run of `pairs` or of a corpus predicts without its data too.

    Examples:
        >>> run = tfstudy.load("first/lstm")
        >>> run.predict(["walk", "jump twice"])
        ['I_WALK', 'I_JUMP I_JUMP']
    """
    path = find_run(Path(results), str(run))
    result = store.read_result(path)
    weights = store.find_weights(path, result)
    config = resolve(store.read_config(path))
    missing = None
    try:
        if not online:
            check_local(config)
        prepared = prepare(config)
    except UserError as error:  # the data are elsewhere, but predicting needs none
        recorded = Identity(result.run, result.experiment, {}, "", {})
        contents = {name: read_bytes(path / name) for name in store.TASK_FILES}
        files = {name: content.decode(errors="replace") for name, content in contents.items() if content}
        if not (found := restore(config, files, recorded)):
            raise
        prepared, missing = found, error
    if prepared.identity.hash != result.run:
        changes = command("result", path, "--changes")
        raise UserError(
            f"{path} is outdated: with the current code, data and config its hash would be "
            f"{prepared.identity.hash[:8]}, but it is {result.run[:8]} (`{changes}` shows the reasons)"
        )
    model = prepared.model.eval()
    if weights.name == store.WEIGHTS:
        model.load_state_dict(load_weights(weights, model.state_dict(), result.run))
    else:
        model.load_state_dict(model_weights(load_checkpoint(weights, result.run)))
    return FinishedRun(path, result, prepared, weights, missing)


def measure_runs(
    paths: Sequence[Path], instrument: str, settings: Mapping[str, Any], save: bool = False, online: bool = False
) -> tuple[list[Measured], list[str]]:
    """Return the measurement of each run, and notes on runs that are left out or were measured before.

    A saved measurement with these settings is read, unless it is to be saved again. `UserError` for an unknown
    instrument or setting, or if no run is measured.
    """
    cls = instruments.find(instrument)
    values = resolve_section(cls.Config, dict(settings)).model_dump()
    measured, failures, read = list[Measured](), list[str](), 0
    for number, path in enumerate(paths, 1):
        if len(paths) > 1:
            print(f"{number} of {len(paths)}: {path}", flush=True)
        before = None
        if not save:
            with suppress(UserError):
                before = store.read_measurement(path, instrument)
        try:
            own = values
            if before and own.get("split") == "":  # then it is the first that is held out, which the measurement names
                scores = store.read_result(path).splits
                first = sorted(scores, key=lambda name: scores[name].role != "validation")[:1]
                own = own | {"split": "".join(first)}
            if before and (before.version, before.settings) == (cls.version, own):
                measured.append((path, store.read_result(path), before))
                read += 1
            else:
                run = load(path, online=online)
                measured.append((path, run.result, run.measure(instrument, save, **settings)))
        except UserError as error:
            failures.append(str(error) if str(path) in str(error) else f"{path}: {error}")
    more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    if not measured:
        raise UserError(f"{failures[0]}{more}" if failures else "there is no finished run to measure")
    again = f"measured before: {read} of {len(measured)}; --save measures again"
    return measured, [*([f"left out: {failures[0]}{more}"] if failures else []), *([again] if read else [])]
