"""Two translation systems side by side: what they cost, their scores by the same sacreBLEU, and a table of both."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from tfstudy.tasks.base import Tokens
from tfstudy.tasks.translation import Translation


class System(NamedTuple):
    """A trained system and its outputs on the test set."""

    name: str
    parameters: int
    updates: int
    tokens: int  # target tokens trained on, with EOS
    train_seconds: float
    decode_seconds: float
    outputs: Sequence[Tokens]
    versions: Mapping[str, str]


class Score(NamedTuple):
    """A metric in percent with its 95 % bootstrap interval, and for all but the first system the p value against it."""

    value: float
    low: float
    high: float
    p: float | None

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]" + ("" if self.p is None else f", p {self.p:.3f}")


class Scores(NamedTuple):
    """The scores of all systems by metric, in the order of the systems, and sacreBLEU's signatures."""

    by_metric: dict[str, list[Score]]
    signatures: dict[str, str]


def score(task: Translation, split: str, systems: Sequence[System]) -> Scores:
    """Score all systems as the task does, with paired bootstrap resampling (Koehn 2004, W04-3250) by sacreBLEU."""
    bleu = dict(part.split(":") for part in task.signatures()["bleu"].split("|"))
    lowercase, unspaced = bleu["case"] == "lc", bleu["tok"] in ("char", "zh")

    def texts(outputs: Sequence[Tokens]) -> list[str]:
        text = map(task.text, outputs)
        return ["".join(line.split()) for line in text] if unspaced else list(text)

    metrics = {
        "BLEU": BLEU(lowercase=lowercase, tokenize=bleu["tok"], force=True),
        "chrF": CHRF(lowercase=lowercase),
    }
    references = [texts([example.target for example in task.examples(split)])]
    signatures, tested = PairedTest(
        [(system.name, texts(system.outputs)) for system in systems], metrics, references, test_type="bs"
    )()
    names = dict(zip(metrics, signatures, strict=True))  # sacreBLEU calls chrF "chrF2"
    by_metric = {
        name: [
            Score(r.score, float(r.mean - r.ci), float(r.mean + r.ci), None if r.p_value is None else float(r.p_value))
            for r in tested[key]
        ]
        for name, key in names.items()
    }
    return Scores(by_metric, {name: str(signatures[key]) for name, key in names.items()})


def rows(systems: Sequence[System], scores: Scores, sentences: int) -> dict[str, list[str]]:
    """Return the cells of the table: by the name of each quantity, one cell for each system."""
    return {
        "parameters": [f"{s.parameters:,}" for s in systems],
        "updates": [f"{s.updates:,}" for s in systems],
        "target tokens trained on": [f"{s.tokens:,}" for s in systems],
        "training, s": [f"{s.train_seconds:,.0f}" for s in systems],
        "target tokens/s": [f"{s.tokens / s.train_seconds:,.0f}" for s in systems],
        f"decoding {sentences:,} sentences, s": [f"{s.decode_seconds:,.1f}" for s in systems],
        "sentences/s": [f"{sentences / s.decode_seconds:,.1f}" for s in systems],
        **{f"{name} [95 %]": [str(value) for value in values] for name, values in scores.by_metric.items()},
        "versions": [", ".join(f"{name} {number}" for name, number in s.versions.items()) for s in systems],
    }


def table(systems: Sequence[System], scores: Scores, sentences: int, notes: Sequence[str]) -> str:
    """Return the comparison as a table in Markdown, with signatures and notes below."""
    cells = [["", *(system.name for system in systems)]]
    cells += [[name, *values] for name, values in rows(systems, scores, sentences).items()]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    signatures = [f"{name}: `{signature}`" for name, signature in scores.signatures.items()]
    return "\n".join([*lines, "", *(f"- {note}" for note in [*signatures, *notes]), ""])


def record(systems: Sequence[System], scores: Scores, notes: Sequence[str]) -> dict[str, Any]:
    """Return the comparison as plain values, without the outputs, which may quote the corpus."""
    return {
        "systems": [
            {key: value for key, value in system._asdict().items() if key != "outputs"}
            | {name: values[i]._asdict() for name, values in scores.by_metric.items()}
            for i, system in enumerate(systems)
        ],
        "signatures": scores.signatures,
        "notes": list(notes),
    }
