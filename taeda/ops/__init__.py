"""Every op, one stanza each, a file per family. Imports nothing above itself."""

from . import aten as aten
