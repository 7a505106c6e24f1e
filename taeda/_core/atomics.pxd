"""Atomic operations (the compilers' own), a hint for busy waiting, giving up a time slice, and locks at forks."""

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #ifdef _WIN32
      #include <windows.h>
      #define TAEDA_YIELD() SwitchToThread()
      #define TAEDA_AROUND_FORKS(before, after) ((void)0)
    #else
      #include <pthread.h>
      #include <sched.h>
      #define TAEDA_AROUND_FORKS(before, after) pthread_atfork(before, after, after)
      #define TAEDA_YIELD() sched_yield()
    #endif
    #if defined(__x86_64__) || defined(_M_X64)
      #include <immintrin.h>
      #define TAEDA_PAUSE() _mm_pause()
    #elif defined(__aarch64__)
      #define TAEDA_PAUSE() __asm__ __volatile__("yield")
    #else
      #define TAEDA_PAUSE() ((void)0)
    #endif
    """
    int64_t add "__sync_fetch_and_add"(int64_t* p, int64_t x) noexcept nogil
    int64_t sub "__sync_fetch_and_sub"(int64_t* p, int64_t x) noexcept nogil
    bint swap_if "__sync_bool_compare_and_swap"(int64_t* p, int64_t old, int64_t new) noexcept nogil
    # Exchange; the order of the last argument is __ATOMIC_SEQ_CST.
    int64_t _exchange "__atomic_exchange_n"(int64_t* p, int64_t x, int order) noexcept nogil
    int64_t _load "__atomic_load_n"(int64_t* p, int order) noexcept nogil
    void _store "__atomic_store_n"(int64_t* p, int64_t x, int order) noexcept nogil
    void pause "TAEDA_PAUSE"() noexcept nogil
    void yield_slice "TAEDA_YIELD"() noexcept nogil
    # A fork takes a lock that is held only briefly. So the child finds it free, and the data that it guards whole.
    void around_forks "TAEDA_AROUND_FORKS"(void (*before)() noexcept nogil, void (*after)() noexcept nogil)
    int RELAXED "__ATOMIC_RELAXED"
    int ACQUIRE "__ATOMIC_ACQUIRE"
    int RELEASE "__ATOMIC_RELEASE"
    int SEQ_CST "__ATOMIC_SEQ_CST"


cdef inline int64_t exchange(int64_t* p, int64_t x) noexcept nogil:
    return _exchange(p, x, SEQ_CST)


cdef inline int64_t load(int64_t* p) noexcept nogil:
    return _load(p, SEQ_CST)


cdef inline void store(int64_t* p, int64_t x) noexcept nogil:
    _store(p, x, SEQ_CST)
