"""What a model reads and writes, as text."""

from tests.tasks.corpora import root
from tfstudy.experiment.api import compose_config
from tfstudy.experiment.predict import attention_of
from tfstudy.experiment.prepare import prepare

__all__ = ["root"]  # a fixture


def test_attention_names_subwords_as_people_read_them(root):
    data = {"split": "corpus", "root": root, "subword_vocab_size": 300}
    prepared = prepare(compose_config("translation", "transformer", "default", {"data": data, "model": {"dim": 16}}))
    found = attention_of(prepared, "a red dog 犬", "dog")
    assert "".join(found.source) == "\u2581a\u2581red\u2581dog\u2581\ufffd\ufffd\ufffd<eos>"
    assert "".join(found.output) == "\u2581dog<eos>"
    assert found.weights["cross"].shape[2:] == (len(found.output), len(found.source))
