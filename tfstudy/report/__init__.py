"""What people read: tables, claims, plots, progress, and the report of a study."""
