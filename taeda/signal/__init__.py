"""Signal processing under the names of ``torch.signal``."""

from . import windows

__all__ = ["windows"]
