"""Batches computed in 1 to 6 parts of like length, and batches of like length: what each costs in training.

The figure is milliseconds per 1,000 labels, which is about one step. Below the table: what a step costs at all, by
least squares over all steps (time = a + b parts + c padded positions), and the ratio b / c, which is `OVERHEAD` in
tfstudy/data.py. With one thread the parts are computed one after the other, with more side by side.
"""

import statistics
from functools import partial
from itertools import islice

import numpy as np
import torch
from timing import alternate, arguments, now, scan, table
from trainer import copied, loop

from tfstudy.data import OVERHEAD
from tfstudy.experiment import Prepared

SKIP = 2  # the first steps, which are not measured
Step = tuple[int, int, float]  # parts, padded positions, milliseconds


def steps(prepared: Prepared, count: int, seen: dict[tuple[str, int], list[Step]], name: str) -> float:
    """Milliseconds per 1,000 labels of the first batches; every step is added to `seen` by its number."""
    labels, whole, before = 0.0, 0.0, 0.0
    batches = islice(prepared.data.train_dataloader(), SKIP + count)
    for number, batch in enumerate(loop(copied(prepared), batches)):
        spent, before = 1000 * (now() - before), now()
        if number >= SKIP:
            labels, whole = labels + batch.tokens, whole + spent
            positions = sum(part.source.numel() + part.target.numel() for part in batch.parts)
            seen.setdefault((name, number), []).append((len(batch.parts), positions, spent))
    return 1000 * whole / labels


def overhead(seen: dict[tuple[str, int], list[Step]]) -> str:
    """The three terms of a step's time, of each step the median of its rounds."""
    rows = [(*rounds[0][:2], statistics.median(r[2] for r in rounds)) for rounds in seen.values()]
    parts, positions, times = np.array(rows).T
    fixed, part, position = np.linalg.lstsq(np.stack([np.ones_like(parts), parts, positions], 1), times, rcond=None)[0]
    costs = f"{fixed:.2f} ms + {part:.2f} ms a part + {1000 * position:.2f} ms per 1,000 positions"
    return f"  {costs}: a part is {part / position:.0f} positions (OVERHEAD is {OVERHEAD})"


def main() -> None:
    chosen = arguments(__doc__)
    count, rounds = (15, 2) if chosen.quick else (80, 5)
    for arch in chosen.arch:
        settings = {f"{n} part{'s' * (n > 1)}": scan(arch, parts=n) for n in (1, 2, 3, 4, 6)}
        settings["length batching, 1 part"] = scan(arch, parts=1, batching="length")
        seen: dict[tuple[str, int], list[Step]] = {}
        ways = {name: partial(steps, prepared, count, seen, name) for name, prepared in settings.items()}
        measured = alternate(ways, rounds)
        table(f"{arch}, {torch.get_num_threads()} threads", "ms per 1,000", measured, "1 part")
        print(overhead(seen))


if __name__ == "__main__":
    main()
