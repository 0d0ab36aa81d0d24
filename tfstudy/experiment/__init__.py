"""One run from its config to its result, and what can be done with a finished run."""
