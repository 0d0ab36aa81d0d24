"""The notes under a table."""

from tests.example_records import result, rival, write
from tfstudy.report.tables import table


def test_a_note_says_which_architectures_have_no_preset_and_tells_their_conditions_apart(tmp_path, monkeypatch):
    notes = table(write(tmp_path / "one", rival(0, 0.5, "mingru"))).notes
    [note] = [note for note in notes if note.startswith("no preset for this task: mingru: ")]
    assert "scaled to the size of the Transformer" in note
    assert not any("today's presets" in note for note in notes)
    two = [result(0, arch="mingru", experiment=e, run=e, split=s) for e, s in (("68", "length"), ("64", "simple"))]
    third = result(0, arch="mingru", experiment="70", run="70")
    # the settings that differ from presets are the model's width, which these records name
    monkeypatch.setattr("tfstudy.analysis.conditions.differing_settings", lambda condition: {"model.dim"})
    [note] = [note for note in table(write(tmp_path / "two", *two)).notes if note.startswith("no preset")]
    assert "mingru on length: dim=68; mingru on simple: dim=64;" in note
    [note] = [note for note in table(write(tmp_path / "two", third)).notes if note.startswith("no preset")]
    assert "mingru dim=68: dim=68; mingru dim=70: dim=70;" in note


def test_a_note_has_the_settings_that_no_name_has_once_for_all_conditions(tmp_path, monkeypatch):
    def note(*runs) -> str:
        found = table(write(tmp_path / str(len(list(tmp_path.iterdir()))), *runs)).notes
        [text] = [one for one in found if one.startswith("settings that differ")]
        return text.removeprefix("settings that differ from today's presets")

    keys = {"model.dim", "model.heads"}
    monkeypatch.setattr("tfstudy.analysis.conditions.differing_settings", lambda condition: keys)
    widths = [result(0, experiment=e, run=e) for e in ("68", "70")]
    assert note(*widths) == ", beside those in the names: preset default with heads=default"
    assert note(widths[0]) == ": preset default with dim=68, heads=default"
    keys.clear()
    monkeypatch.setattr(
        "tfstudy.analysis.conditions.differing_settings",
        lambda condition: {"model.heads"} if condition.split == "simple" else set(),
    )
    splits = [result(0, experiment=e, run=e, split=s) for e, s in (("68", "length"), ("69", "simple"))]
    assert note(*splits) == ": simple: preset default with heads=default"


def test_the_hours_of_a_run_with_copied_weights_are_those_of_its_evaluation(tmp_path):
    runs = [result(seed, train_seconds=7200.0, evaluate_seconds=3600.0) for seed in (0, 1)]
    notes = table(write(tmp_path, runs[0], runs[1] | {"reused_from": runs[0]["run"]})).notes
    assert any("4.0 device hours" in note for note in notes)


def test_the_signature_of_a_metric_stands_once_and_where_corpora_differ_with_their_names(tmp_path):
    def run(corpus, tokens):
        signatures = {"bleu": f"tok:{tokens}", "chrf": "nc:6"}
        return result(0, corpus=corpus, experiment=corpus, run=corpus, signatures=signatures)

    two = [run("en-de", "13a"), run("en-ja", "char")]
    assert {"bleu: tok:13a (en-de); tok:char (en-ja)", "chrf: nc:6"} <= set(table(write(tmp_path / "two", *two)).notes)
    assert "bleu: tok:13a" in table(write(tmp_path / "one", two[0])).notes
