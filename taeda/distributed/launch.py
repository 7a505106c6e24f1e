"""``python -m taeda.distributed.launch``: the older name of ``taeda.distributed.run``."""

from .run import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
