"""The files of a run folder, described once as types that reject impossible values. Imports no torch.

config.yaml               the resolved config (`tfstudy.config.schema.RunConfig`)
events.jsonl              an `Event` per line, which are only added: what happened to the run, when, and on what machine
metrics.csv               rows `step,metric,value`
predictions/*.jsonl.gz    a `Prediction` per line, a file per split
result.json               `Result`, written last: a run with a result is finished
checkpoints/*.ckpt        weights and the state of training (see `tfstudy.training.checkpoints`)
data.json, tokenizer.json what a run on files predicts with where its data are not
train.log, logs/          the output of the run's processes, and of loggers
weights.safetensors       the weights alone, if they were shared
instruments/*.json        a `Measurement` each (`tfstudy measure --save`)
.lock                     locked while a process works on the run

`result.json` holds the sha256 of the config, the events, the metrics, the predictions and the files of the data. It,
each event and each measurement end with the sha256 of their own text (`tfstudy.runs.files.sealed`).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, TypedDict

import msgspec

from tfstudy.errors import UserError, nearest, quoted

FORMAT: Final = 3  # of result.json
METRIC_NAMES = {  # in tables and in configs/published.csv
    "exact_match": "exact match",
    "token_accuracy": "token accuracy",
    "oracle_length_exact_match": "exact match, oracle length",
    "teacher_forced_accuracy": "teacher-forced accuracy",
    "bleu": "BLEU",
    "chrf": "chrF",
}
Count = Annotated[int, msgspec.Meta(ge=0, le=10**15)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1 + 1e-9)]  # a BLEU of 100 is rounded


def metric_name(metric: str) -> str:
    """Return the name of a metric as people read it."""
    return METRIC_NAMES.get(metric, metric.replace("_", " "))


class Slice(msgspec.Struct, frozen=True):
    """What a run measured on some examples; metrics are shares of 1."""

    n: Count
    metrics: dict[str, Share] = {}
    exact_match_interval: tuple[float, float] | None = None  # Wilson, 95 %

    @property
    def first_metric(self) -> str:
        """The first metric as `exact match 13.1 %`; empty if nothing was measured."""
        return next((f"{metric_name(name)} {100 * share:.1f} %" for name, share in self.metrics.items()), "")


SLICES = msgspec.json.Decoder(dict[str, dict[Annotated[str, msgspec.Meta(max_length=200)], Slice]])  # by tag and value
decoded_slices = lru_cache(maxsize=512)(SLICES.decode)  # plots ask for the same slices many times


class ErrorKind(msgspec.Struct, frozen=True):
    """The predictions of one kind (see `tfstudy.evaluation.breakdown`) on a split."""

    n: Annotated[int, msgspec.Meta(ge=1, le=10**15)]
    first_error: Share | None = None  # mean position of the first wrong token, as a share of the target


class SplitScores(Slice, frozen=True, kw_only=True):
    """What a run measured on a held-out split, as a whole and by tag."""

    role: str  # validation or test
    examples: str = ""  # digest of the evaluated examples as text; empty in records of older code
    limit_hits: Count = 0  # outputs that ended because they had the maximum number of tokens, without EOS
    baselines: dict[str, dict[str, Share]] = {}  # metrics of trivial systems, by their names
    errors: dict[str, ErrorKind] = {}  # kinds of its predictions, with `correct`; empty in records of older code
    predictions: str = ""  # sha256 of the file of predictions
    mean_over_lengths: dict[str, Share] = {}
    encoded_slices: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"), name="slices")  # the bulk of a record

    def __post_init__(self) -> None:
        """Refuse slices that can't be decoded: `msgspec.DecodeError`."""
        SLICES.decode(self.encoded_slices)

    def __repr__(self) -> str:
        return f"SplitScores({self.role}: {self.first_metric} of {self.n:,} examples)"

    @property
    def slices(self) -> dict[str, dict[str, Slice]]:
        """Tag and value to what was measured on the examples with this value, decoded on use."""
        return decoded_slices(bytes(self.encoded_slices))

    @classmethod
    def create(cls, role: str, summary: dict[str, Any]) -> "SplitScores":
        """The scores of an `evaluation.Evaluation.summary`."""
        own = {key: value for key, value in summary.items() if key in cls.__struct_fields__}
        return cls(role=role, encoded_slices=msgspec.Raw(msgspec.json.encode(summary.get("slices", {}))), **own)


class AtLength(TypedDict):
    n: Count
    exact_match: Share


class Lengths(msgspec.Struct, frozen=True):
    """Exact match by length, and the length thresholds L90 and L50; false if no lengths were tested."""

    longest_tested: int = 0
    L90: int | None = None  # None if exact match is below 90 % even at the shortest length
    L50: int | None = None
    exact_match: dict[Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,15}$")], AtLength] = {}

    def __bool__(self) -> bool:
        return bool(self.longest_tested)


class GenerationLimit(msgspec.Struct, frozen=True):
    """The maximum number of generated tokens: `per_source_token` * source length, rounded up, + `constant`."""

    per_source_token: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    constant: Count = 0  # 0: unknown, in records of older code


class DecodingSettings(msgspec.Struct, frozen=True):
    """The section `decode` of the config."""

    method: str = ""
    beam_size: int = 1
    length_penalty: float = 0.0
    limit: str = "longest"
    max_length: int = 0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """`result.json`: what a finished run is, and what it measured.

    In the interpreter and in notebooks it is a line with the first metric of each test set.
    """

    format: int = FORMAT
    run: str  # the hash of the run
    experiment: str  # the hash without the seed: replications of each other share it
    task: str
    split: str  # the split scheme: `data.split`
    corpus: str = ""  # the name of the corpus that the examples are from; empty if the task generates them
    arch: str
    seed: int
    status: Literal["finished", "diverged"]
    smoke: bool
    preset: str = "default"
    reason: str = ""  # why it diverged
    tuning: bool = False  # a trial of a search
    started: str = ""  # UTC, such as 2026-01-31T12:00:00Z
    finished: str = ""
    device: str = ""
    parameters: Count = 0
    train_examples: Count = 0
    checkpoint: str = "last"
    step: int = 0
    train_tokens: float = 0.0
    train_seconds: Seconds = 0.0
    evaluate_seconds: Seconds = 0.0
    train_flops_estimate: float = 0.0
    reused_from: str | None = None  # the run whose weights were copied, if this one did not train
    decode: DecodingSettings = DecodingSettings()
    eval: dict[str, Any] = {}  # this section of the config
    generation_limit: GenerationLimit = GenerationLimit()
    overlap: dict[str, int] = {}  # examples of each held-out split that are also in training
    data_notes: dict[str, Any] = {}  # what the task reports of its data
    signatures: dict[str, str] = {}  # of metrics, such as sacrebleu's
    lengths: Lengths = Lengths()
    splits: dict[str, SplitScores] = {}
    test_reads: dict[str, int] = {}  # how often each test set had been evaluated then; the events have all
    files: dict[str, str] = {}  # sha256 of other files, and of the first `events_size` bytes of events.jsonl
    events_size: Count = 0

    def __repr__(self) -> str:
        return f"Result({self})"

    def __str__(self) -> str:
        """Such as `scan length, lstm, seed 0: exact match 13.1 % on test`; the status if the run diverged."""
        title = f"{'smoke run of ' * self.smoke}{self.task} {self.split}, {self.arch}, seed {self.seed}"
        return f"{title}: {', '.join(f'{own} on {name}' for name, own in self._measured().items()) or self.status}"

    def _measured(self) -> dict[str, str]:
        tests = {name: scores.first_metric for name, scores in self.splits.items() if scores.role == "test"}
        return {name: own for name, own in tests.items() if own and self.status == "finished"}

    @property
    def headline(self) -> str:
        """The first metric of the first test set; the status if nothing was measured."""
        return next(iter(self._measured().values()), self.status)

    @property
    def seconds(self) -> float:
        """Seconds of training and evaluation; without training if the weights were copied from another run."""
        return self.train_seconds * (not self.reused_from) + self.evaluate_seconds


class Environment(msgspec.Struct, frozen=True):
    """The code and the machine of one process that worked on a run."""

    versions: dict[str, str] = {}  # of packages
    commit: str | None = ""
    platform: str = ""
    device: str = ""
    threads: int = 0
    processors: int | None = 0
    preloaded: str = ""  # names of the libraries in LD_PRELOAD, which may change rounding
    arguments: list[str] = []  # of the command
    settings: dict[str, Any] = {}
    data: str = ""  # fingerprint
    code_versions: dict[str, int] = {}
    syntax_trees: dict[str, str] = {}  # digests of the code of plug-ins; of all modules in records of older code


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of `events.jsonl`: what happened to a run, with the fields of this kind of event."""

    event: Literal["started", "steps computed", "resumed", "test read", "scored", "failed", "finished"]
    time: str = ""  # UTC, such as 2026-01-31T12:00:00Z
    environment: Environment | None = None  # started: that of the process which works on the run from now on
    preset: str = "default"  # started
    tuning: bool = False  # started: a trial of a search
    how: str = ""  # steps computed: eager, compiled or graphed, or why not graphed (`tfstudy.training.graphs`)
    step: Count = 0  # resumed: that of the checkpoint
    split: str = ""  # test read: a test set was evaluated with the weights of the run
    reason: str = ""  # test read, failed
    attempts: Count = 1  # failed: the run was given up, until the next process starts to work on it
    status: str = ""  # finished: everything but `result.json` is written

    def __str__(self) -> str:
        return self.reason + (f" ({self.attempts} attempts)" if self.attempts > 1 else "")


class Prediction(msgspec.Struct, frozen=True):
    """A line of `predictions/SPLIT.jsonl.gz`; tokens are joined by spaces."""

    source: str
    target: str
    prediction: str
    oracle_length: str = ""  # the prediction when the target's length is given
    teacher_forced_accuracy: float = 0.0
    tags: dict[str, Any] = {}

    @property
    def correct(self) -> bool:
        """Whether the prediction is the target."""
        return self.prediction == self.target


# instruments/*.json

DIGITS = 6  # significant ones of a saved number
MAX_ROWS = 50_000
Name = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z][A-Za-z0-9_]{0,63}\Z")]
Text = Annotated[str, msgspec.Meta(max_length=100)]
Cell = Text | int | float
Cells = Annotated[list[Cell], msgspec.Meta(min_length=1, max_length=MAX_ROWS)]
Row = dict[str, Cell]


class Chart(msgspec.Struct, frozen=True):
    """How the rows of an instrument are drawn. Each text except the labels is the name of a column, or empty for none.

    line: `y` is the measured number, drawn against `x`, with a colour for each `hue`. Without `hue`, conditions
    have colours. heatmap: `hue` is the measured number, in a cell for each `x` and `y`. There is a panel for each
    `facet`. The number is the mean of all rows of a run that share these columns, and then of all seeds.

    `ranked` is a column whose values mean nothing from one run to the next, such as the numbers of heads: it is `x`, or
    divides each `y` of a heatmap. Before the mean over seeds, its values are replaced by ranks, 1 for the largest
    number.
    """

    kind: Literal["line", "heatmap"]
    x: str
    y: str
    hue: str = ""
    facet: str = ""
    ranked: str = ""
    log_y: bool = False
    x_label: str = ""  # empty: the name of the column
    y_label: str = ""
    hue_label: str = ""

    @property
    def value(self) -> str:
        """The column with the measured number."""
        return self.hue if self.kind == "heatmap" else self.y


class Measurement(msgspec.Struct, frozen=True):
    """What an instrument measured on a run: a table with a list of cells for each column."""

    run: str  # the hash of the run
    instrument: Name
    version: int  # of the instrument
    settings: dict[Name, Annotated[str, msgspec.Meta(max_length=10_000)] | bool | int | float]
    chart: Chart
    columns: Annotated[dict[Name, Cells], msgspec.Meta(min_length=1, max_length=20)]
    examples: Count = 0  # that were read, which may be fewer than the settings ask for; 0: not recorded

    def __post_init__(self) -> None:
        """Refuse what can't be drawn or compared: `ValueError`, also when it is read."""
        chart = self.chart
        if len({len(cells) for cells in self.columns.values()}) > 1:
            raise ValueError("the columns have different lengths")
        for name in (chart.x, chart.y, chart.value, *filter(None, (chart.hue, chart.facet, chart.ranked))):
            if name not in self.columns:
                raise ValueError(f"unknown column of the chart {quoted(name)}{nearest(name, self.columns)}")
        if any(isinstance(cell, str) for cell in self.columns[chart.value]):
            raise ValueError(f"the column {chart.value} has no number for each row")

    @classmethod
    def of(
        cls,
        rows: Sequence[Row],
        run: str,
        instrument: str,
        version: int,
        settings: Any,
        chart: Chart,
        examples: int = 0,
    ) -> "Measurement":
        """The measurement with these rows, rounded; `UserError` if it can't be saved."""
        columns = {key: [row[key] for row in rows] for key in (rows[0] if rows else ())}
        for cells in columns.values():
            cells[:] = [float(f"{cell:.{DIGITS}g}") if isinstance(cell, float) else cell for cell in cells]
        try:
            return MEASUREMENTS.decode(
                msgspec.json.encode(cls(run, instrument, version, settings, chart, columns, examples))
            )
        except ValueError as error:  # such as for nan, which is encoded as null
            raise UserError(f"the measurement {instrument} can't be used: {error}") from None

    def rows(self) -> list[Row]:
        """The table as a list of rows."""
        return [dict(zip(self.columns, cells, strict=True)) for cells in zip(*self.columns.values(), strict=True)]

    @property
    def comparable(self) -> str:
        """The instrument, its version and its settings: measurements with the same ones can be compared."""
        return f"{self.instrument} {self.version} {sorted(self.settings.items())}"

    @property
    def shown_settings(self) -> str:
        """The settings as text, such as `split=validation, examples=200`; the examples are those that were read."""
        shown = self.settings | ({"examples": self.examples} if self.examples else {})
        return ", ".join(f"{key}={value}" for key, value in shown.items() if value != "")


MEASUREMENTS = msgspec.json.Decoder(Measurement)
