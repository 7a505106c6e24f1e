"""The base classes of data pipes."""

from __future__ import annotations

import functools
import importlib.util
import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from ..dataset import Dataset, IterableDataset
from ._hook_iterator import described, hooked

T_co = TypeVar("T_co", covariant=True)

__all__ = ["DataChunk", "IterDataPipe", "MapDataPipe"]


def dill() -> Any:
    """The package ``dill``, which pickles functions without a name; None if it is not installed."""
    return importlib.import_module("dill") if importlib.util.find_spec("dill") else None


class DataChunk(list):
    """A list of samples, as ``batch`` makes it.

    Args:
        items: the samples.

    Examples:
        >>> taeda.utils.data.DataChunk(range(3))
        [0, 1, 2]
    """

    def __init__(self, items: Iterable):
        super().__init__(items)
        self.items = list(self)

    def as_str(self, indent: str = "") -> str:
        """The samples, in brackets."""
        return indent + "[" + ", ".join(map(str, self)) + "]"

    def raw_iterator(self) -> Iterator:
        """The samples one by one."""
        yield from self.items


class _Pipe:
    """Common base of both kinds of pipes: functions that are called as methods, and hooks for who follows a chain."""

    functions: ClassVar[dict[str, Callable]]
    reduce_ex_hook: ClassVar[Callable | None] = None
    getstate_hook: ClassVar[Callable | None] = None
    str_hook: ClassVar[Callable | None] = None
    repr_hook: ClassVar[Callable | None] = None

    def __getattr__(self, name: str) -> Any:
        function = self.functions.get(name)
        if function is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return functools.update_wrapper(functools.partial(function, self), function, assigned=("__doc__",))

    @classmethod
    def register_function(cls, function_name: str, function: Callable) -> None:
        """Make ``pipe.function_name(...)`` mean ``function(pipe, ...)``."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: type, enable_df_api_tracing: bool = False
    ) -> None:
        """Make ``pipe.function_name(...)`` mean ``cls_to_register(pipe, ...)``.

        Args:
            function_name: the name.
            cls_to_register: a class of pipes.
            enable_df_api_tracing: accepted.
        Raises:
            Exception: the name is taken.
        """
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")

        def make(source: Any, *args: Any, **kwargs: Any) -> Any:
            return cls_to_register(source, *args, **kwargs)

        cls.functions[function_name] = functools.update_wrapper(
            make, cls_to_register, assigned=("__doc__",), updated=()
        )

    def __getstate__(self) -> Any:
        hook = type(self)._base().getstate_hook
        return vars(self) if hook is None else hook(vars(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        hook = type(self)._base().reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(protocol)

    @classmethod
    def _base(cls) -> type[_Pipe]:
        return IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe

    @classmethod
    def set_getstate_hook(cls, hook_fn: Callable | None) -> None:
        """Let ``hook_fn`` choose what of a pipe's attributes is pickled; None: everything."""
        cls._set("getstate_hook", hook_fn)

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Callable | None) -> None:
        """Let ``hook_fn`` pickle pipes; None: as usual."""
        cls._set("reduce_ex_hook", hook_fn)

    @classmethod
    def _set(cls, name: str, hook: Callable | None) -> None:
        if getattr(cls._base(), name) is not None and hook is not None:
            raise RuntimeError(f"Attempt to override existing {name}")
        setattr(cls._base(), name, hook)

    def __repr__(self) -> str:
        return type(self).__qualname__ if self.repr_hook is None else self.repr_hook()

    def __str__(self) -> str:
        return type(self).__qualname__ if self.str_hook is None else self.str_hook()

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.functions]


class IterDataPipe(_Pipe, IterableDataset[T_co]):
    """Base class of pipes that give samples one after the other. A subclass defines ``__iter__``.

    ``pipe.map(f)``, ``pipe.batch(8)`` and others chain them (:mod:`taeda.utils.data.datapipes.iter`). A pipe has one
    iterator at a time: a new one resets the pipe and ends the old one.

    Examples:
        >>> from taeda.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(5)).filter(lambda x: x % 2 == 0).batch(2))
        [[0, 2], [4]]
    """

    functions: ClassVar[dict[str, Callable]] = {}
    _valid_iterator_id: int | None = None
    _number_of_samples_yielded: int = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__iter__" in vars(cls):
            cls.__iter__ = hooked(vars(cls)["__iter__"])  # type: ignore[method-assign]

    @hooked
    def __iter__(self) -> Iterator[T_co]:
        return self

    def reset(self) -> None:
        """Go back to the start; every new iterator calls it. A subclass with a state overrides it."""

    def _begin_iterator(self) -> int:
        """Make the older iterator invalid, and give the number of the new one."""
        self._valid_iterator_id = 0 if self._valid_iterator_id is None else self._valid_iterator_id + 1
        self._number_of_samples_yielded = 0
        self.reset()
        return self._valid_iterator_id

    def _check_iterator(self, number: int) -> None:
        """Raise RuntimeError unless ``number`` is the newest iterator's."""
        if number != self._valid_iterator_id:
            raise RuntimeError(
                "This iterator has been invalidated because another iterator has been created from the same "
                f"IterDataPipe: {described(self)}\nThis may be caused by multiple references to the same IterDataPipe. "
                "We recommend using `.fork()` if that is necessary."
            )


class MapDataPipe(_Pipe, Dataset[T_co]):
    """Base class of pipes that give samples by index. A subclass defines ``__getitem__`` and ``__len__``.

    Examples:
        >>> from taeda.utils.data.datapipes.map import SequenceWrapper
        >>> pipe = SequenceWrapper(range(5)).map(lambda x: x + 1).batch(2)
        >>> pipe[0], len(pipe)
        ([1, 2], 3)
    """

    functions: ClassVar[dict[str, Callable]] = {}


def length_of(pipe: Any, *sources: Any) -> list[int]:
    """The lengths of ``sources``, of which ``pipe`` is made.

    Args:
        pipe: the pipe that is asked; errors name it.
        *sources: pipes or collections.
    Returns:
        The lengths.
    Raises:
        TypeError: one of them has none.
    """
    if not all(hasattr(type(source), "__len__") for source in sources):
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return [len(source) for source in sources]


class _Wrapped:
    """A pipe on its way to a worker process: pickled whole, by ``dill`` where ``pickle`` cannot."""

    def __init__(self, datapipe: Any):
        self._datapipe = datapipe

    def __getstate__(self) -> Any:
        try:
            return pickle.dumps(self._datapipe), False
        except Exception:
            if dill() is None:
                raise
            return dill().dumps(self._datapipe), True

    def __setstate__(self, state: Any) -> None:
        value, by_dill = state
        self._datapipe = dill().loads(value) if by_dill else pickle.loads(value)

    def __len__(self) -> int:
        try:
            return len(self._datapipe)
        except Exception as error:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length") from error


class _IterDataPipeSerializationWrapper(_Wrapped, IterDataPipe):
    def __iter__(self) -> Iterator:
        yield from self._datapipe


class _MapDataPipeSerializationWrapper(_Wrapped, MapDataPipe):
    def __getitem__(self, index: Any) -> Any:
        return self._datapipe[index]


def wrapped(dataset: Any) -> Any:
    """``dataset`` as a loader keeps it: pipes can be sent to workers."""
    if isinstance(dataset, IterDataPipe):
        return _IterDataPipeSerializationWrapper(dataset)
    return _MapDataPipeSerializationWrapper(dataset) if isinstance(dataset, MapDataPipe) else dataset
