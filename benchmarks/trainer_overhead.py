"""Lightning's overhead per step: `fit` against a bare loop over the same batches with the same loss and optimiser."""

import copy
import statistics
from collections.abc import Iterator
from functools import partial
from itertools import islice

import torch
from torch import nn

from benchmarks.against_plain_lightning import SKIP, Speed
from benchmarks.timing import alternate, arguments, now, ratios, scan, table
from tfstudy.data.encoding import Batch
from tfstudy.experiment.prepare import Prepared
from tfstudy.experiment.train import training_data
from tfstudy.training.fit import fit
from tfstudy.training.module import Seq2Seq


def copied(prepared: Prepared) -> Seq2Seq:
    """Return a new module, with the same weights every time."""
    return Seq2Seq(copy.deepcopy(prepared.model), len(prepared.data.target_vocab), prepared.config.train)


def loop(prepared: Prepared, count: int) -> Iterator[Batch]:
    """Train for `count` steps without Lightning; yield each batch after its step."""
    module, batches = copied(prepared), islice(training_data(prepared).train_dataloader(), count)
    configured = module.configure_optimizers()
    optimizer, schedule = configured["optimizer"], configured["lr_scheduler"]
    module.on_fit_start()
    try:
        for number, batch in enumerate(batches):
            optimizer.zero_grad()
            _, gradients = module.gradients(batch, number, True)
            for parameter, gradient in zip(module.gradients.parameters, gradients, strict=True):
                parameter.grad = gradient / batch.tokens
            nn.utils.clip_grad_norm_(module.parameters(), module.config.gradient_clip_norm)
            optimizer.step()
            schedule.step()
            yield batch
    finally:
        module.teardown("fit")


def with_lightning(prepared: Prepared) -> float:
    """Return the milliseconds per step of `fit`."""
    speed = Speed()
    fit(copied(prepared), training_data(prepared), callbacks=[speed], accelerator="cpu")
    return 1000 * (speed.ended - speed.began) / (prepared.config.train.steps - SKIP)


def bare(prepared: Prepared) -> float:
    """Return the milliseconds per step of the loop."""
    steps = prepared.config.train.steps
    times = [now() for _ in loop(prepared, steps)]
    return 1000 * (times[-1] - times[SKIP - 1]) / (steps - SKIP)


def main() -> None:
    chosen = arguments(__doc__)
    steps, rounds = (SKIP + 20, 3) if chosen.quick else (SKIP + 100, 9)
    for arch in chosen.arch:
        prepared = scan(arch, steps=steps)
        ways = {
            "bare loop": partial(bare, prepared),
            "fit": partial(with_lightning, prepared),
        }
        measured = alternate(ways, rounds)
        table(f"{arch}, {torch.get_num_threads()} threads", "ms/step", measured, "bare loop")
        share = 1 - 1 / statistics.median(ratios(measured["fit"], measured["bare loop"]))
        print(f"  {share:.1%} of fit's time is not in the bare loop")


if __name__ == "__main__":
    main()
