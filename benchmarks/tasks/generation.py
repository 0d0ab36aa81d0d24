"""The speed of data: generating the examples of every generated task, and encoding them as tensors.

The baseline of the encoding is what a collate function does: one list and one tensor for each example.
"""

import resource
from collections.abc import Sequence

import torch
from torch.nn.utils.rnn import pad_sequence

from benchmarks.timing import alternate, arguments, seconds
from tfstudy import tasks
from tfstudy.data.encoding import Encoded
from tfstudy.data.vocabulary import BOS, EOS, PAD, Vocab
from tfstudy.tasks.base import Example
from tfstudy.tasks.generated import Generated


def generated_tasks(count: int) -> dict[str, Generated]:
    """Return every split scheme of every generated task, with `count` training examples; none are generated yet."""
    classes = {name: tasks.find(name) for name in tasks.names()}
    return {
        f"{name} {split}": task(task.Config.model_validate({"split": split, "train_examples": count}))
        for name, task in classes.items()
        if issubclass(task, Generated)
        for split in task.split_schemes()
    }


def collate(examples: Sequence[Example], source: Vocab, target: Vocab) -> None:
    """Encode the examples as a collate function does: a tensor for each one, then padding."""
    pad_sequence([torch.tensor([*source.encode(e.source), EOS]) for e in examples], True, PAD)
    pad_sequence([torch.tensor([BOS, *target.encode(e.target), EOS]) for e in examples], True, PAD)


def measure(name: str, task: Generated) -> None:
    """Print the times for one split scheme."""
    generating = seconds(lambda: task.examples("train"))
    source, target = (Vocab(tokens) for tokens in task.vocabulary())
    examples = task.examples("train")
    times = alternate(
        {
            "collate": lambda: seconds(lambda: collate(examples, source, target)),
            "encode": lambda: seconds(lambda: Encoded(examples, source, target)),
        },
        1,
    )
    numbers = f"{generating:>12.2f}{times['encode'][0]:>12.2f}{times['collate'][0]:>12.2f}"
    print(f"{name:34}{len(examples):>10,}{numbers}", flush=True)


def main() -> None:
    chosen = arguments(__doc__, archs=False)
    print(f"{'split scheme':34}{'examples':>10}{'generate, s':>12}{'encode, s':>12}{'collate, s':>12}")
    for name, task in generated_tasks(5_000 if chosen.quick else 100_000).items():
        measure(name, task)
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
