"""The files of a run folder, described once as types that reject impossible values. Imports no torch."""

from functools import cached_property
from typing import Annotated

import msgspec

from tasks.errors import UserError
from tfstudy.runs.files import content

Count = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1 + 1e-9)]  # a BLEU of 100 is rounded


class Slice(msgspec.Struct, frozen=True):
    """What a run measured on some examples; metrics are shares of 1."""

    n: Count
    metrics: dict[str, Share] = {}
    exact_match_interval: tuple[float, float] | None = None  # Wilson's, 95 %


class Part(Slice, frozen=True, kw_only=True, dict=True):
    """What a run measured on a split."""

    role: str  # validation or test
    mean_over_lengths: dict[str, Share] = {}
    home: tuple[str, str] = ("", "")  # the file and the split that slices are read from: they are most of a record

    @cached_property
    def by(self) -> dict[str, dict[str, Slice]]:
        """Tag and value to what was measured on the examples that have it; read when it is first asked for."""
        file, split = self.home
        try:
            return SLICES.decode(content(file)).splits[split].slices if file else {}
        except (msgspec.DecodeError, UnicodeDecodeError, KeyError) as error:
            raise UserError(f"{file} is broken in its slices ({error}); move its folder away to go on") from None


class Lengths(msgspec.Struct, frozen=True):
    """How far accuracy reaches."""

    longest: int = 0  # that was tested; 0 if lengths were not
    L90: int | None = None  # None if not even the shortest is right so often
    L50: int | None = None
    exact_match: dict[str, dict[str, float]] = {}  # by length: n and exact_match

    def __bool__(self) -> bool:
        return bool(self.longest)


class Decode(msgspec.Struct, frozen=True):
    """How outputs were found."""

    method: str = ""
    beam_size: int = 1
    length_penalty: float = 0.0
    max_length: int = 0


class Evaluated(msgspec.Struct, frozen=True):
    """What was scored."""

    max_examples: int = 0  # examples of a split; 0 is all


class Result(msgspec.Struct, frozen=True):
    """A `result.json`."""

    format: int
    run: str
    experiment: str  # of the runs that differ from this one in their seed alone
    task: str
    split: str
    arch: str
    seed: int
    status: str  # finished or diverged
    smoke: bool
    preset: str = "default"
    reason: str = ""
    tuning: bool = False
    device: str = ""
    parameters: Count = 0
    train_examples: Count = 0
    checkpoint: str = "last"
    step: int = 0
    train_seconds: Seconds = 0.0
    evaluate_seconds: Seconds = 0.0
    train_flops_estimate: float = 0.0
    trained_in: str | None = None  # the run whose weights it took over, if it did not train
    decode: Decode = Decode()
    eval: Evaluated = Evaluated()
    overlap: dict[str, int] = {}
    signatures: dict[str, str] = {}
    lengths: Lengths = Lengths()
    splits: dict[str, Part] = {}


class Sliced(msgspec.Struct):
    """Of a split in a `result.json`."""

    slices: dict[str, dict[str, Slice]] = {}


class Splits(msgspec.Struct):
    """Of a `result.json`."""

    splits: dict[str, Sliced] = {}


SLICES = msgspec.json.Decoder(Splits)


class Environment(msgspec.Struct, frozen=True):
    """Of an entry of `env.json`: what worked on a run."""

    versions: dict[str, str] = {}
    data: str = ""
    commit: str | None = ""


FORMAT = 1  # of result.json
