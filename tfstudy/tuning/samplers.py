"""How the values of trials are chosen: at random, or by Optuna from the scores of earlier trials."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from tfstudy.errors import UserError, one_of
from tfstudy.tuning.space import Range, Space, draw

Values = dict[str, Any]


class Sampler(ABC):
    """Proposes trials in rounds. The same calls in the same order give the same trials."""

    @property
    @abstractmethod
    def round_size(self) -> int:
        """The maximum number of trials in a round."""

    @abstractmethod
    def ask(self, count: int) -> list[Values]:
        """Return the values of the next trials."""

    @abstractmethod
    def tell(self, scores: Sequence[float]) -> None:
        """Learn from the scores of the last round, in the order of its trials; higher is better."""


class RandomSampler(Sampler):
    """Each trial is a pure function of the seed and its number."""

    def __init__(self, space: Space, seed: int) -> None:
        self._space, self._seed, self._asked = space, seed, 0

    @property
    def round_size(self) -> int:
        return 1_000_000

    def ask(self, count: int) -> list[Values]:
        self._asked += count
        return [draw(self._space, self._seed, i) for i in range(self._asked - count, self._asked)]

    def tell(self, scores: Sequence[float]) -> None:
        """Do nothing: random values do not depend on scores."""


class OptunaSampler(Sampler):
    """Optuna's tree-structured Parzen estimator, in rounds of four trials on any machine."""

    def __init__(self, space: Space, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space = space
        self._study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
        self._trials: list[Any] = []  # of the last round

    @property
    def round_size(self) -> int:
        return 4

    def ask(self, count: int) -> list[Values]:
        distributions = self._distributions()
        self._trials = [self._study.ask(distributions) for _ in range(count)]
        return [self._values(trial.params) for trial in self._trials]

    def tell(self, scores: Sequence[float]) -> None:
        for trial, score in zip(self._trials, scores, strict=True):
            self._study.tell(trial, score)

    def _distributions(self) -> dict[str, Any]:
        from optuna import distributions as kinds

        out: dict[str, Any] = {}
        for key, kind in self._space.items():
            if not isinstance(kind, Range):
                out[key] = kinds.CategoricalDistribution(range(len(kind.values)))  # values may be of any type
            elif kind.whole:
                out[key] = kinds.IntDistribution(int(kind.low), int(kind.high), log=kind.log)
            else:
                out[key] = kinds.FloatDistribution(kind.low, kind.high, log=kind.log)
        return out

    def _values(self, parameters: Mapping[str, Any]) -> Values:
        return {
            key: kind.rounded(parameters[key]) if isinstance(kind, Range) else kind.values[parameters[key]]
            for key, kind in self._space.items()
        }


SAMPLERS: dict[str, type[RandomSampler] | type[OptunaSampler]] = {"random": RandomSampler, "optuna": OptunaSampler}


def sampler(method: str, space: Space, seed: int) -> Sampler:
    """Return the sampler of a method; `UserError` for an unknown one or a package that is not installed."""
    one_of("tuning method", method, SAMPLERS)
    if method == "optuna" and not find_spec("optuna"):
        raise UserError("--method optuna: not installed; to install it: pip install optuna")
    return SAMPLERS[method](space, seed)
