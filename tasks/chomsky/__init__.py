"""Fifteen tasks of the Chomsky hierarchy (Deletang et al. 2022)."""

from tfstudy.tasks.chomsky.task import Chomsky

__all__ = ["Chomsky"]
