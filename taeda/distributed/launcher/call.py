"""One process of :func:`taeda.distributed.launcher.launch_agent`: calls the function that a file holds."""

from __future__ import annotations

import os
import pickle
import sys
from multiprocessing import spawn
from pathlib import Path

from ..elastic.multiprocessing.errors import record


def main(folder: Path) -> None:
    """Write the function's result to a file, for the launcher."""
    with open(folder / "call", "rb") as file:
        spawn.prepare(pickle.load(file))  # the program's main module, by which the function may be known
        function, args = pickle.load(file)
    result = record(function)(*args)
    (folder / os.environ["RANK"]).write_bytes(pickle.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
