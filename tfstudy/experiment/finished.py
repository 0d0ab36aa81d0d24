"""What can be done with a finished run: predict, read predictions, evaluate again, evaluate on longer examples."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import torch

from tfstudy.config.resolve import check_local, resolve
from tfstudy.data.vocabulary import PAD, SPECIAL
from tfstudy.evaluation import evaluate
from tfstudy.evaluation.lengths import accuracy_by_length
from tfstudy.evaluation.limits import generation_limit, limits_of
from tfstudy.experiment.options import DEFAULTS, RunOptions, device_of
from tfstudy.experiment.prepare import Prepared, prepare
from tfstudy.experiment.score import score_split, scored_splits
from tfstudy.models.base import Model
from tfstudy.runs.find import find_run
from tfstudy.runs.reader import read_config, read_predictions, read_result
from tfstudy.runs.schema import Lengths, Prediction, Result, SplitScores
from tfstudy.runs.writer import open_run
from tfstudy.tasks.base import Example
from tfstudy.tasks.errors import UserError, one_of
from tfstudy.training.progress_display import ProgressDisplay
from tfstudy.training.saved_weights import load_checkpoint, model_weights

MAX_GAP = 5  # consecutive lengths of which a task may have no examples
MAX_FAILURES = 3  # consecutive lengths without a correct prediction, after which longer ones are not tried


class FinishedRun:
    """A finished run with its weights: `model` is in eval mode, `result` is its record."""

    def __init__(self, path: Path, result: Result, prepared: Prepared) -> None:
        self.path, self.result, self.prepared = path, result, prepared

    @property
    def model(self) -> Model:
        """The trained model."""
        return self.prepared.model

    def predict(self, source: str) -> str:
        """The target generated for a source whose tokens are separated by spaces; `UserError` for unknown tokens."""
        task, data, config = self.prepared.task, self.prepared.data, self.prepared.config
        tokens = task.tokens(source)
        if not tokens:
            raise UserError("the source must have at least one token")
        for token in tokens if task.text(tokens) == " ".join(tokens) else ():  # words, not subwords
            one_of("source token", token, data.source_vocab.tokens[len(SPECIAL) :], f"task {config.task}")
        limit = self.model.max_positions
        if limit is not None and len(tokens) >= limit:
            raise UserError(f"the source must have fewer than {limit} tokens, but has {len(tokens)}")
        ids = data.encode([Example(tuple(tokens), (), {})]).source
        limits = limits_of(generation_limit(task, config.decode), torch.tensor([len(tokens)]))
        if limit is not None:
            limits = limits.clamp(max=limit - 1)
        generated = evaluate.generate(self.model, ids, ids != PAD, limits, config.decode)
        return str(task.text(data.target_vocab.decode(generated[0])))

    def predictions(self, split: str = "test") -> list[Prediction]:
        """The recorded predictions of a split, one per example; `UserError` without any."""
        one_of("test set", split, self.result.splits)
        return read_predictions(self.path, split)

    def evaluate(self, splits: Sequence[str] = ()) -> Result:
        """The result with these splits (default: all) decoded and scored again. Reading a test set is counted."""
        all_splits = scored_splits(self.prepared.task, RunOptions(tuning=self.result.tuning))
        names = [one_of("test set", name, all_splits) for name in splits] or all_splits
        with open_run(self.path, self.prepared.config, self.prepared.identity) as folder:
            device = device_of(DEFAULTS)
            scores = {name: score_split(self.prepared, folder, device, name, "evaluate") for name in names}
        limit = generation_limit(self.prepared.task, self.prepared.config.decode)
        return msgspec.structs.replace(self.result, splits=scores, generation_limit=limit)

    def evaluate_longer(self, longest: int = 500, report: Callable[[str], None] = print) -> Lengths:
        """Evaluate on new examples of increasing length; return exact match by length and save it in `extended.json`.

        The first length is one more than the longest in training, and each further one is 5 % longer, up to `longest`.
        This ends after three lengths without a correct prediction, or at the limit of the model or of decoding.
        """
        if self.result.tuning:
            raise UserError(f"{self.path} is a trial of tuning, which is evaluated on the validation split only")
        splits = [self.result.splits[name] for name in self.prepared.task.by_length() if name in self.result.splits]
        failures = 0
        for scores in self._scores_by_length(longest, report):
            splits.append(scores)
            failures = 0 if scores.metrics["exact_match"] else failures + 1
            if failures == MAX_FAILURES:
                break
        lengths = accuracy_by_length(splits)
        with open_run(self.path, self.prepared.config, self.prepared.identity) as folder:
            folder.write_extended(lengths)
        return lengths

    def _scores_by_length(self, longest: int, report: Callable[[str], None]) -> Iterator[SplitScores]:
        task, data, config = self.prepared.task, self.prepared.data, self.prepared.config
        length = 1 + max(int(e.tags.get("length", 0)) for e in task.examples(task.splits().train))
        if not any(task.at_length(length + more) for more in range(MAX_GAP)):
            raise UserError(f"task {config.task} can't generate examples of a given length, such as {length}")
        while length <= longest:
            examples = task.at_length(length)
            if not examples:  # some split schemes skip lengths, such as even ones
                length += 1
                continue
            if obstacle := self._obstacle(examples):
                report(f"length {length} {obstacle}")
                return
            device = device_of(DEFAULTS)
            with ProgressDisplay(f"evaluate length {length}", len(examples), "examples") as display:
                evaluation = evaluate.evaluate_examples(
                    self.model, data, examples, config.decode, config.eval, device, display.examples
                )
            scores = SplitScores.create("test", evaluation.summary)
            report(f"length {length:4}: {100 * scores.metrics['exact_match']:5.1f} % of {scores.n}")
            yield scores
            length += max(1, length // 20)

    def _obstacle(self, examples: Sequence[Example]) -> str:
        """Why these examples can't be evaluated; empty if they can."""
        limit, available = self.prepared.config.decode.max_length, self.model.max_positions
        if 0 < limit < max(len(e.target) for e in examples):
            return f"has targets of more than decode.max_length={limit} tokens"
        task, decode = self.prepared.task, self.prepared.config.decode
        lengths = torch.tensor([len(e.source) for e in examples])
        longest_output = int(limits_of(generation_limit(task, decode, examples), lengths).max())
        needed = 1 + max(int(lengths.max()), longest_output, *(len(e.target) for e in examples))
        if available is not None and needed > available:
            return f"needs {needed} positions, but the model has {available}"
        return ""


def load(run: str | Path, results: str | Path = "results", online: bool = False) -> FinishedRun:
    """Return a finished run with its weights. `run` is its folder or what `tfstudy.runs.find.FORMS` describes.

    Data of the Hugging Face hub are loaded only with `online`: the config may be somebody else's.

    `UserError` if it did not finish, has no weights, or was made with other data or another version of the code.
    """
    path = find_run(Path(results), str(run))
    result = read_result(path)
    if result.status != "finished":
        raise UserError(f"{path} {result.status}, so it has no weights to use")
    config = resolve(read_config(path))
    if not online:
        check_local(config)
    prepared = prepare(config)
    if prepared.identity.hash != result.run:
        raise UserError(
            f"{path} is outdated: with the current code, data and config its hash would be "
            f"{prepared.identity.hash[:8]}, but it is {result.run[:8]} (`tfstudy why` shows the reasons)"
        )
    checkpoint = path / "checkpoints" / f"{prepared.config.eval.checkpoint}.ckpt"
    if not checkpoint.exists():
        raise UserError(f"{path} has no weights: checkpoints/{checkpoint.name} is missing")
    prepared.model.load_state_dict(model_weights(load_checkpoint(checkpoint, result.run)))
    prepared.model.eval()
    return FinishedRun(path, result, prepared)
