"""The dictionary of PyTorch's native ops, ATen: ``taeda.ops.aten.relu.default(x)`` is ``taeda.relu(x)``.

``schemas.txt`` has the signatures. ``spellings.py`` has a record for each op that is spelled otherwise here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._core import Composite, Op
from .._namespaces import above
from .._schema import Schema
from ..ops.registry import is_in_place
from ..ops.table import OPS, trait
from .signatures import signature


class OpOverload:
    """One signature of a native op. All signatures of one op are the same function here, and equal."""

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket = self._overloadpacket = packet
        self._overloadname = overload
        self.namespace = packet.namespace
        self.__name__ = f"{packet.__name__}.{overload}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.overloadpacket.computes(self._overloadname)(*args, **kwargs)

    @property
    def mutates(self) -> bool:
        """Whether it writes to its arguments."""
        known, function = self.signature, self.overloadpacket.function
        return bool(known.mutated if known is not None else getattr(function, "_mutates", is_in_place(function)))

    @property
    def signature(self) -> Schema | None:
        """The signature, with the arguments that it writes to, if PyTorch has the op."""
        return signature(self.overloadpacket.__name__, self._overloadname) if self.namespace == "aten" else None

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers."""
        return bool(trait(self.overloadpacket.function, "random", False))

    @property
    def _schema(self) -> str:
        """The signature of a native op, or of an op of the program's own."""
        known = self.signature
        schema = getattr(self.overloadpacket.function, "_schema", None) if known is None else known.text
        if schema is None:
            raise AttributeError(f"{self} has no _schema: it is an op of taeda's that PyTorch has not")
        return f"{self.name()}{schema}"

    def name(self) -> str:
        """``aten::add.Tensor``; ``aten::mm`` where there is one signature."""
        name = f"{self.namespace}::{self.overloadpacket.__name__}"
        return name if self._overloadname == "default" else f"{name}.{self._overloadname}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, OpOverload):
            return self._key() == other._key()
        if other is not None and other is self.overloadpacket.function:  # as graphs have it
            return True
        # functions of nn.functional are native ops with other arguments
        name = getattr(other, "__name__", None) if type(other) is Composite else None
        return self.namespace == "aten" and name == self.overloadpacket.__name__

    def __hash__(self) -> int:
        function = self.overloadpacket.function
        return hash(self._key() if function is None or self.overloadpacket.__name__ in _ALIKE else function)

    def _key(self) -> tuple[str, str]:
        name = self.overloadpacket.__name__
        return self.namespace, _ALIKE.get(name, name)

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self.overloadpacket.__name__}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"


class OpOverloadPacket:
    """A native op by name, with its signatures as attributes; called, it is the function of that name.

    Args:
        namespace: before the ``::``.
        name: after it.
        function: the function of that name.

    Raises:
        NotImplementedError: it is called, and there is no such function here.
    """

    def __init__(self, namespace: str, name: str, function: Any) -> None:
        self.namespace, self.__name__, self.function = namespace, name, function
        self._qualified_op_name = f"{namespace}::{name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.computes("")(*args, **kwargs)

    def computes(self, overload: str) -> Callable:
        """The function that computes that signature of the op.

        Args:
            overload: the signature's name, ``"default"`` or one such as ``"Tensor"``.

        Returns:
            The function.

        Raises:
            NotImplementedError: nothing does.
        """
        native = self.namespace == "aten"
        found = _spellings().function_of(self.__name__, overload) if native else self.function
        if native and isinstance(self.function, Op) and trait(found, "lacking", False):
            found = self.function  # taeda's op, which has other arguments
        if found is None:
            raise NotImplementedError(
                f"torch.ops.{self.namespace}.{self.__name__} is not available in taeda: it is part of PyTorch's C++"
            )
        return found

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self.__dict__[name] = OpOverload(self, name)
        return found

    def overloads(self) -> list[str]:
        """The names of the signatures."""
        return ["default"]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOverloadPacket) and self._qualified_op_name == other._qualified_op_name

    def __hash__(self) -> int:
        return hash(self._qualified_op_name)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.namespace}.{self.__name__}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"


#: The ops that programs declared, by name with their namespace: `taeda.library` fills it.
DECLARED: dict[str, Any] = {}


@functools.cache
def _spellings() -> Any:
    """The records, which need all layers up to ``taeda.nn``: not before an op is asked for."""
    return above("aten.spellings")


@functools.cache
def packet(name: str) -> OpOverloadPacket:
    """``torch.ops.aten.<name>``: always the same object, as programs compare by ``is``."""
    return OpOverloadPacket("aten", name, OPS.get(name) or _spellings().function_of(name))


def __getattr__(name: str) -> OpOverloadPacket:
    found = packet(name)
    if found.function is None:
        raise AttributeError(f"taeda has no op named {name}")
    return found


# ---- what PyTorch makes of our ops ----------------------------------------------------------------------------------

#: Native ops that are one here, since each is for a kind of device.
_ALIKE = {
    "_scaled_dot_product_attention_math": "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_cudnn_attention": "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention": "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu": "_scaled_dot_product_flash_attention",
}

_NATIVE = {
    **{f"conv{t}{n}d": "convolution" for t in ("", "_transpose") for n in (1, 2, 3)},
    "_attention": "_scaled_dot_product_flash_attention",
    "_attention_backward": "_scaled_dot_product_flash_attention_backward",
    "_conv_input": "convolution_backward",
    "_conv_weight": "convolution_backward",
    "_convolution": "convolution",
    "_recurrent_layer": "addmm",
    "layer_norm": "native_layer_norm",
    "log_softmax": "_log_softmax",
    "softmax": "_softmax",
}


def _product(a: Any, b: Any) -> str:
    ranks = a.dim(), b.dim()
    if ranks in ((1, 1), (2, 1), (1, 2)):
        return "dot" if ranks == (1, 1) else "mv"
    return "mm" if ranks[1] <= 2 or ranks[0] <= 2 else "bmm"


def native_name(op: Any, values: Any) -> str:
    """The op that PyTorch runs in the place of ``op`` on ``values``, its arguments in order: ``"addmm"`` for
    ``linear``.
    """
    if op.name in ("matmul", "__matmul__"):
        return _product(values[0], values[1])
    if op.name == "linear":
        return "mm" if len(values) < 3 or values[2] is None else "addmm"
    return _NATIVE.get(op.name, op.name)
