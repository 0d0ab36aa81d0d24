"""Decoding and scoring."""
