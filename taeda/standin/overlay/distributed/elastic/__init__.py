"""``torch.distributed.elastic``: refused, since this build has no communication between processes."""
