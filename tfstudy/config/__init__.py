"""The config of a run: its settings, presets, and how a user's words become a validated RunConfig. Imports no torch."""
