"""Passes for Graphs of any origin."""
