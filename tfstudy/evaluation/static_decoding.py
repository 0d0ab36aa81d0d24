"""Decoding with graphs: a batch is padded to one of a few shapes, and each token of it is one replay."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from tfstudy.config.schema import DecodeConfig
from tfstudy.data.vocabulary import EOS, PAD
from tfstudy.evaluation.decoding import Generate, Ids, first_tokens, generate_both
from tfstudy.evaluation.static_search import BeamSearch, GreedySearch, Method, Search
from tfstudy.evaluation.static_state import NotStaticError
from tfstudy.models.base import Model, State, select_hypotheses
from tfstudy.training.graphs import CaptureError, CudaGraphs, Graphs, Work

CHECK = 8  # tokens after which the number of unfinished rows is read, which waits for the device
SMALLEST = 8  # rows: from there on, finished rows are not dropped
SOURCE_STEP, ROOM_STEP = 16, 32  # sources and outputs are padded to a multiple of these
WARM_UP = 2  # tokens of a shape before it is captured


class StaticDecoder:
    """Decodes with one model as `evaluation.decoding` does, in steps that are captured once for each shape.

    The number of rows is a power of two. Rows that have finished are dropped when at most half of them are left, so a
    batch goes through smaller and smaller shapes. Graphs read the weights where they are: after other weights were
    loaded into the model, the same graphs decode with those. `report` gets one line if the model has no static state or
    can't be captured.
    """

    def __init__(self, model: Model, graphs: Graphs, report: Callable[[str], None] = print) -> None:
        self._model, self._graphs, self._report = model, graphs, report
        self._searches: dict[Any, Search] = {}
        self._replays: dict[Search, Work] = {}
        self._steps: dict[Search, int] = {}
        self._obstacle = ""

    def generate_both(
        self, source: Tensor, mask: Tensor, limits: Tensor, lengths: Tensor, decode: DecodeConfig
    ) -> tuple[Ids, Ids]:
        """Return what `decoding.generate_both` does, without graphs if there can be none."""
        if self._obstacle:
            return generate_both(self._model, source, mask, limits, lengths, decode)
        try:
            if decode.method == "greedy":
                return self.greedy_both(source, mask, limits, lengths)
            found = self.beam(source, mask, limits, decode.beam_size, decode.length_penalty)
            return found, self.greedy_both(source, mask, torch.zeros_like(limits), lengths)[1]
        except NotStaticError as error:
            self._give_up(str(error))
            return generate_both(self._model, source, mask, limits, lengths, decode)
        except torch.OutOfMemoryError:  # then the caller decodes fewer rows at a time
            for kept in (self._searches, self._replays, self._steps):
                kept.clear()
            raise

    def _give_up(self, obstacle: str) -> None:
        self._obstacle = obstacle
        self._report(f"decoding is not graphed: {obstacle}")

    @torch.no_grad()
    def greedy_both(self, source: Tensor, mask: Tensor, limits: Tensor, lengths: Tensor) -> tuple[Ids, Ids]:
        """Return what `decoding.greedy_both` does; `NotStaticError` if the model has no static state."""
        steps, room = _room(limits, lengths)
        number, given = _padded_rows(torch.stack([limits, lengths]))
        variables = GreedySearch.start(number, given[0], given[1], room)
        out, ends = self._search(GreedySearch, Method(), source, mask, variables, steps, room)
        return first_tokens(out, ends), first_tokens(out, lengths)

    @torch.no_grad()
    def beam(self, source: Tensor, mask: Tensor, limits: Tensor, beam_size: int, length_penalty: float) -> Ids:
        """Return what `decoding.beam` does; `NotStaticError` if the model has no static state."""
        steps, room = _room(limits)
        number, given = _padded_rows(limits)
        method = Method(beam_size, length_penalty)
        variables = BeamSearch.start(number, given, room, method)
        return first_tokens(*self._search(BeamSearch, method, source, mask, variables, steps, room))

    def _search(
        self,
        kind: type[Search],
        method: Method,
        source: Tensor,
        mask: Tensor,
        variables: Mapping[str, Tensor],
        steps: int,
        room: int,
    ) -> tuple[Tensor, Tensor]:
        """Return the outputs (batch, room) and their lengths (batch,)."""
        batch, rows = len(source), len(variables["number"])
        source, mask = _padded_sources(source, mask, rows)
        every = torch.arange(rows, device=source.device)
        state = select_hypotheses(self._model.encode(source, mask), every.repeat_interleave(method.hypotheses), every)
        key = (kind, method, source.shape[1], room)
        search, results = self._start(key, state, variables), [variables[name].clone() for name in kind.results]
        for step in range(1, steps + 1):
            self._advance(search)
            if step % CHECK and step < steps:
                continue
            _keep(search, results)
            left = int(search.left)
            if not left:
                break
            if step < steps and SMALLEST <= search.rows // 2 >= left:
                search = self._shrink(key, search, left)
        out, ends = (result[:batch] for result in results)
        return out, ends

    def _start(self, key: Any, state: State, variables: Mapping[str, Tensor], position: Tensor | None = None) -> Search:
        """Return the search of a shape, at its start or where another one is."""
        kind, method, _, room = key
        shape = (*key, len(variables["number"]))
        if shape not in self._searches:
            self._searches[shape] = kind(self._model, method, state, variables, room)
        self._searches[shape].load(state, variables, position)
        return self._searches[shape]

    def _shrink(self, key: Any, search: Search, left: int) -> Search:
        """Return a search over the rows that are left, and as many finished ones as fill its shape."""
        rows = max(SMALLEST, _power_of_two(left))
        order = search.unfinished().int().argsort(descending=True, stable=True)[:rows]
        return self._start(key, *search.select(order), search.position.value)

    def _advance(self, search: Search) -> None:
        """Decode one token: without a graph at first and after a failed capture."""
        steps = self._steps[search] = self._steps.get(search, 0) + 1
        if search in self._replays:
            self._replays[search]()
        elif self._obstacle:
            search.step()
        elif steps <= WARM_UP:
            self._graphs.warm_up(search.step)
        else:
            self._capture(search)

    def _capture(self, search: Search) -> None:
        try:
            self._replays[search] = self._graphs.capture(search.step)
        except CaptureError as error:
            self._give_up(f"the capture failed: {error}")
            search.step()
        else:
            self._replays[search]()


def graphed_generation(model: Model, device: torch.device) -> Generate | None:
    """Return what decodes with graphs on this device; None if it has none."""
    has_graphs = device.type == "cuda" and not torch.version.hip
    return StaticDecoder(model, CudaGraphs()).generate_both if has_graphs else None


def _power_of_two(number: int) -> int:
    return 1 << max(0, number - 1).bit_length()


def _multiple(number: int, step: int) -> int:
    return -(-number // step) * step


def _room(*limits: Tensor) -> tuple[int, int]:
    """Return the number of tokens to decode at most, and the room for them."""
    steps = max([0, *(int(limit.max()) for limit in limits if len(limit))])
    return steps, max(ROOM_STEP, _multiple(steps, ROOM_STEP))


def _padded_rows(limits: Tensor) -> tuple[Tensor, Tensor]:
    """Return the numbers of the rows of a padded batch, and their limits (..., rows): the added ones finish at once."""
    rows = limits.shape[-1]
    padded = max(SMALLEST, _power_of_two(rows))
    return torch.arange(padded, device=limits.device), pad(limits, (0, padded - rows))


def _padded_sources(source: Tensor, mask: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """Return sources and their mask with more rows, each of one token, and with more padding."""
    width = _multiple(source.shape[1], SOURCE_STEP)
    added = (0, width - source.shape[1], 0, rows - len(source))
    source, mask = pad(source, added, value=PAD), pad(mask, added, value=False)
    first = torch.arange(rows, device=source.device) >= rows - added[3]
    source[:, 0] = torch.where(first, EOS, source[:, 0])
    mask[:, 0] |= first
    return source, mask


def _keep(search: Search, results: list[Tensor]) -> None:
    """Write the outputs of a search into those of the whole batch."""
    for name, result in zip(search.results, results, strict=True):
        result.index_copy_(0, search.variables["number"], search.variables[name])
