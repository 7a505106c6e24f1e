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


def _absent(function: Any, code: CodeType, given: int, kwargs: dict[str, Any]) -> list[str]:
    """The parameters without a default, after ``self`` and ``given`` others, that are not among ``kwargs``."""
    required = code.co_varnames[given + 1 : code.co_argcount - len(function.__defaults__ or ())]
    return [name for name in required if name not in kwargs]


class ChecksKeywords:
    """A class whose misspelt and missing arguments are answered with the class that was called and the nearest name.

    Python's own error names the class that defines ``__init__``, which may be a private base, and suggests no name.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse keyword arguments that ``cls.__init__`` does not take, and calls without those that it needs.

        Raises:
            TypeError: with the class, and the unknown name and the nearest that the class takes, or the missing names.
        """
        code = getattr(cls.__init__, "__code__", None)
        for name in kwargs:
            if code is not None and not takes_keyword(code, name):
                known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
                raise TypeError(
                    f"{cls.__name__}.__init__() got an unexpected keyword argument '{name}'{nearest(name, known)}"
                )
        # copies and pickles make objects without any arguments
        if code is not None and (args or kwargs) and (absent := _absent(cls.__init__, code, len(args), kwargs)):
            plural = "s" * (len(absent) > 1)
            names = " and ".join(filter(None, (", ".join(map(repr, absent[:-1])), repr(absent[-1]))))
            raise TypeError(
                f"{cls.__name__}.__init__() missing {len(absent)} required positional argument{plural}: {names}"
            )
        make = super().__new__
        return make(cls) if make is object.__new__ else make(cls, *args, **kwargs)
