"""Engines: how the processes of a group exchange memory.

``contract.py`` is what an engine is. ``messages.py`` works by TCP and ``segment.py`` by memory that the processes of
one machine share: together they are ``gloo``. ``mpi.py`` stands on MPI.
"""
