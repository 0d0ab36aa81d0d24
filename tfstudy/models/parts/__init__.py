"""What architectures are made of: attention, position schemes, residual connections, cells, caches, ragged batches."""
