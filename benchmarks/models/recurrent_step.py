"""One step of a recurrent layer by torch's fused layer and by its cell, by rows and width; calibrates `FEW_ROWS`."""

from functools import partial

import torch

from benchmarks.timing import alternate, arguments, seconds, table
from tfstudy.models.parts.recurrent_cells import (
    FEW_ROWS,
    KINDS,
    advance_by_cell,
    advance_by_layer,
    recurrent,
    state_parts,
)

WIDTHS = (64, 200, 512)
ROWS = (1, FEW_ROWS, 4 * FEW_ROWS)


def main() -> None:
    chosen = arguments(__doc__, archs=False)
    repeats, rounds = (20, 3) if chosen.quick else (200, 15)
    for cell in KINDS:
        for width in WIDTHS:
            for rows in ROWS:
                layer = recurrent(cell, width, width)
                x = torch.randn(rows, 1, width)
                state = tuple(torch.randn(rows, width) for _ in range(state_parts(cell)))

                def microseconds(advance, work=(layer, x, state)) -> float:
                    with torch.no_grad():
                        return 1e6 * seconds(lambda: [advance(*work) for _ in range(repeats)]) / repeats

                ways = {
                    "fused": partial(microseconds, advance_by_layer),
                    "cell": partial(microseconds, advance_by_cell),
                }
                table(
                    f"{cell}, width {width}, {rows} rows", "microseconds", alternate(ways, rounds), "fused", faster=True
                )


if __name__ == "__main__":
    main()
