"""``torch.distributed.rpc``: refused, since this build has no communication between processes."""
