"""Code of functions."""
