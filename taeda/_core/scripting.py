"""Questions of a function that may be compiled as a script. It stands below ``nn``, whose layers ask them."""


def is_scripting() -> bool:
    """Whether this runs as a script: False here, True to the compiler."""
    return False
