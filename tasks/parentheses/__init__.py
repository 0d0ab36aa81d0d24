"""Balanced brackets of several types (Dyck-k)."""

from tfstudy.tasks.parentheses.task import Parentheses

__all__ = ["Parentheses"]
