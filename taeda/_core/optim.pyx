"""The launch of an optimizer's update over many parameters, checked and run again at every step without leaving C.

See ``taeda/kernels/optim.py`` for the kernel and its tables, ``taeda/optim/_elementwise.py`` for the callers.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memcmp, memcpy

from .devices cimport CPU_NUMBER, FROM_TABLE, META_NUMBER, devices, end_call, here, swap_place
from .memory cimport release_scratch, take_scratch
from .planners cimport new_owner, of_arguments, of_family
from .pool cimport kernel_t, launch
from .recorder cimport Recorder, is_observing, note_call, note_table, resume, suspend
from .tensor cimport F32, F64, ITEMSIZE, KIND, NOTHING, VALUES, Tensor, address_of, contiguous_tensor, empty_tensor
from .versions cimport dict_version

from .callbacks import callbacks

cdef enum:
    MAXCOUNTERS = 8
    MAXSCALARS = 16
    SERIAL = 32768  # elements below which one thread is faster than two

cdef uint64_t GIVE_NUMBER = new_owner("optim.give_number")


cdef inline bint same_layout(Tensor a, Tensor b) noexcept:
    """Whether elements of equal index have the same offset."""
    cdef int i
    if a.nd != b.nd or memcmp(a.sizes, b.sizes, a.nd * sizeof(int64_t)) != 0:
        return False
    if a.contiguous and b.contiguous:
        return True
    for i in range(a.nd):
        if a.sizes[i] > 1 and a.strides[i] != b.strides[i]:
            return False
    return True


cdef struct Seen:                # versions of dicts: of all states, and of one parameter's state in it
    int64_t version, own
    PyObject* entry


cdef class Plan:
    """One update rule over parameters of one dtype: their tensors, the kernel's tables, the chunks.

    Args:
        kernel: address of the kernel.
        params: the parameters, contiguous or at least dense.
        states: per parameter, its state tensors, with the layout of the parameter.
        names: their names in the optimizer's state.
        counters: the names of the one-element state tensors that the rule's scalars depend on.
        nscalars: number of the rule's scalars.
        chunk: elements of one chunk.
    """

    cdef list params, states
    cdef list held               # gradients that were copied for the launch
    cdef list counted            # for each parameter its counters, as `has_state` found them
    cdef tuple names, counters
    cdef int64_t* table
    cdef int64_t* chunks
    cdef Seen* seen              # for each parameter its state when it was looked at last
    cdef Py_ssize_t n, nstates, nscalars, ncounters, width
    cdef int64_t nchunks, grain
    cdef kernel_t kernel
    cdef int code
    cdef int number          # the device's number

    def __cinit__(self, size_t kernel, list params, list states, tuple names, tuple counters, int nscalars,
                  int64_t chunk):
        cdef Py_ssize_t i, c = 0
        cdef int64_t at, count, total = 0
        cdef Tensor p
        if len(counters) > MAXCOUNTERS or nscalars > MAXSCALARS:
            raise ValueError(f"Plan: at most {MAXCOUNTERS} counters and {MAXSCALARS} scalars")
        self.kernel = <kernel_t>kernel
        self.params, self.states, self.names, self.counters = params, states, names, counters
        self.n, self.nstates, self.nscalars, self.ncounters = len(params), len(names), nscalars, len(counters)
        self.width = 2 + self.nstates + nscalars
        self.code, self.number = (<Tensor>params[0]).code, (<Tensor>params[0]).device_type
        self.counted = [None] * (self.n * self.ncounters)
        self.table = <int64_t*>calloc(self.n * self.width, 8)
        self.seen = <Seen*>calloc(self.n, sizeof(Seen))
        for p in params:
            c += (self.elements(p) + chunk - 1) // chunk
        self.chunks = <int64_t*>malloc(c * 24 + 24)
        if self.table == NULL or self.chunks == NULL or self.seen == NULL:
            raise MemoryError()
        self.nchunks = c
        c = 0
        for i in range(self.n):
            count = self.elements(params[i])
            total += count
            at = 0
            while at < count:
                self.chunks[3 * c] = i
                self.chunks[3 * c + 1] = at
                self.chunks[3 * c + 2] = min(chunk, count - at)
                at += chunk
                c += 1
        self.grain = max(1, self.nchunks * SERIAL // max(total, 1))

    def __dealloc__(self):
        free(self.table)
        free(self.chunks)
        free(self.seen)

    cdef inline bint takes(self, Tensor t):
        """Whether ``t`` is on the device of the plan and its memory holds its values."""
        return t.device_type == self.number and (t.holds == VALUES or self.number != CPU_NUMBER)

    cdef inline int64_t elements(self, Tensor p):
        return p.count * 2 if KIND[p.code] == 3 else p.count

    def ready(self, state):
        """Look up this step's gradients and check that nothing has changed since the plan was made.

        Returns:
            False if the plan does not fit any more; then nothing has been changed.
        """
        cdef int before = swap_place(self.number if self.number else here())
        try:
            return self.look_up(state)
        finally:
            swap_place(before)

    cdef bint look_up(self, object state) except -1:
        cdef Py_ssize_t i, j
        cdef Tensor p, g
        cdef int64_t* row = self.table
        self.held = None
        for i in range(self.n):
            p = <Tensor>self.params[i]
            if p.grad_ is None or p.code != self.code or not self.takes(p):
                return False
            g = <Tensor>p.grad_
            if not self.takes(g) or g.code != p.code or g.nd != p.nd or \
                    memcmp(g.sizes, p.sizes, p.nd * sizeof(int64_t)) != 0:
                return False
            if not same_layout(g, p):
                if not p.contiguous:
                    return False
                g = contiguous_tensor(g)
                if self.held is None:
                    self.held = []
                self.held.append(g)
            row[0] = <int64_t>address_of(p)
            row[1] = <int64_t>address_of(g)
            if not self.has_state(state, i):
                return False
            for j in range(self.nstates):
                row[2 + j] = <int64_t>address_of(<Tensor>(<tuple>self.states[i])[j])
            row += self.width
        return True

    cdef bint has_state(self, object state, Py_ssize_t i) except -1:
        """Whether the state of a parameter is unchanged since the plan was made."""
        cdef Py_ssize_t j
        cdef Tensor s, p = <Tensor>self.params[i]
        cdef Seen* seen = &self.seen[i]
        if not self.nstates and not self.ncounters:
            return True
        if not isinstance(state, dict):
            return False
        if (seen.version == 0 or seen.version != dict_version(<PyObject*>state)
                or seen.own != dict_version(seen.entry)) and not self.look_at_state(state, i):
            return False
        for j in range(self.nstates):
            s = <Tensor>(<tuple>self.states[i])[j]
            if s.code != p.code or not self.takes(s) or not same_layout(s, p):
                return False
        for j in range(self.ncounters):
            s = <Tensor>self.counted[i * self.ncounters + j]
            if s.count != 1 or (s.code != F32 and s.code != F64) or s.holds != VALUES:
                return False
        return True

    cdef bint look_at_state(self, object state, Py_ssize_t i) except -1:
        """Whether a parameter's state has the tensors of the plan; its counters are kept."""
        cdef Py_ssize_t j
        cdef PyObject* entry = PyDict_GetItem(state, <Tensor>self.params[i])
        cdef PyObject* found
        if entry == NULL or not isinstance(<object>entry, dict):
            return False
        for j in range(self.nstates):
            found = PyDict_GetItem(<dict>entry, self.names[j])
            if found == NULL or found != <PyObject*>(<tuple>self.states[i])[j]:
                return False
        for j in range(self.ncounters):
            found = PyDict_GetItem(<dict>entry, self.counters[j])
            if found == NULL or not isinstance(<object>found, Tensor):
                return False
            self.counted[i * self.ncounters + j] = <Tensor>found
        self.seen[i] = Seen(dict_version(<PyObject*>state), dict_version(entry), entry)
        return True

    def run(self, optimizer, group):
        """Update everything; ``optimizer._scalars(group, counters)`` gives the new counters and the rule's scalars.

        Call it only after :meth:`ready` returned True.
        """
        cdef Recorder* recorder
        if is_observing():
            note_call(Update(self, optimizer, group))
            recorder = suspend()   # a replay counts again
            try:
                self.count(optimizer, group, self.table)
            finally:
                resume(recorder)
            note_table(self.table, self.n, self.width, 2 + self.nstates)
            note_table(self.chunks, self.nchunks, 3, 0)
        elif callbacks.captures is not None and callbacks.captures(Update(self, optimizer, group)):
            pass                       # each launch counts
        else:
            self.count(optimizer, group, self.table)
        self.update(self.number != META_NUMBER)

    cdef int count(self, object optimizer, object group, int64_t* table) except -1:
        """Count the step, and put its scalars into the rows of ``table``; after `has_state` for every parameter."""
        cdef double now[MAXCOUNTERS]
        cdef double last[MAXCOUNTERS]
        cdef double after[MAXCOUNTERS]
        cdef double values[MAXSCALARS]
        cdef Py_ssize_t i, j
        cdef Tensor t
        cdef bint known = False
        cdef int64_t* row = table
        scalars = optimizer._scalars
        for i in range(self.n):
            if self.ncounters:
                for j in range(self.ncounters):
                    t = <Tensor>self.counted[i * self.ncounters + j]
                    now[j] = (<float*>address_of(t))[0] if t.code == F32 else (<double*>address_of(t))[0]
            if not known or memcmp(now, last, self.ncounters * sizeof(double)) != 0:
                known = True
                memcpy(last, now, self.ncounters * sizeof(double))
                new, numbers = scalars(group, tuple([now[j] for j in range(self.ncounters)]))
                for j in range(self.ncounters):
                    after[j] = new[j]
                for j in range(self.nscalars):
                    values[j] = numbers[j]
            for j in range(self.ncounters):
                t = <Tensor>self.counted[i * self.ncounters + j]
                if t.code == F32:
                    (<float*>address_of(t))[0] = <float>after[j]
                else:
                    (<double*>address_of(t))[0] = after[j]
                t.storage.version += 1
            memcpy(row + 2 + self.nstates, values, self.nscalars * sizeof(double))
            row += self.width
        return 0

    def once(self, list grads, list scalars):
        """Update everything with these gradients and, for each parameter, these scalars; no counters.

        Returns:
            False if a tensor has another layout or dtype than its parameter; then nothing has been changed.
        """
        cdef Py_ssize_t i, j
        cdef Tensor p, g, s
        cdef int64_t* row = self.table
        cdef double number
        self.held = []
        for i in range(self.n):
            p, g = <Tensor>self.params[i], <Tensor?>grads[i]
            if p.code != self.code or g.code != p.code or not self.takes(p) or not self.takes(g) or \
                    not same_layout(g, p) and not (p.contiguous and g.count == p.count):
                return False
            if not same_layout(g, p):
                g = contiguous_tensor(g)
                self.held.append(g)
            row[0], row[1] = <int64_t>address_of(p), <int64_t>address_of(g)
            for j in range(self.nstates):
                s = <Tensor>(<tuple>self.states[i])[j]
                if s.code != p.code or not self.takes(s) or not same_layout(s, p):
                    return False
                row[2 + j] = <int64_t>address_of(s)
            for j in range(self.nscalars):
                number = scalars[i][j]
                memcpy(row + 2 + self.nstates + j, &number, 8)
            row += self.width
        self.update(True)
        return True

    cdef int update(self, bint runs) except -1:
        """Fill the table, launch the kernel on it if it ``runs``, and mark the tensors that it writes to as changed."""
        cdef Py_ssize_t i, j
        cdef char** pointers = [<char*>self.table, <char*>self.chunks]
        cdef int before
        for i in range(self.n):
            (<Tensor>self.params[i]).storage.version += 1
            for j in range(self.nstates):
                (<Tensor>(<tuple>self.states[i])[j]).storage.version += 1
        if runs and self.number > META_NUMBER:
            before = swap_place(self.number)
            try:
                pointers[0] = send(self.table, self.n * self.width * 8)
                pointers[1] = send(self.chunks, self.nchunks * 24)
                launch(self.kernel, pointers, 2, NULL, 0, self.nchunks, self.grain, False)
                release_scratch(pointers[0], self.n * self.width * 8)
                release_scratch(pointers[1], self.nchunks * 24)
            finally:
                swap_place(before)
        elif runs:
            launch(self.kernel, pointers, 2, NULL, 0, self.nchunks, self.grain, False)
        self.held = None
        return 0


cdef char* send(const void* table, int64_t nbytes) except NULL:
    """A table of the host where the launches of this thread's place, a device, read it; `release_scratch` ends it."""
    cdef char* there = <char*>take_scratch(nbytes)
    if there == NULL:
        raise MemoryError(f"no memory for a table of {nbytes} bytes")
    devices[here()].copy(here(), there, table, nbytes, FROM_TABLE)
    return there


cdef class Update:
    """The part of an optimizer's step outside of launches: count it, and compute the arguments of its launch."""

    cdef readonly Plan plan
    cdef readonly object optimizer
    cdef readonly dict group
    cdef int64_t version         # of the group when its flags were as the plan's; 0 where an option is no constant
    cdef list idle               # parameters of the group without a gradient

    def __cinit__(self, Plan plan, optimizer, dict group):
        self.plan, self.optimizer, self.group = plan, optimizer, group
        self.idle = [p for p in group["params"] if (<Tensor>p).grad_ is None]

    def __eq__(self, other):
        return isinstance(other, Update) and self.plan is (<Update>other).plan and self.group is (<Update>other).group

    def fits(self):
        """Whether the optimizer would run this step by the same launch."""
        cdef Py_ssize_t i
        optimizer = self.optimizer
        for p in self.idle:
            if (<Tensor>p).grad_ is not None:
                return False
        for group in optimizer.param_groups:
            if group is self.group:
                break
        else:
            return False
        if self.version == 0 or self.version != dict_version(<PyObject*>self.group):
            if (<object>self.plan).flags != optimizer._flags(self.group):
                return False
            self.version = dict_version(<PyObject*>self.group) if self.is_constant() else 0
        for i in range(self.plan.n):
            if not self.plan.has_state(optimizer.state, i):
                return False
        return True

    cdef bint is_constant(self):
        """Whether another value of an option would be another object."""
        for name, value in self.group.items():
            for x in (value if type(value) is tuple else (value,)):
                if name != "params" and x is not None and type(x) not in (int, float, bool, str):
                    return False
        return True

    def replay(self, size_t table):
        """Count the step; its scalars go to the rows at that address."""
        self.plan.count(self.optimizer, self.group, <int64_t*>table)


def covered(list params, list known, bytes has_grad):
    """Whether ``params`` are still the tensors ``known``, with gradients where ``has_grad`` is 1 and nowhere else."""
    cdef Py_ssize_t i, n = PyList_GET_SIZE(params)
    cdef const char* flags = has_grad
    if n != PyList_GET_SIZE(known):
        return False
    for i in range(n):
        if <PyObject*>params[i] != <PyObject*>known[i]:
            return False
        if ((<Tensor>params[i]).grad_ is not None) != (flags[i] == 1):
            return False
    return True


def drop_grads(list params):
    """``p.grad = None`` for every parameter."""
    cdef Tensor p
    for p in params:
        if p.holds == NOTHING:
            p.grad = None  # that also clears its parts' gradients
        else:
            p.grad_ = None


cdef class _Chunks:
    """Addresses and chunks of many tensors, for kernels that visit all of them once."""

    cdef int64_t* addresses
    cdef int64_t* chunks
    cdef double* partial         # a number for each chunk
    cdef int64_t n, ntensors, total, grain

    def __cinit__(self, list tensors, int64_t chunk):
        cdef Py_ssize_t i, count = len(tensors)
        cdef int64_t at, c = 0
        cdef Tensor t
        for t in tensors:
            c += (t.count + chunk - 1) // chunk
            self.total += t.count
        self.addresses = <int64_t*>malloc((count + 1) * 8)
        self.chunks = <int64_t*>malloc(c * 24 + 24)
        self.partial = <double*>take_scratch(c * 8 + 8)
        if self.addresses == NULL or self.chunks == NULL or self.partial == NULL:
            raise MemoryError()
        self.n, self.ntensors = c, count
        c = 0
        for i in range(count):
            t = <Tensor>tensors[i]
            self.addresses[i] = <int64_t>address_of(t)
            at = 0
            while at < t.count:
                self.chunks[3 * c] = i
                self.chunks[3 * c + 1] = at
                self.chunks[3 * c + 2] = min(chunk, t.count - at)
                at += chunk
                c += 1
        self.grain = max(1, self.n * SERIAL // max(self.total, 1))

    def __dealloc__(self):
        free(self.addresses)
        free(self.chunks)
        if self.partial != NULL:
            release_scratch(self.partial, self.n * 8 + 8)

    cdef int launch(self, kernel_t kernel, list others=None, char* partial=NULL) except -1:
        cdef char* pointers[4]
        cdef bytearray places = bytearray(8 * len(others)) if others is not None else None
        cdef Py_ssize_t i
        pointers[3] = NULL
        if others is not None:
            pointers[3] = PyByteArray_AS_STRING(places)
            for i in range(len(others)):
                (<int64_t*>pointers[3])[i] = <int64_t>address_of(<Tensor>others[i])
            note_table(pointers[3], len(others), 1, 1)
        pointers[0] = partial if partial != NULL else <char*>self.partial
        pointers[1] = <char*>self.addresses
        pointers[2] = <char*>self.chunks
        note_table(self.addresses, self.ntensors, 1, 1)
        note_table(self.chunks, self.n, 3, 0)
        if here() > META_NUMBER:
            return self.launch_there(kernel, pointers, 0 if others is None else len(others))
        launch(kernel, pointers, 4, NULL, 0, self.n, self.grain, False)
        return 0

    cdef int launch_there(self, kernel_t kernel, char** pointers, int64_t nothers) except -1:
        cdef int64_t[3] sizes
        cdef int i
        sizes[0], sizes[1], sizes[2] = self.ntensors * 8, self.n * 24, nothers * 8
        for i in range(3):
            if pointers[1 + i] != NULL:
                pointers[1 + i] = send(pointers[1 + i], sizes[i])
        launch(kernel, pointers, 4, NULL, 0, self.n, self.grain, False)
        for i in range(3):
            if pointers[1 + i] != NULL:
                release_scratch(pointers[1 + i], sizes[i])
        return end_call()


def alike(list tensors):
    """Whether all are contiguous tensors of one dtype."""
    cdef Py_ssize_t i
    cdef int code
    for i in range(len(tensors)):
        if not isinstance(tensors[i], Tensor):
            return False
    if not tensors:
        return False
    code = (<Tensor>tensors[0]).code
    for i in range(len(tensors)):
        if (<Tensor>tensors[i]).code != code or not (<Tensor>tensors[i]).contiguous:
            return False
    return True


def norm(size_t kernel, list tensors, int64_t chunk, str order, bint together):
    """The norm of order "1", "2" or "inf" of all tensors, a 0-dimensional float64 tensor; ``kernel`` computes a chunk's
    norm. Not ``together``: those of the chunks.
    """
    cdef _Chunks work = _Chunks(tensors, chunk)
    cdef Tensor made = empty_tensor(F64, 0 if together else 1, &work.n)
    cdef char* pointers[2]
    work.launch(<kernel_t>kernel, None, NULL if together else address_of(made))
    if not together:
        return made
    pointers[0], pointers[1] = address_of(made), <char*>work.partial
    launch(of_arguments("optim.join_norms", (order,)), pointers, 2, &work.n, 1, 1, 1, True)
    return made


def norms(size_t kernel, size_t join, list tensors, int64_t chunk):
    """The norm of each of some tensors of one dtype, which a tensor of that dtype has; ``join`` is
    :func:`taeda.kernels.optim.join_each`."""
    cdef _Chunks work = _Chunks(tensors, chunk)
    cdef int64_t n = len(tensors), i, size = 8 * (n + 1)
    cdef Tensor made = empty_tensor((<Tensor>tensors[0]).code, 1, &n), partial = empty_tensor(F64, 1, &work.n)
    cdef bytearray starts_ = bytearray(size)
    cdef int64_t* starts = <int64_t*>PyByteArray_AS_STRING(starts_)
    cdef char** pointers = [address_of(made), address_of(partial), <char*>starts]
    for i in range(n):
        starts[i + 1] = starts[i] + ((<Tensor>tensors[i]).count + chunk - 1) // chunk
    work.launch(<kernel_t>kernel, None, pointers[1])
    note_table(starts, n + 1, 1, 0)
    if here() > META_NUMBER:
        pointers[2] = send(starts, size)
    launch(<kernel_t>join, pointers, 3, NULL, 0, n, 1, True)
    if here() > META_NUMBER:
        release_scratch(pointers[2], size)
        end_call()
    return made


def change_all(size_t kernel, list tensors, int64_t chunk, number, list others=None):
    """Change every tensor in place, by ``number`` (a float, or a float64 tensor of one element) and by its
    counterpart in ``others``."""
    cdef _Chunks work = _Chunks(tensors, chunk)
    cdef Tensor t
    cdef double value = 0
    cdef char* pointers[2]
    if isinstance(number, Tensor):
        if (<Tensor>number).code != F64 or (<Tensor>number).count != 1:
            raise TypeError("change_all: expected a number or a float64 tensor of one element")
        pointers[1] = address_of(<Tensor>number)
    else:
        value, pointers[1] = number, NULL
    pointers[0] = <char*>work.partial
    launch(of_family(GIVE_NUMBER), pointers, 2, <int64_t*>&value, 1, 1, 1, True)
    for t in tensors:
        t.storage.version += 1
    work.launch(<kernel_t>kernel, others)


cdef struct Span:                # of memory
    char* begin
    char* end


cdef int by_begin(const void* a, const void* b) noexcept nogil:
    cdef char* x = (<const Span*>a).begin
    cdef char* y = (<const Span*>b).begin
    return (x > y) - (x < y)


cdef inline Span span_of(Tensor t) except *:
    cdef Span s
    s.begin = address_of(t)
    s.end = s.begin + t.count * ITEMSIZE[t.code]
    return s


cdef bint meets(const Span* spans, Py_ssize_t n, Span s) noexcept:
    """Whether ``s`` has memory of one of the sorted spans, which do not meet."""
    cdef Py_ssize_t low = 0, high = n, middle
    while low < high:
        middle = (low + high) // 2
        if spans[middle].end <= s.begin:
            low = middle + 1
        else:
            high = middle
    return low < n and spans[low].begin < s.end


def apply_to_all(size_t kernel, list tensors, list lists, list numbers, int64_t chunk):
    """Write an op's result to each of ``tensors``, by a kernel of :func:`taeda.kernels.optim.applied`.

    Args:
        tensors: contiguous, on one device, as are those of ``lists``.
        lists: for each operand that is a tensor, those of all.
        numbers: for each that is a number, those of all.

    Returns:
        False where a tensor that is written is read or written with another one, and the order counts; then nothing
        has been done.
    """
    cdef Py_ssize_t n = len(tensors), nlists = 1 + len(lists), width = nlists + len(numbers), i, k, c = 0, used = 0
    cdef bytearray spans_ = bytearray(n * sizeof(Span)), rows = bytearray(8 * n * width), cuts
    cdef Span* spans = <Span*>PyByteArray_AS_STRING(spans_)
    cdef int64_t* table = <int64_t*>PyByteArray_AS_STRING(rows)
    cdef int64_t* chunks
    cdef int64_t at, total = 0
    cdef char** pointers = [NULL, NULL]
    cdef double number
    cdef Tensor t
    cdef Span s
    for i in range(n):
        t = <Tensor?>tensors[i]
        if t.count:
            spans[used] = span_of(t)
            used += 1
            c += (t.count + chunk - 1) // chunk
            total += t.count
    qsort(spans, used, sizeof(Span), by_begin)
    for i in range(1, used):
        if spans[i].begin < spans[i - 1].end:
            return False
    for i in range(n):
        t = <Tensor>tensors[i]
        table[i * width] = <int64_t>address_of(t)
        for k in range(nlists - 1):
            s = span_of(<Tensor?>(<list?>lists[k])[i])
            if s.begin != <char*>table[i * width] and meets(spans, used, s):
                return False
            table[i * width + 1 + k] = <int64_t>s.begin
        for k in range(width - nlists):
            number = numbers[k][i]
            memcpy(table + i * width + nlists + k, &number, 8)
    cuts = bytearray(24 * c)
    chunks = <int64_t*>PyByteArray_AS_STRING(cuts)
    c = 0
    for i in range(n):
        t = <Tensor>tensors[i]
        t.storage.version += 1
        for at in range(0, t.count, chunk):
            chunks[3 * c], chunks[3 * c + 1], chunks[3 * c + 2] = i, at, min(chunk, t.count - at)
            c += 1
    if not c:
        return True
    note_table(table, n, width, nlists)
    note_table(chunks, c, 3, 0)
    pointers[0], pointers[1] = <char*>table, <char*>chunks
    if here() <= META_NUMBER:
        launch(<kernel_t>kernel, pointers, 2, NULL, 0, c, max(1, c * SERIAL // total), False)
        return True
    pointers[0], pointers[1] = send(table, 8 * n * width), send(chunks, 24 * c)
    launch(<kernel_t>kernel, pointers, 2, NULL, 0, c, 1, False)
    release_scratch(pointers[0], 8 * n * width)
    release_scratch(pointers[1], 24 * c)
    end_call()
    return True
