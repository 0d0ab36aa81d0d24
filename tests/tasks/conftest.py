"""Fixtures that several files of this folder use."""

from tests.tasks.synthetic_pairs import constructed, test, train
from tests.tasks.translation_tasks import embedded, few, root

__all__ = ["constructed", "embedded", "few", "root", "test", "train"]
