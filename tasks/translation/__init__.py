"""Low-resource translation: a synthetic language pair with held-out constructions, or a corpus of your own."""

from tfstudy.tasks.translation.task import Translation

__all__ = ["Translation"]
