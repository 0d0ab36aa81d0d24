"""Small SVG files look the same and say the same."""

import re
from xml.etree import ElementTree as ET

import pytest

from tests.example_plots import runs
from tests.example_records import write
from tfstudy.analysis.collection import read_study
from tfstudy.report.plots import make_plot
from tfstudy.report.plots.compact_svg import SVG, compact_svg


@pytest.fixture(scope="module")
def plot(tmp_path_factory):
    study = tmp_path_factory.mktemp("study")
    names = ("lstm", "cnn 0.123456 <b> & d='1.23456'")
    return make_plot(read_study(write(study, *(one for arch in names for one in runs(arch, 0.5, 0.6)))), "split")


def test_it_is_a_fraction_of_the_size(plot):
    assert len(plot.svg()) < len(plot.encode(".svg")) / 3


def test_texts_are_kept(plot):
    texts = [one.text for one in ET.fromstring(plot.svg()).iter(f"{{{SVG}}}text")]
    assert "cnn 0.123456 <b> & d='1.23456'" in " ".join(filter(None, texts))
    assert plot.alt in plot.svg().replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def test_what_is_referred_to_is_there(plot):
    text = plot.svg()
    ids = set(re.findall(r' id="([^"]+)"', text))
    used = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))
    assert used
    assert used <= ids
    classes = set(re.findall(r' class="([^"]+)"', text))
    assert classes
    assert all(f".{name}{{" in text for name in classes)
    assert ' style="' not in text


def test_the_ids_of_clip_paths_do_not_depend_on_the_last_digits_of_coordinates(plot):
    before = plot.svg()
    for axes in plot.figure.axes:
        box = axes.get_position()
        axes.set_position([box.x0 + 1e-9, box.y0, box.width, box.height])
    assert "clip-path" in before
    assert plot.svg() == before


def test_coordinates_are_rounded_and_paths_joined():
    text = compact_svg(
        f'<svg xmlns="{SVG}"><defs><style>*{{}}</style><path id="m" d="M 0.12345 1.5 \nL 2.0 3.98765 z"/></defs>'
        '<g id="a"><path d="M 10.04 20.06 \nL 31.25 4 \nz" style="fill: none"/><!-- 1 --></g>\n</svg>'
    )
    assert 'd="M0.12 1.5L2.0 3.98z"' in text
    assert '<g><path d="M10 20L31.2 4z" class="c0" /></g></svg>' in text
    assert "*{}.c0{fill:none}" in text
