"""``torch.distributed._tensor``: refused, since this build has no communication between processes."""

from taeda._refuse import refused_class

DTensor = refused_class("torch.distributed._tensor.DTensor", "this build has no communication between processes")
