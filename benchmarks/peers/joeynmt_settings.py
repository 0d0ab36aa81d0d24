"""The JoeyNMT config that is nearest to a run's config, and what still differs between the two."""

from pathlib import Path

from pydantic import BaseModel

from tfstudy.config.schema import RunConfig
from tfstudy.config.trees import Tree
from tfstudy.errors import UserError

DECODING_BATCH = 64  # sentences decoded at once, by both systems
LOG_INTERVAL = 50  # updates
SPECIAL = ("unk", "pad", "bos", "eos")  # in the order of their ids; written so that they are no subwords
SOURCE, TARGET = "src", "trg"  # suffixes of the data files

# Settings that JoeyNMT has too, or that change no result. Any other is reported if it is not at its default.
COMPARABLE = {
    "transformer": (
        *("dim", "encoder_layers", "decoder_layers", "heads", "feedforward", "dropout"),
        *("norm", "tie_output", "share_embeddings", "max_positions"),
    ),
    "lstm": (
        *("dim", "hidden", "layers", "dropout", "bidirectional", "attention"),
        *("input_feeding", "tie_output", "share_embeddings"),
    ),
    "train": (
        *("steps", "batch_size", "batch_tokens", "batching", "micro_batches", "accumulate_grad_batches"),
        *("learning_rate", "schedule", "warmup_steps", "beta1", "beta2", "weight_decay", "gradient_clip_norm"),
        *("label_smoothing", "compile", "log_interval", "validation_interval"),
    ),
}
ATTENTION = {"additive": "bahdanau", "multiplicative": "luong", "general": "luong"}


def check(config: RunConfig) -> None:
    """Raise `UserError` for a model that JoeyNMT does not have."""
    if config.arch not in ("transformer", "lstm"):
        raise UserError(f"JoeyNMT has no counterpart of '{config.arch}'; compare transformer or lstm")
    if config.train.optimizer != "adamw":
        raise UserError(f"train.optimizer must be adamw to compare with JoeyNMT, but is {config.train.optimizer}")
    if config.arch == "lstm" and not config.model.bidirectional:
        raise UserError("JoeyNMT's LSTM encoder is bidirectional: model.bidirectional must be true")
    if config.arch == "lstm" and config.model.attention not in ATTENTION:
        raise UserError(f"JoeyNMT's LSTM has attention: model.attention can't be {config.model.attention}")


def settings(config: RunConfig, folder: Path, batch: int) -> Tree:
    """Return JoeyNMT's config for the data in `folder / "data"`, with `batch` sentences per batch.

    There is no validation before the last update, since the last weights are evaluated.
    """
    data = folder / "data"
    languages = {
        side: {"lang": side, "level": "word", "voc_file": str(data / f"vocabulary.{side}")}  # words: our subwords
        for side in (SOURCE, TARGET)
    }
    symbols = {f"{name}_{key}": value for i, name in enumerate(SPECIAL) for key, value in _symbol(name, i).items()}
    return {
        "name": "tfstudy",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder / "model"),
        "use_cuda": False,
        "random_seed": config.seed % 2**32,
        "data": {name: str(data / name) for name in ("train", "dev", "test")}
        | {"dataset_type": "plain", "special_symbols": symbols, **languages},
        "testing": _testing(config),
        "training": _training(config, batch),
        "model": _transformer(config) if config.arch == "transformer" else _lstm(config),
    }


def differences(config: RunConfig, batch: int) -> list[str]:
    """Return what JoeyNMT does differently with the settings of `settings`, one sentence each."""
    found = [f"{name}: JoeyNMT has no such setting" for name in _without_counterpart(config)]
    if config.train.schedule != "inverse_sqrt":
        found.append(
            f"learning rate: {config.train.schedule} in tfstudy, in JoeyNMT 'noam' (inverse square root) with the "
            "same warm-up and maximum; --set train.schedule=inverse_sqrt makes them equal"
        )
    if config.train.batching != "random":
        found.append(
            f"batches: of similar length in tfstudy; JoeyNMT draws {batch} sentences of any length, which have as "
            "many tokens on average"
        )
    if config.arch == "transformer":
        found.append("dropout: JoeyNMT also applies it to the attention weights")
    else:
        found.append("LSTM: JoeyNMT starts the decoder from the top layer's last output only")
    if config.arch == "lstm" and config.model.tie_output and not _tied(config):
        found.append("output layer: JoeyNMT can tie it to the embedding only where hidden equals dim")
    if config.decode.method == "beam":
        found.append("beam search: JoeyNMT divides scores by ((5 + n) / 6) ** penalty, tfstudy by n ** penalty")
    return [
        *found,
        "generation limit: JoeyNMT's is 1.5 times the longest source of the batch",
        "weight decay: JoeyNMT's also applies to biases and gains",
        "p values: paired bootstrap against tfstudy",
        "settings: tfstudy's preset, tuned for tfstudy; --joeynmt KEY=VALUE changes JoeyNMT's",
    ]


def symbol(name: str) -> str:
    """Return the special token `name`, with characters that no subword has."""
    return f"⟨{name}⟩"


def _symbol(name: str, index: int) -> Tree:
    return {"token": symbol(name), "id": index}


def _without_counterpart(config: RunConfig) -> list[str]:
    sections: dict[str, tuple[BaseModel, tuple[str, ...]]] = {
        "model": (config.model, COMPARABLE[config.arch]),
        "train": (config.train, COMPARABLE["train"]),
    }
    return [
        f"{name}.{key}={getattr(section, key)}"
        for name, (section, comparable) in sections.items()
        for key, field in type(section).model_fields.items()
        if key not in comparable and getattr(section, key) != field.default
    ]


def _testing(config: RunConfig) -> Tree:
    beam = config.decode.method == "beam"
    return {
        "beam_size": config.decode.beam_size if beam else 1,
        "beam_alpha": config.decode.length_penalty if beam else -1,
        "batch_size": DECODING_BATCH,
        "batch_type": "sentence",
        "generate_unk": False,
        "eval_metrics": [],
    }


def _training(config: RunConfig, batch: int) -> Tree:
    train, warmup = config.train, max(1, config.train.warmup_steps)
    width = config.model.dim if config.arch == "transformer" else 2 * config.model.hidden
    return {
        "optimizer": "adamw",
        "adam_betas": [train.beta1, train.beta2],
        "weight_decay": train.weight_decay,
        # 'noam' has no maximum, but a factor; the first update has `learning_rate`.
        "scheduling": "noam",
        "learning_rate": train.learning_rate / warmup,
        "learning_rate_factor": train.learning_rate * (width * warmup) ** 0.5,
        "learning_rate_warmup": warmup,
        "learning_rate_min": 0.0,
        **({"clip_grad_norm": train.gradient_clip_norm} if train.gradient_clip_norm else {}),
        "label_smoothing": train.label_smoothing,
        "normalization": "tokens",
        "batch_size": batch,
        "batch_type": "sentence",
        "batch_multiplier": train.accumulate_grad_batches,
        "epochs": 1_000_000,
        "updates": train.steps,
        "logging_freq": LOG_INTERVAL,
        "validation_freq": LOG_INTERVAL * (train.steps // LOG_INTERVAL + 1),
        "early_stopping_metric": "loss",
        "print_valid_sents": [],
        "overwrite": True,
    }


def _transformer(config: RunConfig) -> Tree:
    model = config.model
    shared = {
        "type": "transformer",
        "num_heads": model.heads,
        "embeddings": {"embedding_dim": model.dim, "scale": True, "dropout": model.dropout},
        "hidden_size": model.dim,
        "ff_size": model.feedforward,
        "dropout": model.dropout,
        "layer_norm": model.norm,
    }
    return _initial(config, model.dim**-0.5) | {
        "encoder": shared | {"num_layers": model.encoder_layers},
        "decoder": shared | {"num_layers": model.decoder_layers},
    }


def _lstm(config: RunConfig) -> Tree:
    model = config.model
    shared = {
        "type": "recurrent",
        "rnn_type": "lstm",
        "embeddings": {"embedding_dim": model.dim, "scale": False, "dropout": model.dropout},
        "hidden_size": model.hidden,
        "num_layers": model.layers,
        "dropout": model.dropout,
    }
    decoder = {
        "hidden_dropout": model.dropout,
        "init_hidden": "bridge",
        "input_feeding": model.input_feeding,
        "attention": ATTENTION[model.attention],
    }
    return _initial(config, 0.1) | {"encoder": shared | {"bidirectional": True}, "decoder": shared | decoder}


def _initial(config: RunConfig, embedding_std: float) -> Tree:
    """Return how weights are initialised and tied."""
    return {
        "initializer": "xavier_uniform",
        "bias_initializer": "zeros",
        "embed_initializer": "normal",
        "embed_init_weight": embedding_std,
        "tied_embeddings": config.model.share_embeddings,
        "tied_softmax": _tied(config),
    }


def _tied(config: RunConfig) -> bool:
    """Whether JoeyNMT can tie the output layer, which has the width of the decoder, as tfstudy does."""
    return bool(config.model.tie_output and (config.arch == "transformer" or config.model.hidden == config.model.dim))
