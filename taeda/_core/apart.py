"""Long calls that nothing can interrupt, on a thread that Ctrl-C leaves behind."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from typing import Any


def run_apart(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)``, during which the main thread goes on hearing Ctrl-C.

    The call runs on a thread of its own. If a signal's handler raises, the wait ends; the call then finishes alone, and
    its result is dropped. So it may write only to memory that no other code uses, and must keep that memory alive.
    """
    if threading.current_thread() is not threading.main_thread():  # no other hears of signals
        return function(*args)
    made: list[tuple[Any, BaseException | None]] = []
    done = _thread.allocate_lock()
    done.acquire()

    def call() -> None:
        try:
            made.append((function(*args), None))
        except BaseException as error:
            made.append((None, error))
        finally:
            done.release()

    try:
        _thread.start_new_thread(call, ())
    except RuntimeError:  # the system gives no more threads
        return function(*args)
    done.acquire()
    result, error = made[0]
    if error is not None:
        raise error
    return result
