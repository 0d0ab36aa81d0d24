"""From examples to batches of integer tensors."""
