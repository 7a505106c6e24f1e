"""``torch.ao``: quantisation and pruning of models; see the modules."""
