# Addresses of a tensor's elements, and the checks before one is given.

# ---- conjugate views -------------------------------------------------------------------------------------------------
#
# A complex tensor that holds CONJUGATES shows the conjugates of what its memory holds; a real one, the imaginary part
# of such, the negatives. Views of it are such views again, and `copy_into` minds the sign between two tensors. Nothing
# else in the core looks: an op that has one among its arguments is handed to `callbacks.conjugated` first, and runs on
# copies.

cdef char* computed_address(Tensor t, bint conjugates=False, bint reading=False) except? NULL nogil:
    """`address_of`, where it must look closer; with ``conjugates`` `stored_at`, with ``reading`` for reading only.

    A launch in this thread's place, a device, is given the address of ``t`` there.
    """
    if t.device_type:
        if t.device_type != here():
            return refuse_address(t)
    elif t.holds == NOTHING or t.holds == CONJUGATES and not conjugates:
        return refuse_address(t)
    if t.storage.waits:
        with gil:
            if reading:
                compute_to_read(t.storage)
            else:
                ensure_computed(t.storage)
    return t.raw


cdef char* refuse_address(Tensor t) except NULL with gil:
    """The error where ``t`` has no address for this."""
    if t.device_type:
        refuse_elements(t)
    if t.holds == CONJUGATES:
        raise RuntimeError(f"this needs elements as they lie in memory, and a conjugated or negated view shows others; "
                           f"resolve_conj() and resolve_neg() give a copy that holds them")
    kind = getattr(type(t), "_without_memory", None)
    if kind is None:
        kind = "a view of a tensor that has no memory of its own (of vmap, sparse, nested or with __torch_dispatch__)"
    raise NotImplementedError(f"this needs elements in memory, which {kind} does not have")


cdef char* refuse_elements(Tensor t) except NULL:
    if t.device_type != META_NUMBER:
        raise NotImplementedError(f"this needs elements in the memory of the processor, and the tensor is on device "
                                  f"'{DEVICES[t.device_type]}': move it with .to('cpu')")
    raise MetaMemoryError("Cannot copy out of meta tensor; no data! This needs elements in memory, which a tensor on "
                          "device meta does not have: make it on the CPU")


cdef object resolved(object t):
    """``t``, or for a conjugate view a copy that holds the values that it shows."""
    cdef Tensor copied
    if not isinstance(t, Tensor) or not is_conjugate_view(<Tensor>t):
        return t
    if is_followed(<Tensor>t):
        return callbacks.resolve(t)
    copied = empty_like(t)
    copy_into(copied, <Tensor>t)
    return copied
