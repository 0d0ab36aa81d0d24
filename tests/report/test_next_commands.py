"""What to type after a run."""

from pathlib import Path

import msgspec
import pytest

from tests.example_records import predict, result, write
from tfstudy.report.next_commands import next_lines
from tfstudy.runs.reader import read_result


@pytest.fixture
def lines(tmp_path):
    """Return the lines after a run on a split scheme with this exact match."""

    def printed(split: str, exact: float, **changes) -> str:
        [path] = predict(write(tmp_path / "results" / "runs", result(0, exact, split=split)), ("a b", "a b")).glob(
            "*/*/*"
        )
        measured = msgspec.structs.replace(read_result(path), **changes)
        return "\n".join(str(line) for line in next_lines(path, measured, Path("results")))

    return printed


def test_a_solved_random_split_names_the_split_scheme_that_is_harder(lines):
    text = lines("simple", 0.99)
    assert "tfstudy run scan --arch lstm --split length" in text
    assert "tfstudy errors" not in text


def test_other_runs_name_predict_and_errors(lines):
    text = lines("length", 0.2)
    assert "tfstudy run" not in text
    assert f"tfstudy predict scan-length/lstm/s0-{0:064d} s0" in text
    assert "tfstudy errors scan-length/lstm/s0-" in text


@pytest.mark.parametrize(("hub", "option"), [("somebody/corpus", " --online"), (".", "")])
def test_a_run_on_data_of_the_network_names_the_option_that_loads_them(tmp_path, hub, option):
    [path] = predict(write(tmp_path / "results" / "runs", result(0, 0.2)), ("a b", "a b")).glob("*/*/*")
    (path / "config.yaml").write_text(f"data: {{hub: {hub}}}")
    texts = [str(line) for line in next_lines(path, read_result(path), Path("results"))]
    [command] = [text for text in texts if "tfstudy predict" in text]
    assert command.split("  # ")[0].strip() == f"tfstudy predict scan-length/lstm/s0-{0:064d} s0{option}"


@pytest.mark.parametrize("changes", [{"smoke": True}, {"status": "diverged"}])
def test_runs_whose_numbers_mean_nothing_name_no_commands(lines, changes):
    assert lines("simple", 0.99, **changes) == ""


def test_another_folder_of_results_is_part_of_the_commands(tmp_path):
    [path] = write(tmp_path / "mine" / "runs", result(0, 0.2)).glob("*/*/*")
    text = "\n".join(str(line) for line in next_lines(path, read_result(path), tmp_path / "mine"))
    assert f"--results {tmp_path / 'mine'}" in text
