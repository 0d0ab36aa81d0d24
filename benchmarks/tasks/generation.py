"""How fast data come: drawing examples of every generated task, and making them tensors, against doing so by rows.

The baseline of the second is what a collate function does: one list and one tensor for each example.
"""

import argparse
import resource

import torch
from torch.nn.utils.rnn import pad_sequence

import tasks
from benchmarks.timing import alternate, arguments, seconds
from tasks.generated import Generated
from tfstudy.data.encoding import Encoded
from tfstudy.data.vocabulary import BOS, EOS, PAD, Vocab


def generated() -> list[tuple[str, str]]:
    """Every experiment of every generated task."""
    found = [(name, tasks.find(name)) for name in tasks.names()]
    return [(name, split) for name, task in found if issubclass(task, Generated) for split in task.split_schemes()]


def made(name: str, split: str, count: int) -> Generated:
    """The experiment with `count` examples to train on, not drawn yet."""
    task = tasks.find(name)
    made = task(task.Config.model_validate({"split": split, "train_examples": count}))
    assert isinstance(made, Generated)
    return made


def by_rows(task: Generated, source: Vocab, target: Vocab) -> None:
    """Tensors as a collate function makes them, one for each example, then padded."""
    examples = task.examples("train")
    pad_sequence([torch.tensor([*source.encode(e.source), EOS]) for e in examples], True, PAD)
    pad_sequence([torch.tensor([BOS, *target.encode(e.target), EOS]) for e in examples], True, PAD)


def main() -> None:
    chosen: argparse.Namespace = arguments(__doc__, archs=False)
    count = 5_000 if chosen.quick else 100_000
    print(f"{'experiment':34}{'examples':>10}{'drawn in s':>12}{'tensors in s':>14}{'by rows':>10}")
    for name, split in generated():
        task = made(name, split, count)
        drawing = seconds(lambda task=task: task.examples("train"))  # type: ignore[misc]
        source, target = (Vocab(tokens) for tokens in task.vocabulary())
        rounds = alternate(
            {
                "usual": lambda task=task, s=source, t=target: seconds(lambda: by_rows(task, s, t)),
                "ours": lambda task=task, s=source, t=target: seconds(lambda: Encoded(task.examples("train"), s, t)),
            },
            1,
        )
        print(
            f"{name + ' ' + split:34}{len(task.examples('train')):>10,}{drawing:>12.2f}"
            f"{rounds['ours'][0]:>14.2f}{rounds['usual'][0]:>10.2f}",
            flush=True,
        )
    print(f"most memory held: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
