"""Where trials come from: chance, or what the trials before them scored."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from tasks.errors import UserError, one_of
from tfstudy.tuning.space import Range, Space, draw

Values = dict[str, Any]


class Sampler(ABC):
    """Proposes trials in rounds. Asked and told the same in the same order, it proposes the same."""

    @property
    @abstractmethod
    def round(self) -> int:
        """The most trials that it is asked for at once."""

    @abstractmethod
    def ask(self, count: int) -> list[Values]:
        """The next trials' values."""

    @abstractmethod
    def tell(self, scores: Sequence[float]) -> None:
        """What the trials of the last round scored, in their order; more is better."""


class ByChance(Sampler):
    """Each trial is a pure function of the seed and its number."""

    def __init__(self, space: Space, seed: int) -> None:
        self._space, self._seed, self._asked = space, seed, 0

    @property
    def round(self) -> int:
        return 1_000_000

    def ask(self, count: int) -> list[Values]:
        self._asked += count
        return [draw(self._space, self._seed, i) for i in range(self._asked - count, self._asked)]

    def tell(self, scores: Sequence[float]) -> None:
        """Nothing: chance does not learn."""


class ByOptuna(Sampler):
    """Optuna's tree-structured Parzen estimator, in rounds of four trials whatever machine makes them."""

    def __init__(self, space: Space, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space = space
        self._study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
        self._asked: list[Any] = []

    @property
    def round(self) -> int:
        return 4

    def ask(self, count: int) -> list[Values]:
        distributions = self._distributions()
        self._asked = [self._study.ask(distributions) for _ in range(count)]
        return [self._values(trial.params) for trial in self._asked]

    def tell(self, scores: Sequence[float]) -> None:
        for trial, score in zip(self._asked, scores, strict=True):
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

    def _values(self, found: Mapping[str, Any]) -> Values:
        out = {}
        for key, kind in self._space.items():
            out[key] = kind.rounded(found[key]) if isinstance(kind, Range) else kind.values[found[key]]
        return out


SAMPLERS: dict[str, type[ByChance] | type[ByOptuna]] = {"random": ByChance, "optuna": ByOptuna}


def sampler(method: str, space: Space, seed: int) -> Sampler:
    """The sampler of that name; `UserError` if there is none, or its package is not installed."""
    one_of("tuning method", method, SAMPLERS)
    if method == "optuna" and not find_spec("optuna"):
        raise UserError("--method optuna: not installed here; install it with: pip install 'tfstudy[tune]'")
    return SAMPLERS[method](space, seed)
