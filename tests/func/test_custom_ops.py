"""Custom ops on batched and sparse tensors, and the names that they may have."""

from __future__ import annotations

import numpy as np
import pytest

import taeda


def doubled_by_numpy(x: taeda.Tensor) -> taeda.Tensor:
    return taeda.from_numpy(x.detach().numpy() * 2)


def test_without_a_rule_vmap_runs_a_custom_op_example_by_example():
    op = taeda.library.custom_op("kinds::doubled", doubled_by_numpy, mutates_args=())
    x = taeda.randn(3, 2)
    assert taeda.equal(taeda.vmap(op)(x), x * 2)
    assert taeda.equal(taeda.vmap(taeda.vmap(op))(x.reshape(3, 2, 1)), x.reshape(3, 2, 1) * 2)


def test_vmap_runs_the_registered_rule_on_the_whole_batch():
    seen = []

    @taeda.library.custom_op("kinds::plus", mutates_args=())
    def plus(x: taeda.Tensor, y: taeda.Tensor) -> taeda.Tensor:
        return taeda.from_numpy(x.detach().numpy() + y.detach().numpy())

    @plus.register_vmap
    def _(info, in_dims, x, y):
        seen.append((info.batch_size, in_dims, tuple(x.shape), tuple(y.shape)))
        return plus(x, y), 0

    plus.register_autograd(lambda ctx, g: (g, g))
    x, y = taeda.ones(3, 2), taeda.ones(2)
    assert taeda.equal(taeda.vmap(plus, (0, None))(x, y), x + y)
    assert seen == [(3, (0, None), (3, 2), (2,))]
    gradient = taeda.vmap(taeda.func.grad(lambda x: (plus(x, y) ** 2).sum()))(x)
    assert taeda.equal(gradient, taeda.full((3, 2), 4.0))
    seen.clear()
    taeda.library.register_vmap("kinds::plus", lambda info, in_dims, x, y: (x * 10, in_dims[0]))
    assert taeda.vmap(plus)(x, x).tolist() == [[10, 10]] * 3


@pytest.mark.parametrize("package", ["taeda", "torch"])
def test_a_rule_is_not_given_defaults_at_the_end(package):
    """Both packages leave out what the dispatcher of PyTorch leaves out."""
    lib = taeda if package == "taeda" else pytest.importorskip("torch")
    seen = []

    @lib.library.custom_op(
        "kinds::defaults", mutates_args=(),
        schema="(Tensor x, float k, int n=2, bool flag=False, *, str mode='a') -> Tensor",
    )  # fmt: skip
    def op(x, k, n=2, flag=False, *, mode="a"):
        return x * k * n

    @op.register_vmap
    def _(info, in_dims, *args, **kwargs):
        seen.append((len(args), tuple(d is None for d in in_dims), kwargs))
        return args[0] * args[1] * (args[2] if len(args) > 2 else 2), in_dims[0]

    x = lib.ones(3, 2)
    for call in (
        lambda x: op(x, 3.0), lambda x: op(x, 3.0, 2), lambda x: op(x, k=3.0, n=4), lambda x: op(x, 3.0, 2, True),
        lambda x: op(x, 3.0, mode="b"), lambda x: op(x, 3.0, 2, False, mode="a"),
    ):  # fmt: skip
        lib.vmap(call)(x)
    assert seen == [
        (2, (False, True), {}), (2, (False, True), {}), (3, (False, True, True), {}), (4, (False, True, True, True), {}),
        (2, (False, True), {"mode": "b"}), (2, (False, True), {}),
    ]  # fmt: skip


def test_an_op_without_a_fake_says_so_on_meta():
    op = taeda.library.custom_op("kinds::by_numpy", doubled_by_numpy, mutates_args=())
    with pytest.raises(
        RuntimeError, match=r"no fake impl registered for <CustomOpDef\(kinds::by_numpy\)>.*register_fake"
    ):
        op(taeda.ones(2, device="meta"))

    @taeda.library.custom_op("kinds::by_ops", mutates_args=())
    def by_ops(x: taeda.Tensor) -> taeda.Tensor:
        return x.sin()

    assert by_ops(taeda.ones(2, device="meta")).is_meta


def test_an_op_that_writes_needs_a_rule():
    @taeda.library.custom_op("kinds::add_one_", mutates_args={"x"})
    def add_one_(x: taeda.Tensor) -> None:
        x.numpy()[...] += 1

    def function(x):
        x = x.clone()
        add_one_(x)
        return x

    with pytest.raises(RuntimeError, match=r"kinds::add_one_.*register_vmap"):
        taeda.vmap(function)(taeda.ones(3, 2))


def test_the_function_sees_sparse_tensors_and_nested_ones_are_refused_by_name():
    @taeda.library.custom_op("kinds::twice", mutates_args=())
    def twice(x: taeda.Tensor) -> taeda.Tensor:
        return x + x

    twice.register_fake(taeda.empty_like)
    x = taeda.tensor([0.0, 2.0])
    assert taeda.equal(twice(x.to_sparse()).to_dense(), x * 2)
    assert taeda.equal(twice(taeda.eye(2).to_sparse_csr()).to_dense(), taeda.eye(2) * 2)
    with pytest.raises(NotImplementedError, match=r"^kinds::twice\(\): not for nested tensors"):
        twice(taeda.nested.nested_tensor([x, x]))


def test_a_subclass_is_asked_without_a_fake_too():
    seen = []

    class Asked(taeda.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return super().__torch_function__(func, types, args, kwargs or {})

    op = taeda.library.custom_op("kinds::asked", lambda x: x.clone(), mutates_args=(), schema="(Tensor x) -> Tensor")
    op(taeda.ones(2).as_subclass(Asked))
    assert "kinds.asked.default" in seen


def test_names_of_the_library_are_refused():
    with pytest.raises(RuntimeError, match="aten::sin"):
        taeda.library.custom_op("aten::sin", doubled_by_numpy, mutates_args=())
    with pytest.raises(ValueError, match="prim is a reserved namespace"):
        taeda.library.custom_op("prim::own", doubled_by_numpy, mutates_args=())
    np.testing.assert_allclose(taeda.sin(taeda.ones(1)).numpy(), [0.841471], rtol=1e-5)
