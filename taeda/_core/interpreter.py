"""Only a process's main interpreter may import taeda: the core belongs to the interpreter that imports it first."""


def refuse_others() -> None:
    """Raise ImportError in a subinterpreter."""
    try:
        import _interpreters as interpreters  # type: ignore[import-not-found]
    except ImportError:
        try:
            import _xxsubinterpreters as interpreters  # type: ignore[import-not-found]
        except ImportError:  # this Python has none
            return
    if interpreters.get_current() != interpreters.get_main():
        raise ImportError("taeda runs in the main interpreter of a process; a subinterpreter cannot import it")
