"""Linear probes: what can be read from the hidden states of the encoder by a linear classifier, layer by layer.

Alain & Bengio 2017 (arXiv 1610.01644). A probe can find what is not there: it learns from any features. So its accuracy
stands beside that on untrained weights (Zhang & Bowman 2018, arXiv 1809.10040) and that of the most frequent label.
Hewitt & Liang 2019 (arXiv 1909.03368) show why such a control is needed.
"""

from collections import defaultdict
from typing import NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.parametrize import cached

from tfstudy.errors import UserError
from tfstudy.instruments.base import Chart, Instrument, Row, Subject
from tfstudy.instruments.examples import ExampleSettings, in_batches, untrained
from tfstudy.instruments.hooks import record_states
from tfstudy.models.base import Model
from tfstudy.tasks.base import stable_hash

PENALTY = 1e-3  # of the squared weights of a probe
ITERATIONS = 100


class Labelled(NamedTuple):
    """Hidden states (tokens, width) of tokens with a label (tokens,), and which of them the probe is tested on."""

    states: Tensor
    labels: Tensor
    test: Tensor


class Probe(Instrument):
    """The accuracy of multinomial logistic regression from the hidden states of a layer to a label of each token.

    The task gives the labels (`Task.labels`). Half of the sources are for training the probe, and the others for its
    accuracy. Layer 0 is the embeddings.
    """

    summary = "linear probes: which layer of the encoder holds the labels of a task"
    chart = Chart("line", x="layer", y="accuracy", hue="features", facet="label")

    class Config(ExampleSettings):
        examples: int = Field(500, ge=4, le=10**6, description="number of examples, spread evenly over the split")

    config: Config

    def measure(self, subject: Subject) -> list[Row]:
        rows: list[Row] = []
        for features, model in (("trained", subject.model), ("untrained", untrained(subject))):
            for (label, layer), data in labelled_states(subject, model, self.config).items():
                scores = {features: probe_accuracy(data)}
                if features == "trained":
                    scores["majority"] = majority_accuracy(data)
                rows += [
                    {"label": label, "layer": layer, "features": name, "accuracy": accuracy}
                    for name, accuracy in scores.items()
                ]
        return rows


def labelled_states(subject: Subject, model: Model, settings: ExampleSettings) -> dict[tuple[str, int], Labelled]:
    """Return the states of labelled tokens for each label and layer of the encoder; `UserError` without labels."""
    found: dict[tuple[str, int], list[Labelled]] = defaultdict(list)
    for batch in in_batches(subject, settings):
        with torch.no_grad(), cached():
            states = record_states(model, batch.source, batch.tokens).states()
        for row, example in enumerate(batch.examples):
            test = stable_hash("probe", 0, example.source) % 2 == 0
            for label, values in subject.task.labels(example).items():
                tokens = [i for i, value in enumerate(values) if value is not None]
                labels = torch.tensor([values[i] for i in tokens], dtype=torch.long)
                tested = torch.full((len(tokens),), test)
                for site, x in states.items():
                    if site.kind == "encoder":
                        found[label, site.layer].append(Labelled(x[row, tokens].cpu(), labels, tested))
    data = {key: Labelled(*map(torch.cat, zip(*parts, strict=True))) for key, parts in found.items()}
    if not data:
        raise UserError(f"task {subject.config.task} has no labels of source tokens (Task.labels), which probes need")
    if few := next((label for (label, _), x in data.items() if x.test.all() or not x.test.any()), None):
        raise UserError(f"too few different sources to train and test a probe for '{few}'")
    return data


def probe_accuracy(data: Labelled) -> float:
    """Return the accuracy on the test tokens of a probe that is trained on the others."""
    train, test = data.states[~data.test].double(), data.states[data.test].double()
    given = data.labels[~data.test]
    classes = torch.tensor(sorted(set(given.tolist())))
    mean, std = train.mean(0), train.std(0).clamp(min=1e-6)
    classify = trained_probe((train - mean) / std, torch.searchsorted(classes, given), len(classes))
    with torch.no_grad():
        predicted = classes[classify((test - mean) / std).argmax(-1)]
    return float((predicted == data.labels[data.test]).double().mean())


def trained_probe(states: Tensor, labels: Tensor, classes: int) -> nn.Linear:
    """Return logistic regression with a penalty, from states (tokens, width) to labels (tokens,) below `classes`."""
    probe = nn.Linear(states.shape[1], classes, dtype=states.dtype)
    nn.init.zeros_(probe.weight)
    nn.init.zeros_(probe.bias)
    optimizer = torch.optim.LBFGS(probe.parameters(), max_iter=ITERATIONS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        value = nn.functional.cross_entropy(probe(states), labels) + PENALTY * probe.weight.square().sum()
        probe.weight.grad, probe.bias.grad = torch.autograd.grad(value, (probe.weight, probe.bias))
        return value

    with torch.enable_grad():
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    return probe


def majority_accuracy(data: Labelled) -> float:
    """Return the accuracy on the test tokens of the most frequent label of the others."""
    frequent = data.labels[~data.test].mode().values
    return float((data.labels[data.test] == frequent).double().mean())
