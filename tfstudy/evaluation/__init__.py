"""Decoding and metrics of a trained model. Importing this package does not import torch."""

# The declared version of evaluation, part of the identity of every run. Raise it when the same weights lead to other
# predictions or metrics by more than rounding: another search, another definition of a metric, or another default of
# the sections `decode` and `eval`.
VERSION = 1
