"""``taeda.distributed.elastic``: what a process that the launcher started tells it. The launcher is
``taeda.distributed.run``."""
