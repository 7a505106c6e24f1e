"""Memory that several processes see: anonymous files, mapped.

An anonymous file has no name. It lives as long as some process has it open or mapped, so nothing is left behind however
a process ends; and it does not count against the size of ``/dev/shm``, which containers make small.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from . cimport atomics
from .memory cimport Storage, ensure_computed, foreign_storage, root
from .tensor cimport Tensor

from .tensor import follow_storage

cdef extern from *:
    """
    #ifdef _WIN32
      #include <process.h>
      #include <io.h>
      #define taeda_pid() _getpid()
      #define taeda_close(fd) _close(fd)
      static void* taeda_map_shared(int fd, int64_t n) { (void)fd; (void)n; return NULL; }
      static void taeda_unmap_shared(void* p, int64_t n) { (void)p; (void)n; }
      static void taeda_sleep_on(int64_t* p, int64_t seen, int64_t ns) { (void)p; (void)seen; Sleep(ns / 1000000); }
      static void taeda_wake(int64_t* p) { (void)p; }
    #else
      #include <sys/mman.h>
      #include <time.h>
      #include <unistd.h>
      #ifdef __linux__
        #include <limits.h>
        #include <linux/futex.h>
        #include <sys/syscall.h>
        /* a futex is 32 bits: the low half of the counter */
        #define TAEDA_LOW(p) ((int*)(p) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
        static void taeda_sleep_on(int64_t* p, int64_t seen, int64_t ns) {
          struct timespec t = {ns / 1000000000, ns % 1000000000};
          syscall(SYS_futex, TAEDA_LOW(p), FUTEX_WAIT, (int)seen, &t, NULL, 0);
        }
        static void taeda_wake(int64_t* p) { syscall(SYS_futex, TAEDA_LOW(p), FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }
      #else
        static void taeda_sleep_on(int64_t* p, int64_t seen, int64_t ns) {
          struct timespec t = {0, ns < 50000 ? ns : 50000};
          (void)p; (void)seen;
          nanosleep(&t, NULL);
        }
        static void taeda_wake(int64_t* p) { (void)p; }
      #endif
      #define taeda_pid() getpid()
      #define taeda_close(fd) close(fd)
      static void* taeda_map_shared(int fd, int64_t n) {
        void* p = mmap(NULL, (size_t)n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        return p == MAP_FAILED ? NULL : p;
      }
      static void taeda_unmap_shared(void* p, int64_t n) { munmap(p, (size_t)n); }
    #endif
    """
    void* taeda_map_shared(int fd, int64_t nbytes) noexcept nogil
    void taeda_unmap_shared(void* p, int64_t nbytes) noexcept nogil
    void taeda_sleep_on(int64_t* counter, int64_t seen, int64_t ns) noexcept nogil
    void taeda_wake(int64_t* counter) noexcept nogil
    int taeda_pid() noexcept nogil
    int taeda_close(int fd) noexcept nogil

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)

cdef enum:
    HEADER = 64          # bytes of a loaned segment before the data: a word that is 1 while it is lent


def anonymous_file(nbytes):
    """A file of ``nbytes`` zeros that has no name: its descriptor."""
    import os

    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("taeda")
    else:
        import tempfile

        fd, path = tempfile.mkstemp()
        os.unlink(path)
    try:
        os.ftruncate(fd, nbytes)
    except BaseException:
        os.close(fd)
        raise
    return fd


cdef class Segment:
    """An anonymous file in memory.

    Args:
        nbytes: its size.
        fd: a descriptor of a file that exists already, which the segment owns from now on. Default: a new file.
    Raises:
        OSError: the system gives no file or no memory for it.
        ValueError: the file is shorter than ``nbytes``.
    """

    cdef char* data
    cdef readonly int64_t nbytes
    cdef readonly int fd
    cdef object __weakref__

    def __cinit__(self, nbytes, fd=None):
        import os

        self.fd = -1
        if nbytes <= 0:
            raise ValueError(f"Segment: expected a positive size, got {nbytes}")
        self.fd = anonymous_file(nbytes) if fd is None else fd
        if fd is not None and os.fstat(fd).st_size < nbytes:  # touching memory beyond the end would kill the process
            raise ValueError(f"Segment: expected a file of at least {nbytes} bytes, got one of {os.fstat(fd).st_size}")
        self.data = <char*>taeda_map_shared(self.fd, nbytes)
        if self.data == NULL:
            raise OSError(f"Segment: the system does not map {nbytes} bytes of shared memory")
        self.nbytes = nbytes

    def __dealloc__(self):
        if self.data != NULL:
            taeda_unmap_shared(self.data, self.nbytes)
        self.close()

    def close(self):
        """Close the descriptor: the memory stays, but cannot be passed to further processes."""
        cdef int fd = self.fd
        if fd >= 0:
            self.fd = -1
            taeda_close(fd)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, self.nbytes, 0, flags)

    def storage(self, int64_t start, int64_t nbytes):
        """A Storage over some of the bytes."""
        if start < 0 or nbytes < 0 or start > self.nbytes - nbytes:
            raise ValueError(f"Segment: expected bytes of {self.nbytes}, got {start} to {start + nbytes}")
        return foreign_storage(self.data + start, nbytes, self)

    def write(self, int64_t start, buffer):
        """Copy a buffer to ``start``."""
        cdef Py_buffer view  # typed memoryviews of Cython's would be two thirds of this module
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            if start < 0 or start > self.nbytes - view.len:
                raise ValueError(f"Segment: expected room for {view.len} bytes at {start}, it has {self.nbytes}")
            with nogil:
                memcpy(self.data + start, view.buf, view.len)
        finally:
            PyBuffer_Release(&view)

    @property
    def lent(self):
        """Whether another process uses the memory (see :class:`Loan`)."""
        return atomics.load(<int64_t*>self.data) != 0

    def lend(self):
        """Mark it as used, until the other process's :class:`Loan` ends."""
        atomics.store(<int64_t*>self.data, 1)

    def take_back(self):
        """Mark it as free again."""
        atomics.store(<int64_t*>self.data, 0)


    cdef int64_t* _counter(self, int64_t at) except NULL:
        if at < 0 or at % 8 or at > self.nbytes - 16:
            raise ValueError(f"Segment: expected a counter within {self.nbytes} bytes, at a multiple of 8, got {at}")
        return <int64_t*>(self.data + at)

    def post(self, int64_t at, int64_t value):
        """Set the counter at byte ``at`` to ``value``, after all earlier writes, and wake the threads that wait for it.

        A counter takes 16 bytes: its value, and how many sleep on it.
        """
        cdef int64_t* counter = self._counter(at)
        atomics.store(counter, value)
        if atomics.load(counter + 1):
            taeda_wake(counter)

    def reached(self, int64_t at, int64_t value, int64_t spins, int64_t yields, double seconds):
        """Whether the counter at byte ``at`` came to ``value`` (or more) within ``seconds``.

        It is read ``spins`` times, then ``yields`` times with the rest of a time slice given up. Then the thread sleeps
        until it changes. Other Python threads run in the meantime.
        """
        cdef int64_t* counter = self._counter(at)
        cdef int64_t seen = atomics.load(counter)
        cdef int64_t i
        if seen >= value:
            return True
        with nogil:
            for i in range(spins + yields):
                if i < spins:
                    atomics.pause()
                else:
                    atomics.yield_slice()
                seen = atomics.load(counter)
                if seen >= value:
                    break
            else:
                atomics.add(counter + 1, 1)
                seen = atomics.load(counter)
                if seen < value:
                    taeda_sleep_on(counter, seen, <int64_t>(seconds * 1e9))
                    seen = atomics.load(counter)
                atomics.sub(counter + 1, 1)
        return seen >= value


cdef class Loan:
    """The bytes that another process wrote after the header of ``segment``, as a buffer.

    When the last user of the buffer is gone, the other process may write there again.
    """

    cdef Segment segment
    cdef int pid

    def __cinit__(self, Segment segment):
        self.segment = segment
        self.pid = taeda_pid()

    def __dealloc__(self):
        if self.segment is not None and self.pid == taeda_pid():  # a forked copy of this object ends nothing
            atomics.store(<int64_t*>self.segment.data, 0)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.segment.data + HEADER, self.segment.nbytes - HEADER, 0, flags)


def is_shared(Storage storage):
    """Whether the memory of ``storage`` can be seen by other processes."""
    return isinstance(root(storage).owner, Segment)


def storage_place(Storage storage):
    """``(segment, offset)`` of a storage in shared memory."""
    cdef Segment segment = root(storage).owner
    return segment, storage.data - segment.data


cdef char* relocate(Storage storage, Segment segment, int64_t start) except NULL:
    """Give ``storage`` the memory at ``start``; where its old memory was."""
    cdef char* old
    cdef Storage kept
    ensure_computed(storage)
    old = storage.data
    if start < 0 or start > segment.nbytes - storage.capacity:
        raise ValueError(f"Segment: expected room for {storage.capacity} bytes at {start} of {segment.nbytes}")
    memcpy(segment.data + start, old, storage.capacity)
    kept = Storage.__new__(Storage)  # owns the old memory now
    kept.data, kept.capacity, kept.block, kept.owner = old, storage.capacity, storage.block, storage.owner
    if storage.exports:  # a NumPy array goes on seeing it
        storage.left = kept
    storage.data = segment.data + start
    storage.block = storage.capacity
    storage.owner = segment
    storage.may_resize = False
    return old


def move_storage(Storage storage, Segment segment, int64_t start):
    """Move a storage into shared memory, in place: the tensors on it see the new memory.

    NumPy arrays and memoryviews on it go on seeing the old memory, which stays until the last of them is gone.
    """
    storage = root(storage)
    follow_storage(storage, <size_t>relocate(storage, segment, start))


def move_tensor(Tensor t, Segment segment, int64_t start):
    """As :func:`move_storage` of the storage of ``t``, without a search for others where nothing else uses it."""
    cdef Storage storage = t.storage
    cdef char* old
    # two references: the tensor's and this function's
    if Py_REFCNT(<PyObject*>storage) > 2 or isinstance(storage.owner, Storage):
        storage = None
        move_storage(t.storage, segment, start)
    else:
        old = relocate(storage, segment, start)
        t.raw += storage.data - old
