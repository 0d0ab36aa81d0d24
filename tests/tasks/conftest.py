"""Fixtures that several files of this folder use."""

from tests.tasks.corpora import embedded, few, root

__all__ = ["embedded", "few", "root"]
