"""Tables in LaTeX: every text is escaped, rows have equal cells, groups and environments are closed."""

import re

import pytest

from tests.report.table_studies import HOSTILE, quotation, two_architectures
from tfstudy.report.markup import MINUS
from tfstudy.report.table_formats import latex
from tfstudy.report.tables import table

MACROS = (  # that a table may use; LaTeX itself and booktabs define them
    r"\\(?:begin|end|centering|caption|label|toprule|midrule|addlinespace|bottomrule|textbf|cite|par|smallskip"
    r"|footnotesize|pm|geq|dagger|textasciitilde|textasciicircum|textbackslash|textbar)(?![a-z])"
)


def check(text: str) -> list[list[str]]:
    """The cells of each row of a table, after checks that LaTeX can read it."""
    lines = text.splitlines()
    code = [line for line in lines if not line.startswith("%")]
    plain = re.sub(MACROS, "", re.sub(r"\\[&%$#_{}\\]", "", "\n".join(code)))
    assert not re.search(r"[\\%#_^]", plain.replace("$^$", "")), plain
    assert plain.count("$") % 2 == 0
    assert not re.search(rf"[†≥±{MINUS}|<>](?!\$)", plain)
    depth = 0
    for brace in re.findall(r"[{}]", re.sub(r"\\[{}]", "", "\n".join(code))):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    open_environments: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", "\n".join(code)):
        if kind == "begin":
            open_environments.append(name)
        else:
            assert open_environments.pop() == name
    assert not open_environments
    rows = [line.removesuffix(r" \\") for line in code if line.endswith(r" \\")]
    assert not [row for row in rows if row.startswith(("[", "*"))]  # would be an option of the line before
    cells = [re.split(r"(?<!\\)&", row) for row in rows]
    alignment = re.search(r"\\begin\{tabular\}\{([lr]+)\}", text)
    assert alignment
    assert {len(row) for row in cells} == {len(alignment[1])}
    return [[cell.strip() for cell in row] for row in cells]


@pytest.mark.parametrize(
    ("correct", "wrong"),
    [
        (r"\_", "_"),
        (r"\%", "%"),
        (r"\&", "&"),
        (r"\}", "}"),
        ("\\bottomrule\n", "\\bottom\n"),
        (r" \\", ""),
        ("$<$", "<"),
    ],
)
def test_the_check_finds_what_latex_could_not_read(tmp_path, correct, wrong):
    found = table(two_architectures(tmp_path), baseline="lstm", columns="arch,preset,p")
    lines = [line._replace(condition=line.condition._replace(preset=HOSTILE)) for line in found.lines]
    text = latex(found._replace(lines=lines), "A % b")
    check(text)
    assert correct in text
    with pytest.raises(AssertionError):
        assert len(check(text.replace(correct, wrong, 1))) == 4


@pytest.mark.parametrize("columns", ["", "arch,result,published", "published,seeds,seconds"])
@pytest.mark.parametrize(("caption", "label"), [("", ""), ("5 % of a_b & $x$ {", "tab:x-1")])
def test_a_table_can_be_read_by_latex(tmp_path, columns, caption, label):
    found = table(two_architectures(tmp_path), baseline="lstm", columns=columns)
    assert len(check(latex(found, caption, label))) == 4


def test_hostile_names_are_escaped(tmp_path):
    found = table(two_architectures(tmp_path), baseline="lstm")
    names = [HOSTILE, "[x]", "*y\nz"]
    lines = [
        line._replace(condition=line.condition._replace(split=name, preset=name))
        for line, name in zip(found.lines, names, strict=True)
    ]
    rows = check(latex(found._replace(lines=lines, notes=["one\ntwo % three"], baseline=HOSTILE)))
    assert rows[1][0] == r"a\_b\&c\%d\$e\#f\{g\}h\textasciitilde{}i\textasciicircum{}j\textbackslash{}k\textbar{}l"
    assert [row[0] for row in rows[2:]] == ["{}[x]", "{}*y z"]


def test_a_caption_or_a_label_makes_a_whole_table(tmp_path):
    found = table(two_architectures(tmp_path))
    assert r"\begin{table}" not in latex(found)
    text = latex(found, "Length & more", "tab:length")
    order = [r"\begin{table}", r"\caption{Length \& more}", r"\label{tab:length}", r"\begin{tabular}", r"\toprule"]
    order += [r"\bottomrule", r"\end{tabular}", r"$^\dagger$ other settings than these runs", r"\end{table}"]
    places = [text.index(word) for word in order]
    assert places == sorted(places)
    assert r"\caption" not in latex(found, label="tab:length")


def test_published_figures_are_cited(tmp_path):
    found = table(two_architectures(tmp_path), columns="arch,published")
    quoted = [quotation("dessi-2019-02"), quotation("dessi-2019-07", True), quotation("lake-2018-03", True)]
    rows = check(latex(found._replace(lines=[found.lines[0]._replace(published=quoted)])))
    assert rows[1][1] == (
        r"69.2 $\pm$ 8.2~\cite{dessi-2019}$^\dagger$; about 0~\cite{dessi-2019}; $<$ 1.5~\cite{lake-2018}"
    )


def test_no_legend_without_a_sign(tmp_path):
    found = table(two_architectures(tmp_path), columns="arch,result")
    assert "dagger" not in latex(found, "A caption")
