"""Runs random calls one after the other, saying which before it starts each: ``worker.py FAMILY SEED BEGIN END``.

For each call it writes a line ``> index``, and ``! index TYPE: text`` where it ends in an exception that points to a
mistake in taeda rather than in the call. Whoever reads that knows which call was running if the process dies.
"""

import resource
import signal
import sys
import warnings

MEMORY = 6 << 30  # bytes of address space: a call that wants more gets a MemoryError

#: Exceptions that no argument should lead to.
MISTAKES = (
    SystemError,
    NameError,
    AssertionError,
    AttributeError,
    RecursionError,
    StopIteration,
    KeyError,
    MemoryError,
    UnicodeError,
    ZeroDivisionError,
)


def main(family: str, seed: int, begin: int, end: int, seconds: int) -> None:
    from calls import Call
    from families import ASSERTS
    from kinds import Case

    import taeda

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # a call that takes longer ends the process
    warnings.simplefilter("ignore")
    taeda.set_num_threads(1)
    for index in range(begin, end):
        print(">", index, flush=True)
        signal.alarm(seconds)
        call = (Case if family.startswith("kinds ") else Call)(family, seed, index)
        try:
            call.run()
        except MISTAKES as error:
            if not (isinstance(error, AssertionError) and (call.name in ASSERTS or isinstance(error, RuntimeError))):
                print("!", index, f"{type(error).__name__}: {error}".replace("\n", " ")[:200], flush=True)
        except Exception:
            pass
        signal.alarm(0)
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
