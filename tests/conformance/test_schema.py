"""Signatures of functions with type hints in PyTorch's words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import taeda

torch = pytest.importorskip("torch")


def functions(f):
    Tensor, dtype, device = f.Tensor, f.dtype, f.device

    def many(
        x: Tensor, n: int, y: Tensor | None = None, l: Sequence[int] = 1, s: str = "a", b: bool = True,
        z: list[Tensor | None] = 2, d: dtype = f.float32, dev: device | None = None, q: int | float | bool = 1,
        *, kw: list[float] | None = None, v: float = 1.5,
    ) -> tuple[Tensor, int, float]: ...  # fmt: skip

    def writes(x: Tensor, y: list[Tensor]) -> None: ...
    def gives(x: Tensor) -> list[Tensor]: ...
    def mapping(x: dict) -> Tensor: ...
    def no_result(x: Tensor): ...
    def odd_result(x: Tensor) -> dict: ...
    def several(*x: Tensor) -> None: ...
    def no_hint(x) -> Tensor: ...

    found = [many, writes, gives, mapping, no_result, odd_result, several, no_hint]
    for function in found:  # hints are names of this scope
        function.__annotations__ = {
            k: eval(v, {**globals(), "Tensor": Tensor, "dtype": dtype, "device": device})
            for k, v in function.__annotations__.items()
        }
    return found


@pytest.mark.parametrize("mutates", [(), ("x",), ("y", "x"), "unknown", ("n",), ("nothing",)])
def test_infer_schema(mutates):
    for ours, theirs in zip(functions(taeda), functions(torch), strict=True):
        found = []
        for f, function in ((taeda, ours), (torch, theirs)):
            try:
                found.append(f.library.infer_schema(function, mutates_args=mutates, op_name="lib::op"))
            except ValueError:
                found.append(ValueError)
        assert found[0] == found[1], ours.__name__


def test_schemas_of_custom_ops():
    @taeda.library.custom_op("schemas::scale", mutates_args=())
    def scale(x: taeda.Tensor, s: float, n: int = 2) -> taeda.Tensor:
        return x * s * n

    assert (
        str(taeda.library.ops.schemas.scale.default._schema)
        == "schemas::scale(Tensor x, float s, SymInt n=2) -> Tensor"
    )
    for f in (taeda, torch):
        assert str(f.ops.aten.relu_.default._schema) == "aten::relu_(Tensor(a!) self) -> Tensor(a!)"
    with pytest.raises(AttributeError, match="_schema"):
        _ = taeda.ops.aten.elu_kernel.default._schema
