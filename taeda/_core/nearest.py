"""Suggestions for misspelt names, and the check of a class's keyword arguments."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import CO_VARKEYWORDS
from types import CodeType
from typing import Any, Self


def nearest(word: str, words: Iterable[str]) -> str:
    """``". Did you mean 'softmax'?"`` where one of ``words`` is close to ``word``; else an empty text."""
    import difflib  # only once something has failed

    known = list(words)
    swapped = [x for x in known if sorted(x) == sorted(word)]  # letters that changed places come first
    found = swapped or difflib.get_close_matches(word, known, n=1, cutoff=0.7)
    return f". Did you mean '{found[0]}'?" if found else ""


def takes_keyword(code: CodeType, name: str) -> bool:
    """Whether a function with this code accepts the keyword argument ``name``."""
    first, last = code.co_posonlyargcount, code.co_argcount + code.co_kwonlyargcount
    return bool(code.co_flags & CO_VARKEYWORDS) or name in code.co_varnames[first:last]


class ChecksKeywords:
    """A class whose misspelt keyword arguments are answered with the class that was called and the nearest name.

    Python's own error names the class that defines ``__init__``, which may be a private base, and suggests no name.
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse keyword arguments that ``cls.__init__`` does not take.

        Raises:
            TypeError: with the class, the unknown name, and the nearest name that the class takes.
        """
        code = getattr(cls.__init__, "__code__", None)
        for name in kwargs:
            if code is not None and not takes_keyword(code, name):
                known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
                raise TypeError(
                    f"{cls.__name__}.__init__() got an unexpected keyword argument '{name}'{nearest(name, known)}"
                )
        make = super().__new__
        return make(cls) if make is object.__new__ else make(cls, *args, **kwargs)
