"""Tracing of real calls, and changes of Graphs that make models faster."""
