"""``torch.version``: what it was built with."""

from .torch_version import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

debug = False
cuda = None
git_version = "unknown"
hip = None
rocm = None
xpu = None
