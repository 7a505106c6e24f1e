"""Settings of reading and writing files, for each thread."""

from __future__ import annotations

import threading


class Options(threading.local):
    """Settings of this thread.

    Attributes:
        skip_data: leave the bytes of tensors out.
        checksums: write checksums of records.
        mmap: map files where a call does not say whether to.
    """

    skip_data = False
    checksums = True
    mmap = False


options = Options()
