"""The attention maps that a report shows: of each condition one, from the maps saved in the folders of its runs."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tfstudy.analysis.collection import RunRecord
from tfstudy.analysis.conditions import Condition
from tfstudy.errors import UserError
from tfstudy.runs.attention_record import AttentionMap, AttentionRecord, read_attention

MAX_MAPS = 12  # in a report
MAX_TOKENS = 40  # of a source or an output; the rest of a longer one is not shown
KINDS = ("cross", "prefix", "encoder", "decoder")  # the first that was saved is shown


class ShownMap(NamedTuple):
    """The attention of the last saved layer of a run, averaged over its saved heads."""

    condition: Condition
    run: RunRecord
    kind: str
    layer: int
    heads: int
    given: bool  # whether the output was given, instead of generated
    columns: Sequence[str]  # tokens
    rows: Sequence[tuple[str, Sequence[int]]]  # a token, and its weight on each column in percent
    cut: bool  # whether rows or columns are missing

    @property
    def title(self) -> str:
        heads = "" if self.heads == 1 else f", mean of {self.heads} heads"
        return f"{self.condition.label} on {self.condition.split}: {self.kind} attention, layer {self.layer}{heads}"


def shown_maps(conditions: Sequence[Condition]) -> tuple[list[ShownMap], list[str]]:
    """Return a map of each condition that has any, of its first run with a readable record, and what is not shown."""
    maps: list[ShownMap] = []
    notes: list[str] = []
    seen: set[str] = set()  # experiments: conditions on other test sets share their runs
    for condition in conditions:
        if condition.experiment not in seen:
            seen.add(condition.experiment)
            maps += _first_map(condition, notes)
    if len(maps) > MAX_MAPS:
        notes.append(f"The first {MAX_MAPS} of {len(maps)} conditions with saved maps are shown.")
    return maps[:MAX_MAPS], notes


def _first_map(condition: Condition, notes: list[str]) -> Iterable[ShownMap]:
    for run in condition.runs:
        try:
            if records := read_attention(run.path):
                return [_shown(condition, run, records[0])]
        except UserError as error:
            notes.append(f"Not shown: {error}.")
    return []


def _shown(condition: Condition, run: RunRecord, record: AttentionRecord) -> ShownMap:
    kind = next(kind for kind in KINDS if any(one.kind == kind for one in record.maps))
    layer = max(one.layer for one in record.maps if one.kind == kind)
    heads = [one for one in record.maps if (one.kind, one.layer) == (kind, layer)]
    tokens, columns = record.rows(kind), record.columns(kind)
    rows = list(zip(tokens[:MAX_TOKENS], _mean_percent(heads), strict=False))
    cut = max(len(tokens), len(columns)) > MAX_TOKENS
    return ShownMap(condition, run, kind, layer, len(heads), record.given, columns[:MAX_TOKENS], rows, cut)


def _mean_percent(heads: Sequence[AttentionMap]) -> list[list[int]]:
    """Return the mean weights of these heads in percent, as far as they are shown."""
    return [
        [round(100 * sum(weights) / len(heads)) for weights in zip(*(row[:MAX_TOKENS] for row in rows), strict=True)]
        for rows in zip(*(one.weights for one in heads), strict=True)
    ]
