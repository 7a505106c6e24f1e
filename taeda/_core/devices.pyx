"""The table of devices: the CPU, meta, and those that Python has registered. See docs/devices.md."""

import atexit
import contextlib
import functools
import importlib
import math
import threading

from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memmove, memset

cdef extern from *:
    """
    #if defined(_MSC_VER) && !defined(__clang__)
      static __declspec(thread) int taeda_place = 0;
    #else
      static __thread int taeda_place = 0;
    #endif
    """
    int word "taeda_place"

#: Names of the devices, by number: ``cpu``, ``meta``, then ``far:0`` and the like.
DEVICES = ["cpu", "meta"]
#: Registered devices by number; None for the CPU and meta.
REGISTERED = [None, None]

cdef Device[MOST_DEVICES] table
cdef Device* devices = &table[0]
cdef Behind[MOST_DEVICES] table_behind
cdef Behind* behind = &table_behind[0]
cdef int nstreams = 0
cdef int elsewhere = 0
#: Types of devices: the numbers of those that there are, by index.
DEVICE_TYPES = {"cpu": [CPU_NUMBER], "meta": [META_NUMBER]}
cdef dict NUMBERS = DEVICE_TYPES
#: Types of devices that are looked for when somebody first asks for one: modules whose `find` registers those that
#: there are, and gives None, or why there is none.
LATE = {"cuda": "taeda.cuda._contract"}
#: Why there is no device of a type.
ABSENT = {}
#: The type of the accelerator; None if there is none.
ACCELERATOR = None
cdef object failures = threading.local()
cdef int failed = 0  # how many threads have an error in `failures`: a number that costs nothing to ask


# ---- the place -------------------------------------------------------------------------------------------------------

cdef void count_elsewhere(int change) noexcept nogil:
    global elsewhere
    elsewhere += change


cdef int here() noexcept nogil:
    return word


cdef int swap_place(int number) noexcept nogil:
    global word, elsewhere
    cdef int before = word
    elsewhere += (number != CPU_NUMBER) - (before != CPU_NUMBER)
    word = number
    return before


cdef int kernel_place() noexcept nogil:
    return CPU_NUMBER if word == META_NUMBER else word


cdef void count_streams(int count) noexcept:
    global nstreams
    nstreams = count


cdef int stream_here() noexcept:
    cdef int number = word, first = NUMBERS[ACCELERATOR][0]
    return behind[number].stream(number) if behind[number].stream != NULL else behind[first].stream(CPU_NUMBER)


def current_place():
    """The number of the device on which this thread's calls run: 0 for the CPU, 1 while it plans."""
    return word


def kernel_device():
    """The number of the device that this thread's kernels are built for."""
    return kernel_place()


def set_place(int number):
    """Let this thread's calls run on the device of that number; gives the number before."""
    if not 0 <= number < len(DEVICES):
        raise ValueError(f"set_place: there is no device number {number}")
    return swap_place(number)


# ---- names -----------------------------------------------------------------------------------------------------------

cdef int number_of(str type, object index) except -2:
    numbers = NUMBERS.get(type)
    if numbers is None:
        if not LATE or not is_registered(type):
            return -1
        numbers = NUMBERS[type]
    if numbers[0] <= META_NUMBER:
        return numbers[0]
    if index is None:
        index = REGISTERED[numbers[0]].current
    return numbers[index] if index < len(numbers) else -1


def is_registered(str type):
    """Whether there is a device of that type."""
    if type in LATE:
        ABSENT[type] = importlib.import_module(LATE.pop(type)).find()
    return type in NUMBERS


def accelerator():
    """The :class:`Contract` of the current accelerator; None if there is none."""
    if LATE:
        for type in list(LATE):
            is_registered(type)
    return None if ACCELERATOR is None else REGISTERED[number_of(ACCELERATOR, None)]


def set_accelerator(str type):
    """Let the devices of a type be the accelerators."""
    global ACCELERATOR
    ACCELERATOR = type


def device_count(str type):
    """The number of devices of that type."""
    is_registered(type)
    return len(NUMBERS.get(type, ()))


def device_number(str type, index=None):
    """The number of a device.

    Raises:
        RuntimeError: there is no device of that type and index.
    """
    number = number_of(type, None if index is None else int(index))
    if number < 0 and type in NUMBERS:
        raise RuntimeError(f"{type.upper()} error: invalid device ordinal: there are {device_count(type)} devices of "
                           f"type {type}, and there is no device '{type}:{index}'")
    if number < 0:
        raise RuntimeError(f"there is no device '{type}{'' if index is None else f':{index}'}'; there are "
                           f"{', '.join(DEVICES)}")
    return number


# ---- devices written in Python ---------------------------------------------------------------------------------------

class Contract:
    """The functions of a device. Addresses are ints, and so is the kernel that ``build`` returns.

    A device is a subclass of this, with what differs. ``number`` and ``index`` are set by :func:`register_device`.
    """

    number = index = -1
    current = 0     # the index of the current device of this type
    dlpack_type = None   # as DLPack numbers types of devices, where other libraries reach the memory
    fuses = False   # whether `build` takes kernels of several ops (`fused`): then `taeda.compile` makes such
    attention = None     # what launches attention here in place of `ops/_attention.py`, by the same names

    def target(self):
        """The target of its kernels (``taeda.kernels.target``), which says how many lanes a vector has."""
        from ..kernels.target import one_lane

        return one_lane()

    def allocate(self, nbytes):
        """The address of ``nbytes`` of new memory, aligned to 64 bytes; 0 if there is no more."""
        raise NotImplementedError

    def release(self, address, nbytes):
        """Take memory back."""
        raise NotImplementedError

    def build(self, name, args, compile):
        """The kernel that the function ``name`` of ``taeda.kernels`` writes for ``args``: any number but 0, which says
        that there is none. ``compile()`` compiles it by LLVM for :meth:`target`, and gives its address."""
        raise NotImplementedError

    def launch(self, kernel, pointers, numbers, total, grain):
        """Run a kernel over ``[0, total)`` in pieces of ``grain``."""
        raise NotImplementedError

    def copy(self, to, source, nbytes, way):
        """Copy bytes: ``way`` is 0 within the device, 1 from the host, 2 to it."""
        raise NotImplementedError

    def fill(self, to, value, nbytes):
        """Set bytes."""
        raise NotImplementedError

    def library(self, name):
        """What computes the op ``name``, whose body reads elements on the processor, by a library of the device: a
        function of all arguments, which may give NotImplemented. None: the body runs on the CPU, on copies."""
        return None

    lapack_routines = frozenset()   # the names of LAPACK's routines that the device has (``sgetrf`` is ``getrf``)

    def lapack(self, name, dtype, count, *arguments):
        """Run such a routine for ``count`` matrices, with the arguments of ``ops.linalg.lapack.call``."""
        raise NotImplementedError

    convolves_from = math.inf   # from so many multiplications on, `convolve` is asked

    def convolve(self, role, dtype, shapes, addresses, last, stride, padding, dilation):
        """Compute what ``role`` names by a library of the device; gives whether it could.

        Args:
            role: ``"forward"``, ``"input"`` and ``"weights"`` (their gradients).
            shapes, addresses: of the images, the weights and the outputs, with three spatial dimensions, contiguous.
            last: whether channels are last in memory.
            stride, padding, dilation: three numbers each.
        """
        raise NotImplementedError

    def convolution_library(self):
        """The version of what `convolve` calls, a number; None: there is no such library."""
        return None

    def synchronize(self):
        """Wait until whatever was launched has ended."""

    def record_stream(self, tensor, stream):
        """A tensor is used on another stream: its memory is not given out before the work there has ended."""
        raise NotImplementedError(f"device {DEVICES[self.number]} has no streams")

    def show_to(self, stream):
        """Let another library's stream, a number, wait for the work on the current stream. None means all streams."""

    def stream_number(self):
        """The current stream, as a number for other libraries."""
        return None

    def adopted(self, data):
        """Another library's array on this device as a tensor over the same memory; None if ``data`` is not such an
        array.
        """
        return None

    def without_waiting(self):
        """A context manager: copies from and to pinned memory may end later."""
        return contextlib.nullcontext()

    def pinned(self, nbytes):
        """Memory of the host that it copies from and to directly: its address, and what frees it when it dies."""
        raise NotImplementedError(f"device {DEVICES[self.number]} has no pinned memory")

    def is_pinned(self, tensor):
        """Whether the memory of a tensor on the CPU is pinned."""
        return False

    def properties(self):
        """Facts about the device, by name."""
        return {}


def fail(error):
    """Keep an error of a launch on this thread: the call that launched raises it when it ends."""
    global failed
    if getattr(failures, "first", None) is None:
        failures.first = error
        failed += 1


cdef int end_call() except -1:
    global failed
    if not failed:
        return 0
    error = getattr(failures, "first", None)
    if error is not None:
        failures.first = None
        failed -= 1
        raise error
    return 0


cdef object build_there(int number, str name, tuple args, object compile=None):
    cdef int before = swap_place(number)
    try:
        kernel = REGISTERED[number].build(name, args, compile or functools.partial(cpu_kernel, name, args))
    finally:
        swap_place(before)
    if not kernel:
        raise NotImplementedError(f"{name}: device '{DEVICES[number]}' has no kernel of {args}")
    return kernel


def _build_there(number, name, args, compile):
    return build_there(number, name, args, compile)


cdef void* allocate_by_python(int number, int64_t nbytes) noexcept:
    cdef int before = swap_place(CPU_NUMBER)
    cdef size_t address = 0
    try:
        address = REGISTERED[number].allocate(nbytes)
    except BaseException as error:
        fail(error)
    swap_place(before)
    return <void*>address


cdef bint closing = False    # the interpreter ends: devices of Python are gone


def _close():
    global closing
    closing = True


atexit.register(_close)


cdef void release_by_python(int number, void* data, int64_t nbytes) noexcept:
    cdef int before
    if closing:
        return
    before = swap_place(CPU_NUMBER)
    try:
        REGISTERED[number].release(<uintptr_t>data, nbytes)
    except BaseException as error:
        fail(error)
    swap_place(before)


cdef void launch_by_python(int number, kernel_t kernel, char** ptr, int nptr, const int64_t* arg, int narg,
                           int64_t total, int64_t grain) noexcept:
    cdef int i, before = swap_place(CPU_NUMBER)
    try:
        REGISTERED[number].launch(<uintptr_t>kernel, tuple([<uintptr_t>ptr[i] for i in range(nptr)]),
                                  tuple([arg[i] for i in range(narg)]), total, grain)
    except BaseException as error:
        fail(error)
    swap_place(before)


cdef void copy_by_python(int number, void* to, const void* source, int64_t nbytes, Way way) noexcept:
    cdef int before = swap_place(CPU_NUMBER)
    if way == FROM_TABLE:
        way = FROM_HOST
    try:
        REGISTERED[number].copy(<uintptr_t>to, <uintptr_t>source, nbytes, <int>way)
    except BaseException as error:
        fail(error)
    swap_place(before)


cdef void fill_by_python(int number, void* to, int value, int64_t nbytes) noexcept:
    cdef int before = swap_place(CPU_NUMBER)
    try:
        REGISTERED[number].fill(<uintptr_t>to, value, nbytes)
    except BaseException as error:
        fail(error)
    swap_place(before)


cdef void synchronise_by_python(int number) noexcept:
    cdef int before = swap_place(CPU_NUMBER)
    try:
        REGISTERED[number].synchronize()
    except BaseException as error:
        fail(error)
    swap_place(before)


def register_device(str type, make, int count=1):
    """Add ``count`` devices of a new type. Returns the number of the first.

    Args:
        type: as ``device(type)`` has it.
        make: ``make(index)`` gives what device ``type:index`` does, a :class:`Contract`.
        count: how many there are.

    Raises:
        ValueError: there is a device of that type.
        RuntimeError: there are as many devices as there may be.
    """
    cdef int number
    if type in NUMBERS:
        raise ValueError(f"register_device: there is a device '{type}'")
    if len(DEVICES) + count > MOST_DEVICES:
        raise RuntimeError(f"register_device: there are {len(DEVICES)} devices, and at most {MOST_DEVICES} may be")
    from ..kernels import target as targets
    from .deferred import let_defer

    contracts = [make(index) for index in range(count)]
    targets.place, targets.build_there = kernel_device, _build_there
    NUMBERS[type] = list(range(len(DEVICES), len(DEVICES) + count))
    for index, contract in enumerate(contracts):
        number = len(DEVICES)
        contract.number, contract.index = number, index
        targets.DEVICE_TARGETS[number] = contract.target()
        let_defer(number, contract.fuses)
        DEVICES.append(f"{type}:{index}")
        REGISTERED.append(contract)
        table[number] = Device(allocate_by_python, release_by_python, launch_by_python, copy_by_python, fill_by_python,
                               synchronise_by_python, False)
    return NUMBERS[type][0]


def cpu_kernel(str name, tuple args):
    """The address of the kernel that ``module.function`` of ``taeda.kernels`` gives for ``args``, for this thread's
    place; ``pointwise`` stands for an op's."""
    if name == "pointwise":
        from .callbacks import callbacks

        return callbacks.build_pointwise(*args)
    module, _, function = name.partition(".")
    made = getattr(importlib.import_module("taeda.kernels." + module), function)
    return getattr(made, "compile", made)(*args)
