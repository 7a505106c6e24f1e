"""What a function can ask when it may be compiled as a script: below ``nn``, whose layers ask it."""


def is_scripting() -> bool:
    """Whether this runs as a script: False here, True to the compiler."""
    return False
