"""`tfstudy bench`: tables, JSON and files; invalid requests are refused before anything is measured."""

from tests.commands import refused, tfstudy
from tfstudy.performance.record import read_records

SMALL = ("--vary", "length=4,8", "--vary", "width=16", "--vary", "batch=2", "--threads", "1")  # as all tests


def test_a_measurement_is_shown_and_written_with_its_table_and_figure(tmp_path, capsys):
    words = ("--arch", "lstm", "--measure", "training,memory,flops", "--variant", "default,bf16", "--repeats", "6")
    assert tfstudy("bench", *SMALL, *words, "--out", "speed", "-q") == 0
    out, err = capsys.readouterr()
    assert err == ""
    title, head, *rows = out.splitlines()
    assert title == "training, width 16, batch 2"
    assert head.split() == ["architecture", "length", "variant", "tokens/s", "±", "ratio", "MiB", "GFLOP"]
    assert [row.split()[1:3] for row in rows[:4]] == [["4", "default"], ["4", "bf16"], ["8", "default"], ["8", "bf16"]]
    assert max(map(len, out.partition("\n\n")[0].splitlines())) <= 80
    assert sorted(path.name for path in (tmp_path / "speed").iterdir()) == ["bench.jsonl", "bench.svg"]
    records = read_records(tmp_path)
    assert [(one.length, one.variant, len(one.seconds)) for one in records[:2]] == [(4, "default", 6), (4, "bf16", 6)]


def test_an_invalid_request_is_one_message(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for words, message in {
        ("--arch", "lstn"): "did you mean 'lstm'?",
        ("--measure", "speed"): "unknown measure 'speed'",
        ("--variant", "fused"): "unknown variant 'fused'",
        ("--vary", "lenght=4"): "did you mean 'length'?",
        ("--vary", "width=30"): "heads must divide dim",
        ("--vary", "length=4,"): "but is ''",
        ("--vary", "batch=9999999"): "to 1,048,576",
        ("--set", "model.layerz=2"): "unknown key 'model.layerz'",
        ("--set", "model.dim=64"): "--vary width=",
        ("--set", "model=64"): "'model' must be a section",
        ("--set", "train.steps=5"): "unknown section 'train'",
        ("--out", "file"): "--out must be a new folder",
        ("--measure", "memory", "--variant", "uncached"): "the variant uncached applies to generation",
    }.items():
        assert message in refused(capsys, "bench", *words)
