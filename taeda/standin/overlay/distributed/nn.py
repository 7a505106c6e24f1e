"""``torch.distributed.nn``: refused, since this build has no communication between processes."""
