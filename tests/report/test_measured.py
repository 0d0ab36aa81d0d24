"""Measurements of runs: averaged within a run, then over seeds; drawn as lines, bars and heat maps."""

import pytest

from tests.example_plots import runs
from tests.example_records import write
from tests.example_tables import text_of
from tfstudy.analysis.frame import read_finished_runs
from tfstudy.instruments.attention import Map, Maps
from tfstudy.report.measured import by_condition, listing, means, rank_note, saved_measurements
from tfstudy.report.page import write_report
from tfstudy.report.plots.instruments import attention
from tfstudy.report.plots.instruments import measurement as plot
from tfstudy.runs.schema import Chart, Measurement
from tfstudy.runs.store import save_measurement

LINE = Chart("line", x="length", y="entropy", hue="layer", facet="kind")


def rows(base, lengths=(4, 8)):
    return [
        {"kind": kind, "layer": layer, "head": head, "length": length, "entropy": base + 0.2 * head + layer}
        for kind in ("cross", "encoder") for layer in (1, 2) for head in (1, 2) for length in lengths
    ]  # fmt: skip


@pytest.fixture
def study(tmp_path):
    return write(tmp_path / "study", *runs("cnn", 0.5, 0.5), *runs("lstm", 0.5, 0.5))


def measured(study, chart=LINE, make=rows, **settings):
    found = read_finished_runs(study).runs
    records = [Measurement.of(make(run.result.seed), run.result.run, "entropy", 1, settings, chart) for run in found]
    for run, record in zip(found, records, strict=True):
        save_measurement(run.path, record)
    return by_condition(zip(found, records, strict=True))


def cells(one):
    """The mean at each facet, series and x."""
    return means([one]).set_index(["facet", "series", "x"])["mean"].to_dict()


def test_the_mean_is_over_the_rows_of_a_run_and_then_over_seeds_and_a_table_has_all_of_them(study):
    found = measured(study)
    one = means(found[:1]).set_index(["facet", "series", "x"]).loc["cross", 2, 4]
    assert (found[0].label, one["mean"]) == ("cnn", pytest.approx(2 + 0.3 + 0.5))
    assert one["low"] < one["mean"] < one["high"]
    _, head, *lines = [line.split() for line in text_of(listing(found)).splitlines()]
    assert head == ["condition", "kind", "layer", "length", "4", "8"]
    assert lines[0] == ["cnn", "cross", "1", "1.8", "1.8"]
    assert len(lines) == 2 * 2 * 2


def test_runs_on_different_corpora_are_never_averaged(tmp_path):
    made = [one | {"corpus": name} for name in ("en-de", "en-ja") for one in runs("cnn", 0.5, 0.5, experiment=name)]
    assert [one.label for one in measured(write(tmp_path, *made))] == [
        "scan length en-de: cnn",
        "scan length en-ja: cnn",
    ]


def test_the_report_shows_saved_measurements_and_says_which_are_not_comparable(study, tmp_path):
    measured(study, examples=5)
    run = read_finished_runs(study).runs[0]
    save_measurement(run.path, Measurement.of(rows(0), run.result.run, "entropy", 1, {"examples": 9}, LINE))
    broken = read_finished_runs(study).runs[-1].path / "instruments" / "entropy.json"
    broken.write_text("{")
    found, notes = saved_measurements(read_finished_runs(study).runs)
    assert [(one.label, len(one.records)) for one in found["entropy"]] == [("cnn", 1), ("lstm", 1)]
    assert "entropy.json is broken" in notes[0]
    assert notes[1:] == ["Not shown: 1 measurement of entropy with other settings than examples=5."]
    content = write_report(read_finished_runs(study), tmp_path / "page")
    assert "measure-entropy" in [getattr(block, "name", "") for block in content.sections[3].blocks]
    assert notes[0] in (tmp_path / "page" / "index.html").read_text()


def opposite_heads(seed):
    """Entropies 1 and 2 of two heads, which are numbered the other way round in the second run."""
    heads = zip((1, 2) if seed == 0 else (2, 1), (1.0, 2.0), strict=True)
    return [{"kind": "encoder", "layer": 1, "head": head, "length": 4, "entropy": size} for head, size in heads]


@pytest.mark.parametrize(("x", "keys"), [("head", [(1, 1), (1, 2)]), ("length", [("1.1", 4), ("1.2", 4)])])
def test_heads_of_several_runs_are_compared_by_rank_and_those_of_one_run_keep_their_numbers(study, x, keys):
    chart = Chart("heatmap", x=x, y="layer", hue="entropy", facet="kind", ranked="head")
    [cnn, _] = measured(study, chart, opposite_heads)
    assert cells(cnn) == {("encoder", *keys[0]): 2.0, ("encoder", *keys[1]): 1.0}
    note = "head 1 has the largest number in its run"
    assert rank_note([cnn]) == note
    figure = plot("entropy", [cnn]).figure
    assert note in " ".join(text.get_text() for text in figure.texts).replace("\n", " ")
    assert x != "head" or figure.axes[0].collections[0].get_array().tolist() == [[2, 1]]
    one_run = cnn._replace(records=cnn.records[1:])
    assert cells(one_run) == {("encoder", *keys[0]): 2.0, ("encoder", *keys[1]): 1.0}
    assert rank_note([one_run]) == ""


# Attention maps


def maps_of(layers=2, heads=2, word="t"):
    """Cross-attention of 2 to 3 tokens: all weight of the first head is on the diagonal, that of others is equal."""
    source, output = (tuple(f"{name}{word}{i}" for i in range(count)) for name, count in (("s", 3), ("o", 2)))
    weights = [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], *[[[1 / 3] * 3] * 2] * (heads - 1)]
    maps = [Map(at, n, own) for at in range(1, layers + 1) for n, own in enumerate(weights, 1)]
    return Maps("cross", source, output, maps)


def test_a_figure_of_attention_has_a_panel_for_each_layer_and_head_with_tokens_at_the_edge():
    found = attention(maps_of())
    axes = [one for one in found.figure.axes if one.get_title()]
    assert [one.get_title() for one in axes] == [f"layer {i}, head {j}" for i in (1, 2) for j in (1, 2)]
    assert [one.get_text() for one in axes[0].get_yticklabels()] == ["ot0", "ot1"]
    assert [one.get_text() for one in axes[2].get_xticklabels()] == ["st0", "st1", "st2"]
    assert axes[0].collections[0].get_array().tolist() == [[1, 0, 0], [0, 1, 0]]
    assert found.alt.endswith("; 4 maps by layer and head. Source: st0 st1 st2. Output: ot0 ot1.")
    odd = maps_of(1, 1, word="$\\frac<ö😀\u202e")
    assert attention(odd).encode(".svg") == attention(odd).encode(".svg"), "a token is drawn as it is"
