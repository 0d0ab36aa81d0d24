"""Names with descriptions in columns."""

from tfstudy.report.text_columns import coloured, columns, run_lines, shortened_inside, terminal_width


def test_the_last_column_is_wrapped_under_itself():
    lines = columns([("a", "word " * 10), ("long", "text")], width=37)
    assert lines[0].startswith("a     word")
    assert lines[1].startswith("      word")
    assert lines[-1] == "long  text"
    assert max(map(len, lines)) <= 37


def test_without_a_terminal_each_row_is_a_line():
    assert terminal_width() == 0
    assert columns([("a", "word " * 40)]) == [f"a  {'word ' * 40}".rstrip()]
    assert columns([]) == []


def test_the_state_of_a_run_has_its_colour():
    text = coloured("  failed  name")
    assert str(text) == "  failed  name"
    assert [(span.start, span.end, span.style) for span in text.spans] == [(2, 8, "red")]
    assert not coloured("unknown  failed").spans
    assert not coloured("failed/lstm").spans


def test_a_column_is_shortened_so_that_the_last_one_has_room():
    rows = [("s0-1a2b3c4d", "positions=sinusoidal, learning_rate=0.001", "step 12,000 of 50,000, 2 h 6 min left")]
    [line] = columns(rows, width=80, cut=1)
    assert len(line) <= 80
    assert line.endswith("step 12,000 of 50,000, 2 h 6 min left")
    assert "positions=sinusoidal" in line


def test_on_a_terminal_runs_stand_below_their_folder(monkeypatch):
    rows = [("running", f"study/scan/{arch}/s{seed}-1a2b3c4d", "") for arch in ("cnn", "lstm") for seed in (0, 1)]
    assert [line.split()[1] for line in run_lines(rows, name=1)] == [name for _, name, _ in rows]
    monkeypatch.setattr("tfstudy.report.text_columns.terminal_width", lambda: 80)
    lines = [line.split() for line in run_lines(rows, name=1)]
    assert lines[:3] == [["study/scan/cnn"], ["running", "s0-1a2b3c4d"], ["running", "s1-1a2b3c4d"]]
    assert lines[3] == ["study/scan/lstm"]


def test_long_names_are_shortened_inside():
    assert shortened_inside("scan-addprim_turn_left", 14) == "scan-...n_left"
    assert shortened_inside("scan", 7) == "scan"
