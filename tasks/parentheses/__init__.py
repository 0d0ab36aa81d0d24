"""Balanced brackets of several types (Dyck-k)."""

from tasks.parentheses.task import Parentheses

__all__ = ["Parentheses"]
