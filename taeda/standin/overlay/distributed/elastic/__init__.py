"""``torch.distributed.elastic``: what programs that a launcher starts name."""
