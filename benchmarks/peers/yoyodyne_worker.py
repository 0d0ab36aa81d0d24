"""Trains and decodes with yoyodyne: run in its environment, as a process that measures once for each line it reads.

It is given the settings as JSON and reads `train` or `decode` from its input. For each it prints a line of JSON: the
examples, the seconds and the CPU seconds that they took, and the number of parameters. It imports nothing of tfstudy.
"""

import json
import sys
import time
from typing import Any

import torch
from lightning.pytorch import Callback
from torch import optim
from yoyodyne import data, models, special, trainers
from yoyodyne.models import modules

QUIET = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}


class Clock(Callback):
    """Counts examples and time from the end of batch `skip` on."""

    def __init__(self, skip: int) -> None:
        self.skip, self.examples, self.began, self.ended = skip, 0, (0.0, 0.0), (0.0, 0.0)

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, number: int) -> None:
        self._count(batch, number)

    def on_predict_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, number: int, loader: int = 0
    ) -> None:
        self._count(batch, number)

    def _count(self, batch: Any, number: int) -> None:
        self.ended = time.perf_counter(), time.process_time()  # the process that loads the data does not count
        if number < self.skip:
            self.began = self.ended
        else:
            self.examples += len(batch)


def build(settings: dict[str, Any], loader: data.DataModule) -> models.BaseModel:
    """Return a new model of the architecture and size in the settings."""
    sizes = {"dropout": settings["dropout"], "embedding_size": settings["dim"]}
    deep = {"hidden_size": settings["hidden"], "layers": settings["encoder_layers"]}
    common = {
        "embedding_size": settings["dim"],
        "decoder_hidden_size": settings["hidden"],
        "decoder_layers": settings["decoder_layers"],
        "decoder_dropout": settings["dropout"],
        "compute_accuracy": False,
        "max_source_length": loader.max_source_length,
        "max_target_length": loader.max_target_length,
        "target_vocab_size": loader.target_vocab_size,
        "vocab_size": loader.vocab_size,
        "optimizer": lambda parameters: optim.AdamW(parameters, lr=settings["learning_rate"]),
    }
    if settings["arch"] == "lstm":
        encoder: Any = modules.LSTMEncoder(bidirectional=settings["bidirectional"], **deep, **sizes)
        return models.SoftAttentionLSTMModel(source_encoder=encoder, **common)
    encoder = modules.TransformerEncoder(attention_heads=settings["heads"], **deep, **sizes)
    return models.TransformerModel(source_encoder=encoder, decoder_attention_heads=settings["heads"], **common)


def measure(work: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Train a new model or decode with it, and return the examples and seconds."""
    loader = data.DataModule(
        model_dir=settings["folder"],
        train=settings["train"],
        predict=settings["test"],
        source_sep=" ",
        target_sep=" ",
        tie_embeddings=False,
        batch_size=settings["batch_size"],
        max_target_length=settings["longest"],
    )
    torch.manual_seed(settings["seed"])
    model = build(settings, loader)
    clock = Clock(settings["skip"] if work == "train" else 0)
    limits = {"max_steps": settings["steps"], "gradient_clip_val": settings["clip"], "limit_val_batches": 0}
    trainer = trainers.Trainer(accelerator="cpu", devices=1, callbacks=[clock], **limits, **QUIET)
    if work == "train":
        trainer.fit(model, loader)
    else:
        with torch.no_grad():
            model.classifier.bias[special.END_IDX] = -1e9  # weights that are not trained may end at the first token
        clock.began = time.perf_counter(), time.process_time()
        trainer.predict(model, loader)
    wall, cpu = (end - start for end, start in zip(clock.ended, clock.began, strict=True))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {"examples": clock.examples, "seconds": wall, "cpu_seconds": cpu, "parameters": parameters}


def main() -> None:
    settings = json.loads(sys.argv[1])
    torch.set_num_threads(settings["threads"])
    for line in sys.stdin:
        print("measured", json.dumps(measure(line.strip(), settings)), flush=True)


if __name__ == "__main__":
    main()
