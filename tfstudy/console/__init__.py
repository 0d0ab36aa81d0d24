"""Grids, retries and searches on the terminal: they are started, and their progress and outcome shown."""
