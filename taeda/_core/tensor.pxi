# Tensor: one Python object over a Storage.

cdef Node get_grad_fn(Tensor t):
    """The node that made ``t``; for a view whose base was written in place since, a fresh one."""
    if t.base is None or t.view_version == t.storage.version:
        return t.grad_fn_
    cdef Tensor base = t.base
    cdef Node made = get_grad_fn(base)
    if made is None and not base.leaf_grad:
        return t.grad_fn_
    if made is not None or t.grad_fn_ is not None:
        if t.creation != RECORDED:
            raise_unrecordable(t, True)
        if t.retains_grad_:
            move_retained(t, None)
        t.grad_fn_ = make_view_node(t, base)
        if t.retains_grad_:
            retain(t, t.grad_fn_, 0)
        t.nr = 0
        t.leaf_grad = False
    t.view_version = t.storage.version
    return t.grad_fn_


cdef inline bint wants_grad(Tensor t):
    if t.leaf_grad or t.grad_fn_ is not None:
        return True
    return t.base is not None and t.view_version != t.storage.version and get_grad_fn(t) is not None


cdef inline bint is_followed(Tensor t):
    """Whether ops on ``t`` are recorded."""
    if NO_GRAD[0] == GRAD_ON:
        return wants_grad(t)
    return NO_GRAD[0] == TANGENTS and wants_grad(t) and t.grad_fn_ is not None and t.grad_fn_.dual


cdef inline PyObject** attributes_slot(Tensor t) noexcept:
    return <PyObject**>(<char*>&t.before_attributes + sizeof(int64_t))


cdef inline void forget_attributes(Tensor t) noexcept:
    """No dict yet: Python makes one when the first attribute is set (a dict per tensor would cost as much as an op)."""
    cdef PyObject** slot = attributes_slot(t)
    Py_DECREF(<object>slot[0])
    slot[0] = NULL


@cython.freelist(512)
@cython.trashcan(True)
@cython.binding(False)
cdef class Tensor:
    """An array of numbers of one dtype, in any number of dimensions, that records the operations done on it.

    Make one by :func:`tensor`, :func:`zeros`, :func:`randn` and their kin; ``Tensor(2, 3)`` is PyTorch's older form,
    with elements that are not set. ``shape``, ``dtype`` and ``device`` say what it is. Every function of ``taeda`` that
    takes a tensor first is also a method; a method whose name ends in an underscore writes its result into the tensor.
    With ``requires_grad`` a call of ``backward()`` on a result fills ``grad``.

    Args:
        args: sizes, or data.
        kwargs: ``device``.
    Examples:
        >>> x = taeda.tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> loss = (x * x).sum()
        >>> loss.backward()
        >>> x.grad
        tensor([2., 4., 6.])
    """

    def __cinit__(self):
        forget_attributes(self)
        self.sizes = self.dims
        self.strides = self.dims + INLINE
        if Py_TYPE(<PyObject*>self) != <PyTypeObject*>Tensor:
            self.overrides = ALWAYS if type(self) in DISPATCHING else type(self) in OVERRIDING

    def __init__(self, *args, **kwargs):
        if self.storage is not None:
            return
        cdef list stack
        if not has_mode():
            _become(self, callbacks.legacy_tensor(*args, **kwargs))
            return
        stack = mode_stack()
        set_mode_stack([])  # they are told of this object, not of the one that it becomes
        try:
            _become(self, callbacks.legacy_tensor(*args, **kwargs))
        finally:
            set_mode_stack(stack)
        for mode in stack:
            if records_steps(mode):
                mode.note_made(self)

    # ---- metadata ---------------------------------------------------------------------------------------------------
    @property
    def shape(self):
        """The sizes of the dimensions, a :class:`Size`.

        Examples:
            >>> taeda.zeros(2, 3).shape
            taeda.Size([2, 3])
        """
        return callbacks.traced_sizes(self) if tracers else make_size(self.nd, self.sizes)

    def size(self, dim=None, *, axis=None):
        """The sizes of all dimensions, or of one.

        Args:
            dim: which dimension; negative ones count from the end. Default: all.
            axis: another name of ``dim``.
        Returns:
            A :class:`Size`, or an int.
        Raises:
            IndexError: there is no such dimension.
        Examples:
            >>> x = taeda.zeros(2, 3)
            >>> x.size(), x.size(1)
            (taeda.Size([2, 3]), 3)
        """
        dim = axis if dim is None else dim
        if dim is None:
            return make_size(self.nd, self.sizes) if type(self) is Tensor and not tracers else self.shape
        if not is_small_int(dim):
            check_whole("size", ("dim",), 0, TAKES_INT, dim)
        if self.nd == 0:
            raise IndexError("size: dimension specified as 0 but tensor has no dimensions")
        dim = wrap_dim(dim, self.nd, "size")
        return callbacks.traced_sizes(self)[dim] if tracers else self.sizes[<int>dim]

    def stride(self, dim=None, *, axis=None):
        """The strides of all dimensions, or of one: how many elements lie between one index and the next.

        Args:
            dim: which dimension; negative ones count from the end. Default: all.
            axis: another name of ``dim``.
        Returns:
            A tuple of ints, or an int.
        Raises:
            IndexError: there is no such dimension.
        Examples:
            >>> x = taeda.zeros(2, 3)
            >>> x.stride(), x.t().stride()
            ((3, 1), (1, 3))
        """
        dim = axis if dim is None else dim
        if dim is None:
            return whole_tuple(self.nd, self.strides)
        if not is_small_int(dim):
            check_whole("stride", ("dim",), 0, TAKES_INT, dim)
        if self.nd == 0:
            raise IndexError("stride: dimension specified as 0 but tensor has no dimensions")
        return self.strides[wrap_dim(dim, self.nd, "stride")]

    def dim(self):
        """The number of dimensions, an int.

        Examples:
            >>> taeda.zeros(2, 3).dim()
            2
        """
        return self.nd

    ndimension = dim

    @property
    def ndim(self):
        """The number of dimensions, an int.

        Examples:
            >>> taeda.zeros(2, 3).ndim
            2
        """
        return self.nd

    def numel(self):
        """The number of elements, an int: the product of the sizes.

        Examples:
            >>> taeda.zeros(2, 3).numel()
            6
        """
        return self.shape.numel() if tracers else self.count

    nelement = numel

    @property
    def dtype(self):
        """The type of the elements, such as ``taeda.float32``.

        Examples:
            >>> taeda.tensor([1, 2]).dtype
            taeda.int64
        """
        return DTYPES[self.code]

    @property
    def device(self):
        """The device that the memory is on.

        Examples:
            >>> taeda.ones(2).device
            device(type='cpu')
        """
        return device_at(self.device_type)

    @property
    def layout(self):
        """The layout of the elements in memory: ``taeda.strided``, or a sparse layout.

        Examples:
            >>> taeda.ones(2).layout
            taeda.strided
        """
        return strided

    @property
    def itemsize(self):
        """Bytes per element, an int.

        Examples:
            >>> taeda.ones(2).itemsize
            4
        """
        return ITEMSIZE[self.code]

    def element_size(self):
        """Bytes per element, an int.

        Examples:
            >>> taeda.ones(2).element_size()
            4
        """
        return ITEMSIZE[self.code]

    @property
    def nbytes(self):
        """Bytes of all elements: ``numel() * itemsize``.

        Examples:
            >>> taeda.ones(2, 3).nbytes
            24
        """
        return self.count * ITEMSIZE[self.code]

    def storage_offset(self):
        """The number of elements between the start of the storage and the first element, an int.

        Examples:
            >>> taeda.arange(5)[2:].storage_offset()
            2
        """
        return (self.raw - self.storage.data) // ITEMSIZE[self.code]

    def data_ptr(self):
        """The address of the first element, an int; 0 where there are no elements, as on device meta.

        Examples:
            >>> x = taeda.arange(5)
            >>> x[1:].data_ptr() - x.data_ptr()
            8
        """
        refuse_recording(b"an address is read")
        if MODES[0] != NULL:
            refuse_reached(root(self.storage), "data_ptr()")
        show(self.storage)
        if self.device_type:
            return 0 if self.device_type == META_NUMBER else <size_t>self.raw
        return <size_t>stored_at(self) if self.count else 0

    def untyped_storage(self):
        """The memory that this tensor and its views share, an :class:`UntypedStorage`.

        Examples:
            >>> taeda.arange(5)[2:].untyped_storage().nbytes()
            40
        """
        return root(self.storage)

    def is_contiguous(self, memory_format=contiguous_format):
        """Whether the elements lie in memory in a given order, without gaps.

        Args:
            memory_format: the order. Default: row-major.
        Returns:
            A bool.
        Examples:
            >>> x = taeda.zeros(2, 3)
            >>> x.is_contiguous(), x.t().is_contiguous()
            (True, False)
        """
        if memory_format is contiguous_format:
            return self.contiguous
        if memory_format is channels_last and self.nd == 4 or memory_format is channels_last_3d and self.nd == 5:
            return bool(has_channels_last(self))
        return False

    def is_floating_point(self):
        """Whether the dtype is a floating-point one, a bool. Complex dtypes are not.

        Examples:
            >>> taeda.ones(2).is_floating_point()
            True
        """
        return KIND[self.code] == 2

    def is_complex(self):
        """Whether the dtype is complex, a bool.

        Examples:
            >>> taeda.ones(2).is_complex()
            False
        """
        return KIND[self.code] == 3

    def is_signed(self):
        """Whether the dtype has negative numbers, a bool.

        Examples:
            >>> taeda.ones(2).is_signed()
            True
        """
        return (<dtype>DTYPES[self.code]).is_signed

    def is_inference(self):
        """Whether the tensor was made in :class:`taeda.inference_mode`: autograd cannot record it.

        Examples:
            >>> taeda.ones(2).is_inference()
            False
        """
        return self.inference

    def is_conj(self):
        """Whether this is a view whose memory holds the conjugates of its values, as :func:`conj` makes them.

        Examples:
            >>> taeda.tensor([1j]).conj().is_conj()
            True
        """
        return bool(is_conjugate_view(self)) and KIND[self.code] == 3

    def is_neg(self):
        """Whether this is a view whose memory holds the negatives of its values, as the ``imag`` of a conjugated one.

        Examples:
            >>> taeda.tensor([1j]).conj().imag.is_neg()
            True
        """
        return bool(is_conjugate_view(self)) and KIND[self.code] != 3

    @property
    def is_sparse(self):
        """Whether it holds only some elements, with their places, in coordinate form. Sparse tensors have a class of
        their own.

        Examples:
            >>> taeda.eye(2).is_sparse, taeda.eye(2).to_sparse().is_sparse
            (False, True)
        """
        return False

    @property
    def is_quantized(self):
        """Always False: there are no quantised dtypes.

        Examples:
            >>> taeda.ones(2).is_quantized
            False
        """
        return False

    @property
    def is_cuda(self):
        """Whether the memory is on an NVIDIA GPU.

        Examples:
            >>> taeda.ones(2).is_cuda
            False
        """
        return self.device_type > META_NUMBER and device_at(self.device_type).type == "cuda"

    @property
    def is_cpu(self):
        """Whether the memory is the CPU's.

        Examples:
            >>> taeda.ones(2).is_cpu
            True
        """
        return self.device_type == 0

    @property
    def is_meta(self):
        """Whether the tensor is on device meta: it has sizes and a dtype, but no elements.

        Examples:
            >>> taeda.ones(2, device="meta").is_meta
            True
        """
        if self.device_type:
            refuse_recording(b"the body does something else on device meta")
        return self.device_type == META_NUMBER

    @property
    def is_mps(self):
        """Whether the memory is an Apple GPU's: always False.

        Examples:
            >>> taeda.ones(2).is_mps
            False
        """
        return False

    @property
    def is_nested(self):
        """Whether it is a list of tensors of different sizes: False; nested tensors have a class of their own.

        Examples:
            >>> taeda.ones(2).is_nested
            False
        """
        return False

    def get_device(self):
        """The number of the device; -1 on the CPU.

        Examples:
            >>> taeda.ones(2).get_device()
            -1
        """
        return -1 if self.device_type <= META_NUMBER else self.device.index

    @property
    def _version(self):
        if self.inference:
            raise RuntimeError("Inference tensors do not track version counter: they have no history that a write "
                               "could spoil")
        return self.storage.version + self.version_offset

    @property
    def _base(self):
        return self.base

    def _is_view(self):
        return self.base is not None

    @property
    def names(self):
        """A None for each dimension: named tensors are not part of taeda.

        Examples:
            >>> taeda.ones(2, 3).names
            (None, None)
        """
        return (None,) * self.nd

    def has_names(self):
        """Whether dimensions have names: always False, named tensors are not part of taeda.

        Examples:
            >>> taeda.ones(2).has_names()
            False
        """
        return False

    # ---- autograd ---------------------------------------------------------------------------------------------------
    @property
    def requires_grad(self):
        """Whether operations on this tensor are recorded, so that ``backward`` finds its gradient. It can be set on a
        leaf.

        Examples:
            >>> x = taeda.ones(2, requires_grad=True)
            >>> x.requires_grad, (2 * x).requires_grad, x.detach().requires_grad
            (True, True, False)
        """
        # its place in the graph may be gone, which is an error only where it is asked for
        if self.creation != RECORDED:
            return self.leaf_grad or self.grad_fn_ is not None
        return wants_grad(self)

    @requires_grad.setter
    def requires_grad(self, bint value):
        if self.grad_fn_ is not None:
            if not value:
                raise RuntimeError("you can only change requires_grad flags of leaf variables. "
                                   "If you want to use a computed variable in a subgraph that doesn't require "
                                   "differentiation use var_no_grad = var.detach().")
            return
        if value and KIND[self.code] < 2:
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients, "
                               f"got {DTYPES[self.code]}")
        if value and self.inference and not INFERENCE[0]:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed; "
                               "clone the tensor first")
        self.leaf_grad = value

    def requires_grad_(self, bint requires_grad=True):
        """Sets ``requires_grad`` in place.

        Args:
            requires_grad: on or off.
        Returns:
            This tensor.
        Raises:
            RuntimeError: the tensor is no leaf, or not of floating-point or complex numbers.
        Examples:
            >>> taeda.ones(2).requires_grad_()
            tensor([1., 1.], requires_grad=True)
        """
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self):
        """Whether no op that is recorded made it: a gradient that reaches it stays in ``grad``.

        Examples:
            >>> x = taeda.ones(2, requires_grad=True)
            >>> x.is_leaf, (2 * x).is_leaf
            (True, False)
        """
        return get_grad_fn(self) is None

    @property
    def grad_fn(self):
        """The node of the graph that made this tensor, None for a leaf.

        Examples:
            >>> x = taeda.ones(2, requires_grad=True)
            >>> x.grad_fn is None, (2 * x).grad_fn.name()
            (True, 'MulBackward0')
        """
        return of_own_class(get_grad_fn(self))

    @property
    def output_nr(self):
        """The number of this tensor among the results of the op that made it; 0 for a leaf.

        Examples:
            >>> x = taeda.ones(2, requires_grad=True)
            >>> [part.output_nr for part in (2 * x).unbind()]
            [0, 1]
        """
        return self.nr

    @property
    def grad(self):
        """The gradient that ``backward`` accumulated, a tensor of the same sizes, or None.

        Examples:
            >>> x = taeda.tensor([1.0, 2.0], requires_grad=True)
            >>> (x * x).sum().backward()
            >>> x.grad
            tensor([2., 4.])
        """
        if self.grad_ is None and self.grad_fn_ is not None and not self.retains_grad_:
            import warnings
            warnings.warn("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
                          "attribute won't be populated during autograd.backward(). If you indeed want the .grad field "
                          "to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor.",
                          UserWarning, stacklevel=1)  # compiled functions have no frame
        return self.grad_

    @grad.setter
    def grad(self, value):
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type "
                                f"{type(value).__name__}")
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if (<Tensor>value).code != self.code:
                raise RuntimeError(f"assigned grad has data of a different type: expected {DTYPES[self.code]}, "
                                   f"got {value.dtype}")
            if (<Tensor>value).device_type != self.device_type:
                raise RuntimeError(f"assigned grad has data located on a different device: expected {self.device}, got "
                                   f"{value.device}")
            if not same_sizes(self, value):
                raise RuntimeError(f"assigned grad has data of a different size: expected {self.shape}, got "
                                   f"{value.shape}")
        self.grad_ = resolved(value)

    @grad.deleter
    def grad(self):
        self.grad_ = None

    @property
    def _grad(self):
        """``grad``, without its warning."""
        return self.grad_

    @_grad.setter
    def _grad(self, value):
        self.grad = value

    @property
    def retains_grad(self):
        """Whether :meth:`retain_grad` was called on it, and it is not a leaf.

        Examples:
            >>> x = taeda.ones(2, requires_grad=True)
            >>> (2 * x).retains_grad
            False
        """
        return bool(self.retains_grad_)

    def retain_grad(self):
        """Keeps the gradient of this tensor, which is no leaf, in ``.grad``, as leaves do.

        Raises:
            RuntimeError: the tensor does not require grad.
        Examples:
            >>> x = taeda.ones(2, requires_grad=True)
            >>> y = 2 * x
            >>> y.retain_grad()
            >>> (3 * y).sum().backward()
            >>> y.grad
            tensor([3., 3.])
        """
        cdef Node node = get_grad_fn(self)
        if not wants_grad(self):
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if node is None or self.retains_grad_:
            return
        self.retains_grad_ = True
        retain(self, node, self.nr)

    def register_hook(self, hook):
        """Calls ``hook(grad)`` when the gradient of this tensor is known.

        Args:
            hook: a function of the gradient; a tensor that it returns replaces the gradient.
        Returns:
            A handle, whose ``remove()`` takes the hook away.
        Raises:
            RuntimeError: the tensor does not require grad.
        Examples:
            >>> x = taeda.ones(2, requires_grad=True)
            >>> handle = x.register_hook(lambda grad: 10 * grad)
            >>> (3 * x).sum().backward()
            >>> x.grad
            tensor([30., 30.])
        """
        if not wants_grad(self):
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        cdef Node node = get_grad_fn(self)
        if node is None:
            if self.hooks is None:
                self.hooks = {}
            return HookHandle(self.hooks, hook)
        if node.tensor_hooks is None:
            node.tensor_hooks = {}
        return HookHandle(node.tensor_hooks.setdefault(self.nr, {}), hook)

    def register_post_accumulate_grad_hook(self, hook):
        """Calls ``hook(tensor)`` after the gradient was accumulated into ``.grad`` of this leaf.

        Args:
            hook: a function of the tensor.
        Returns:
            A handle, whose ``remove()`` takes the hook away.
        Raises:
            RuntimeError: the tensor is no leaf that requires grad.
        Examples:
            >>> x = taeda.ones(2, requires_grad=True)
            >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
            >>> (3 * x).sum().backward()
            tensor([3., 3.])
        """
        if not wants_grad(self):
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self.grad_fn_ is not None:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        if self.post_hooks is None:
            self.post_hooks = {}
        return HookHandle(self.post_hooks, hook)

    @property
    def _backward_hooks(self):
        return self.hooks

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Accumulates the gradient of this tensor into the ``.grad`` of the leaves that it was made from.

        Args:
            gradient: the gradient of this tensor, of its sizes; may be left out for one element, where it is 1.
            retain_graph: keep what the graph saved, so that it can be differentiated again. Default: ``create_graph``.
            create_graph: record the derivative computation itself, for higher derivatives.
            inputs: accumulate into these leaves only.
        Raises:
            RuntimeError: the tensor does not require grad, has several elements and no ``gradient`` is given, or the
                graph was differentiated before.
        Examples:
            >>> x = taeda.tensor([1.0, 2.0], requires_grad=True)
            >>> (x**3).sum().backward()
            >>> x.grad  # 3 * x ** 2
            tensor([ 3., 12.])
        """
        callbacks.backward(self, gradient, retain_graph, create_graph, inputs)

    def detach(self):
        """A view of the same memory that is not part of the graph: no gradient flows through it.

        Returns:
            A tensor of the same sizes that does not require grad.
        Examples:
            >>> x = taeda.ones(2, requires_grad=True)
            >>> (2 * x).detach()
            tensor([2., 2.])
        """
        if self.holds == NOTHING and hasattr(self, "_detached"):
            return self._detached()
        cdef Tensor t = alias_tensor(self, self.nd, self.sizes, self.strides, 0)
        if MODES[0] != NULL:
            tell_modes(self, t)
        return t

    def detach_(self):
        """Takes this tensor out of the graph, in place: it becomes a leaf that does not require grad.

        Returns:
            This tensor.
        Raises:
            RuntimeError: it is a view.
        Examples:
            >>> x = taeda.ones(2, requires_grad=True)
            >>> (2 * x).detach_()
            tensor([2., 2.])
        """
        if self.base is not None:
            raise RuntimeError("can't detach views in-place: use detach() instead")
        self.grad_fn_ = None
        self.leaf_grad = False
        self.nr = 0
        if MODES[0] != NULL:
            tell_modes(self, self)
        return self

    @property
    def data(self):
        """The same memory outside the graph, with a version counter of its own. Setting it replaces the memory. Prefer
        :meth:`detach`, with which autograd notices writes.

        Examples:
            >>> x = taeda.ones(2, requires_grad=True)
            >>> x.data
            tensor([1., 1.])
        """
        if self.holds == NOTHING and hasattr(self, "_detached"):
            return self._detached()
        cdef Tensor t = alias_tensor(self, self.nd, self.sizes, self.strides, 0)
        show(self.storage)
        t.storage = foreign_storage(self.storage.data, self.storage.capacity, root(self.storage))
        t.storage.device = self.storage.device
        if MODES[0] != NULL:
            tell_modes(self, t)
        return t

    @data.setter
    def data(self, Tensor value not None):
        if value.overrides and not OVERRIDE_FLAGS[0] & (NO_SUBCLASSES | NO_OVERRIDES):
            type(value).__torch_function__(Tensor.data.__set__, (type(value),), (self, value), {})
            return
        refuse_recorded("an assignment to Tensor.data")
        if has_no_memory(self) != has_no_memory(value) or self.device_type != value.device_type and META_NUMBER in (
                self.device_type, value.device_type):
            raise RuntimeError(f"data: incompatible tensor type: a tensor of layout {self.layout} on {self.device} "
                               f"cannot be set to one of layout {value.layout} on {value.device}")
        if value.code != self.code and wants_grad(self) and KIND[value.code] < 2:
            raise RuntimeError(f"data set to a tensor that requires gradients must be floating point or complex dtype, "
                               f"got {value.dtype}")
        replace_data(self, value, 0)

    # ---- values -----------------------------------------------------------------------------------------------------
    def item(self):
        """The value of a tensor of one element as a Python number.

        Raises:
            RuntimeError: there are no elements, or several.
        Examples:
            >>> taeda.tensor([2.5]).item()
            2.5
        """
        if self.count != 1:
            raise RuntimeError(f"a Tensor with {self.count} elements cannot be converted to Scalar; tolist() gives all "
                               f"of them, reductions such as sum() one (shape {list(self.shape)})")
        if asks_class(self):
            return self._item()
        if mode_active() and hasattr(current_mode(), "item"):
            return current_mode().item(self)
        if self.device_type:
            if self.device_type == META_NUMBER:
                raise callbacks.needs_values(MetaValueError("Tensor.item() cannot be called on meta tensors"))
            return to_host(self).item()
        if is_conjugate_view(self):
            number = read_scalar(stored_at(self), self.code)
            return number.conjugate() if KIND[self.code] == 3 else -number
        return read_scalar(address_of(self), self.code)

    def __bool__(self):
        if function_modes() and callbacks.a_mode_asks():
            return callbacks.shown("__bool__", self)
        if self.count != 1:
            if self.count == 0:
                raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous; use any() or all(), and "
                               "&, | and ~ in place of and, or and not")
        return bool(self.item())

    def __int__(self):
        if function_modes() and callbacks.a_mode_asks():
            return callbacks.shown("__int__", self)
        return int(_real(_only(self)))

    def __float__(self):
        if function_modes() and callbacks.a_mode_asks():
            return callbacks.shown("__float__", self)
        return float(_real(_number_of(self)))

    def __complex__(self):
        if function_modes() and callbacks.a_mode_asks():
            return callbacks.shown("__complex__", self)
        return complex(_number_of(self))

    def __index__(self):
        if function_modes() and callbacks.a_mode_asks():
            return callbacks.shown("__index__", self)
        if self.count != 1 or KIND[self.code] > 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __len__(self):
        if function_modes() and callbacks.a_mode_asks():
            return callbacks.shown("__len__", self)
        if self.nd == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.sizes[0]

    def __iter__(self):
        if function_modes():
            return callbacks.rows(self)
        if self.nd == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self):
        return self.flip(0) if self.nd else self

    def __hash__(self):
        return <Py_hash_t>((<size_t><void*>self) >> 4)

    def __contains__(self, element):
        if function_modes() and callbacks.a_mode_asks():
            return callbacks.shown("__contains__", self, element)
        if isinstance(element, (Tensor, int, float, complex, bool)):
            return bool((self == element).any())
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")

    def __repr__(self):
        if function_modes() and callbacks.a_mode_asks():
            return callbacks.shown("__repr__", self)
        return callbacks.repr(self)

    def __str__(self):
        return repr(self)

    def __format__(self, spec):
        if self.nd == 0 and type(self) is Tensor and self.device_type != META_NUMBER:
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    def __getitem__(self, index):
        if function_modes() and callbacks.a_mode_asks():
            return callbacks.shown("__getitem__", self, index)
        return getitem(self, index)

    def __setitem__(self, index, value):
        if function_modes() and callbacks.a_mode_asks():
            callbacks.shown("__setitem__", self, index, value)
            return
        setitem(self, index, value)

    def __reduce_ex__(self, protocol):
        return callbacks.reduce(self, protocol)

    def __deepcopy__(self, memo):
        return callbacks.deepcopy(self, memo)

    def __array__(self, dtype=None, copy=None):
        return callbacks.array(self, dtype, copy)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return callbacks.from_array(array)

    def __array_ufunc__(self, ufunc, str method, *inputs, **kwargs):
        return callbacks.array_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function, types, args, kwargs):
        return callbacks.array_function(function, types, args, kwargs)

    def __getbuffer__(self, Py_buffer* view, int flags):
        export_buffer(self, view, flags)

    def __releasebuffer__(self, Py_buffer* view):
        pass  # see Storage

    __array_priority__ = 1000
    _without_memory = None
    _value_per_example = False

    @staticmethod
    def _make_subclass(cls, Tensor data not None, bint require_grad=False):
        """An object of class ``cls`` over the memory of ``data``, outside the graph.

        A class whose tensors have other values than that memory sets ``_without_memory``, the name that errors use for
        such a tensor.
        """
        cdef Tensor t = new_of_class(cls)
        _set_data(t, data)
        if cls._without_memory is not None:
            t.holds = NOTHING
        t.leaf_grad = require_grad
        return t

    @staticmethod
    def _make_hollow(cls, Tensor like not None, bint requires_grad=False, bint on_cpu=False):
        """An object of class ``cls`` with the dtype and the sizes of ``like``, whose elements must not be read.

        Where ``like`` is on device meta, which has no memory, it may say that it is ``on_cpu``.
        """
        cdef Tensor t = Tensor._make_subclass(cls, like, requires_grad)
        t.holds = NOTHING
        if on_cpu:
            t.device_type = CPU_NUMBER
        return t

    # ---- operators --------------------------------------------------------------------------------------------------
    def __add__(self, other):
        return binary(ADD, self, other)

    def __radd__(self, other):
        return binary(ADD, self, other)

    def __sub__(self, other):
        return binary(SUB, self, other)

    def __rsub__(self, other):
        return binary(RSUB, self, other)

    def __mul__(self, other):
        return binary(MUL, self, other)

    def __rmul__(self, other):
        return binary(MUL, self, other)

    def __truediv__(self, other):
        return binary(DIV, self, other)

    def __rtruediv__(self, other):
        return binary(RDIV, self, other)

    def __floordiv__(self, other):
        return binary(FLOORDIV, self, other)

    def __rfloordiv__(self, other):
        return binary(RFLOORDIV, self, other)

    def __mod__(self, other):
        return binary(REMAINDER, self, other)

    def __rmod__(self, other):
        return binary(RREMAINDER, self, other)

    def __pow__(self, other, modulo=None):
        return binary(POW, self, other)

    def __rpow__(self, other):
        return binary(RPOW, self, other)

    def __matmul__(self, other):
        return NotImplemented if isinstance(other, (int, float, complex)) else binary(MATMUL, self, other)

    def __rmatmul__(self, other):
        return NotImplemented if isinstance(other, (int, float, complex)) else binary(RMATMUL, self, other)

    def __and__(self, other):
        return binary(AND, self, other)

    def __rand__(self, other):
        return reflected(AND, self, other)

    def __or__(self, other):
        return binary(OR, self, other)

    def __ror__(self, other):
        return reflected(OR, self, other)

    def __xor__(self, other):
        return binary(XOR, self, other)

    def __rxor__(self, other):
        return reflected(XOR, self, other)

    def __lshift__(self, other):
        return binary(LSHIFT, self, other)

    def __rlshift__(self, other):
        return binary(RLSHIFT, self, other)

    def __rshift__(self, other):
        return binary(RSHIFT, self, other)

    def __rrshift__(self, other):
        return binary(RRSHIFT, self, other)

    def __lt__(self, other):
        return binary(LT, self, other)

    def __le__(self, other):
        return binary(LE, self, other)

    def __gt__(self, other):
        return binary(GT, self, other)

    def __ge__(self, other):
        return binary(GE, self, other)

    def __eq__(self, other):
        return binary(EQ, self, other)

    def __ne__(self, other):
        return binary(NE, self, other)

    def __neg__(self):
        return unary(NEG, self)

    def __pos__(self):
        return unary(POSITIVE, self)

    def __abs__(self):
        return unary(ABS, self)

    def __invert__(self):
        if KIND[self.code] > 1 and not function_modes() and (
                not self.overrides or OVERRIDE_FLAGS[0] & (NO_SUBCLASSES | NO_OVERRIDES)):
            raise TypeError(f"~ (operator.invert) is only implemented on integer and Boolean-type tensors, not for "
                            f"{DTYPES[self.code]}")
        return unary(INVERT, self)

    def __iadd__(self, other):
        return binary(IADD, self, other)

    def __isub__(self, other):
        return binary(ISUB, self, other)

    def __imul__(self, other):
        return binary(IMUL, self, other)

    def __itruediv__(self, other):
        return binary(IDIV, self, other)

    def __ifloordiv__(self, other):
        return binary(IFLOORDIV, self, other)

    def __imod__(self, other):
        return binary(IREMAINDER, self, other)

    def __ipow__(self, other):
        return binary(IPOW, self, other)

    def __iand__(self, other):
        return binary(IAND, self, other)

    def __ior__(self, other):
        return binary(IOR, self, other)

    def __ixor__(self, other):
        return binary(IXOR, self, other)

    def __ilshift__(self, other):
        return binary(ILSHIFT, self, other)

    def __irshift__(self, other):
        return binary(IRSHIFT, self, other)


def is_hollow(Tensor t not None):
    """Whether the tensor has no elements in memory of its own."""
    return t.holds == NOTHING


cdef bint told_of_scalars = False


cdef object _only(Tensor t):
    if t.count != 1:
        raise ValueError(f"only one element tensors can be converted to Python scalars, got sizes {t.shape}")
    return t.item()


cdef object _number_of(Tensor t):
    """:func:`_only`, with a warning the first time that it leaves a gradient behind."""
    global told_of_scalars
    if not told_of_scalars and t.requires_grad:
        import warnings
        told_of_scalars = True
        warnings.warn("Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
                      "Consider using tensor.detach() first.", UserWarning, stacklevel=1)
    return _only(t)


cdef object _real(object x):
    if not PyComplex_Check(x):
        return x
    if x.imag != 0:
        raise RuntimeError(f"value cannot be converted to a real number without overflow: {x}; take .real or .abs()")
    return x.real
