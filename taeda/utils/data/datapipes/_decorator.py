"""Decorators of data pipes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .datapipe import IterDataPipe, MapDataPipe


class functional_datapipe:
    """A decorator: the class of pipes can be called as a method of other pipes.

    Args:
        name: of the method.
        enable_df_api_tracing: accepted.

    Examples:
        >>> @taeda.utils.data.functional_datapipe("doubled")
        ... class Doubled(taeda.utils.data.IterDataPipe):
        ...     def __init__(self, source):
        ...         self.source = source
        ...     def __iter__(self):
        ...         for x in self.source:
        ...             yield 2 * x
        >>> from taeda.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([1, 2]).doubled())
        [2, 4]
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False):
        self.name = name

    def __call__(self, cls: Any) -> Any:
        made: Any = (
            cls if isinstance(cls, type) else cls.cls if isinstance(cls, non_deterministic) else cls.__self__.cls
        )
        for base in (IterDataPipe, MapDataPipe):
            if issubclass(made, base):
                base.register_datapipe_as_function(self.name, cls)
                return cls
        raise TypeError("`functional_datapipe` can only decorate IterDataPipe and MapDataPipe")


_determined = False


class guaranteed_datapipes_determinism:
    """A context in which :class:`non_deterministic` pipes cannot be made.

    Examples:
        >>> @taeda.utils.data.non_deterministic
        ... class Arrivals(taeda.utils.data.IterDataPipe):
        ...     pass
        >>> with taeda.utils.data.guaranteed_datapipes_determinism():
        ...     try:
        ...         Arrivals()
        ...     except TypeError:
        ...         print("no such pipe")
        no such pipe
    """

    def __init__(self) -> None:
        global _determined
        self.prev, _determined = _determined, True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: Any) -> None:
        global _determined
        _determined = self.prev


class non_deterministic:
    """A decorator: the class of pipes gives samples in an order that may differ from run to run.

    Args:
        arg: the class; or a function of its arguments that says whether it does.

    Raises:
        TypeError: in a block of :class:`guaranteed_datapipes_determinism`.

    Examples:
        >>> @taeda.utils.data.non_deterministic
        ... class Arrivals(taeda.utils.data.IterDataPipe):
        ...     def __iter__(self):
        ...         yield 1
        >>> list(Arrivals())
        [1]
    """

    def __init__(self, arg: Any):
        self.cls: type | None = None
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError(
                    f"Only `IterDataPipe` can be decorated with `non_deterministic`, but {arg.__name__} is found"
                )
            self.cls = arg
        elif not callable(arg):
            raise TypeError(f"{arg} can not be decorated by non_deterministic")
        self.deterministic_fn: Callable = arg

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is not None:
            return self._make(True, args, kwargs)
        if not (isinstance(args[0], type) and issubclass(args[0], IterDataPipe)):
            raise TypeError(f"Only `IterDataPipe` can be decorated, but {args[0].__name__} is found")
        self.cls = args[0]
        return self.deterministic_wrapper_fn

    def deterministic_wrapper_fn(self, *args: Any, **kwargs: Any) -> Any:
        """A pipe, if its order may be what it is."""
        found = self.deterministic_fn(*args, **kwargs)
        if not isinstance(found, bool):
            raise TypeError(
                "deterministic_fn of `non_deterministic` decorator is required to return a boolean value, but "
                f"{type(found)} is found"
            )
        return self._make(found, args, kwargs)

    def _make(self, varies: bool, args: Any, kwargs: Any) -> Any:
        assert self.cls is not None
        if _determined and varies:
            raise TypeError(
                f"{self.cls.__name__} is non-deterministic, but you set 'guaranteed_datapipes_determinism'. You can "
                "turn off determinism for this DataPipe if that is acceptable for your application"
            )
        return self.cls(*args, **kwargs)
