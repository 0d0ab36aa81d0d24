"""tfstudy: experiments on inductive bias and generalisation in sequence models."""

__version__ = "0.1.0"
