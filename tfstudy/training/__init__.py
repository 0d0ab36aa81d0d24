"""Training a model with Lightning: the module, its schedule, checkpoints, loggers and `fit`. Imports no torch here."""

# The declared version of training, part of the identity of every run. Raise it when the same config and data lead to
# another distribution of weights over seeds: another loss, schedule, optimiser, initialisation of the optimiser's
# state, kind of batches, or another default of section `train` (or of `seed` and `smoke`). Do not raise it for rounding
# (another order of sums) or for another order of random draws: those give other weights for a seed but the same
# distribution, and the commit in `events.jsonl` records them.
VERSION = 1
