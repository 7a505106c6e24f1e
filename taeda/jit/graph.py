"""Graphs of functions."""
class Graph: pass
