"""Properties that every task has with any valid config: one function for each."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from tfstudy.errors import UserError
from tfstudy.tasks.base import Task, TaskConfig, check_examples, fingerprint, overlap
from tfstudy.testing import require

UNKNOWN = "no such split scheme"


class TaskVariant:
    """A task with one config."""

    def __init__(self, cls: type[Task], settings: Mapping[str, Any]) -> None:
        self.cls, self.settings = cls, settings

    def __str__(self) -> str:
        return f" with {', '.join(f'{key}={value}' for key, value in self.settings.items())}" if self.settings else ""

    @property
    def config(self) -> TaskConfig:
        """The config with these settings."""
        return self.cls.Config(**self.settings)

    @cached_property
    def task(self) -> Task:
        """The task with this config."""
        return self.cls(self.config)


def task_variants(cls: type[Task], configs: Iterable[Mapping[str, Any]] = ()) -> list[TaskVariant]:
    """Return the task with each of these configs; without any, in each of its split schemes."""
    return [TaskVariant(cls, settings) for settings in [*configs] or [{"split": name} for name in cls.split_schemes()]]


def its_config_is_valid(variant: TaskVariant) -> None:
    """The version is a number from 1, every scheme has a line on what it tests, and an unknown one is refused."""
    cls = variant.cls
    number = isinstance(cls.version, int) and cls.version >= 1
    require(number, f"the version must be a whole number from 1, but is {cls.version!r}")
    require(issubclass(cls.Config, TaskConfig), f"the class Config must be a TaskConfig, but is {cls.Config!r}")
    schemes = cls.split_schemes()
    require(schemes, "split_schemes() is empty")
    bad = [name for name, text in schemes.items() if not text.strip() or "\n" in text]
    require(not bad, f"each split scheme needs one line, but these have none or several: {', '.join(bad)}")
    default = cls.Config.model_fields["split"].default
    require(default in schemes, f"the default of data.split, {default!r}, is not a split scheme")
    cls.check_config(variant.config)
    message = _refusal(variant)
    require(message, "an unknown split scheme is accepted: call self.check_config(config) in __init__")
    require(UNKNOWN in message, f"the message for an unknown split scheme must name it, but is: {message}")


def _refusal(variant: TaskVariant) -> str:
    """The message for an unknown split scheme; empty if it is accepted."""
    try:
        variant.cls(variant.cls.Config(**{**variant.settings, "split": UNKNOWN}))
    except (UserError, ValueError) as error:
        return str(error)
    return ""


def each_split_has_one_role(variant: TaskVariant) -> None:
    """No split has two roles, and there is a test split."""
    task = variant.task
    splits = task.splits()
    require(len(set(splits.all)) == len(splits.all), f"a split has two roles: {', '.join(splits.all)}")
    require(splits.tests, "there is no test split")
    others = sorted(set(task.by_length()) - set(splits.held_out))
    require(not others, f"by_length() names a split that is not held out: {', '.join(others)}")


def examples_are_tuples_of_tokens(variant: TaskVariant) -> None:
    """No split is empty, sources and targets are tuples of words, no source is empty, and tags can be recorded."""
    task = variant.task
    check_examples(variant.cls.__name__, task)
    for name in task.splits().all:
        for example in task.examples(name):
            require(example.source, f"a source of '{name}' is empty")
            wrong = [repr(word) for word in (*example.source, *example.target) if not _is_word(word)]
            require(not wrong, f"tokens of '{name}' must be non-empty strings without spaces, not {', '.join(wrong)}")


def _is_word(token: Any) -> bool:
    return isinstance(token, str) and token.split() == [token]


def the_same_config_gives_the_same_examples(variant: TaskVariant) -> None:
    """Two objects with one config have equal examples in the same order, and asking again changes nothing."""
    one, other = variant.task, variant.cls(variant.config)
    for name in reversed(other.splits().all):  # in another order of calls
        other.examples(name)
    first = fingerprint(one)
    require(first == fingerprint(other), "two objects with the same config have other examples")
    require(first == fingerprint(one), "a second call of examples() returns others")


def no_held_out_source_is_in_train(variant: TaskVariant) -> None:
    """A source of the validation split or a test split is not in the train split."""
    shared = {name: count for name, count in overlap(variant.task).items() if count}
    require(not shared, f"sources that are also in train: {shared}")


def score_is_1_for_the_targets_and_less_for_nothing(variant: TaskVariant) -> None:
    """The first metric of the targets is 1, that of empty predictions is less, and all metrics are in [0, 1]."""
    task = variant.task
    examples = [e for e in task.examples(task.splits().tests[0]) if e.target][:50]
    best, worst = task.score([e.target for e in examples], examples), task.score([() for _ in examples], examples)
    require(best, "score() returns no metric")
    main = next(iter(best))
    require(abs(best[main] - 1) < 1e-9, f"{main} of the targets themselves is {best[main]}, but must be 1")
    names = f"{', '.join(best)} for the targets, {', '.join(worst)} for empty predictions"
    require(best.keys() == worst.keys(), f"the names of the metrics depend on the predictions: {names}")
    require(worst[main] < 1, f"{main} of empty predictions is {worst[main]}, but must be less than 1")
    outside = {name: value for scores in (best, worst) for name, value in scores.items() if not 0 <= value <= 1 + 1e-9}
    require(not outside, f"a metric is not in [0, 1]: {outside}")


PROPERTIES: dict[str, Callable[[TaskVariant], None]] = {
    check.__name__.replace("_", " "): check
    for check in (
        its_config_is_valid,
        each_split_has_one_role,
        examples_are_tuples_of_tokens,
        the_same_config_gives_the_same_examples,
        no_held_out_source_is_in_train,
        score_is_1_for_the_targets_and_less_for_nothing,
    )
}
