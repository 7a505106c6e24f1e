"""Engines: how the processes of a group exchange memory.

``contract.py`` defines an engine. ``messages.py`` works by TCP and ``segment.py`` by memory that the processes of one
machine share: together they are ``gloo``. ``mpi.py`` uses MPI.
"""
