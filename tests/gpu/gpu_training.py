"""Training on a GPU, eager or graphed."""

from tests.training.small_training import small_training
from tfstudy.training.fit import fit
from tfstudy.training.graphs import Execution
from tfstudy.training.module import Seq2Seq

# A small epsilon would make steps of gradients that are 0 but for rounding, such as those of key biases.
LONG = {"steps": 50, "batching": "length", "validation_interval": 50, "adam_epsilon": 1e-3}


class Trained:
    """A module after training on a GPU, and what was recorded and logged."""

    def __init__(self, execution, *args, callbacks=(), resume=None, **settings) -> None:
        self.recorded: list[str] = []
        self.metrics: list[dict[str, float]] = []
        if isinstance(execution, str):
            execution = Execution(execution, self.recorded.append)
        self.module, data = small_training(*args, **settings)
        self.module._log = lambda **values: self.metrics.append(values)
        fit(self.module, data, accelerator="cuda", callbacks=callbacks, resume=resume, execution=execution)

    def logged(self, name: str) -> list[float]:
        """The values of a metric of training."""
        return [values[name] for values in self.metrics if name in values]


def trained(execution, *args, **settings) -> Seq2Seq:
    """A module after training."""
    return Trained(execution, *args, **settings).module
