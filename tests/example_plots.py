"""Records of runs to be plotted, and what a figure shows."""

import json

import matplotlib as mpl
from matplotlib.colors import to_hex

from tests.example_records import put_predictions, put_summary, result
from tfstudy.analysis.frame import read_study
from tfstudy.report.plots import make_plot

PART = result(0)["splits"]["test"]


def runs(arch, *shares, **more):
    """Runs of seeds 0, 1, ... with these shares."""
    name = f"{arch}{more.get('experiment', '')}{more.get('split', '')}"
    more = {"experiment": name} | more
    return [result(seed, share, arch=arch, run=f"{name}x{seed}", **more) for seed, share in enumerate(shares)]


def folder(study, made):
    return study / f"scan-{made['split']}" / made["arch"] / f"s{made['seed']}-{made['run']}"


def predict(study, made, *predictions, split="test"):
    """Leaves predictions in the folder of a run, each its source, target and prediction."""
    names = ("source", "target", "prediction", "tags")
    lines = [json.dumps(dict(zip(names, (*one, {}), strict=True))) for one in predictions]
    put_predictions(folder(study, made), split, lines)
    put_summary(folder(study, made), split)


def plotted(study, kind, **selection):
    return make_plot(read_study(study), kind, **selection)


def drawn(study, kind, **selection):
    return plotted(study, kind, **selection).figure


def texts(figure):
    return [text.get_text() for text in figure.findobj(mpl.text.Text) if text.get_text()]


def colour(artist):
    return to_hex(artist.get_color()).upper()


def curves(axes):
    """Return the points of each line by its colour and width."""
    return [
        (colour(one), one.get_linewidth(), [*one.get_xdata()], [round(y, 6) for y in one.get_ydata()])
        for one in axes.lines
    ]


def intervals(axes):
    """Return the ends of each horizontal interval by its colour, from the first drawn to the last."""
    found = [one for one in axes.collections if isinstance(one, mpl.collections.LineCollection)]
    return [(to_hex(own.get_color()[0]).upper(), *(x for x, _ in own.get_segments()[0])) for own in found]


def tagged(one, tests, tag="length"):
    """Set the exact match of a run for each value of a tag, on each test set."""

    def part(shares):
        return PART | {"slices": {tag: {v: {"n": 10, "metrics": {"exact_match": x}} for v, x in shares.items()}}}

    return one | {"splits": {name: part(shares) for name, shares in tests.items()}}
