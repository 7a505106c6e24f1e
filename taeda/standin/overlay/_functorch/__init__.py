"""``torch._functorch``: names that packages take from it."""
