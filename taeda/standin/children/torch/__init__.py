"""``import torch`` in a process started by a program that runs under the stand-in."""

import sys
from importlib.util import find_spec

if find_spec("taeda") is None:  # the program's process found it where this one does not look
    sys.path.append(__file__.rpartition("taeda")[0])

from taeda.standin import install

del sys.modules["torch"]  # this module, whose place taeda takes
install()
