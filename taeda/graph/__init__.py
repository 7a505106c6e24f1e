"""Compiled calls: static replay, graphs for backends, autotuning, explanations."""
