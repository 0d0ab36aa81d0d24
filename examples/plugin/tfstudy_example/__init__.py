"""A task and an architecture for tfstudy."""
