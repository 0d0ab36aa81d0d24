"""Training a model with Lightning: the module, its schedule, checkpoints, loggers and `fit`."""
