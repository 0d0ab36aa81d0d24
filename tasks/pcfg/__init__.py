"""String edits composed in nested expressions, PCFG SET (Hupkes et al. 2020)."""

from tfstudy.tasks.pcfg.task import Pcfg

__all__ = ["Pcfg"]
