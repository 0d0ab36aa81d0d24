"""What the shell completes: names of tasks, architectures, split schemes, presets, grids, papers and studies."""

import pytest

from tests.commands import tfstudy
from tests.example_records import result, write
from tfstudy.cli import main


@pytest.fixture
def completed(monkeypatch, capsys):
    """Return the words that bash is offered at the end of a line."""

    def complete(line: str) -> list[str]:
        monkeypatch.setenv("_TFSTUDY_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        monkeypatch.setattr("sys.argv", ["tfstudy"])
        with pytest.raises(SystemExit):
            main()
        output = capsys.readouterr()
        assert not output.err
        return output.out.split()

    return complete


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("tfstudy ta", "table"),
        ("tfstudy run s", "scan"),
        ("tfstudy run scan --arch l", "lstm"),
        ("tfstudy run scan --split len", "length"),
        ("tfstudy run scan --preset dessi", "dessi-2019"),
        ("tfstudy grid sc", "scan"),
        ("tfstudy grid --arch transformer,c", "transformer,cnn"),
    ],
)
def test_names_are_completed(completed, line, word):
    offered = completed(line)
    assert word in offered
    assert all(one.startswith(line.split(" ")[-1]) for one in offered)


def test_studies_of_the_results_are_completed(completed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "results" / "lengths", result(0, 0.2))
    assert completed("tfstudy table le") == ["lengths"]


def test_an_unknown_task_completes_nothing(completed):
    assert completed("tfstudy run none --split ") == []


def test_the_script_for_bash_is_shown(capsys, monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert tfstudy("--show-completion") in (0, 2)  # 2: the shell of the tests is unknown
    assert "completion" in "".join(capsys.readouterr()).lower()
