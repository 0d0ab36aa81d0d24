"""Pictures of studies, from made records: what stands in them, and when there is none."""

import gzip
import json
import math
import subprocess
import sys

import matplotlib as mpl
import pytest
from matplotlib.colors import to_hex

from tasks.errors import UserError
from tests.example_records import result, write
from tfstudy.analysis.collection import read
from tfstudy.analysis.comparisons import spread
from tfstudy.analysis.conditions import conditions
from tfstudy.analysis.error_kinds import KINDS
from tfstudy.cli import main
from tfstudy.evaluation.lengths import ENOUGH
from tfstudy.report.plots import draw, error_kinds, figures, lengths, picture, svg
from tfstudy.report.plots.layout import in_columns
from tfstudy.report.plots.operands import counts_of, trained_on
from tfstudy.report.plots.series_style import COLOURS, colours_of, looks
from tfstudy.report.plots.splits import quoted

PART = result(0)["splits"]["test"]


def runs(arch, *shares, **more):
    """Runs of seeds 0, 1, ... with these shares."""
    name = f"{arch}{more.get('experiment', '')}{more.get('split', '')}"
    more = {"experiment": name} | more
    return [result(seed, share, arch=arch, run=f"{name}x{seed}", **more) for seed, share in enumerate(shares)]


def folder(study, made):
    return study / f"scan-{made['split']}" / made["arch"] / f"s{made['seed']}-{made['run']}"


def predict(study, made, *predictions, split="test"):
    """Leaves predictions in the folder of a run, each its source, target, prediction and tags."""
    names = ("source", "target", "prediction", "tags")
    text = "".join(json.dumps(dict(zip(names, one, strict=True))) + "\n" for one in predictions)
    path = folder(study, made) / "predictions" / f"{split}.jsonl.gz"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))


def drawn(study, kind, tag=""):
    return picture(read(study), kind, tag).draw()


def texts(figure):
    return [text.get_text() for text in figure.findobj(mpl.text.Text) if text.get_text()]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def colour(artist):
    return to_hex(artist.get_color()).upper()


# Every kind


@pytest.mark.parametrize(("ending", "begin"), [(".png", b"\x89PNG"), (".SVG", b"<?xml"), (".pdf", b"%PDF")])
def test_the_ending_decides_the_file(tmp_path, ending, begin):
    study = write(tmp_path / "study", *runs("lstm", 0.5, 0.6), *runs("cnn", 0.4), *runs("other", 0.1))
    draw(study, "split", tmp_path / f"picture{ending}")
    assert (tmp_path / f"picture{ending}").read_bytes().startswith(begin)


@pytest.mark.parametrize(
    ("kind", "out", "tag", "said"),
    [
        ("split", "a.gif", "", "'.gif'; expected one of: .png, .svg, .pdf"),
        ("lenght", "a.png", "", "did you mean 'length'?"),
        ("split", "a.png", "length", "--tag goes with --kind slices alone"),
        ("slices", "a.png", "", "expected one of: depth, length"),
        ("slices", "a.png", "lenght", "did you mean 'length'?"),
        ("length", "a.png", "", "no run says its accuracy by length"),
        ("learning", "a.png", "", "no finished run has metrics.csv"),
        ("operands", "a.png", "", "digits_left"),
        ("data", "a.png", "", "differ in their number of training examples"),
        ("scaling", "a.png", "", "differ in their number of parameters"),
        ("differences", "a.png", "", "no two rows of the same examples have 2 seeds each"),
        ("errors", "a.png", "", "no run's predictions"),
    ],
)
def test_what_can_not_be_drawn_is_one_message_and_no_file(tmp_path, capsys, kind, out, tag, said):
    slices = {tag: {"1": {"n": 5, "metrics": {"exact_match": 0.5}}} for tag in ("length", "depth")}
    write(tmp_path / "results" / "study", result(0, splits={"test": PART | {"slices": slices}}))
    before = sorted(tmp_path.rglob("*"))
    words = ["study", "--kind", kind, "--out", str(tmp_path / out), "--results", str(tmp_path / "results")]
    with pytest.raises(SystemExit) as end:
        main(["plot", *words, *(["--tag", tag] if tag else [])])
    [line] = capsys.readouterr().err.splitlines()
    assert end.value.code == 2
    assert line.startswith("error: ")
    assert said in line
    assert sorted(tmp_path.rglob("*")) == before


def test_the_command_draws_and_names_the_file(tmp_path, capsys):
    write(tmp_path / "results" / "study", result(0))
    out = tmp_path / "new" / "a.svg"
    with pytest.raises(SystemExit) as end:
        main(["plot", "study", "--out", str(out), "--results", str(tmp_path / "results")])
    assert (end.value.code, capsys.readouterr().out.strip()) == (0, str(out))
    assert out.read_text().startswith("<?xml")


def test_a_file_that_can_not_be_written_is_a_user_error(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(UserError, match="can't write to"):
        draw(write(tmp_path / "study", result(0)), "split", tmp_path / "taken" / "a.svg")


def test_the_same_records_give_the_same_bytes_whatever_the_users_settings(tmp_path):
    [one, *_] = figures(read(write(tmp_path, *runs("lstm", 0.5, 0.6))))
    first = svg(one)
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "none"}):
        assert svg(one) == first
    assert "<dc:date>" not in first
    assert svg(one._replace(name="other")) != first  # ids do not clash within one page


def test_pictures_load_no_torch():
    code = "import sys, tfstudy.report.plots; sys.exit(bool({'torch', 'matplotlib', 'seaborn'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_figures_are_those_that_the_records_support(tmp_path):
    slices = {"depth": {"1": {"n": 5, "metrics": {"exact_match": 0.5}}}}
    made = [*runs("lstm", 0.5, 0.6), *runs("cnn", 0.2, 0.1)]
    study = write(tmp_path, *(one | {"splits": {"test": one["splits"]["test"] | {"slices": slices}}} for one in made))
    found = list(figures(read(study)))
    assert [one.name for one in found] == ["split", "differences", "slices-depth"]
    assert all(one.alt.endswith(".") and one.alt[0].isupper() and "\n" not in one.alt for one in found)
    assert "length: lstm 55.0, cnn 15.0" in found[0].alt
    assert "1 of 1 are significant" in found[1].alt


def test_an_architecture_has_one_colour_in_every_study():
    assert looks({"cnn": "cnn"})["cnn"].colour == COLOURS["cnn"]
    many = colours_of(["cnn", "lstm", "transformer", "gru", "s4", "mamba", "rwkv"])
    assert len(set(many.values())) == 7
    assert colours_of(["gru"])["gru"] == colours_of(["gru", "lstm", "cnn"])["gru"]
    assert list(many)[:3] == list(COLOURS)


def test_rows_of_an_architecture_differ_in_marker_and_line():
    found = looks({f"lstm dim={n}": "lstm" for n in range(28)})
    assert len({(look.marker, str(look.line)) for look in found.values()}) == 28
    assert {look.colour for look in found.values()} == {COLOURS["lstm"]}
    assert list(found)[:3] == ["lstm dim=0", "lstm dim=1", "lstm dim=2"]  # not 10 before 2


@pytest.mark.parametrize("count", [1, 12])
def test_nothing_overlaps_with_few_rows_and_with_many(tmp_path, count):
    many = [f"e{n}-with-long-settings another={n} and-a-third={n} to-take-some-lines={n}" for n in range(count)]
    made = [one for n, name in enumerate(many) for one in runs("lstm", 0.1, 0.2 + n / 50, experiment=name)]
    figure = drawn(write(tmp_path, *made), "split")
    figure.draw_without_rendering()
    [axes] = figure.axes
    [box] = figure.legends
    assert box.get_window_extent().x0 > axes.get_window_extent().x1
    assert box.get_window_extent().y0 > 0
    assert max(figure.get_size_inches()) < 12
    assert len(legend(figure)) == count + 3


def test_rows_of_many_splits_stand_in_columns():
    places = {str(n): [None] * 3 for n in range(40)}
    columns = in_columns(places)
    assert [len(column) for column in columns] == [14, 13, 13]
    assert [name for column in columns for name in column] == list(places)
    assert in_columns({"a": [None] * 200}) == [{"a": [None] * 200}]


# split, length, learning


def test_split_has_mean_interval_seeds_and_published_figures(tmp_path):
    study = write(tmp_path, *runs("lstm", 0.2, 0.4, 0.6))
    [row] = conditions(read(study).runs)
    [axes] = drawn(study, "split").axes
    black = [line.get_xdata()[0] for line in axes.lines if colour(line) == "#000000"]
    assert sorted(black) == sorted(quoted(row, "exact_match"))
    assert 13.8 in black
    ours = [list(line.get_xdata()) for line in axes.lines if colour(line) == COLOURS["lstm"]]
    found = spread(row, "exact_match")
    assert ours == [[found.low, found.high], [found.mean]]
    [seeds] = axes.collections
    assert [round(x, 6) for x, _ in seeds.get_offsets()] == [20, 40, 60]


def with_lengths(made, **curve):
    lengths = {"L90": 2, "L50": 2, "longest": 3, "exact_match": curve}
    return made | {"lengths": lengths, "splits": made["splits"] | {"validation": VALIDATION}}


VALIDATION = PART | {"role": "validation", "slices": {"length": {"1": PART, "2": PART}}}


def test_length_has_bands_over_seeds_and_shades_what_was_trained_on(tmp_path):
    shares = [(1.0, 0.9, 0.3), (1.0, 0.7, 0.1)]
    made = [
        with_lengths(one, **{str(n): {"n": 50 if n < 4 else 3, "exact_match": x} for n, x in enumerate((*own, 0.5), 1)})
        for one, own in zip(runs("lstm", 0.5, 0.5), shares, strict=True)
    ]
    single = with_lengths(runs("cnn", 0.5)[0], **{"1": {"n": 50, "exact_match": 1.0}})
    [axes] = drawn(write(tmp_path, *made, single), "length").axes
    curves = {colour(line): (list(line.get_xdata()), [round(y, 6) for y in line.get_ydata()]) for line in axes.lines}
    assert curves[COLOURS["lstm"]] == ([1, 2, 3], [100, 80, 20])  # length 4 has too few examples
    assert curves[COLOURS["cnn"]] == ([1], [100])
    [shade] = axes.patches
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == (0.5, 2.5)
    bands = {
        to_hex(band.get_facecolor()[0]).upper(): band.get_datalim(axes.transData)
        for band in axes.collections
        if len(band.get_paths()) and len(band.get_paths()[0].vertices) > 4
    }
    assert bands.keys() == {COLOURS["lstm"]}
    assert (bands[COLOURS["lstm"]].y0, bands[COLOURS["lstm"]].y1) == (0, 100)


def test_lengths_need_as_many_examples_as_for_l90():
    assert lengths.ENOUGH == ENOUGH


def test_learning_curves_are_means_and_bands_over_seeds(tmp_path):
    made = [*runs("lstm", 0.5, 0.6), *runs("cnn", 0.5)]
    study = write(tmp_path, *made)
    for one, losses in zip(made, [(1.0, 0.01), (1.0, 0.0001), (math.nan, 0.5)], strict=True):
        lines = [f"{step},train_loss,{loss}" for step, loss in zip((50, 100), losses, strict=True)]
        more = ["100,validation_accuracy,0.5", "100,gradient_norm,3.0"]
        (folder(study, one) / "metrics.csv").write_text("\n".join(["step,metric,value", *lines, *more]) + "\n")
    losses, accuracy = drawn(study, "learning").axes
    curves = {colour(line): (list(line.get_xdata()), [round(y, 6) for y in line.get_ydata()]) for line in losses.lines}
    assert curves[COLOURS["lstm"]] == ([50, 100], [1, 0.001])  # the geometric mean
    assert curves[COLOURS["cnn"]] == ([100], [0.5])  # what is not finite is left out
    assert losses.get_yscale() == "log"
    assert [line.get_ydata()[0] for line in accuracy.lines] == [50, 50]
    (low, high) = accuracy.get_ylim()
    assert high - low < 20  # one seed has no band from 0 to 100


def test_metrics_that_can_not_be_read_are_a_user_error(tmp_path):
    study = write(tmp_path, result(0))
    (folder(study, result(0)) / "metrics.csv").write_text("step,metric,value\n50,train_loss,high\n")
    with pytest.raises(UserError, match=r"metrics.csv can't be read"):
        drawn(study, "learning")


# operands, errors, slices


def digits(**counts):
    return {tag: dict.fromkeys(numbers, PART) for tag, numbers in counts.items()}


def test_operands_are_counted_over_seeds_and_splits_with_a_box_of_what_was_trained_on(tmp_path):
    slices = digits(digits_left="12", digits_right="12")
    trained = PART | {"role": "validation", "slices": digits(digits_left="1", digits_right="12")}
    splits = {"test": PART | {"slices": slices}, "test_long": PART | {"slices": slices}, "validation": trained}
    made = [one | {"splits": splits} for one in runs("lstm", 0.5, 0.5)]
    study = write(tmp_path, *made)
    for seed, one in enumerate(made):
        predict(study, one, ("1 + 2", "3", "3", {"digits_left": 1, "digits_right": 1}))
        wrong = ("10 + 2", "12", "12" if seed else "13", {"digits_left": 2, "digits_right": 1})
        predict(study, one, wrong, split="test_long")
    row = conditions(read(study).runs)[0]
    assert counts_of(row) == {(1, 1): (2, 2), (2, 1): (1, 2)}
    assert trained_on(row) == (1, 1, 1, 2)
    one = picture(read(study), "operands")
    assert "lstm 100.0 % within and 50.0 % beyond" in one.alt
    axes = one.draw().axes[0]
    [box] = axes.patches
    assert (box.get_xy(), box.get_width(), box.get_height()) == ((0, 0), 2, 1)
    assert {"100", "50"} <= {text.get_text() for text in axes.texts}


def test_kinds_of_errors_are_shares_of_all_seeds(tmp_path):
    made = runs("lstm", 0.5, 0.5)
    study = write(tmp_path, *made, *runs("cnn", 0.5))
    predict(study, made[0], ("x", "a b", "a b", {}), ("y", "a b", "a", {}))
    predict(study, made[1], ("x", "a b", "a b", {}), ("y", "a b", "a b c", {}))
    one = picture(read(study), "errors")
    [axes] = one.draw().axes
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == [50, 25, 25]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["lstm"]  # the CNN's predictions are not kept
    assert "lstm stops early 25.0 %" in one.alt


def test_every_kind_of_error_has_its_own_paint():
    assert error_kinds.PAINTS.keys() == set(KINDS)
    assert len(set(error_kinds.PAINTS.values())) == len(KINDS)


@pytest.mark.parametrize("cut", [0, 30])
def test_predictions_that_are_cut_off_are_a_user_error(tmp_path, cut):
    study = write(tmp_path, result(0))
    predict(study, result(0), *[(f"{n}", "a b", "a b", {}) for n in range(50)])
    path = folder(study, result(0)) / "predictions" / "test.jsonl.gz"
    path.write_bytes(path.read_bytes()[:cut] or b"no gzip")
    with pytest.raises(UserError, match="no predictions of 'test' that can be read"):
        drawn(study, "errors")


@pytest.mark.parametrize(("values", "way"), [(("10", "2"), "get_height"), (("near", "far"), "get_width")])
def test_slices_are_bars_by_value_and_row(tmp_path, values, way):
    def sliced(one, *shares):
        own = {v: {"n": 5, "metrics": {"exact_match": x}} for v, x in zip(values, shares, strict=True)}
        return one | {"splits": {"test": PART | {"slices": {"tag": own}}}}

    study = write(tmp_path, sliced(runs("lstm", 0.5)[0], 0.1, 0.2), sliced(runs("cnn", 0.5)[0], 0.3, 0.4))
    [axes] = drawn(study, "slices", "tag").axes
    found = {(to_hex(bar.get_facecolor()).upper(), round(getattr(bar, way)())) for bar in axes.patches}
    assert found == {(COLOURS["lstm"], 10), (COLOURS["lstm"], 20), (COLOURS["cnn"], 30), (COLOURS["cnn"], 40)}
    ticks = axes.get_xticklabels() if way == "get_height" else axes.get_yticklabels()
    assert [tick.get_text() for tick in ticks] == (["2", "10"] if way == "get_height" else ["far", "near"])


# data, scaling, differences


def configured(study, **configs):
    """Writes the config of each experiment."""
    for path in study.glob("*/*/*/config.yaml"):
        tree = json.loads(path.read_text())
        path.write_text(json.dumps({"seed": tree["seed"]} | configs[tree["model"]["dim"]]))
    return study


@pytest.mark.parametrize(
    ("kind", "key", "field"), [("data", "data.pairs", "train_examples"), ("scaling", "model.dim", "parameters")]
)
def test_more_data_and_more_parameters_are_fitted_on_a_logarithmic_axis(tmp_path, kind, key, field):
    section, name = key.split(".")
    sizes = {n: {field: 10 ** (n + 1)} for n in (1, 2, 3)}
    made = [one for n in sizes for one in runs("lstm", n / 10, n / 10, experiment=f"e{n}", **sizes[n])]
    study = write(tmp_path, *made, *runs("cnn", 0.9, experiment="e4"))
    configured(study, **{f"e{n}": {section: {name: n}} for n in (1, 2, 3, 4)})
    one = picture(read(study), kind)
    assert "lstm +10.0 [+10.0, +10.0]" in one.alt
    figure = one.draw()
    [axes] = figure.axes
    assert axes.get_xscale() == "log"
    [fit] = axes.lines
    assert list(fit.get_xdata()) == [100, 1000 * 10]
    assert [round(y, 6) for y in fit.get_ydata()] == [10, 30]
    assert [text for text in legend(figure) if text == "lstm"] == ["lstm"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["100", "1k", "10k"]


def test_a_setting_that_does_not_follow_from_the_size_sets_series_apart(tmp_path):
    sizes = {1: 1000, 2: 10_000, 3: 10_000}
    made = [one for n in sizes for one in runs("lstm", n / 10, experiment=f"e{n}", parameters=sizes[n])]
    models = {"e1": (64, 0.1), "e2": (128, 0.3), "e3": (128, 0.1)}
    study = write(tmp_path, *made)
    configured(study, **{name: {"model": {"dim": dim, "dropout": x}} for name, (dim, x) in models.items()})
    assert "lstm model.dropout=0.1 +20.0" in picture(read(study), "scaling").alt
    assert "dropout=0.3" not in picture(read(study), "scaling").alt  # it has one size


def test_differences_are_filled_where_they_are_significant(tmp_path):
    far, near = (0.9, 0.91, 0.92, 0.93, 0.94), (0.2, 0.22, 0.21, 0.22, 0.2)
    like = [x + 0.001 * (-1) ** number for number, x in enumerate(near)]
    made = [*runs("lstm", *far), *runs("cnn", *near), *runs("transformer", *like)]
    figure = drawn(write(tmp_path, *made, *runs("other", 0.5)), "differences")
    [axes] = figure.axes
    marks = [line for line in axes.lines if len(line.get_xdata()) == 1]
    faces = [to_hex(line.get_markerfacecolor()).upper() for line in marks]
    names = [label.get_text().replace("\N{MINUS SIGN}", "-") for label in axes.get_yticklabels()]
    assert names == ["cnn - lstm", "cnn - transformer", "lstm - transformer"]
    assert faces == [COLOURS["lstm"], "#FFFFFF", COLOURS["lstm"]]
    assert round(marks[0].get_xdata()[0]) == -71
    assert sum("p < .001" in text for text in texts(figure)) == 2
    assert "3 pairs with a single seed are not tested" in axes.get_xlabel()
