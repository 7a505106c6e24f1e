"""``torch.mtia``: a device that is not there."""

from taeda._no_device import answering

globals().update(answering(__name__, "is_available() = False: False.\ndevice_count() = 0: 0."))
