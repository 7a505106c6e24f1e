"""The CPU random number generator, with PyTorch's streams.

A Generator holds the state of an MT19937. It makes numbers in two steps. The words of the stream go in order into a
small buffer that stays in the first-level cache. A kernel of ``kernels/random.py`` turns them into elements of the
output. Long fills are cut into parts, whose threads jump to where their words begin.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.math cimport cos, exp, log1p, sin, sqrt
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from .devices cimport (
    CPU_NUMBER, FROM_HOST, META_NUMBER, count_elsewhere, devices, elsewhere, end_call, here, number_of, swap_place,
)
from .mt19937_jump cimport Jump, jump_over
from .memory cimport allocate, release
from .planners cimport build, known, new_owner, of_arguments
from .pool cimport UNHEARD, Watch, heed, kernel_t, launch, parallel_for, watch
from .recorder cimport Recorder, is_observing, note_launch, refuse_recording, resume, suspend
from .tensor cimport F64, ITEMSIZE, U8, Tensor, address_of, empty_tensor

from threading import get_ident

from .devices import DEVICES
from .pool import get_num_threads
from .tensor import DTYPE_NAMES, device

cdef extern from "pythread.h" nogil:
    PyThread_type_lock PyThread_allocate_lock()
    void PyThread_free_lock(PyThread_type_lock lock)
    int PyThread_acquire_lock(PyThread_type_lock lock, int wait)
    void PyThread_release_lock(PyThread_type_lock lock)

cdef extern from *:
    """
    #if defined(_MSC_VER) && !defined(__clang__)
      #define TAEDA_PREFETCH(p) ((void)(p))
    #else
      #define TAEDA_PREFETCH(p) __builtin_prefetch(p)
    #endif
    """
    void prefetch "TAEDA_PREFETCH"(const void* p) noexcept nogil

cdef enum:
    N = 624
    M = 397
    SMALL = 1024          # words that are kept on the stack
    SPAN = 33 * 624       # words that a later state is made from (kernels/random.py)

cdef int64_t IN_GRAPH = 0x7FFFFFFFFFFFFFFF   # the calls of a graph have negative numbers: see kernels/philox.py
cdef kernel_t twist_kernel = NULL, temper_kernel = NULL, fence_kernel = NULL, jump_kernel = NULL
cdef int64_t forks = 0  # how many led from the first process to this one
cdef uint64_t DISTRIBUTION = new_owner("random.distribution")


cdef struct Saved:        # PyTorch's layout, so that states can be exchanged
    uint64_t seed
    int left
    int seeded
    uint64_t next
    uint64_t state[624]
    double normal_x
    double normal_y
    double normal_rho
    int normal_is_valid
    int pad
    float next_float
    char has_float
    char pad2[3]


# ---- the twister -----------------------------------------------------------------------------------------------------
cdef inline uint32_t mix(uint32_t low, uint32_t high, uint32_t far) noexcept nogil:
    cdef uint32_t y = (low & 0x80000000u) | (high & 0x7FFFFFFFu)
    return far ^ (y >> 1) ^ ((0u - (y & 1)) & 0x9908B0DFu)


cdef void twist(uint32_t* s) noexcept nogil:
    cdef int i
    for i in range(N - M):
        s[i] = mix(s[i], s[i + 1], s[i + M])
    for i in range(N - M, N - 1):
        s[i] = mix(s[i], s[i + 1], s[i + M - N])
    s[N - 1] = mix(s[N - 1], s[0], s[M - 1])


cdef void reseed(Generator g, uint64_t seed) noexcept nogil:
    cdef int i
    g.seeded_with = seed
    g.state[0] = <uint32_t>seed
    for i in range(1, N):
        g.state[i] = 1812433253u * (g.state[i - 1] ^ (g.state[i - 1] >> 30)) + <uint32_t>i
    g.position = N
    g.fresh = True
    g.has_double = g.has_float = False


cdef inline uint32_t temper(uint32_t y) noexcept nogil:
    y ^= y >> 11
    y ^= (y << 7) & 0x9D2C5680u
    y ^= (y << 15) & 0xEFC60000u
    return y ^ (y >> 18)


cdef uint32_t next32(Generator g) noexcept nogil:
    if g.position == N:
        twist(g.state)
        g.position = 0
        g.fresh = False
    g.position += 1
    return temper(g.state[g.position - 1])


cdef uint64_t next64(Generator g) noexcept nogil:
    cdef uint64_t high = next32(g)
    return (high << 32) | next32(g)


cdef double next_unit(Generator g) noexcept nogil:
    """Uniform in [0, 1), 53 bits."""
    return <double>(next64(g) & ((<uint64_t>1 << 53) - 1)) * (1.0 / 9007199254740992.0)


cdef uint32_t* next_raw(uint32_t* state, int64_t* position, uint32_t* buffer, int64_t count) noexcept nogil:
    """The next words, not yet tempered: where they begin, in ``buffer``, which has room for BLOCKS more, or in the
    state.

    The sequence goes on from the block in the state, whole blocks at a time, of which the last is the new state.
    """
    cdef int64_t i, blocks, first = position[0]
    cdef char* ptr[1]
    if first + count <= N:
        position[0] = first + count
        return state + first
    blocks = (first + count - 1) // N
    memcpy(buffer, state, N * 4)
    if twist_kernel != NULL:
        ptr[0] = <char*>buffer
        twist_kernel(ptr, NULL, 0, blocks * N)
    else:
        for i in range(blocks * N):
            buffer[i + N] = mix(buffer[i], buffer[i + 1], buffer[i + M])
    memcpy(state, buffer + blocks * N, N * 4)
    position[0] = first + count - blocks * N
    return buffer + first


cdef uint32_t* make_raw(Generator g, uint32_t* buffer, int64_t count) noexcept nogil:
    """:func:`next_raw` of a generator."""
    if g.position + count > N:
        g.fresh = False
    return next_raw(g.state, &g.position, buffer, count)


cdef void make_words(Generator g, uint32_t* out, int64_t count) noexcept nogil:
    """The next words of the stream."""
    cdef uint32_t buffer[SOME + BLOCKS]
    cdef int64_t i, done = 0, now
    cdef char* ptr[2]
    while done < count:
        now = min(count - done, <int64_t>SOME)
        ptr[0], ptr[1] = <char*>(out + done), <char*>make_raw(g, buffer, now)
        if temper_kernel != NULL:
            temper_kernel(ptr, NULL, 0, now)
        else:
            for i in range(now):
                out[done + i] = temper((<uint32_t*>ptr[1])[i])
        done += now


cdef int enter(Generator g) except -1:
    refuse_recording(b"the state of a generator is read or set")
    if g.forks != forks:
        g.guard, g.forks = PyThread_allocate_lock(), forks  # the old one may be in any state: it is given up
    if not PyThread_acquire_lock(g.guard, 0):
        with nogil:
            PyThread_acquire_lock(g.guard, 1)
    return 0


cdef void leave(Generator g) noexcept nogil:
    PyThread_release_lock(g.guard)


@cython.binding(False)
cdef class Generator:
    """A source of random numbers with its own state: the Mersenne Twister MT19937 (Matsumoto and Nishimura 1998), as
    PyTorch has it on the CPU; Philox 4x32-10 (Salmon et al. 2011) on a GPU.

    Args:
        device: where its numbers are used.
    Examples:
        >>> a, b = taeda.Generator().manual_seed(7), taeda.Generator().manual_seed(7)
        >>> taeda.equal(taeda.rand(3, generator=a), taeda.rand(3, generator=b))
        True
    """

    def __cinit__(self, device="cpu"):
        self.guard = PyThread_allocate_lock()
        if self.guard == NULL:
            raise MemoryError()
        self.forks = forks
        self.device_name = "cpu" if device is None else name_of_device(device)
        self.by_counter = self.device_name in COUNTING
        reseed(self, DEFAULT_SEED)

    def __dealloc__(self):
        if self.guard != NULL:
            PyThread_free_lock(self.guard)

    def manual_seed(self, seed):
        """Start the stream of ``seed``; gives the generator.

        Args:
            seed: an int in [-2**63, 2**64); a negative one counts from 2**64 down.
        """
        if isinstance(seed, bool) or not hasattr(seed, "__index__") or hasattr(seed, "dim"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        seed = int(seed)
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError(f"manual_seed: expected a seed in [-2**63, 2**64), got {seed}")
        expect_no_graph(self, "manual_seed")
        enter(self)
        reseed(self, <uint64_t>(seed & 0xFFFFFFFFFFFFFFFF))
        self.calls = 0
        leave(self)
        return self

    def seed(self):
        """Seed from the system's entropy; gives the seed."""
        import os

        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self):
        """The seed that the stream was started with."""
        return self.seeded_with

    @property
    def device(self):
        """The device on which its numbers are used."""
        return device(self.device_name)

    def get_offset(self):
        """The offset of a GPU's generator: four for each call that drew from it.

        Raises:
            RuntimeError: it is the CPU's.
        """
        expect_counter(self, "get_offset")
        return self.calls

    def set_offset(self, offset):
        """Continue a GPU's generator from :meth:`get_offset`.

        Args:
            offset: a multiple of 4.
        """
        expect_counter(self, "set_offset")
        if offset < 0 or offset % 4:
            raise RuntimeError(f"set_offset: offset must be a multiple of 4, got {offset}")
        expect_no_graph(self, "set_offset")
        self.calls = offset
        return self

    def state_bytes(self):
        """The state as PyTorch lays it out: 5056 bytes; for a GPU 16, the seed and the offset."""
        cdef Saved saved
        cdef int i
        if self.by_counter:
            expect_no_graph(self, "get_state")
            return self.seeded_with.to_bytes(8, "little") + self.calls.to_bytes(8, "little")
        memset(&saved, 0, sizeof(Saved))
        enter(self)
        saved.seed = self.seeded_with
        saved.seeded = 1
        saved.left = 1 if self.fresh else <int>(N + 1 - self.position)
        saved.next = 0 if self.fresh else self.position
        for i in range(N):
            saved.state[i] = self.state[i]
        if self.has_double:
            saved.normal_y = self.next_double
            saved.normal_is_valid = 1
        if self.has_float:
            saved.next_float = self.next_float
            saved.has_float = 1
        leave(self)
        return PyBytes_FromStringAndSize(<char*>&saved, sizeof(Saved))

    def set_state_bytes(self, bytes data):
        """Continue from a state that :meth:`state_bytes` or PyTorch gave."""
        cdef Saved saved
        cdef int i
        if self.by_counter:
            if len(data) != 16:
                raise RuntimeError(f"set_state: expected a state of 16 bytes, got {len(data)}")
            self.manual_seed(int.from_bytes(data[:8], "little"))
            self.calls = int.from_bytes(data[8:], "little")
            return
        if PyBytes_GET_SIZE(data) != sizeof(Saved):
            raise RuntimeError(f"set_state: expected a state of {sizeof(Saved)} bytes, got {PyBytes_GET_SIZE(data)}")
        memcpy(&saved, PyBytes_AS_STRING(data), sizeof(Saved))
        if saved.next > N or saved.left < 1 or saved.left > N or saved.seeded != 1:
            raise RuntimeError("set_state: expected a generator's state, got bytes that are none")
        enter(self)
        self.seeded_with = saved.seed
        # `left` decides in PyTorch's state: 1 means that the next draw makes a new block.
        self.fresh = saved.left == 1 and saved.next == 0
        self.position = N + 1 - saved.left
        for i in range(N):
            self.state[i] = <uint32_t>saved.state[i]
        self.has_double = saved.normal_is_valid
        self.next_double = saved.normal_y
        self.has_float = saved.has_float
        self.next_float = saved.next_float
        leave(self)

    def get_state(self):
        """The state as a uint8 tensor on the CPU of 5056 elements, which PyTorch's ``set_state`` takes too; of 16 for a
        GPU."""
        cdef bytes data = self.state_bytes()
        cdef int64_t n = len(data)
        cdef Tensor t = empty_tensor(U8, 1, &n)
        memcpy(address_of(t), PyBytes_AS_STRING(data), n)
        return t

    def set_state(self, state):
        """Continue from ``state``, a uint8 tensor that :meth:`get_state` gave."""
        cdef Tensor t
        if not isinstance(state, Tensor) or (<Tensor>state).code != U8:
            got = f"{state.dtype} tensor" if isinstance(state, Tensor) else type(state).__name__
            raise TypeError(f"set_state: expected a uint8 tensor, got a {got}")
        t = state.contiguous()
        self.set_state_bytes(PyBytes_FromStringAndSize(address_of(t), t.count))
        return self

    def clone_state(self):
        """A new generator in the same state."""
        return _restore(self.state_bytes(), self.device_name)

    def __reduce__(self):
        return _restore, (self.state_bytes(), self.device_name)

    def __deepcopy__(self, memo):
        return self.clone_state()

    def __repr__(self):
        return f"<taeda.Generator device='{self.device_name}' seed={self.seeded_with}>"

    def random(self):
        """The next word of the stream, 32 bits."""
        cdef Generator g = stream_of(self)
        enter(g)
        word = next32(g)
        leave(g)
        return word

    def random64(self):
        """The next two words as one number of 64 bits."""
        cdef Generator g = stream_of(self)
        enter(g)
        word = next64(g)
        leave(g)
        return word


def _restore(state, device="cpu"):
    made = Generator(device)
    made.set_state_bytes(state)
    return made


cdef set COUNTING = set()     # names of devices that draw for themselves, with their index


cdef str name_of_device(given):
    """The name of a device for a generator, with its index where it has one."""
    cdef object d = given if isinstance(given, device) else device(given)
    cdef int number = number_of(d.type, d.index)
    if number in (-1, META_NUMBER):
        raise RuntimeError(f"Generator: expected device 'cpu' or an accelerator that there is, got '{given}'")
    return DEVICES[number] if DEVICES[number] in COUNTING else str(given) if number else "cpu"


cdef int expect_counter(Generator g, str name) except -1:
    if not g.by_counter:
        raise RuntimeError(f"Generator.{name}: generators of the CPU have no offset")
    return 0


cdef int expect_no_graph(Generator g, str name) except -1:
    if g.graph_state:
        raise RuntimeError(f"Generator.{name}: not while a graph is captured that draws from it. Its launches continue "
                           "from the state that the generator has then")
    return 0


cdef set capturing = set()    # threads that capture graphs


def begin_graph(Generator generator, uint64_t state):
    """Let a graph take over this thread's draws from ``generator``: its launches read the seed and the number of calls
    at the address ``state``. The thread may not draw from other generators.
    """
    cdef object thread = get_ident()
    if generator.graph_state:
        raise RuntimeError("a generator can be drawn from in one capture at a time")
    capturing.add(thread)
    generator.graph_state, generator.graph_calls, generator.graph_thread = state, 0, thread


def end_graph(Generator generator, uint64_t state):
    """The end of :func:`begin_graph`; gives how far the generator goes in each launch of the graph."""
    if generator.graph_state != state:
        return 0
    capturing.discard(get_ident())
    generator.graph_state = 0
    return generator.graph_calls


cdef int number_call(Generator g, int64_t* seed_and_call) except -1:
    """The seed and the number of a call that draws now."""
    if capturing:
        if g.graph_state and g.graph_thread == get_ident():
            seed_and_call[0], seed_and_call[1] = <int64_t>g.graph_state, g.graph_calls - IN_GRAPH - 1
            g.graph_calls += 4
            return 0
        if g.graph_state or get_ident() in capturing:
            raise RuntimeError("a generator is drawn from while a CUDA graph is captured: the graph must know it "
                               "(CUDAGraph.register_generator_state), and no other thread may draw from it")
    enter(g)
    seed_and_call[0], seed_and_call[1] = <int64_t>g.seeded_with, <int64_t>g.calls
    g.calls += 4
    leave(g)
    return 0


DEFAULT_SEED = 67280421310721
default_generator = Generator()
default_generator.seed()  # a program that sets no seed draws other numbers each time, as in PyTorch
cdef Generator _default = default_generator
#: The default generators of the devices that draw for themselves, by the number of the device.
GENERATORS = {}
cdef Generator stand_in = None    # on the CPU, for tests


def draw_there(numbers):
    """Let the devices of those numbers draw for themselves; each gets a generator, seeded as the CPU's was."""
    for number in numbers:
        COUNTING.add(DEVICES[number])
        GENERATORS[number] = Generator(DEVICES[number]).manual_seed(_default.seeded_with)


def draw_as_on(generator):
    """Draw on the CPU as a device does, from a generator of one, or with None no longer: so a test can compare the two.

    Kernels must have one lane (``TAEDA_TARGET=lane``).
    """
    global stand_in
    count_elsewhere((generator is not None) - (stand_in is not None))
    stand_in = generator


def seed_all(seed):
    """Seed the default generators of all devices."""
    for g in (_default, *GENERATORS.values()):
        g.manual_seed(seed)


def all_states():
    """The states of the default generators of all devices; :func:`set_all_states` puts them back."""
    return {number: g.state_bytes() for number, g in ((0, _default), *GENERATORS.items())}


def set_all_states(dict states):
    """Continue the default generators from :func:`all_states`."""
    for number, state in states.items():
        (GENERATORS[number] if number else _default).set_state_bytes(state)


# ---- parts of the stream, side by side -------------------------------------------------------------------------------
# Long fills are cut into a part for each thread, which jumps to where it begins (mt19937_jump.pyx).
cdef struct Part:
    kernel_t fn
    const int64_t* arg
    int count             # number of pointers; the second is of the words
    char* base[4]
    int64_t strides[4]    # bytes per step
    int64_t words         # per step
    int64_t steps         # steps of all parts
    int64_t share         # steps of a part but the last
    uint32_t* sequence    # SPAN words from the state
    Jump** jumps          # by part but the first
    uint32_t* states      # by part: where each ends
    int64_t position
    int64_t end           # position at the end of the last


cdef void run_part(char** ptr, const int64_t* unused, int64_t begin, int64_t end) noexcept nogil:
    """Parts of a fill, as the kernel of a launch."""
    cdef Part* p = <Part*>ptr[0]
    cdef uint32_t buffer[SOME + BLOCKS]
    cdef char* at[4]
    cdef uint32_t* state
    cdef Jump* jump
    cdef int64_t part, done, stop, now, position, chunk = SOME // p.words
    cdef int i
    for part in range(begin, end):
        state, position = p.states + part * N, p.position
        if part:
            jump = p.jumps[part]
            memset(state, 0, N * 4)
            at[0], at[1], at[2], at[3] = <char*>state, <char*>p.sequence, <char*>jump.places, <char*>jump.starts
            jump_kernel(at, NULL, 0, 16)
        else:
            memcpy(state, p.sequence, N * 4)
        done, stop = part * p.share, min(p.steps, (part + 1) * p.share)
        while done < stop:
            now = min(stop - done, chunk)
            for i in range(p.count):
                at[i] = p.base[i] + done * p.strides[i]
            at[1] = <char*>next_raw(state, &position, buffer, now * p.words)
            p.fn(at, p.arg, 0, now)
            done += now
        fence_kernel(NULL, NULL, 0, 0)  # kernels may have stored past the cache
        if stop == p.steps:
            p.end = position


cdef int run_parts(Generator g, Part* p, int64_t least) except -1:
    """All parts of a fill, which the caller holds the generator for."""
    global jump_kernel
    cdef int64_t parts = min(<int64_t>get_num_threads(), p.steps * p.words // least), unit, i
    cdef Jump* jumps[64]
    cdef char* ptr[1]
    cdef uint32_t* memory
    cdef list held = []
    parts = max(1, min(parts, 64))
    p.share = p.steps
    if parts > 1:  # in few lengths, so that few distances are met: a 64th more than equal at most
        unit = N
        while unit * 128 < p.steps // parts:
            unit *= 2
        p.share = (p.steps // parts // unit + 1) * unit
        parts = (p.steps - 1) // p.share + 1
    if parts > 1 and jump_kernel == NULL:
        from ..kernels import random as source

        jump_kernel = <kernel_t><size_t>source.jump()
    for i in range(1, parts):
        held.append(jump_over(i * p.share * p.words))
        jumps[i] = <Jump*>PyBytes_AS_STRING(held[i - 1])
    memory = <uint32_t*>allocate((SPAN + parts * N) * 4)
    if memory == NULL:
        raise MemoryError()
    with nogil:
        p.sequence, p.states, p.jumps, p.position = memory, memory + SPAN, jumps, g.position
        memcpy(memory, g.state, N * 4)
        ptr[0] = <char*>memory
        if parts > 1:
            twist_kernel(ptr, NULL, 0, SPAN - N)
        ptr[0] = <char*>p
        parallel_for(run_part, ptr, NULL, parts, 1, False)
        memcpy(g.state, p.states + (parts - 1) * N, N * 4)
        g.fresh = g.fresh and p.end == g.position
        g.position = p.end
    release(memory, (SPAN + parts * N) * 4)
    return 0


cdef Generator which(object generator):
    if generator is None:
        return _default if not elsewhere else default_here()
    if not isinstance(generator, Generator):
        raise TypeError(f"generator: expected a taeda.Generator, got {type(generator).__name__}")
    cdef Generator g = generator
    if g.by_counter or elsewhere and here() in GENERATORS:
        wanted = DEVICES[here()] if here() != META_NUMBER else g.device_name
        if wanted != g.device_name and stand_in is None:
            raise RuntimeError(f"Expected a '{wanted}' device type for generator but found '{g.device_name}'")
    return g


cdef Generator default_here():
    """The default generator of this thread's place."""
    if here() == CPU_NUMBER and stand_in is not None:
        return stand_in
    return GENERATORS.get(here(), _default)


cdef Generator stream_of(Generator g):
    cdef Generator made
    cdef int64_t at[2]
    if not g.by_counter:
        return g
    if g.graph_state:
        raise RuntimeError("numbers that are drawn on the CPU for a GPU cannot be captured into a CUDA graph: it would "
                           "have the same ones in each launch")
    number_call(g, at)
    made = Generator()
    reseed(made, <uint64_t>at[0] ^ <uint64_t>at[1] * <uint64_t>0x9E3779B97F4A7C15u)
    return made


cdef int draw_by_counter(Generator g, str fn, tuple key, char** ptr, int nptr, int64_t n, int64_t a,
                         int64_t b) except -1:
    cdef int64_t* arg = [a, b, 0, 0]
    cdef kernel_t made = of_arguments("philox." + fn, key)
    if n <= 0:
        return 0
    number_call(g, arg + 2)
    launch(made, ptr, nptr, arg, 4, n, 1 << 14, False)
    return 0


def _after_fork():
    """Another thread may have been drawing at the moment of the fork: locks are of one process."""
    global forks
    forks += 1


import os as _os

if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_after_fork)


# ---- filling memory --------------------------------------------------------------------------------------------------
cdef list NAMES = ["uniform", "integers", "wide_integers", "bernoulli", "exponential", "geometric", "cauchy", "normal",
                   "normal_pairs", "log_normal_pairs"]
DISTRIBUTIONS = {name: i for i, name in enumerate(NAMES)}
#: Words and elements of one step of each kernel; twice the words for the uniform and normal numbers of float64.
cdef int[10] WORDS = [1, 1, 2, 2, 2, 2, 2, 16, 4, 4]
cdef int[10] ELEMENTS = [1, 1, 1, 1, 1, 1, 1, 16, 2, 2]


cdef kernel_t find(int distribution, int code) except NULL:
    """The kernel, compiled at its first use."""
    global twist_kernel, temper_kernel, fence_kernel
    cdef kernel_t fn = known(DISTRIBUTION, distribution << 8 | code)
    if fn != NULL:
        return fn
    if code >= <int>len(DTYPE_NAMES):
        raise NotImplementedError(f"\"{NAMES[distribution]}\" not implemented for complex dtypes; draw the parts and "
                                  "join them with taeda.complex")
    from ..kernels import random as source

    if twist_kernel == NULL:
        temper_kernel, fence_kernel = <kernel_t><size_t>source.temper(), <kernel_t><size_t>source.fence()
        twist_kernel = <kernel_t><size_t>source.twist()
    return build(DISTRIBUTION, distribution << 8 | code, (NAMES[distribution], DTYPE_NAMES[code]))


cdef inline int words_of(int distribution, int code) noexcept nogil:
    return WORDS[distribution] * (2 if code == F64 and (distribution == UNIFORM or distribution == NORMAL) else 1)


cdef int run_steps(Generator g, kernel_t fn, char** base, int64_t* strides, int count, int64_t steps, int64_t* arg,
                   int64_t words, int64_t least, uint32_t* buffer) except -1 nogil:
    cdef int64_t done = 0, now, chunk = SOME // words
    cdef char* ptr[4]
    cdef int i
    cdef Part p
    cdef Watch w = watch(steps)
    while (steps - done) * words >= 2 * least:
        p.fn, p.arg, p.count, p.words = fn, arg, count, words
        p.steps = min(steps - done, AT_ONCE // words)
        for i in range(count):
            p.base[i], p.strides[i] = base[i] + done * strides[i], strides[i]
        with gil:
            run_parts(g, &p, least)
        done += p.steps
        heed(&w)
    while done < steps:
        now = min(steps - done, chunk)
        for i in range(count):
            ptr[i] = base[i] + done * strides[i]
        ptr[1] = <char*>make_raw(g, buffer, now * words)
        fn(ptr, arg, 0, now)
        done += now
    return 0


cdef int fill_from(Generator g, kernel_t fn, char* out, int64_t steps, int64_t* arg, int64_t words, int64_t step_bytes,
                   int64_t least, uint32_t* buffer) except -1 nogil:
    """:func:`run_steps` of a kernel that writes ``out`` and reads nothing but words."""
    cdef char** base = [out, NULL]
    cdef int64_t* strides = [step_bytes, 0]
    return run_steps(g, fn, base, strides, 2, steps, arg, words, least, buffer)


cdef int normal_fill(Generator g, kernel_t fn, char* out, int64_t n, int64_t itemsize, int64_t* arg, int64_t words,
                     bint reduced, uint32_t* buffer) except -1 nogil:
    """At least 16 normal numbers: blocks of 16, and where they do not come out even the last 16 again from new words.

    PyTorch first draws all uniforms (16-bit types: those of whole blocks), so the rest of the last partial block is
    dropped.
    """
    cdef int64_t blocks = n // 16, rest = n % 16
    fill_from(g, fn, out, blocks, arg, words, 16 * itemsize, HEAVY, buffer)
    if rest:
        if not reduced:
            make_raw(g, buffer, rest * (words // 16))
        fill_from(g, fn, out + (n - 16) * itemsize, 1, arg, words, 16 * itemsize, HEAVY, buffer)
    return 0


cdef void draw_pair(Generator g, double* first, double* second) noexcept nogil:
    cdef double u = next_unit(g), v = next_unit(g)
    cdef double radius = sqrt(-2.0 * log1p(-v)), angle = 6.283185307179586 * u
    first[0] = radius * cos(angle)
    second[0] = radius * sin(angle)


cdef inline double finish(double x, double mean, double std, bint exponent) noexcept nogil:
    x = x * std + mean
    return exp(x) if exponent else x


cdef inline void store_double(char* out, int64_t i, int itemsize, double x) noexcept nogil:
    if itemsize == 8:
        (<double*>out)[i] = x
    else:
        (<float*>out)[i] = <float>x


cdef int normal_one_by_one(Generator g, kernel_t pairs, char* out, int64_t n, int itemsize, double mean, double std,
                           bint exponent, uint32_t* buffer) except -1 nogil:
    """Normal numbers in pairs, in float64; half a pair that is left over waits in the generator."""
    cdef int64_t done = 0, whole
    cdef double first, second
    cdef int64_t arg[2]
    memcpy(&arg[0], &mean, 8)
    memcpy(&arg[1], &std, 8)
    if n and g.has_double:
        g.has_double = False
        store_double(out, 0, itemsize, finish(g.next_double, mean, std, exponent))
        done = 1
    whole = (n - done) // 2
    if pairs != NULL and whole > 16:
        fill_from(g, pairs, out + done * itemsize, whole, arg, 4, 2 * itemsize, HEAVY, buffer)
        done += 2 * whole
    while done < n:
        draw_pair(g, &first, &second)
        store_double(out, done, itemsize, finish(first, mean, std, exponent))
        done += 1
        if done < n:
            store_double(out, done, itemsize, finish(second, mean, std, exponent))
            done += 1
        else:
            g.next_double = second
            g.has_double = True
    return 0


cdef double next_normal(Generator g) noexcept nogil:
    cdef double first
    if g.has_double:
        g.has_double = False
        return g.next_double
    draw_pair(g, &first, &g.next_double)
    g.has_double = True
    return first


# A draw is a launch as well: of a function that takes numbers from the default generator whenever it is run.

cdef bint is_draw_planned(Generator g, kernel_t draw, char** ptr, int nptr, const int64_t* arg, int narg) except -1:
    """On a thread that plans or is observed: keep the draw, as a launch. Whether it is done with then."""
    cdef Recorder* r
    if not elsewhere or not here() and not is_observing():
        return False
    if g is not _default:
        refuse_recording(b"numbers are drawn from a generator of its own")
        return here() == META_NUMBER
    if not here():
        note_launch(<void*>draw, ptr, nptr, arg, narg, 1, 1, True, False)
        r = suspend()
        draw(ptr, arg, 0, 1)
        resume(r)
        return True
    launch(draw, ptr, nptr, arg, narg, 1, 1, True)
    return True


cdef void draw_memory(char** ptr, const int64_t* arg, int64_t begin, int64_t end) noexcept nogil:
    with gil:
        fill_memory(_default, <int>arg[0], <int>arg[1], ptr[0], arg[2], arg[3], arg[4])


cdef void draw_pairs(char** ptr, const int64_t* arg, int64_t begin, int64_t end) noexcept nogil:
    with gil:
        fill_pairs(_default, <int>arg[0], ptr[0], arg[1], (<double*>(arg + 2))[0], (<double*>(arg + 3))[0], arg[4])


cdef void draw_order(char** ptr, const int64_t* arg, int64_t begin, int64_t end) noexcept nogil:
    with gil:
        shuffle(_default, <int64_t*>ptr[0], arg[0])


cdef enum:
    DRAW_MEMORY, DRAW_PAIRS, DRAW_ORDER


cdef int draw_for(Generator g, int what, char* out, int64_t nbytes, const int64_t* numbers) except -1:
    """Draw on the host for memory of a device: the same numbers as on the CPU."""
    cdef int number = swap_place(CPU_NUMBER)
    cdef char* room = <char*>allocate(nbytes)
    try:
        if room == NULL:
            raise MemoryError(f"no memory for {nbytes} bytes of random numbers")
        if what == DRAW_MEMORY:
            fill_memory(g, <int>numbers[0], <int>numbers[1], room, numbers[2], numbers[3], numbers[4])
        elif what == DRAW_PAIRS:
            fill_pairs(g, <int>numbers[0], room, numbers[1], (<double*>(numbers + 2))[0], (<double*>(numbers + 3))[0],
                       numbers[4])
        else:
            shuffle(g, <int64_t*>room, numbers[0])
        devices[number].copy(number, out, room, nbytes, FROM_HOST)
    finally:
        if room != NULL:
            release(room, nbytes)
        swap_place(number)
    return end_call()


cdef int fill_memory(Generator g, int distribution, int code, char* out, int64_t n, int64_t a, int64_t b) except -1:
    cdef int64_t arg[2]
    cdef uint32_t few[SMALL + BLOCKS]
    cdef uint32_t* buffer = few
    cdef kernel_t fn
    cdef int64_t words = words_of(distribution, code)
    cdef int64_t elements = ELEMENTS[distribution], itemsize = ITEMSIZE[code], room = 0
    cdef int64_t least = LIGHT if distribution <= BERNOULLI else HEAVY
    cdef int64_t* planned = [distribution, code, n, a, b]
    if g.by_counter:
        if code >= <int>len(DTYPE_NAMES):
            find(distribution, code)  # raises the error
        return draw_by_counter(g, "fill", (NAMES[distribution], DTYPE_NAMES[code]), &out, 1, n, a, b)
    if elsewhere and here() > META_NUMBER and n > 0:
        return draw_for(g, DRAW_MEMORY, out, n * itemsize, planned)
    fn = find(distribution, code)
    if n <= 0 or is_draw_planned(g, draw_memory, &out, 1, planned, 5):
        return 0
    arg[0], arg[1] = a, b
    if (n // elements + 1) * words > SMALL:
        room = (SOME + BLOCKS) * 4
        buffer = <uint32_t*>allocate(room)
        if buffer == NULL:
            raise MemoryError()
    enter(g)
    if room == 0:  # too short to give up the GIL
        fill_steps(g, fn, out, n, arg, words, elements, itemsize, least, buffer)
        leave(g)
        return 0
    try:
        with nogil:
            fill_steps(g, fn, out, n, arg, words, elements, itemsize, least, buffer)
    finally:
        leave(g)
        release(buffer, room)
    return 0


cdef int fill_steps(Generator g, kernel_t fn, char* out, int64_t n, int64_t* arg, int64_t words, int64_t elements,
                    int64_t itemsize, int64_t least, uint32_t* buffer) except -1 nogil:
    if elements == 16:
        return normal_fill(g, fn, out, n, itemsize, arg, words, itemsize == 2, buffer)
    return fill_from(g, fn, out, n, arg, words, itemsize, least, buffer)


cdef int fill_pairs(Generator g, int code, char* out, int64_t n, double mean, double std, bint exponent) except -1:
    cdef kernel_t fn = NULL
    cdef uint32_t* buffer = NULL
    cdef int64_t* planned = [code, n, (<int64_t*>&mean)[0], (<int64_t*>&std)[0], exponent]
    if g.by_counter:
        return draw_by_counter(g, "fill", ("log_normal" if exponent else "normal", DTYPE_NAMES[code]), &out, 1, n,
                               planned[2], planned[3])
    if elsewhere and here() > META_NUMBER:
        return draw_for(g, DRAW_PAIRS, out, n * ITEMSIZE[code], planned)
    if is_draw_planned(g, draw_pairs, &out, 1, planned, 5):
        return 0
    if n > 32:
        fn = find(LOG_NORMAL_PAIRS if exponent else NORMAL_PAIRS, code)
        buffer = <uint32_t*>allocate((SOME + BLOCKS) * 4)
        if buffer == NULL:
            raise MemoryError()
    enter(g)
    try:
        normal_one_by_one(g, fn, out, n, ITEMSIZE[code], mean, std, exponent, buffer)
    finally:
        leave(g)
        if buffer != NULL:
            release(buffer, (SOME + BLOCKS) * 4)
    return 0


cdef int shuffle(Generator g, int64_t* out, int64_t n) except -1:
    """A permutation of [0, n) at ``out``: Fisher and Yates, forward, as PyTorch draws it."""
    cdef int64_t i = 0, k, count, room
    cdef uint32_t* order
    cdef uint32_t* words
    cdef uint32_t t
    cdef char* to = <char*>out
    cdef Watch w = watch(n)
    g = stream_of(g)
    if elsewhere and here() > META_NUMBER:
        return draw_for(g, DRAW_ORDER, to, n * 8, &n)
    if is_draw_planned(g, draw_order, &to, 1, &n, 1):
        return 0
    if n >= 214748364:  # 2**32 / 20: from here on a remainder of 32 bits would not be uniform enough
        return shuffle_large(g, out, n)
    room = (n + 1) * 4
    order = <uint32_t*>allocate(room)
    words = <uint32_t*>allocate(SOME * 4)
    if order == NULL or words == NULL:
        raise MemoryError()
    enter(g)
    try:
        with nogil:
            while i < n:
                count = min(n - i, <int64_t>UNHEARD)
                for k in range(i, i + count):
                    order[k] = <uint32_t>k
                i += count
                heed(&w, count)
            i = 0
            while i < n - 1:
                count = min(n - 1 - i, <int64_t>SOME)
                make_words(g, words, count)
                for k in range(count):
                    words[k] = words[k] % <uint32_t>(n - i - k) + <uint32_t>(i + k)
                for k in range(count):
                    if k + 24 < count:
                        prefetch(&order[words[k + 24]])
                    t = order[i + k]
                    order[i + k] = order[words[k]]
                    order[words[k]] = t
                i += count
                heed(&w, count)
            i = 0
            while i < n:
                count = min(n - i, <int64_t>UNHEARD)
                for k in range(i, i + count):
                    out[k] = order[k]
                i += count
                heed(&w, count)
    finally:
        leave(g)
        release(order, room)
        release(words, SOME * 4)
    return 0


cdef int shuffle_large(Generator g, int64_t* out, int64_t n) except -1:
    cdef int64_t i, z
    cdef Watch w = watch(n)
    enter(g)
    try:
        with nogil:
            for i in range(n):
                z = <int64_t>(next64(g) % <uint64_t>(i + 1))
                out[i] = i
                out[i] = out[z]
                out[z] = i
                if i % UNHEARD == 0:
                    heed(&w)
    finally:
        leave(g)
    return 0
