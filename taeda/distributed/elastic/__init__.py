"""``taeda.distributed.elastic``: messages from a process to the launcher that started it, ``taeda.distributed.run``."""
