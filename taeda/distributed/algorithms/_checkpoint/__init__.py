"""Modules that keep only their inputs for the backward pass."""
