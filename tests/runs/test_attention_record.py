"""`attention.json`: what is saved is read back; what can't be, or is another run's, is refused."""

import json

import msgspec
import pytest

from tfstudy.errors import UserError
from tfstudy.runs import attention_record
from tfstudy.runs.attention_record import AttentionMap, AttentionRecord, read_attention, save_attention

RUN = "a" * 64


def record(source=("jump", "<eos>"), output=("J", "J", "<eos>"), **more):
    maps = (
        AttentionMap("decoder", 1, 1, ((1.0, 0.0, 0.0), (0.25, 0.75, 0.0), (0.333, 0.333, 0.333))),
        *(AttentionMap("cross", layer, head, ((0.5, 0.5),) * 3) for layer in (1, 2) for head in (1, 2)),
    )
    return msgspec.structs.replace(AttentionRecord(RUN, source, output, maps), **more)


@pytest.fixture
def run(tmp_path):
    (tmp_path / "result.json").write_text(json.dumps({"run": RUN}))
    return tmp_path


def test_what_is_saved_is_read_back(run):
    assert read_attention(run) == []
    save_attention(run, record())
    assert read_attention(run) == [record()]


def test_the_same_source_and_output_is_replaced_and_others_are_added(run):
    for one in (record(), record(source=("walk", "<eos>")), record(given=True)):
        save_attention(run, one)
    assert read_attention(run) == [record(source=("walk", "<eos>")), record(given=True)]


def test_rows_and_columns_are_the_tokens_that_attend_and_are_attended_to():
    assert (record().rows("cross"), record().columns("cross")) == (("J", "J", "<eos>"), ("jump", "<eos>"))
    assert record().columns("decoder") == ("<bos>", "J", "J")
    assert record().rows("encoder") == record().columns("encoder") == ("jump", "<eos>")
    assert record().columns("prefix") == ("jump", "<eos>", *record().columns("decoder"))


def test_maps_are_selected_by_kind_layer_and_head():
    assert [(m.kind, m.layer, m.head) for m in record().selected("cross", 2).maps] == [("cross", 2, 1), ("cross", 2, 2)]
    assert [m.kind for m in record().selected(head=1).maps] == ["decoder", "cross", "cross"]
    assert {m.kind for m in record().of_one_kind().maps} == {"cross"}
    assert {m.kind for m in record().selected("decoder").of_one_kind().maps} == {"decoder"}


@pytest.mark.parametrize(
    ("chosen", "facts"),
    [
        (("corss",), ["'corss'", "encoder, decoder, prefix, cross", "did you mean 'cross'"]),
        (("encoder",), ["no encoder attention", "decoder and cross"]),
        (("cross", 3), ["layer must be one of 1, 2, but is 3"]),
        (("decoder", 1, 2), ["head must be one of 1, but is 2"]),
    ],
)
def test_maps_that_do_not_exist_are_refused_with_those_that_do(chosen, facts):
    with pytest.raises(UserError) as error:
        record().selected(*chosen)
    assert all(fact in str(error.value) for fact in facts)


def test_the_answer_for_a_decoder_only_model_names_the_kind_of_its_outputs():
    maps = tuple(AttentionMap(kind, 1, 1, ((1.0,),)) for kind in ("encoder", "prefix"))
    with pytest.raises(UserError, match=r"no decoder attention, only encoder and prefix; .* attend to both: prefix"):
        record(maps=maps).selected("decoder")


SQUARE = ((0.5, 0.5),) * 3
BROKEN = {
    "another run": (record(run="b" * 64), "belongs to another run"),
    "sum": (record(maps=(AttentionMap("cross", 1, 1, ((0.5, 0.4), *SQUARE[1:])),)), "does not sum to 1"),
    "rows": (record(maps=(AttentionMap("cross", 1, 1, SQUARE[1:]),)), "does not have 3 x 2 weights"),
    "columns": (record(maps=(AttentionMap("cross", 1, 1, ((1.0,), *SQUARE[1:])),)), "does not have 3 x 2 weights"),
    "above 1": (record(maps=(AttentionMap("cross", 1, 1, ((1.5, -0.5), *SQUARE[1:])),)), "is broken"),
    "layer 0": (record(maps=(AttentionMap("cross", 0, 1, SQUARE),)), "is broken"),
    "no kind": (record(maps=(AttentionMap("corss", 1, 1, SQUARE),)), "is broken"),
    "no map": (record(maps=()), "no map"),
    "two maps of a head": (record(maps=(AttentionMap("cross", 1, 1, SQUARE),) * 2), "two maps of one head"),
    "no source": (record(source=()), "is broken"),
    "control characters": (record(source=("ju\x1b[2J", "<eos>")), "not printable"),
    "long token": (record(source=("x" * 101, "<eos>")), "long"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_record_that_can_not_be_is_refused(run, name):
    broken, fact = BROKEN[name]
    (run / "attention.json").write_bytes(msgspec.json.encode([broken]))
    with pytest.raises(UserError, match=fact):
        read_attention(run)


@pytest.mark.parametrize("content", [b"", b"[", b"[]", b"{}", b"[" * 100_000, b'[{"run": 1}]', b"\xff\xfe"])
def test_a_file_that_is_no_list_of_records_is_refused_and_not_overwritten(run, content):
    (run / "attention.json").write_bytes(content)
    for call in (lambda: read_attention(run), lambda: save_attention(run, record())):
        with pytest.raises(UserError, match=r"attention\.json is broken"):
            call()
    assert (run / "attention.json").read_bytes() == content


def test_what_is_too_large_is_not_saved(run, monkeypatch):
    monkeypatch.setattr(attention_record, "MAX_WEIGHTS", 32)
    with pytest.raises(UserError, match=r"33 weights.*at most 32.*--kind"):
        save_attention(run, record())
    save_attention(run, record().selected("cross"))
    monkeypatch.setattr(attention_record, "MAX_WEIGHTS", 20)
    with pytest.raises(UserError, match="more than 20 weights"):
        read_attention(run)


def test_a_run_has_a_bounded_number_of_saved_sources(run, monkeypatch):
    monkeypatch.setattr(attention_record, "MAX_RECORDS", 1)
    save_attention(run, record())
    save_attention(run, record(given=True))
    with pytest.raises(UserError, match="already has 1 sources"):
        save_attention(run, record(source=("walk", "<eos>")))


def test_a_token_that_can_not_be_read_back_is_not_saved(run):
    with pytest.raises(UserError, match="not printable"):
        save_attention(run, record(source=("\x1b", "<eos>")))
    assert not (run / "attention.json").exists()
