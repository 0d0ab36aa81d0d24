"""The model with its initial weights, for the instruments that compare a trained model with it."""

import torch
from pydantic import Field

from tfstudy.instruments.base import Subject
from tfstudy.instruments.examples import ExampleSettings
from tfstudy.models.base import Model


class WeightSettings(ExampleSettings):
    """The settings of an instrument that measures trained or untrained weights."""

    untrained: bool = Field(False, description="measure the initial weights instead of the trained ones")


def untrained(subject: Subject) -> Model:
    """Return a model of the same config with the weights that the run started with, in eval mode."""
    device = next(subject.model.parameters()).device
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(subject.config.seed)
        model = type(subject.model)(*subject.model.arguments).to(device).eval()
    given = dict(subject.model.named_buffers())
    for name in given.keys() - subject.model.state_dict().keys():  # made of the data, such as which tokens are digits
        model.get_buffer(name).copy_(given[name])
    return model


def measured_model(subject: Subject, settings: WeightSettings) -> Model:
    """Return the model whose weights the settings ask for."""
    return untrained(subject) if settings.untrained else subject.model
