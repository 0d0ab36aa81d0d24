"""Decoding and metrics of a trained model."""
