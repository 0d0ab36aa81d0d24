"""The comparisons with JoeyNMT and yoyodyne, without either: what they are given, and what is read of their files."""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml

from tfstudy.errors import UserError
from tfstudy.experiment.api import compose_config
from tfstudy.tasks.translation import Translation

LOG = """\
2026-01-31 12:00:00,000 - INFO - joeynmt.model - Total params: 12345
2026-01-31 12:00:05,250 - INFO - joeynmt.training - EPOCH 1
2026-01-31 12:00:09,000 - INFO - joeynmt.training - EPOCH 10
2026-01-31 12:01:05,750 - INFO - joeynmt.training - Training ended since maximum num. of updates 100 was reached.
"""


@pytest.fixture(autouse=True)
def repository(monkeypatch):
    """Benchmarks are imported from the root of the repository."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))


def peers(name):
    return importlib.import_module(f"benchmarks.peers.{name}")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A corpus of made-up words, with a line separator and a no-break space inside sentences."""
    root = tmp_path_factory.mktemp("corpus")
    words = ["ana", "bo\u2028ra", "ci", "du\u00a0da", "eli", "fo"]
    for split, size in {"train": 40, "dev": 5, "test": 7}.items():
        pairs = [(f"{split} {words[i % 6]} {words[i % 5]} {i}", f"{words[i % 4]} {i} {split}") for i in range(size)]
        (root / f"{split}.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf-8")
    return root


def config_of(corpus, arch="transformer", **settings):
    given = {"data": {"root": str(corpus), "target_language": "de"}, "eval": {"checkpoint": "last"}}
    for key, value in settings.items():
        section, name = key.split("__")
        given.setdefault(section, {})[name] = value
    return compose_config("translation", arch, "default", given, "corpus")


def test_joeynmt_gets_the_same_tokens_line_by_line_and_its_outputs_are_read_as_they_were_written(corpus, tmp_path):
    data, task = peers("joeynmt_data"), Translation(config_of(corpus).data)
    data.write_data(task, tmp_path, one_vocabulary=False)
    for name, split in {"train": "train", "dev": "validation", "test": "test"}.items():
        examples = task.examples(split)
        for side, tokens in {"src": [e.source for e in examples], "trg": [e.target for e in examples]}.items():
            path = tmp_path / f"{name}.{side}"
            assert len(path.read_text(encoding="utf-8").splitlines()) == len(examples)  # as JoeyNMT splits lines
            order = data.decoding_order(examples) if name == "test" else range(len(examples))
            assert data.read_outputs(path, order) == tokens


def test_joeynmt_decodes_sentences_of_similar_length_together(corpus, tmp_path):
    data, task = peers("joeynmt_data"), Translation(config_of(corpus).data)
    data.write_data(task, tmp_path, one_vocabulary=False)
    lengths = [len(line.split(" ")) for line in (tmp_path / "test.src").read_text(encoding="utf-8").splitlines()]
    assert lengths == sorted(len(example.source) for example in task.examples("test"))
    assert len(set(lengths)) > 1


def test_the_vocabulary_files_hold_every_token_once_and_can_be_equal(corpus, tmp_path):
    data, task = peers("joeynmt_data"), Translation(config_of(corpus, data__shared_subwords=False).data)
    source, target = task.vocabulary()
    assert source != target
    for one_vocabulary, expected in {False: (source, target), True: (source | target, source | target)}.items():
        data.write_data(task, tmp_path, one_vocabulary)
        for side, tokens in zip(("src", "trg"), expected, strict=True):
            assert (tmp_path / f"vocabulary.{side}").read_text(encoding="utf-8").splitlines() == sorted(tokens)


def test_outputs_lose_their_special_tokens_and_an_empty_output_stays_a_line(tmp_path):
    path = tmp_path / "outputs.test"
    path.write_text("Ġa b ⟨eos⟩\n⟨unk⟩\n\nĠc\n", encoding="utf-8")
    assert peers("joeynmt_data").read_outputs(path, [0, 1, 2, 3]) == [("Ġa", "b"), (), (), ("Ġc",)]
    assert peers("joeynmt_data").read_outputs(path, [1, 3, 0, 2]) == [(), ("Ġa", "b"), ("Ġc",), ()]
    with pytest.raises(RuntimeError, match="4 outputs for 5 sentences"):
        peers("joeynmt_data").read_outputs(path, range(5))


def test_a_batch_has_as_many_sentences_as_ours_on_average(corpus):
    sentences = peers("joeynmt_data").sentences_per_batch
    examples = Translation(config_of(corpus).data).examples("train")
    mean = sum(max(len(e.source), len(e.target)) + 1 for e in examples) / len(examples)
    assert sentences(config_of(corpus, train__batch_size=20), examples) == 20
    tokens = {"train__batching": "length", "train__batch_tokens": round(8 * mean), "train__batch_size": 20}
    assert sentences(config_of(corpus, **tokens), examples) == 8
    assert sentences(config_of(corpus, **tokens | {"train__batch_size": 3}), examples) == 3


def test_joeynmts_transformer_has_our_sizes_our_updates_and_the_rate_of_our_warm_up(corpus, tmp_path):
    model = {"model__dim": 32, "model__heads": 2, "model__feedforward": 48, "model__encoder_layers": 1}
    train = {"train__learning_rate": 2e-3, "train__warmup_steps": 40, "train__label_smoothing": 0.2}
    config = config_of(corpus, **model, **train, model__decoder_layers=2, model__dropout=0.25, train__steps=130)
    tree = peers("joeynmt_settings").settings(config, tmp_path, batch=16)
    encoder, decoder, training = tree["model"]["encoder"], tree["model"]["decoder"], tree["training"]
    assert (encoder["num_layers"], decoder["num_layers"]) == (1, 2)
    for side in (encoder, decoder):
        assert (side["hidden_size"], side["num_heads"], side["ff_size"], side["dropout"]) == (32, 2, 48, 0.25)
        assert side["embeddings"]["embedding_dim"] == 32
    assert tree["model"]["tied_softmax"] == tree["model"]["tied_embeddings"] == config.model.share_embeddings
    assert (training["updates"], training["batch_size"], training["label_smoothing"]) == (130, 16, 0.2)
    assert training["validation_freq"] > 130
    assert training["validation_freq"] % training["logging_freq"] == 0
    peak = training["learning_rate_factor"] * (32 * training["learning_rate_warmup"]) ** -0.5  # Vaswani et al. 2017
    assert (peak, training["learning_rate"]) == (pytest.approx(2e-3), 2e-3 / 40)
    assert yaml.safe_load(yaml.safe_dump(tree, allow_unicode=True)) == tree


def test_joeynmts_lstm_has_our_widths_and_attention_and_ties_the_output_only_where_it_can(corpus, tmp_path):
    settings, differences = peers("joeynmt_settings").settings, peers("joeynmt_settings").differences
    model = {"model__hidden": 24, "model__attention": "additive", "model__tie_output": True}
    for dim, tied in ((24, True), (16, False)):
        config = config_of(corpus, "lstm", **model, model__dim=dim, model__layers=1, model__input_feeding=False)
        tree = settings(config, tmp_path, 8)["model"]
        for side in (tree["encoder"], tree["decoder"]):
            assert (side["rnn_type"], side["hidden_size"], side["embeddings"]["embedding_dim"]) == ("lstm", 24, dim)
        assert (tree["decoder"]["attention"], tree["decoder"]["input_feeding"]) == ("bahdanau", False)
        assert tree["tied_softmax"] is tied
        assert any(note.startswith("output layer") for note in differences(config, 8)) is not tied


def test_settings_that_joeynmt_lacks_are_listed(corpus):
    differences = peers("joeynmt_settings").differences
    config = config_of(corpus, model__positions="relative", train__schedule="inverse_sqrt")
    notes = "\n".join(differences(config, 64))
    assert "model.positions=relative" in notes
    assert "learning rate" not in notes
    assert "learning rate: cosine" in "\n".join(differences(config_of(corpus, train__schedule="cosine"), 64))


@pytest.mark.parametrize(
    ("arch", "settings", "named"),
    [
        ("cnn", {}, "cnn"),
        ("lstm", {"model__attention": "none"}, "model.attention"),
        ("lstm", {"model__bidirectional": False}, "model.bidirectional"),
        ("transformer", {"train__optimizer": "sgd"}, "train.optimizer"),
    ],
)
def test_a_model_that_joeynmt_lacks_is_a_config_error(corpus, arch, settings, named):
    with pytest.raises(UserError, match=named):
        peers("joeynmt_settings").check(config_of(corpus, arch, **settings))


def test_the_command_refuses_the_cnn_and_an_unknown_setting(monkeypatch, capsys):
    rate = ["--joeynmt", "training.learning_rte=1"]
    for options, named in (
        (["--arch", "cnn"], "cnn"),
        (["--set", "train.step=5"], "train.step"),
        (rate, "training.learning_rate"),
    ):
        monkeypatch.setattr(sys, "argv", ["joeynmt", *options])
        with pytest.raises(SystemExit) as ended:
            peers("joeynmt").main()
        assert ended.value.code == 2
        assert named in capsys.readouterr().err


def test_a_training_is_read_from_its_log_and_its_last_checkpoint(tmp_path):
    (tmp_path / "train.log").write_text(LOG, encoding="utf-8")
    torch.save({"stats_state": {"steps": 100, "total_tokens": 54321}}, tmp_path / "latest.ckpt")
    training = peers("joeynmt_environment").read_training(tmp_path)
    assert training == (12345, 100, 54321, 60.5)
    (tmp_path / "train.log").write_text(LOG.replace("Training ended", "Interrupt"), encoding="utf-8")
    with pytest.raises(RuntimeError, match="Training"):
        peers("joeynmt_environment").read_training(tmp_path)


def test_the_seconds_of_decoding_are_those_of_the_last_one(tmp_path):
    lines = [f"2026-01-31 12:00:00,000 - INFO - joeynmt - Generation took {s}[sec].\n" for s in ("9.5000", "2.2500")]
    (tmp_path / "test.log").write_text("".join(lines), encoding="utf-8")
    assert peers("joeynmt_environment").read_decoding_seconds(tmp_path) == 2.25


def test_a_failure_of_joeynmt_names_its_log_and_quotes_its_last_lines(tmp_path):
    config = tmp_path / "train.yaml"
    config.write_text("", encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"(?s)train\.train\.out.*No module named"):
        peers("joeynmt_environment").joeynmt(Path(sys.executable), "train", config, threads=1)


@pytest.mark.parametrize(
    ("peer", "version", "shared"), [("joeynmt", "2.3.0", ("torch", "sacrebleu")), ("yoyodyne", "0.5.27", ("torch",))]
)
def test_an_environment_pins_the_peer_and_our_versions_of_what_both_use(peer, version, shared):
    def pins(path):
        return dict(line.split("==") for line in path.read_text(encoding="utf-8").split() if "==" in line)

    root = Path(__file__).parents[1]
    theirs, ours = pins(root / "benchmarks" / "peers" / f"{peer}-constraints.txt"), pins(root / "constraints.txt")
    assert theirs[peer] == version
    assert [theirs[name].partition("+")[0] for name in shared] == [ours[name] for name in shared]


@pytest.mark.parametrize("arch", ["transformer", "lstm"])
def test_yoyodyne_gets_our_sizes_and_the_same_examples(arch, tmp_path):
    prepared = importlib.import_module("benchmarks.timing").scan(arch, steps=7)
    settings = peers("yoyodyne").settings_of(prepared, SimpleNamespace(threads=1, sources=3), tmp_path)
    assert settings["steps"] == 7
    assert settings["hidden"] == (256 if arch == "transformer" else 144)
    assert settings["heads"] == (4 if arch == "transformer" else None)
    examples = prepared.task.examples("train")
    lines = Path(settings["train"]).read_text(encoding="utf-8").splitlines()
    assert [tuple(line.partition("\t")[2].split(" ")) for line in lines] == [example.target for example in examples]
    assert settings["longest"] == 1 + max(len(example.target) for example in examples)
    assert len(Path(settings["test"]).read_text(encoding="utf-8").splitlines()) == 3


def test_a_failure_of_yoyodyne_quotes_the_last_lines_of_its_log(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'one line' >&2\nexit 3\n", encoding="utf-8")
    python.chmod(0o755)
    process = peers("yoyodyne").Yoyodyne(python, {"threads": 1, "folder": str(tmp_path)}, cpu=True)
    with pytest.raises(RuntimeError, match=r"(?s)exit code 3.*one line"):
        process.rate("train")
    process.stop()


@pytest.mark.parametrize("language", ["de", "ja"])
def test_the_comparison_scores_as_the_task_does_and_marks_the_worse_system(corpus, language):
    comparison = peers("comparison")
    own = {"data__bleu_tokenizer": "char"} if language == "ja" else {}  # the targets are in Latin letters
    task = Translation(config_of(corpus, data__target_language=language, **own).data)
    examples = task.examples("test")
    gold = [example.target for example in examples]
    worse = [*gold[:3], *[tokens[:2] for tokens in gold[3:]]]
    systems = [
        comparison.System(name, 10, 20, 3000, 60.0, 2.0, outputs, {"torch": "1"})
        for name, outputs in (("first", gold), ("second", worse))
    ]
    scores = comparison.score(task, "test", systems)
    for i, outputs in enumerate((gold, worse)):
        own = task.score(outputs, examples)
        assert scores.by_metric["BLEU"][i].value == pytest.approx(100 * own["bleu"])
        assert scores.by_metric["chrF"][i].value == pytest.approx(100 * own["chrf"])
    assert scores.by_metric["chrF"][0].p is None
    assert scores.by_metric["chrF"][1].p < 0.05
    assert scores.by_metric["chrF"][1].low <= scores.by_metric["chrF"][1].value <= scores.by_metric["chrF"][1].high
    assert ("tok:char" if language == "ja" else "tok:13a") in scores.signatures["BLEU"]
    text = comparison.table(systems, scores, len(examples), ["a note"])
    assert "| target tokens/s" in text
    assert "- a note" in text
    record = json.loads(json.dumps(comparison.record(systems, scores, [])))
    assert "outputs" not in record["systems"][0]  # which may quote the corpus
    assert record["systems"][1]["chrF"]["p"] == scores.by_metric["chrF"][1].p


def test_the_updates_of_a_time_follow_from_those_that_were_timed_and_at_most_a_quarter_are_warm_up(corpus):
    module, config = peers("joeynmt"), config_of(corpus, train__warmup_steps=400)
    for seconds, measured, updates, warmup in ((600, 12, 3000, 400), (60, 12, 300, 75), (0.1, 60, 1, 0)):
        train = module.within(config, seconds, measured).train
        assert (train.steps, train.warmup_steps) == (updates, warmup)


def test_our_run_has_the_sizes_of_the_config_and_its_outputs_are_those_that_evaluation_recorded(corpus, tmp_path):
    module = peers("joeynmt")
    small = {"model__dim": 16, "model__heads": 2, "model__feedforward": 16, "train__steps": 4, "decode__beam_size": 2}
    config = config_of(corpus, **small, train__validation_interval=50, decode__max_length=12)
    run = module.train_tfstudy(config, tmp_path)
    outputs, seconds = module.translate(run)
    assert run.prepared.config == config
    assert [run.prepared.task.text(tokens) for tokens in outputs] == [p.prediction for p in run.predictions()]
    assert seconds > 0
