"""``import torch`` made to mean taeda, so that a program written for PyTorch runs as it is.

From the command line, with the program and its arguments as Python itself takes them::

    python -m taeda.standin train.py --epochs 3
    python -m taeda.standin -m package.module
    python -m taeda.standin -c "import torch; print(torch.ones(2))"

or from Python, before anything imports torch::

    import taeda.standin

    taeda.standin.install()
    import torch

Every submodule follows (``torch.nn.functional``, ``torch.utils.data``, ...). A PyTorch that is installed beside it is
not loaded. What taeda lacks is an ``AttributeError`` or ``ModuleNotFoundError`` that names it. ``docs/standin.md`` has
the programs and packages that were tried.
"""

from .importer import TORCH_VERSION, install, is_installed, uninstall

__all__ = ["TORCH_VERSION", "install", "is_installed", "uninstall"]
