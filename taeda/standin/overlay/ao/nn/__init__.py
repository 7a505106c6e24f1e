"""``torch.ao.nn``: quantised modules, of which there are none."""
