"""From examples to batches of integer tensors: vocabularies, encoding, batching and the Lightning data module."""
