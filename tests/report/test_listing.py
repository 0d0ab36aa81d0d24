"""Names with descriptions in columns."""

from tfstudy.report.listing import coloured, columns, terminal_width


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
    text = coloured("failed  name", "failed")
    assert str(text) == "failed  name"
    assert [(span.start, span.end, span.style) for span in text.spans] == [(0, 6, "red")]
    assert not coloured("unknown  name", "failed").spans
