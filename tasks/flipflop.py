"""Flip-flop: the last bit that was written, however far back (Liu et al. 2023, arXiv 2306.00946).

    w 1 i 0 i 1 r w 0 i 1 r  ->  1 0      (all_reads)
    w 1 i 0 w 0 i 1 r        ->  0        (last_read)

An instruction writes a bit (w), is ignored together with its bit (i), or reads (r). The first one writes and the last
one reads; between them, `data.ignored` of the instructions are ignored, and writing and reading are equally likely
(with `last_read` an instruction that would read is ignored too). The memory is a single bit, so a recurrence can keep
it for ever, while attention has to find the last write among all others: Transformers make rare errors (attention
glitches), most of all where writes are sparse or dense.

`length` is the number of instructions. Two tests of the train lengths have other shares of ignored instructions, as in
the paper: `test_sparse` (0.98) and `test_dense` (0.1). The tag `distance` is that from the last write to the last read.
There a decoder-only model predicts each bit within the sequence, here a decoder writes the bits that are read.
"""

from collections.abc import Sequence
from random import Random
from typing import ClassVar

from pydantic import Field

from tfstudy.tasks.generated import Drawn, Generated, GeneratedConfig, Lengths

IGNORED = {"test_sparse": 0.98, "test_dense": 0.1}  # shares of ignored instructions in the tests of the paper


class FlipFlop(Generated):
    """Map instructions to the bits that are read; examples are at the top of this file."""

    schemes: ClassVar = {
        "all_reads": "the bits of all reads, in order",
        "last_read": "one bit: the last instruction reads",
    }

    class Config(GeneratedConfig):
        split: str = "all_reads"
        train_length: Lengths = "2-60"
        test_length: Lengths = "61-100"
        ignored: float = Field(0.8, ge=0, lt=1, description="share of ignored instructions in training")

    config: Config

    def lengths(self) -> range:
        return range(2, 10_000)

    def extra_tests(self) -> Sequence[str]:
        return tuple(IGNORED)

    def draw(self, random: Random, length: int, split: str) -> Drawn:
        ignored = IGNORED.get(split, self.config.ignored)
        reads = "r" if self.config.split == "all_reads" else "i"
        others = random.choices(("i", "w", reads), (ignored, (1 - ignored) / 2, (1 - ignored) / 2), k=length - 2)
        source: list[str] = []
        target: list[str] = []
        written = bit = ""
        last_write = 0
        for number, instruction in enumerate(["w", *others, "r"]):
            source.append(instruction)
            if instruction == "r":
                target.append(written)
                continue
            bit = random.choice("01")
            source.append(bit)
            if instruction == "w":
                written, last_write = bit, number
        return Drawn(tuple(source), tuple(target), {"distance": length - 1 - last_write})
