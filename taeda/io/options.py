"""Settings of reading and writing files, for each thread."""

from __future__ import annotations

import threading


class Options(threading.local):
    """Settings of this thread.

    Attributes:
        skip_data: leave the bytes of tensors out.
        checksums: write checksums of records.
        byteorder: the order of bytes in archives that do not say it, as ``sys.byteorder`` names them.
        mmap: map files where a call does not say whether to.
        map_shared: what is written to a tensor of a mapped file goes to the file.
    """

    skip_data = False
    checksums = True
    byteorder: str = "little"
    mmap = False
    map_shared = False


options = Options()
