"""Attention maps as a table of 80 columns and as a figure."""

import io

import pytest
from rich.console import Console

from tfstudy.instruments.attention import Map, Maps
from tfstudy.report.attention_summary import summary
from tfstudy.report.plots.heat_maps import attention


def maps_of(columns=3, rows=2, layers=2, heads=(1, 2), kind="cross", word="t"):
    """Maps whose first head has all weight of row r on column r, and whose other heads have equal weights."""
    sharp = [[float(c == min(r, columns - 1)) for c in range(columns)] for r in range(rows)]
    flat = [[1 / columns] * columns] * rows
    maps = [Map(kind, at, head, sharp if head == 1 else flat) for at in range(1, layers + 1) for head in heads]
    source, output = (tuple(f"{name}{word}{i}" for i in range(n)) for name, n in (("s", columns), ("o", rows)))
    return Maps(source, output, maps)


def lines(maps, width=80):
    file = io.StringIO()
    for part in summary(maps, width):
        Console(file=file, width=width).print(part)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def labels(ticks):
    return [label.get_text() for label in ticks]


def test_the_weight_is_the_mean_over_heads():
    assert lines(maps_of()) == [
        "cross-attention: the token with the largest weight, mean of 2 heads",
        "   output  layer 1     layer 2",
        "1  ot0     1 st0 0.67  1 st0 0.67",
        "2  ot1     2 st1 0.67  2 st1 0.67",
    ]
    assert lines(maps_of(heads=[2]))[0].endswith("weight, head 2")
    assert lines(maps_of(heads=[1]))[2].split()[-1] == "1.00"
    assert lines(maps_of(2, 2, kind="encoder"))[1].split()[0] == "source"


@pytest.mark.parametrize("word", ["t", "t" * 90])
def test_no_line_is_longer_than_the_terminal(word):
    shown = lines(maps_of(12, 30, layers=9, word=word))
    assert max(map(len, shown)) <= 80
    assert shown[-1].endswith("earlier layers are not shown; choose one with --layer")


def test_a_figure_has_a_panel_for_each_layer_and_head_with_tokens_at_the_edge():
    plot = attention(maps_of())
    axes = [one for one in plot.figure.axes if one.get_title()]
    assert [one.get_title() for one in axes] == [f"layer {i}, head {j}" for i in (1, 2) for j in (1, 2)]
    assert labels(axes[0].get_yticklabels()) == ["ot0", "ot1"]
    assert labels(axes[2].get_xticklabels()) == ["st0", "st1", "st2"]
    assert axes[0].images[0].get_array().tolist() == [[1, 0, 0], [0, 1, 0]]
    assert plot.alt.endswith("; 4 maps by layer and head. Source: st0 st1 st2. Output: ot0 ot1.")
    odd = maps_of(2, 2, 1, [1], word="$\\frac<ö😀\u202e")
    assert attention(odd).encode(".svg") == attention(odd).encode(".svg"), "a token is drawn as it is"
