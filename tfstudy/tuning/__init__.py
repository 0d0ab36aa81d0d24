"""Hyperparameter search: equal trials for every architecture, judged on validation."""
