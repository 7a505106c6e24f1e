"""DLPack, by which array libraries share memory: tensors out (``__dlpack__``) and in (``from_dlpack``).

The structures are those of DLPack 1.0 and of the earlier versions that some libraries still use. The memory of an
exported tensor stays until the consumer calls the deleter. The memory of an imported array stays until no Storage uses
it.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New, PyCapsule_SetName
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from .memory cimport export_of, foreign_storage, show
from .tensor cimport ITEMSIZE, Tensor, is_conjugate_view

from .devices import REGISTERED
from .memory import device_storage
from .tensor import ALL_DTYPES, from_storage, install
from .tensor import device as make_device


cdef struct DLDevice:
    int32_t kind
    int32_t index

cdef struct DLDataType:
    uint8_t kind
    uint8_t bits
    uint16_t lanes

cdef struct DLTensor:
    void* data
    DLDevice device
    int32_t ndim
    DLDataType dtype
    int64_t* shape
    int64_t* strides
    uint64_t byte_offset

cdef struct DLManagedTensor:
    DLTensor tensor
    void* context
    void (*deleter)(DLManagedTensor*) noexcept

cdef struct DLVersion:
    uint32_t major
    uint32_t minor

cdef struct DLManagedTensorVersioned:
    DLVersion version
    void* context
    void (*deleter)(DLManagedTensorVersioned*) noexcept
    uint64_t flags
    DLTensor tensor

cdef enum:
    DL_CPU = 1
    DL_EXTENSION = 12
    DL_READ_ONLY = 1
    DL_IS_COPIED = 2

#: (kind, bits) by code: kinds are 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool.
cdef list DL_TYPES = [
    (6, 8), (1, 8), (0, 8), (0, 16), (0, 32), (0, 64), (1, 16), (1, 32), (1, 64), (2, 16), (4, 16), (2, 32), (2, 64),
    (5, 64), (5, 128), (5, 32), (10, 8), (12, 8), (11, 8), (13, 8), (14, 8),
]


cdef void free_plain(DLManagedTensor* m) noexcept with gil:
    Py_DECREF(<object>m.context)
    free(m.tensor.shape)
    free(m)


cdef void free_versioned(DLManagedTensorVersioned* m) noexcept with gil:
    Py_DECREF(<object>m.context)
    free(m.tensor.shape)
    free(m)


cdef void drop_plain(object capsule) noexcept:
    """Drop a capsule that was not consumed."""
    cdef DLManagedTensor* m
    if PyCapsule_IsValid(capsule, "dltensor"):
        m = <DLManagedTensor*>PyCapsule_GetPointer(capsule, "dltensor")
        m.deleter(m)


cdef void drop_versioned(object capsule) noexcept:
    cdef DLManagedTensorVersioned* m
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        m = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, "dltensor_versioned")
        m.deleter(m)


cdef object describe(Tensor t, DLTensor* d):
    """Fill in ``d``; what keeps the memory for it."""
    cdef int i
    show(t.storage)
    d.data = <void*><size_t>t.data_ptr()
    d.device.kind, d.device.index = place_of(t.device_type) or (DL_CPU, 0)
    d.ndim = t.nd
    d.dtype.kind, d.dtype.bits = DL_TYPES[t.code]
    d.dtype.lanes = 1
    d.byte_offset = 0
    d.shape = <int64_t*>malloc(2 * (t.nd + 1) * sizeof(int64_t))
    if d.shape == NULL:
        raise MemoryError()
    d.strides = d.shape + t.nd
    for i in range(t.nd):
        d.shape[i] = t.sizes[i]
        d.strides[i] = t.strides[i] if t.sizes[i] > 1 else 1
    return export_of(t.storage, False)


cdef object place_of(int number):
    """DLPack's type and index of a device; None for the CPU and for devices that other libraries cannot use."""
    contract = REGISTERED[number]
    return None if contract is None or contract.dlpack_type is None else (contract.dlpack_type, contract.index)


cdef object contract_of(int kind, int index):
    """The contract of the device with this DLPack type and index; None if there is none."""
    for contract in REGISTERED:
        if contract is not None and (contract.dlpack_type, contract.index) == (kind, index):
            return contract
    return None


cdef int need_pair(str name, value) except -1:
    """Refuse any value but None and a pair of numbers (a device's type may be a member of an enumeration)."""
    if value is not None and not (isinstance(value, tuple) and len(value) == 2
                                  and all(isinstance(v, int) for v in value)):
        raise TypeError(f"__dlpack__: argument '{name}' must be tuple of two ints, got {value!r}")
    return 0


cdef int expect_shareable(Tensor t, copy) except -1:
    """Refuse a tensor whose memory is not all that it is."""
    if t.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if is_conjugate_view(t) and not copy:
        raise BufferError("Can't export tensors with the conjugate bit set, use tensor.resolve_conj()"
                          if t.is_conj() else
                          "Can't export tensors with the negative bit set, use tensor.resolve_neg()")
    return 0


def dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule over the same memory (array API standard 2024.12).

    Args:
        stream: the consumer's, as a number: its work then waits for the tensor. -1 asks for no synchronization. The CPU
            has none: None, or -1.
        max_version: the newest version that the consumer understands.
        dl_device: where the consumer wants it: where it is, or the CPU, ``(1, 0)``.
        copy: True copies first.
    Raises:
        BufferError: the tensor requires a gradient, or it is wanted elsewhere.
        TypeError: an argument is of another type.
        AssertionError: a stream is given.
    """
    cdef Tensor t = self
    cdef DLManagedTensor* m
    cdef DLManagedTensorVersioned* v
    expect_shareable(t, copy)
    where = place_of(t.device_type) if t.device_type else None
    if stream is not None and stream != -1:
        if type(stream) is not int:
            raise TypeError(f"__dlpack__: stream must be ``int`` or ``none``, got {type(stream).__name__}")
        if where is None:
            raise AssertionError(f"__dlpack__: stream should be None on cpu, got {stream}")
    need_pair("dl_device", dl_device)
    need_pair("max_version", max_version)
    if where is not None and (dl_device is None or tuple(dl_device) == where):
        if stream != -1:
            REGISTERED[t.device_type].show_to(stream)
    elif t.device_type:
        if dl_device is None or tuple(dl_device) != (DL_CPU, 0) or copy is False:
            raise BufferError(f"__dlpack__: the tensor is on {t.device}, whose memory other libraries do not reach; "
                              "copy it with .cpu(), or ask for dl_device=(1, 0)")
        t, copy = t.cpu(), True
    elif dl_device is not None and tuple(dl_device) != (DL_CPU, 0):
        raise BufferError(f"__dlpack__: expected device (1, 0), where this tensor is, got {tuple(dl_device)}")
    if copy and t is self:
        t = t.clone()
    if max_version is not None and max_version[0] >= 1:
        v = <DLManagedTensorVersioned*>malloc(sizeof(DLManagedTensorVersioned))
        if v == NULL:
            raise MemoryError()
        v.version.major, v.version.minor = 1, 0
        v.flags = DL_IS_COPIED if copy else 0
        v.deleter = free_versioned
        held = describe(t, &v.tensor)
        v.context = <void*>held
        Py_INCREF(held)
        return PyCapsule_New(v, "dltensor_versioned", drop_versioned)
    m = <DLManagedTensor*>malloc(sizeof(DLManagedTensor))
    if m == NULL:
        raise MemoryError()
    m.deleter = free_plain
    held = describe(t, &m.tensor)
    m.context = <void*>held
    Py_INCREF(held)
    return PyCapsule_New(m, "dltensor", drop_plain)


def dlpack_device(self):
    """``(1, 0)`` for the CPU, ``(2, index)`` for a GPU, as DLPack numbers devices; another device is an extension,
    ``(12, its index)``."""
    if self.is_cpu:
        return DL_CPU, 0
    return place_of((<Tensor>self).device_type) or (DL_EXTENSION, self.device.index or 0)


cdef class Borrowed:
    """Another library's DLPack tensor, released when no Storage uses it any more."""

    cdef DLManagedTensor* plain
    cdef DLManagedTensorVersioned* versioned

    def __dealloc__(self):
        if self.plain != NULL and self.plain.deleter != NULL:
            self.plain.deleter(self.plain)
        if self.versioned != NULL and self.versioned.deleter != NULL:
            self.versioned.deleter(self.versioned)


cdef object adopt(DLTensor* d, Borrowed owner):
    cdef int64_t low = 0, high = 0, expected = 1
    cdef bint empty = False
    cdef int i, code
    contract = None if d.device.kind == DL_CPU else contract_of(d.device.kind, d.device.index)
    if d.device.kind != DL_CPU and contract is None:
        raise BufferError(f"from_dlpack: expected a tensor on the CPU (device type 1), got device type {d.device.kind}")
    kind = (d.dtype.kind, d.dtype.bits)
    if d.dtype.lanes != 1 or kind not in DL_TYPES:
        raise BufferError(
            f"from_dlpack: no dtype is DLPack's type {d.dtype.kind} of {d.dtype.bits} bits and {d.dtype.lanes} lanes"
        )
    code = DL_TYPES.index(kind)
    sizes = [d.shape[i] for i in range(d.ndim)]
    strides = [0] * d.ndim
    for i in range(d.ndim - 1, -1, -1):
        strides[i] = expected if d.strides == NULL else d.strides[i]
        expected *= max(sizes[i], 1)
        empty = empty or sizes[i] == 0
        if sizes[i] > 1:
            if strides[i] < 0:
                low += strides[i] * (sizes[i] - 1)
            else:
                high += strides[i] * (sizes[i] - 1)
    cdef int64_t item = ITEMSIZE[code]
    cdef char* base = <char*>d.data + d.byte_offset + low * item
    cdef int64_t nbytes = 0 if empty else (high - low + 1) * item
    if contract is None:
        storage = foreign_storage(base, nbytes, owner)
    else:
        storage = device_storage(contract.number, <size_t>base, nbytes, owner)
    return from_storage(storage, ALL_DTYPES[code], tuple(sizes), tuple(strides), -low)


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor over the memory of another library's array, through DLPack.

    Args:
        ext_tensor: an object with ``__dlpack__``, or a DLPack capsule.
        device: where it is wanted.
        copy: True copies, False forbids to, None copies only where it must.
    Returns:
        A tensor that shares memory with ``ext_tensor``, unless it was copied.
    Raises:
        BufferError: the data is on a device that there is not here, must be copied though ``copy`` is False, or has a
            type that tensors do not have; a tensor that requires grad, or is conjugated and not copied.
        ValueError: a tensor on device meta.
        RuntimeError: ``ext_tensor`` does not speak DLPack.
    Examples:
        >>> import numpy as np
        >>> taeda.from_dlpack(np.arange(3))
        tensor([0, 1, 2])
    """
    cdef Borrowed owner = Borrowed.__new__(Borrowed)
    if device is not None:
        made = from_dlpack(ext_tensor, copy=copy)
        moved = made if made.device == make_device(device) else made.to(device)
        if copy is False and moved.device != made.device:
            raise BufferError(f"from_dlpack: expected copy not to be False, as the data goes from {made.device} to "
                              f"{moved.device}")
        return moved
    if isinstance(ext_tensor, Tensor):
        if ext_tensor.is_meta:
            raise ValueError("from_dlpack: DLPack knows of no device meta")
        expect_shareable(ext_tensor, copy)
        return ext_tensor.clone() if copy else (<Tensor>ext_tensor).detach()
    capsule = ext_tensor
    if hasattr(ext_tensor, "__dlpack__"):
        try:
            wanted = {} if copy is None else {"copy": copy}
            kind, index = ext_tensor.__dlpack_device__() if hasattr(ext_tensor, "__dlpack_device__") else (DL_CPU, 0)
            contract = contract_of(int(kind), index)
            if contract is not None:
                wanted["stream"] = contract.stream_number()
            capsule = ext_tensor.__dlpack__(max_version=(1, 0), **wanted)
        except TypeError:  # a producer from before version 1.0, which knows of no copies
            wanted.pop("copy", None)
            made = from_dlpack(ext_tensor.__dlpack__(**wanted))
            return made.clone() if copy else made
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        owner.versioned = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, "dltensor_versioned")
        PyCapsule_SetName(capsule, "used_dltensor_versioned")
        if owner.versioned.version.major > 1:
            raise BufferError(f"from_dlpack: expected version 1 of DLPack, got {owner.versioned.version.major}")
        return adopt(&owner.versioned.tensor, owner)
    if PyCapsule_IsValid(capsule, "dltensor"):
        owner.plain = <DLManagedTensor*>PyCapsule_GetPointer(capsule, "dltensor")
        PyCapsule_SetName(capsule, "used_dltensor")
        return adopt(&owner.plain.tensor, owner)
    raise RuntimeError(
        f"from_dlpack: expected an object with __dlpack__ or a fresh DLPack capsule, got {type(ext_tensor).__name__}"
    )


def to_dlpack(tensor):
    """A DLPack capsule over the memory of ``tensor``."""
    return dlpack(tensor)


for _method, _name in ((dlpack, "__dlpack__"), (dlpack_device, "__dlpack_device__")):
    _method.__name__ = _name  # a mode is told it
    install(_name, _method)
