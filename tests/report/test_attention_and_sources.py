"""The attention maps and the sources of a report."""

from tests.example_records import result, three_architectures, write
from tfstudy.analysis.collection import read_finished_runs
from tfstudy.analysis.conditions import conditions
from tfstudy.report.attention_maps import MAX_TOKENS, shown_maps
from tfstudy.report.claims import ClaimText
from tfstudy.report.html_page import publish
from tfstudy.report.sources import cited_papers, id_notes
from tfstudy.report.tables import build_table
from tfstudy.runs.attention_record import AttentionMap, AttentionRecord, save_attention

HEADS = (
    AttentionMap("encoder", 2, 1, ((1.0, 0.0), (0.0, 1.0))),
    AttentionMap("cross", 1, 1, ((1.0, 0.0), (1.0, 0.0), (1.0, 0.0))),
    AttentionMap("cross", 2, 1, ((0.9, 0.1), (0.5, 0.5), (0.0, 1.0))),
    AttentionMap("cross", 2, 2, ((0.7, 0.3), (0.5, 0.5), (0.05, 0.95))),
)


def saved(study, arch, source=("jump", "<eos>"), output=("JUMP", "<b>", "<eos>"), maps=HEADS):
    """Leave attention in the first run of an architecture."""
    run = sorted(study.glob(f"*/{arch}/s0-*"))[0]
    hash_ = next(one.result.run for one in read_finished_runs(study).runs if one.path == run)
    save_attention(run, AttentionRecord(hash_, source, output, maps))
    return run


def test_the_last_layer_of_cross_attention_is_averaged_over_heads(tmp_path):
    study = three_architectures(tmp_path)
    run = saved(study, "cnn")
    [one], notes = shown_maps(conditions(read_finished_runs(study).runs))
    assert (one.run.path, one.kind, one.layer, one.heads, one.cut, notes) == (run, "cross", 2, 2, False, [])
    assert one.columns == ("jump", "<eos>")
    assert one.rows == [("JUMP", [80, 20]), ("<b>", [50, 50]), ("<eos>", [2, 98])]
    assert one.title == "cnn on length: cross attention, layer 2, mean of 2 heads"


def test_long_maps_are_cut(tmp_path):
    study, length = write(tmp_path / "study", result(0)), MAX_TOKENS + 5
    row = (1.0, *[0.0] * (length - 1))
    saved(study, "lstm", ("a",) * length, ("b",) * length, (AttentionMap("cross", 1, 1, (row,) * length),))
    [one], _ = shown_maps(conditions(read_finished_runs(study).runs))
    assert one.cut
    assert (len(one.columns), len(one.rows), {len(weights) for _, weights in one.rows}) == (40, 40, {40})


def test_broken_records_are_named_and_not_shown(tmp_path):
    study = write(tmp_path / "study", result(0))
    run = saved(study, "lstm")
    (run / "attention.json").write_text("[")
    maps, [note] = shown_maps(conditions(read_finished_runs(study).runs))
    assert maps == []
    assert "attention.json is broken" in note


def test_a_page_has_a_table_for_each_map_and_no_section_without_any(tmp_path, monkeypatch):
    monkeypatch.setattr("tfstudy.report.study_page.all_plots", lambda *_: [])
    study = three_architectures(tmp_path)
    assert 'id="attention"' not in publish(read_finished_runs(study), tmp_path / "out")[0].read_text()
    saved(study, "cnn")
    text = publish(read_finished_runs(study), tmp_path / "out")[0].read_text()
    assert text.count('<table class="attention">') == 1
    assert '<th scope="row">&lt;b&gt;</th><td style="--w:0.5">50</td><td style="--w:0.5">50</td>' in text
    assert '<th scope="row">&lt;eos&gt;</th><td style="--w:0.02"></td><td style="--w:0.98">98</td>' in text
    assert "attention, layer 2, mean of 2 heads, generated output" in text


def claim(id_: str, source: str) -> ClaimText:
    return ClaimText(id_, "It learns", "refuted", "", [], source, [])


def test_papers_of_figures_and_of_claims_are_listed_once(tmp_path):
    study = read_finished_runs(write(tmp_path / "study", result(0)))
    table = build_table(study, conditions(study.runs), "", "")
    quoted = {one.figure.paper for line in table.lines for one in line.published}
    keys = [paper.key for paper in cited_papers(table, [claim("P6", "Dessi & Baroni 2019, table 2")])]
    assert keys == sorted(set(keys))
    assert set(keys) >= {"dessi-2019", *quoted} > {"dessi-2019"}
    paper = next(one for one in cited_papers(table, []) if one.key == "lake-2018")
    assert paper.url == "https://arxiv.org/abs/1711.00350"
    assert paper.title.startswith("Generalization without Systematicity: On the Compositional")


def test_papers_have_titles_without_braces(tmp_path):
    study = read_finished_runs(write(tmp_path / "study", result(0)))
    table = build_table(study, conditions(study.runs), "", "")
    [paper] = [one for one in cited_papers(table, [claim("P6", "Dessi & Baroni 2019")]) if one.key == "dessi-2019"]
    assert paper.title.startswith("CNNs Found to Jump Around")


def test_ids_of_claims_are_explained_where_they_occur():
    assert id_notes([]) == []
    [lectures] = id_notes([claim("L2", "EE 641 Unit 6, 2025")])
    assert lectures.startswith("L, such as L2: a statement of lecture notes")
    assert len(id_notes([claim("L2", ""), claim("P7", "")])) == 2
