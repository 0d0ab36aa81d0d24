"""Grids: from a base config and axes to a list of runs."""
