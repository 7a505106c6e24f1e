"""The functions of the Python layers that the core and other low layers call, all on slow paths.

These are imported before those layers, so each function is set by the module that defines it, when that is imported:
``callbacks.operand = operand``. The names below are all there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Callbacks:
    """Functions of Python that the core calls, by the module that sets them."""

    # ops/table.py: declaring ops, and building their kernels
    find_op: Callable[..., Any]  # an op by its name, for unpickling
    vjp: Callable[..., None]  # sets the derivatives of single arguments
    vjp_all: Callable[..., None]  # sets one derivative of several arguments
    build_pointwise: Callable[..., int]  # the address of a pointwise kernel
    build_fused: Callable[..., int]  # the address of a kernel of several pointwise ops
    build_between: Callable[..., int]  # the address of a row-wise kernel with pointwise ops before and after it
    write_out: Callable[..., Any]  # puts a result into `out=`
    as_today: Callable[..., Any]  # the arguments of a call in an older form
    refused: Callable[..., Any]  # the error for an argument of a wrong type
    docstring: Callable[..., str | None]  # the whole docstring of an op or a composite

    # ops/conversion.py: numbers, lists and arrays as operands
    operand: Callable[..., Any]
    operands: Callable[..., Any]
    operand_tensor: Callable[..., Any]

    # ops/creation.py: new tensors
    new: Callable[..., Any]  # memory for sizes in any form of call
    finish: Callable[..., Any]  # puts a result into `out=`
    empty_in_format: Callable[..., Any]  # in a memory format

    # ops/random.py
    fresh: Callable[..., Any]  # fills a new tensor, under a mode

    # ops/copies.py: what derivatives and assignment need
    clone: Callable[..., Any]
    zeros: Callable[..., Any]
    grad_cast: Callable[..., Any]  # to another dtype
    sum_to: Callable[..., Any]  # sums over broadcast dimensions
    real_part: Callable[..., Any]
    view_backward: Callable[..., Any]  # a base's gradient, from a view's
    copy_slices: Callable[..., Any]  # the derivative of an in-place op on a view
    assign: Callable[..., None]  # `view[...] = value`

    # ops/indexing.py, ops/joining.py
    getitem: Callable[..., Any]  # indices that are not basic
    setitem: Callable[..., None]
    copy_transposed: Callable[..., bool] | None = None

    # ops/reduction.py, ops/normalization.py, ops/cross_entropy.py: errors and warnings
    warn_freedom: Callable[..., None]
    normalized_shape_error: Callable[..., None]
    long_rows: Callable[..., Any]  # few and long ones where there are no vectors
    class_loss_error: Callable[..., None]

    # ops/conjugation.py, ops/meta.py
    conjugated: Callable[..., Any]  # a call that has conjugate views among its arguments
    resolve: Callable[..., Any]  # a conjugate view as an ordinary tensor
    check_meta: Callable[..., Any]  # a call that has tensors on meta among its arguments
    needs_values: Callable[[Exception], Exception]  # the error for a call that needs values of tensors on meta

    # ops/sparse_factories.py
    laid_out: Callable[..., Any]  # a call that has a layout other than strided among its arguments

    # ops/devices.py
    make_there: Callable[..., Any]  # a call that names another device than this thread's place
    run_on_host: Callable[..., Any]  # an op that a device's library computes, or another's body on the CPU, on copies
    bring_together: Callable[..., Any]  # a call that has tensors on a device and on the CPU among its arguments

    # ops/exchange.py, types.py, _print.py, _core/exchange.pyx: methods of tensors
    reduce: Callable[..., Any]
    deepcopy: Callable[..., Any]
    legacy_tensor: Callable[..., Any]  # `Tensor(2, 3)`
    repr: Callable[..., str]
    array: Callable[..., Any]
    from_array: Callable[..., Any]
    array_ufunc: Callable[..., Any]  # NumPy's functions
    array_function: Callable[..., Any]

    # autograd/, _core/engine.pyx
    backward: Callable[..., None]
    apply_inner: Callable[..., Any]  # a node that is called by hand
    trace: Callable[..., Any]  # in anomaly mode: where a node is recorded
    look_forward: Callable[..., None]  # in anomaly mode: looks for NaN in the tensors of a recorded node
    check_roots: Callable[..., None]  # in anomaly mode: of the tensors that a backward pass begins with
    check_nan: Callable[..., None]  # in anomaly mode: of gradients

    # nn/modules/_explain.py, in anomaly mode
    follow_modules: Callable[[bool], None]
    modules_under_way: Callable[[], tuple]
    describe_modules: Callable[..., str]
    on_a_new_thread: Callable[..., Any]  # a backward pass deep within others
    refuse_captured: Callable[..., None]  # in a derivative of a function: refuses writes to captured tensors
    hide_all: Callable[..., Any]  # the tangents of derivatives, outside the level of forward mode

    # graph/capture.py: a transform of a function, which runs on values within a program that is recorded for a backend
    transform: Callable[..., Any] | None = None

    # cuda/graphs.py
    captures: Callable[..., bool] | None = None  # whether this thread captures; what fills in its next table, if given

    # autograd/forward_ad.py
    unpack_dual: Callable[..., tuple] | None = None  # a tensor's value and its tangent at the present level

    # overrides.py: `__torch_function__`
    overrides: Callable[..., Any]  # a call that an argument or a mode takes over
    overriding: Callable[..., bool]  # whether a type takes calls over
    a_mode_asks: Callable[..., bool]
    operator: Callable[..., Any]  # one of Python's operators, where an operand or a mode may take it over
    shown: Callable[..., Any]  # a method that Python calls by a slot, such as `__len__`, handed to the mode
    rows: Callable[..., Any]  # `iter(t)` while there is a mode

    # _settings.py, io/checkpoint.py, jit/tracing.py
    enter_device: Callable[..., Any]  # `with device:`
    entered_devices: Callable[[], int]  # how many such blocks this thread is in
    leave_devices: Callable[[int], None]  # all but the first so many
    default_device: Callable[..., Any]  # this thread's, of new tensors
    traced_sizes: Callable[..., Any]  # sizes while a thread traces


callbacks = Callbacks()
