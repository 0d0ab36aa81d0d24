"""Run folders: what their files hold, how they are written and read, and what identifies a run. Imports no torch."""
