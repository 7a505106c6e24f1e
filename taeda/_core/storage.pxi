# Storage, the memory that views share: its owner, its version, resizing and export.

@cython.freelist(256)
@cython.no_gc  # `owner` is foreign memory or another storage, never a tensor: no cycle can pass through here
@cython.binding(False)
cdef class Storage:
    """A block of bytes that any number of tensors view.

    Args:
        content: a number of bytes, or a sequence of ints below 256. Nothing: no bytes.
        device: the CPU.
    Examples:
        >>> storage = taeda.tensor([1, 2], dtype=taeda.int16).untyped_storage()
        >>> storage.nbytes(), list(storage)
        (4, [1, 0, 2, 0])
    """

    def __init__(self, content=0, *, device=None):
        cdef int64_t n
        if self.data != NULL:
            return
        if device is not None:
            from .launching import require_device

            require_device(device)
        given = None if isinstance(content, int) else bytes(bytearray(content))
        n = content if given is None else len(given)
        give_block(self, n, CPU_NUMBER)
        if n:
            memcpy(self.data, <const char*>given, n) if given is not None else memset(self.data, 0, n)

    def __dealloc__(self):
        if self.deferred is not None:
            self.deferred.storage = NULL
        if self.original is not None:
            self.original.storage, self.original.last = NULL, self.version
        while self.readers != NULL:
            leave(self.readers)
        if self.owner is None and self.data != NULL and self.late is None:
            release_block(self, self.data, self.block)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        """The bytes, writable."""
        cdef Storage holder = root(self)
        self.need_bytes()
        reach(self, "a buffer of the bytes of a storage")
        show(self)
        export = export_of(self, False)
        if keeps_address(flags):
            holder.exports += 1  # NumPy keeps this storage, and the address in it
        PyBuffer_FillInfo(buffer, export, self.data, self.capacity, 0, flags)

    def __releasebuffer__(self, Py_buffer* buffer):
        pass  # an Export is released; NumPy looks whether this is here before it trusts buffers

    def _readable(self):
        """The bytes for a reader, such as a file, which cannot write through this view.

        So it does not count as exposed, after which no op that reads it is deferred.
        """
        self.need_bytes()
        ensure_computed(self)
        return memoryview(export_of(self, True))

    def _address(self):
        """The address of the first byte, for comparing it with others; 0 on device meta."""
        ensure_computed(self)
        return 0 if self.device == META_NUMBER else <uintptr_t>self.data

    def data_ptr(self):
        """The address of the first byte; 0 on device meta."""
        reach(self, "data_ptr()")
        refuse_recording(b"an address is read")
        show(self)
        return 0 if self.device == META_NUMBER else <uintptr_t>self.data

    def nbytes(self):
        """Size in bytes."""
        return self.capacity

    size = nbytes

    def __len__(self):
        return self.capacity

    def element_size(self):
        """Bytes of an element: 1."""
        return 1

    @property
    def device(self):
        """The device that holds it."""
        from .tensor import device

        return device(DEVICES[self.device])

    cdef int need_bytes(self) except -1:
        if self.device > META_NUMBER:
            raise NotImplementedError(f"the bytes of this storage are on device '{DEVICES[self.device]}': "
                                      ".cpu() copies them")
        if self.device:
            raise MetaMemoryError("Not available for 'meta' device type: a storage there has a size and no bytes")
        refuse_recording(b"the bytes of a storage are read or written")
        return 0

    def resize_(self, size):
        """Grow or shrink to ``size`` bytes, keeping the contents; gives the storage. Every tensor on it moves along."""
        reach(self, "resize_() of a storage")
        resize_storage(self, size, True)
        return self

    def __getitem__(self, index):
        """A byte, or for a slice a storage on the same memory."""
        cdef int64_t first
        cdef Storage part
        if isinstance(index, slice):
            start, stop, step = index.indices(self.capacity)
            if step != 1:
                raise RuntimeError(f"tried to slice with a step of {step}, but only a step of 1 is supported")
            reach(self, "a slice of a storage")
            first = start
            if self.device <= META_NUMBER:
                self.need_bytes()
            show(self)
            owner = root(self).owner
            part = foreign_storage(self.data + first, max(stop - start, 0),
                                   export_of(self, False) if owner is None else owner)
            part.device = self.device
            return part
        return memoryview(on_host(self))[index]

    def __setitem__(self, index, value):
        cdef Storage there = on_host(self)
        view = memoryview(there)
        if isinstance(index, slice) and isinstance(value, int):
            value = bytes([value]) * len(range(*index.indices(self.capacity)))
        view[index] = memoryview(on_host(<Storage>value)) if isinstance(value, Storage) else value
        if there is not self:
            self.copy_(there)

    def __iter__(self):
        return iter(memoryview(on_host(self)).tolist())

    def resizable(self):
        """Whether the memory is taeda's own, so that it can grow."""
        return self.may_resize and not self.exports

    def copy_(self, source, non_blocking=None):
        """Copy the bytes of ``source``, a storage of the same size; gives the storage."""
        if source.nbytes() != self.capacity:
            raise RuntimeError(f"size mismatch: expected a storage of {self.capacity} bytes, got one of "
                               f"{source.nbytes()}")
        reach(self, "copy_() of a storage")
        cdef Storage there = source.untyped().cpu()
        if self.device > META_NUMBER:
            ensure_computed(self)
            ensure_computed(there)
            devices[self.device].copy(self.device, self.data, there.data, self.capacity, FROM_HOST)
            end_call()
            self.version += 1
        else:
            memoryview(self)[:] = memoryview(there)
        return self

    def fill_(self, int value):
        """Every byte ``value``; gives the storage."""
        reach(self, "fill_() of a storage")
        ensure_computed(self)
        if self.device > META_NUMBER:
            devices[self.device].fill(self.device, self.data, value & 255, self.capacity)
            end_call()
        else:
            self.need_bytes()
            memset(self.data, value, self.capacity)
        self.version += 1
        return self

    def new(self):
        """A storage of no bytes."""
        return Storage()

    def cpu(self):
        """The storage itself; of one on a device, a copy on the CPU."""
        if self.device == META_NUMBER:
            raise MetaMemoryError("Cannot copy out of meta tensor; no data!")
        return host_copy(self) if self.device else self

    def to(self, *, device, non_blocking=False):
        """The storage itself if it is on that device, or else a copy there."""
        from .launching import require_device
        from .tensor import device as named

        where = named(device)
        if not is_registered(where.type):
            require_device(where)
        cdef int number = device_number(where.type, where.index)
        if number == self.device:
            return self
        if number == META_NUMBER:
            return _on_meta(self.capacity)
        return self.cpu() if number == CPU_NUMBER else storage_on_device(DEVICES[number], self.cpu())

    def cuda(self, device=None, non_blocking=False):
        """The storage on an NVIDIA GPU: see :meth:`to`."""
        return self.to(device="cuda" if device is None else device)

    def untyped(self):
        """The storage itself: it is one of bytes."""
        return self

    def type(self, dtype=None):
        """The name of the type."""
        return f"{type(self).__module__}.{type(self).__name__}"

    def is_shared(self):
        """Whether other processes can see this memory."""
        from .shared import is_shared

        return is_shared(self)

    def share_memory_(self):
        """Move the memory to where other processes can see it; gives the storage."""
        from .sharing import share_storage

        share_storage(self)
        return self

    @staticmethod
    def from_file(filename, shared=False, nbytes=0):
        """A storage over a file, mapped into memory.

        Args:
            filename: its path.
            shared: whether what is written reaches the file, which is made as long as need be. Otherwise writing
                changes memory only.
            nbytes: the size. Default: that of the file.
        """
        from mmap import ACCESS_COPY, ACCESS_WRITE, mmap
        from os import O_CREAT, O_RDONLY, O_RDWR, close, fstat, ftruncate, open

        from .exchange import share_storage

        fd = open(filename, O_RDWR | O_CREAT if shared else O_RDONLY, 0o666)
        try:
            size = fstat(fd).st_size
            if shared and nbytes > size:
                ftruncate(fd, nbytes)
                size = nbytes
            nbytes = nbytes or size
            if nbytes > size:
                raise RuntimeError(f"file <{filename}> size <{size}> is smaller than the required mapping size "
                                   f"<{nbytes}>")
            if nbytes == 0:
                return Storage()
            return share_storage(mmap(fd, nbytes, access=ACCESS_WRITE if shared else ACCESS_COPY), 0, nbytes)
        finally:
            close(fd)

    @staticmethod
    def from_buffer(buffer, byte_order=None, count=-1, offset=0, *, dtype):
        """A storage with a copy of elements in a buffer.

        Args:
            buffer: bytes, or what has them.
            byte_order: ``"little"``, ``"big"`` or ``"native"``, in which the buffer is; needed for elements of several
                bytes.
            count: how many elements. Default: all.
            offset: bytes of the buffer to leave out in front.
            dtype: of the elements.
        """
        from sys import byteorder

        from numpy import frombuffer

        if byte_order not in (None, "little", "big", "native"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
        if byte_order is None and dtype.itemsize > 1:
            raise RuntimeError("from_buffer: function missing required argument 'byte_order' (pos 2), for elements of "
                               "several bytes")
        data = memoryview(buffer).cast("B")
        if not 0 <= offset <= len(data):
            raise ValueError(f"offset must be non-negative and no greater than buffer length ({len(data)}) , but got "
                             f"{offset}")
        if count < 0 and (len(data) - offset) % dtype.itemsize:
            raise ValueError(f"buffer size ({len(data) - offset}) must be a multiple of element size "
                             f"({dtype.itemsize})")
        nbytes = (len(data) - offset if count < 0 else count * dtype.itemsize)
        if nbytes > len(data) - offset:
            raise ValueError(f"buffer has only {len(data) - offset} bytes after offset {offset}, but specified a size "
                             f"of {nbytes}")
        part = data[offset:offset + nbytes]
        swapped = byte_order in ("little", "big") and byte_order != byteorder
        width = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        return _filled(frombuffer(part, f"u{width}").byteswap().tobytes() if swapped and width > 1 else bytes(part))

    def is_pinned(self, device=None):
        """Whether the memory is locked for transfers."""
        found = accelerator()
        return found is not None and not self.device and found.is_pinned(self)

    @property
    def is_cuda(self):
        """Whether the memory is on an NVIDIA GPU."""
        return DEVICES[self.device].startswith("cuda")

    filename = None
    is_sparse_csr = False
    is_sparse = False
    is_hpu = False

    @property
    def _cdata(self):
        return id(self)

    def tolist(self):
        """The bytes as a list of ints."""
        return list(bytes(on_host(self)))

    def clone(self):
        """A copy."""
        return self.__deepcopy__({})

    def __reduce_ex__(self, protocol):
        if self.device == META_NUMBER:
            return _on_meta, (self.capacity,)
        if self.device:
            return storage_on_device, (DEVICES[self.device], host_copy(self))
        if protocol >= 5:
            from pickle import PickleBuffer

            return _filled, (PickleBuffer(self),)  # the bytes may travel on their own, without a copy
        return _filled, (bytes(self),)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        reach(self, "a copy of a storage, or of a tensor by copy.deepcopy(),")
        cdef Storage made = Storage.__new__(Storage)
        made.born = generation
        give_block(made, self.capacity, self.device)
        ensure_computed(self)
        if self.device > META_NUMBER:
            devices[self.device].copy(self.device, made.data, self.data, self.capacity, WITHIN)
            end_call()
        elif not self.device:
            self.need_bytes()
            memcpy(made.data, self.data, self.capacity)
        memo[id(self)] = made
        return made

    def __repr__(self):
        return f"<Storage of {self.capacity} bytes, version {self.version}>"


def _filled(data):
    """A new Storage with a copy of ``data`` (for unpickling)."""
    cdef Py_buffer view
    cdef Storage made
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        made = new_storage(view.len)
        memcpy(made.data, view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    return made


cdef Storage host_copy(Storage storage):
    """The bytes of a storage on a device, on the CPU."""
    cdef Storage made = Storage.__new__(Storage)
    made.born = generation
    ensure_computed(storage)
    give_block(made, storage.capacity, CPU_NUMBER)
    devices[storage.device].copy(storage.device, made.data, storage.data, storage.capacity, TO_HOST)
    end_call()
    return made


cdef Storage on_host(Storage storage):
    """The storage itself; of one on a device, a copy on the CPU."""
    return host_copy(storage) if storage.device > META_NUMBER else storage


def storage_on_device(str name, Storage source):
    """A new Storage with the bytes of ``source``, which is on the CPU, on the device of that name."""
    cdef Storage made = Storage.__new__(Storage)
    cdef int number = device_number(*name.split(":"))
    made.born = generation
    ensure_computed(source)
    give_block(made, source.capacity, number)
    devices[number].copy(number, made.data, source.data, source.capacity, FROM_HOST)
    end_call()
    return made


def _on_meta(int64_t nbytes):
    """A new Storage of that size on device meta (for unpickling)."""
    cdef Storage made = Storage.__new__(Storage)
    made.born = generation
    give_block(made, nbytes, META_NUMBER)
    return made


def _amount(n):
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n < 1024:
            return f"{n} {unit}" if isinstance(n, int) else f"{n:.2f} {unit}"
        n /= 1024
    return f"{n:.2f} TiB"


cdef object refuse(int64_t nbytes):
    if nbytes < 0:
        return RuntimeError(f"storage: expected a size of at least 0 bytes, got {nbytes} (the sizes overflow)")
    if memory_limit < 0:
        learn_limits()
    return OutOfMemoryError(
        f"out of memory on cpu: tried to allocate {_amount(nbytes)}; {_amount(stats.allocated)} are in use by tensors, "
        f"{_amount(stats.reserved - stats.allocated)} more are held, and this process may have {_amount(memory_limit)} "
        "in all. Free tensors, use smaller batches, or raise the memory limit of the machine or container"
    )


cdef int64_t generation = 0


cdef int64_t begin_generation() noexcept:
    global generation
    generation += 1
    return generation


cdef Storage new_storage(int64_t nbytes):
    cdef Storage storage = Storage.__new__(Storage)
    storage.born = generation
    give_block(storage, nbytes, here() if elsewhere else CPU_NUMBER)
    return storage


cdef int64_t nowhere = 0         # bytes that were given out of addresses that no process has


cdef Storage late_storage(int64_t nbytes, object holder):
    global nowhere
    cdef Storage storage = Storage.__new__(Storage)
    storage.born = generation
    storage.late = []
    storage.data = <char*>((<uintptr_t>1 << 62) + <uintptr_t>nowhere)
    storage.capacity = storage.block = nbytes
    storage.device = here() if elsewhere else CPU_NUMBER
    storage.may_resize = True
    nowhere = (nowhere + (nbytes + 4096) // 64 * 64) % (<int64_t>1 << 62)
    storage.late.append(PyWeakref_NewRef(holder, None))
    return storage


cdef int give_block(Storage storage, int64_t nbytes, int device) except -1:
    """Memory for a new storage."""
    cdef char* data
    if device == CPU_NUMBER:
        data = <char*>allocate(nbytes)
        if data != NULL and elsewhere:
            note_allocated(data, nbytes)
    elif device == META_NUMBER:
        data = <char*>allocate_planned(nbytes)
    else:
        data = <char*>devices[device].allocate(device, nbytes)
        end_call()
    if data == NULL:
        raise refuse(nbytes) if device <= META_NUMBER else OutOfMemoryError(
            f"out of memory on {DEVICES[device]}: tried to allocate {_amount(nbytes)}")
    storage.data = data
    storage.capacity = storage.block = nbytes
    storage.may_resize = True
    if device:
        storage.device = device
        if device == META_NUMBER:
            count_planned(nbytes)
    return 0


cdef void release_block(Storage storage, char* data, int64_t nbytes) noexcept:
    if storage.device > META_NUMBER:
        devices[storage.device].release(storage.device, data, nbytes)
    elif storage.device:
        count_planned(-nbytes)
        release_planned(data, nbytes)
    else:
        if elsewhere:
            note_released(data)
        release(data, nbytes)


cdef Storage foreign_storage(void* data, int64_t nbytes, object owner):
    cdef Storage storage = Storage.__new__(Storage)
    storage.born = generation
    storage.data = <char*>data
    storage.capacity = storage.block = nbytes
    storage.owner = owner if owner is not None else ()  # None would mean that the allocator owns it
    return storage


def device_storage(int device, size_t address, int64_t nbytes, owner):
    """Memory of a registered device, by its number; ``owner`` is kept alive as long as the storage."""
    cdef Storage storage = foreign_storage(<void*>address, nbytes, owner)
    storage.device = device
    return storage


cdef int resize_storage(Storage storage, int64_t nbytes, bint tell) except -1:
    if not storage.may_resize:
        raise RuntimeError(
            f"Trying to resize storage that is not resizable: its {storage.capacity} bytes belong to "
            f"{type(storage.owner).__name__}; clone the tensor first"
        )
    if storage.exports:
        raise RuntimeError(
            f"Trying to resize storage that is not resizable: a NumPy array, a memoryview or another library shows its "
            f"{storage.capacity} bytes; clone the tensor first, or delete the array"
        )
    ensure_computed(storage)
    if 0 <= nbytes <= storage.block or (nbytes >= 0 and storage.block and not storage.device
                                        and class_of(nbytes) == class_of(storage.block)):
        # The memory of a shrunken storage is kept: its tensors may still show elements that are there.
        storage.block = max(storage.block, nbytes)
        storage.capacity = nbytes
        return 0
    refuse_recording(b"a storage is resized")
    cdef char* old = storage.data
    cdef int64_t old_block = storage.block, kept = min(nbytes, storage.capacity)
    give_block(storage, nbytes, storage.device)
    if storage.device > META_NUMBER:
        devices[storage.device].copy(storage.device, storage.data, old, kept, WITHIN)
    elif not storage.device:
        memcpy(storage.data, old, <size_t>kept)
    if tell and MOVED is not None:
        MOVED(storage, <uintptr_t>old)
    release_block(storage, old, old_block)
    return 0


cdef Storage root(Storage storage):
    while isinstance(storage.owner, Storage):
        storage = storage.owner
    return storage


@cython.final
@cython.freelist(32)
@cython.no_gc
cdef class Export:
    """The memory of a storage, as an array or memoryview has it: it is not freed or moved while this object lives."""

    cdef Storage storage
    cdef bint readonly

    def __dealloc__(self):
        self.storage.exports -= 1
        if not self.storage.exports:
            self.storage.left = None

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.storage.data, self.storage.capacity, self.readonly, flags)

    def __releasebuffer__(self, Py_buffer* buffer):
        free(buffer.internal)  # sizes and strides of a tensor


cdef object export_of(Storage storage, bint readonly):
    cdef Export export = Export.__new__(Export)
    export.storage, export.readonly = root(storage), readonly
    export.storage.exports += 1
    return export


cdef bint keeps_address(int flags) noexcept:
    return flags & PyBUF_ANY_CONTIGUOUS == PyBUF_ANY_CONTIGUOUS and not flags & PyBUF_FORMAT


cdef object REACHED = None


def on_reach(function):
    """Call ``function(storage, what)`` before ``what`` gives Python the bytes of a storage, or their address."""
    global REACHED
    REACHED = function


cdef int reach(Storage storage, str what) except -1:
    if REACHED is not None:
        REACHED(root(storage), what)
    return 0


cdef object MOVED = None


def on_move(function):
    """Call ``function(storage, old address)`` when a storage was given another block, before the old one goes."""
    global MOVED
    MOVED = function


cdef int64_t bytes_in_use() noexcept nogil:
    return atomics._load(&stats.allocated, atomics.RELAXED)
