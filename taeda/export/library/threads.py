"""The threads of a library, in IR: what runs a kernel over a range in the pieces that taeda would cut.

As `_core/pool.pyx`: a launch publishes a job, and all threads take its pieces from counters, of neighbouring pieces
each. A worker adds itself to ``active`` and then looks at ``open``; the launch clears ``open`` and then waits for
``active`` to be 0. Workers start with the first launch that has pieces for them. They look for the next job for some
time, and then sleep.
"""

from __future__ import annotations

from taeda.kernels.ir import I32, I64, PTR, Function, Value
from taeda.kernels.routine import Routine, atomic_add, atomic_exchange, atomic_load, atomic_store, atomic_take

MOST = 64  # threads
_COUNTERS = 8
_SPIN_NS = 200_000
#: Fields that several threads write, each on cache lines of its own: bytes from the start of the global.
_ACTIVE, _EPOCH, _OPEN, _BUSY = 0, 128, 256, 384
_FN, _PTR, _ARG, _TOTAL, _GRAIN, _PIECES, _BATCH, _WORKERS, _USED = range(640, 640 + 72, 8)  # fields of a job
_THREADS, _STARTED, _SPINS, _PROCESS = 768, 776, 784, 792
_COUNTER = 896
#: Fields of each worker: whether it sleeps, the word it sleeps on, its number for the system, whether it was moved, and
#: the processors that it had before.
_SLEEPING, _WAKE, _THREAD, _MOVED, _ALLOWED = 0, 8, 16, 24, 64
_MASK, _WORKER = 128, 256  # bytes of a set of processors, of all this
GLOBALS = (
    f"@pool = internal global [{_COUNTER + 128 * _COUNTERS} x i8] zeroinitializer, align 128\n"
    f"@workers = internal global [{MOST * _WORKER} x i8] zeroinitializer, align 128\n"
)


def _pause(f: Routine, arm: bool) -> None:
    if arm:
        f.declarations["llvm.aarch64.hint"] = "declare void @llvm.aarch64.hint(i32)"
        f.lines.append("  call void @llvm.aarch64.hint(i32 1)")
    else:
        f.declarations["llvm.x86.sse2.pause"] = "declare void @llvm.x86.sse2.pause()"
        f.lines.append("  call void @llvm.x86.sse2.pause()")


def _futex(f: Routine, arm: bool, word: Value, action: int) -> None:
    """Sleep while the int32 at ``word`` is 0, or wake one that does."""
    f.system_call(98 if arm else 202, word, f.i64(action | 128), f.i64(action), f.const(PTR, 0))


def _least(f: Function, a: Value, b: Value | int) -> Value:
    return f.select(a < b, a, f.i64(b) if isinstance(b, int) else b)


def _job(f: Routine, at: int) -> Value:
    return f.word(f.symbol("pool"), at)


def _run_pieces() -> Routine:
    """Take pieces as thread number p0 of those that take part."""
    f = Routine("run_pieces", [I64])
    pool = f.symbol("pool")
    fn, ptr, arg = (f.word(pool, at, PTR) for at in (_FN, _PTR, _ARG))
    total, grain, pieces, batch, workers, used = (
        _job(f, at) for at in (_TOTAL, _GRAIN, _PIECES, _BATCH, _WORKERS, _USED)
    )
    own = f.params[0] * used / (workers + 1)
    with f.loop(0, used) as turn:
        k = own + turn.index
        k = f.select(k < used, k, k - used)
        counter = f.offset(pool, k * 128 + _COUNTER)
        stop = (k + 1) * pieces / used
        with f.while_([f.i64(0)]) as take:
            first = atomic_add(f, counter, batch)
            take.test(first < stop)
            with f.loop(first, _least(f, first + batch, stop)) as piece:
                begin = piece.index * grain
                f.call_kernel(fn, ptr, arg, begin, _least(f, begin + grain, total))
    return f


def _sleep(arm: bool) -> Routine:
    """Let worker p0 sleep until a launch wakes it, unless the epoch is no longer p1."""
    f = Routine("sleep", [PTR, I32])
    self, seen = f.params
    wake = f.offset(self, _WAKE)
    atomic_store(f, f.offset(self, _SLEEPING), f.i64(1))
    told = f.scratch(8, 8)  # whether a launch wakes it: then it must wait for that
    f.store(told, f.i64(1))
    with f.when(atomic_load(f, f.offset(f.symbol("pool"), _EPOCH), I32) != seen):
        f.store(told, f.i64(1) - atomic_exchange(f, f.offset(self, _SLEEPING), f.i64(0)))
    with f.when(f.load(told, I64) != 0):
        with f.while_([f.i64(0)]) as L:
            L.test(atomic_load(f, wake, I32) == 0)
            _futex(f, arm, wake, 0)
        atomic_store(f, wake, f.const(I32, 0))
        with f.when(f.word(self, _MOVED) != 0):
            _set_affinity(f, f.const(I32, 0), f.offset(self, _ALLOWED))
            f.put(self, _MOVED, f.i64(0))
    return f


def _set_affinity(f: Routine, thread: Value, mask: Value) -> Value:
    got = f.external("sched_setaffinity", I32, thread, f.i64(_MASK), mask)
    return got


def _wake(arm: bool) -> Routine:
    """Wake worker p0, which sleeps: on another processor than this one.

    Linux may put it on the processor that this launch runs on, for which it would wait. It is kept from that one until
    it is awake.
    """
    f = Routine("wake", [PTR])
    (self,) = f.params
    allowed, others, thread = f.offset(self, _ALLOWED), f.scratch(_MASK, 8), f.word(self, _THREAD).to(I32)
    here = f.external("sched_getcpu", I32)
    got = f.external("sched_getaffinity", I32, thread, f.i64(_MASK), allowed)
    with f.when((got == 0) & (here >= 0) & (here < 8 * _MASK) & (thread != 0)):
        f.external("memcpy", PTR, others, allowed, f.i64(_MASK))
        at = f.offset(others, (here.to(I64) >> 6) * 8)
        f.store(at, f.load(at, I64) & ~(f.i64(1) << (here.to(I64) & 63)))
        with f.loop(0, _MASK, 8, carry=[f.i64(0), f.i64(0)]) as L:
            left = f.word(others, L.index)
            L.carry = (L.carry[0] | left, L.carry[1] | (left ^ f.word(allowed, L.index)))
        with f.when((L.carry[0] != 0) & (L.carry[1] != 0)):
            f.put(self, _MOVED, f.select(_set_affinity(f, thread, others) == 0, f.i64(1), 0))
    atomic_store(f, f.offset(self, _WAKE), f.const(I32, 1))
    _futex(f, arm, f.offset(self, _WAKE), 1)
    return f


def _work(arm: bool, run_pieces: Routine, sleep: Routine) -> Routine:
    """A worker, the p0-th: for ever."""
    f = Routine("work", [PTR], PTR)
    pool, index = f.symbol("pool"), f.address(f.params[0])
    self, epoch_at = f.offset(f.symbol("workers"), index * _WORKER), f.offset(pool, _EPOCH)
    f.put(self, _THREAD, f.system_call(178 if arm else 186))
    with f.while_([f.const(I32, 0), f.i64(0)]) as L:
        seen, turn = L.carry
        L.test(f.i64(0) == 0)
        epoch = atomic_load(f, epoch_at, I32)
        with f.branch(epoch == seen) as same:
            with f.branch(turn < _job(f, _SPINS)) as spin:
                _pause(f, arm)
                spin.otherwise()
                f.run(sleep, self, seen)
            same.otherwise()
            atomic_add(f, f.offset(pool, _ACTIVE), f.i64(1))
            is_open = atomic_load(f, f.offset(pool, _OPEN)) != 0
            with f.when(is_open), f.when(index < _job(f, _WORKERS)):
                f.run(run_pieces, index + 1)
            atomic_add(f, f.offset(pool, _ACTIVE), f.i64(-1))
        L.carry = (epoch, f.select((epoch == seen) & (turn < _job(f, _SPINS)), turn + 1, 0))
    f.give(f.const(PTR, 0))
    return f


def _now(f: Routine) -> Value:
    """Nanoseconds of a clock that only goes on."""
    at = f.scratch(16, 8)
    f.external("clock_gettime", I32, f.const(I32, 1), at)
    return f.word(at) * 1_000_000_000 + f.word(at, 8)


def _processors() -> Routine:
    """The number of processors that this process may use."""
    f = Routine("processors", [], I64)
    mask = f.scratch(128, 8)
    f.external("memset", PTR, mask, f.const(I32, 0), f.i64(128))
    f.external("sched_getaffinity", I32, f.const(I32, 0), f.i64(128), mask)
    with f.loop(0, 16, carry=[f.i64(0)]) as L:
        L.carry = (L.carry[0] + f.unary("ctpop", f.word(mask, L.index * 8)),)
    f.give(f.select(L.carry[0] < 1, f.i64(1), L.carry[0]))
    return f


def _set_threads(arm: bool, name: str, processors: Routine) -> Routine:
    """Set the number of threads of later runs; 0: as many as the process has processors. Returns the number set."""
    f = Routine(f"{name}_set_threads", [I64], I64, exported=True)
    pool, cpus = f.symbol("pool"), f.run(processors)
    wanted = f.select(f.params[0] < 1, cpus, f.params[0])
    wanted = _least(f, wanted, MOST)
    with f.loop(0, 20, carry=[f.i64(1 << 40)]) as L:  # the quickest one: others may take the processor in the meantime
        start = _now(f)
        with f.loop(0, 100):
            _pause(f, arm)
        L.carry = (_least(f, L.carry[0], _now(f) - start),)
    spins = f.i64(_SPIN_NS * 100) / f.select(L.carry[0] < 100, 100, L.carry[0])
    f.put(pool, _SPINS, f.select(wanted > cpus, 0, spins))
    f.put(pool, _THREADS, wanted)
    f.give(wanted)
    return f


def _start(work: Routine) -> Routine:
    """Start p0 workers, or as many as the system allows. Returns how many run."""
    f = Routine("start_workers", [I64], I64)
    pool = f.symbol("pool")
    handle = f.scratch(8, 8)
    process = f.external("getpid", I32)
    with f.when(process.to(I64) != _job(f, _PROCESS)):  # a fork has none of its parent's threads
        f.external("memset", PTR, f.symbol("workers"), f.const(I32, 0), f.i64(MOST * _WORKER))
        for at in (_STARTED, _ACTIVE):
            f.put(pool, at, f.i64(0))
        f.put(pool, _PROCESS, process.to(I64))
    with f.loop(_job(f, _STARTED), f.params[0]) as L:
        index = f.emit(f"inttoptr {L.index.typed} to ptr", PTR)
        refused = f.external("pthread_create", I32, handle, f.const(PTR, 0), f.symbol(work.name), index)
        with f.when((refused == 0) & (_job(f, _STARTED) == L.index)):
            f.external("pthread_detach", I32, f.load(handle, PTR))
            f.put(pool, _STARTED, L.index + 1)
    f.give(_least(f, _job(f, _STARTED), f.params[0]))
    return f


def _share(arm: bool, run_pieces: Routine, wake: Routine) -> Routine:
    """Publish the job, help with it, and wait until all workers have left it."""
    f = Routine("share")
    pool, used, pieces = f.symbol("pool"), _job(f, _USED), _job(f, _PIECES)
    with f.loop(0, used) as L:
        atomic_store(f, f.offset(pool, L.index * 128 + _COUNTER), L.index * pieces / used)
    atomic_store(f, f.offset(pool, _OPEN), f.i64(1))
    atomic_add(f, f.offset(pool, _EPOCH), f.const(I32, 1))
    with f.loop(0, _job(f, _WORKERS)) as L:
        worker = f.offset(f.symbol("workers"), L.index * _WORKER)
        with f.when(atomic_load(f, worker) != 0), f.when(atomic_exchange(f, worker, f.i64(0)) != 0):
            f.run(wake, worker)
    f.run(run_pieces, f.i64(0))
    atomic_store(f, f.offset(pool, _OPEN), f.i64(0))
    with f.while_([f.i64(0)]) as L:
        turn = L.carry[0]
        L.test(atomic_load(f, f.offset(pool, _ACTIVE)) != 0)
        _pause(f, arm)
        with f.when(turn > _job(f, _SPINS)):
            f.external("sched_yield", I32)
        L.carry = (turn + 1,)
    return f


def _serial() -> Routine:
    """All pieces one after the other."""
    f = Routine("serial", [PTR, PTR, PTR, I64, I64])
    fn, ptr, arg, total, grain = f.params
    with f.loop(0, total, grain) as L:
        f.call_kernel(fn, ptr, arg, L.index, _least(f, L.index + grain, total))
    return f


def _launch(serial: Routine, start: Routine, share: Routine) -> Routine:
    """Run kernel p0 with pointers p1 and numbers p2 over [0, p3), in pieces of p4; all of it at once if p5."""
    f = Routine("launch", [PTR, PTR, PTR, I64, I64, I64])
    fn, ptr, arg, total, grain, small = f.params
    pool = f.symbol("pool")
    whole = (small != 0) | (total <= grain)
    with f.when(total > 0), f.branch(whole) as one:
        f.call_kernel(fn, ptr, arg, f.i64(0), total)
        one.otherwise()
        threads = _job(f, _THREADS)
        with f.branch(threads <= 1) as alone:
            f.run(serial, fn, ptr, arg, total, grain)
            alone.otherwise()
            with f.branch(atomic_take(f, f.offset(pool, _BUSY))) as mine:
                pieces = (total + grain - 1) / grain
                workers = f.run(start, _least(f, threads, pieces) - 1)
                for at, x in ((_FN, fn), (_PTR, ptr), (_ARG, arg), (_TOTAL, total), (_GRAIN, grain)):
                    f.put(pool, at, x)
                batch = pieces / ((workers + 1) * 16)
                f.put(pool, _PIECES, pieces)
                f.put(pool, _BATCH, f.select(batch < 1, 1, batch))
                f.put(pool, _WORKERS, workers)
                f.put(pool, _USED, _least(f, workers + 1, _COUNTERS))
                f.run(share)
                atomic_store(f, f.offset(pool, _BUSY), f.i64(0))
                mine.otherwise()
                f.run(serial, fn, ptr, arg, total, grain)
    return f


def routines(name: str, arm: bool) -> tuple[list[Routine], Routine, Routine]:
    """All of them, then the launch and the function that sets the number of threads."""
    run_pieces, processors, serial = _run_pieces(), _processors(), _serial()
    sleep, wake = _sleep(arm), _wake(arm)
    work = _work(arm, run_pieces, sleep)
    start, share = _start(work), _share(arm, run_pieces, wake)
    launch, set_threads = _launch(serial, start, share), _set_threads(arm, name, processors)
    return [run_pieces, processors, serial, sleep, wake, work, start, share, launch, set_threads], launch, set_threads
