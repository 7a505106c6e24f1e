"""The planner table: what another device needs to compute, and what happens where it has no planner."""

import pytest

import taeda
from taeda import _core
from taeda._core import memory, planners
from taeda.ops import table


@pytest.fixture(scope="module")
def mirror():
    """A device whose memory is that of the processor, with planners for two ops, which compute on the CPU."""
    number = planners.register_device("mirror")

    def there(t):
        storage = memory.device_storage(number, t.untyped_storage().data_ptr(), t.untyped_storage().nbytes(), t)
        return _core.from_storage(storage, t.dtype, t.shape, t.stride(), t.storage_offset())

    def here(t):
        return t.untyped_storage() and t if t.device.type == "cpu" else originals[t.data_ptr()]

    originals = {}

    def put(t):
        moved = there(t)
        originals[moved.data_ptr()] = t
        return moved

    add, exp = table.OPS["add"], table.OPS["exp"]
    add.on("mirror", lambda input, other, alpha=1: put(add.run_bound(here(input), here(other), alpha)))
    exp.on("mirror", lambda input: put(here(input).exp()))
    return put, here


def test_ops_run_by_the_planners_of_their_device(mirror):
    put, here = mirror
    x = taeda.randn(3, 4)
    moved = put(x)
    assert moved.device == taeda.device("mirror") and not moved.is_cpu and not moved.is_meta
    assert moved.shape == (3, 4) and moved.stride() == (4, 1)
    result = moved.exp()
    assert result.device.type == "mirror"
    assert here(result).equal(x.exp())
    assert moved.t().shape == (4, 3) and moved.t().device.type == "mirror"  # views look at no element


def test_an_op_without_a_planner_says_so(mirror):
    put, _ = mirror
    moved = put(taeda.ones(3))
    for call, name in ((lambda: moved.sin(), "sin"), (lambda: moved.sum(), "sum"), (lambda: taeda.cat([moved]), "cat"),
                       (lambda: moved @ moved, "dot|matmul"), (lambda: moved.sort(), "sort")):  # fmt: skip
        with pytest.raises(NotImplementedError, match=rf"({name})\(\).*device 'mirror'"):
            call()


def test_elements_of_another_device_are_not_read_as_the_processors(mirror):
    put, _ = mirror
    moved = put(taeda.ones(3))
    for read in (
        moved.tolist,
        moved.numpy,
        lambda: moved.untyped_storage()[0],
        lambda: _core.copy_tensor(taeda.ones(3), moved),
    ):
        with pytest.raises((NotImplementedError, TypeError), match=r"device|mirror"):
            read()


def test_devices_do_not_mix(mirror):
    put, _ = mirror
    with pytest.raises(RuntimeError, match=r"same device.*mirror"):
        put(taeda.ones(3)).exp().add(taeda.ones(3, device="meta"))


def test_the_derivative_stays_that_of_the_op(mirror):
    put, _ = mirror
    x = taeda.randn(3)
    moved = put(x).requires_grad_()
    assert moved.exp().grad_fn.name() == x.requires_grad_().exp().grad_fn.name()


def test_a_device_is_registered_once(mirror):
    with pytest.raises(ValueError, match="there is a device 'mirror'"):
        planners.register_device("mirror")


def test_kernels_are_kept_in_one_table():
    x = taeda.randn(3, 5, dtype=taeda.float64)
    x.tril()
    taeda.erfinv(x)
    before = planners.count_kernels()
    for _ in range(3):
        x.tril()
        taeda.erfinv(x)
    assert planners.count_kernels() == before
    taeda.erfinv(x[:, ::2])
    assert planners.count_kernels() > before


def test_a_kept_planner_is_called_once_for_a_form():
    calls = []

    @planners.kept
    def plan(shape, dtype):
        """How it is launched."""
        calls.append((shape, dtype))
        if not shape:
            raise ValueError("no shape")
        return [*shape]

    assert plan((2, 3), "float32") is plan((2, 3), "float32") and plan.__doc__ == "How it is launched."
    assert plan((2, 3), "float64") == [2, 3] and len(calls) == 2
    for _ in range(2):  # an error is not kept
        with pytest.raises(ValueError, match="no shape"):
            plan((), "float32")
    assert len(calls) == 4 and planners.count_forms(plan) == 2
    for n in range(1000):
        plan((n + 4,), "float32")
        assert planners.count_forms(plan) <= 256
