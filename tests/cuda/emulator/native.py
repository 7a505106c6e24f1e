"""``cuLaunchKernel`` without Python, for launches that may run at once: some tens of times as fast for small ones.

A kernel's handle is the address of its record here. What is not plain (another thread, a fault, work that waits in a
queue, a kernel that must be compiled) goes to the function in Python.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable
from typing import Any

from .memory import reserve
from .runtime import FIELDS

#: The words of a kernel's record.
KERNEL = {
    name: k for k, name in enumerate((
        "LAUNCH", "CONTEXT", "PARAM_COUNT", "PARAM_LAYOUT", "DYNAMIC_MOST", "SHARED_FIXED", "SHARED_USED", "LOCAL_SIZE",
        "LOCAL_AT", "STATE_SIZE", "TOGETHER", "GLOBALS", "INSTRUCTIONS", "INSTRUCTIONS_MOST", "MOST_X", "MOST_Y", "MOST_Z",
        "EXACT", "NUMBER",
    ))
}  # fmt: skip
#: The words of the driver's record.
STATE = {
    name: k for k, name in enumerate((
        "AT_ONCE", "FIRST", "LAST", "STREAMS", "STREAMS_END", "THREAD", "THREAD_CONTEXT", "LAUNCHES", "INSTRUCTIONS_ALL",
        "OWNER", "OWNER_THREADS", "EPOCHS",
    ))
}  # fmt: skip
MOST_KERNELS, MOST_STREAMS = 1 << 16, 1 << 12

_TEXT = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define i32 @cuLaunchKernel(i64 %f, i32 %gx, i32 %gy, i32 %gz, i32 %bx, i32 %by, i32 %bz, i32 %shared, i64 %stream, i64 %params, i64 %extra) {
entry:
  %given = alloca [8192 x i8], align 64
  %at.once = state AT_ONCE
  %is.plain = icmp eq i64 %extra, 0
  %flag = icmp ne i64 %at.once, 0
  %ok0 = and i1 %is.plain, %flag
  br i1 %ok0, label %thread, label %slow
thread:
  %self = call i64 inttoptr (i64 PTHREAD_SELF to ptr)()
  %mine = state THREAD
  %ok1 = icmp eq i64 %self, %mine
  br i1 %ok1, label %handle, label %slow
handle:
  %first = state FIRST
  %last = state LAST
  %off = sub i64 %f, %first
  %room = sub i64 %last, %first
  %known = icmp ult i64 %off, %room
  %rest = urem i64 %off, KERNEL_BYTES
  %whole = icmp eq i64 %rest, 0
  %ok2 = and i1 %known, %whole
  br i1 %ok2, label %valid, label %slow
valid:
  %k = inttoptr i64 %f to ptr
  %launch = kernel LAUNCH
  %context = kernel CONTEXT
  %current = state THREAD_CONTEXT
  %compiled = icmp ne i64 %launch, 0
  %same = icmp eq i64 %context, %current
  %ok3 = and i1 %compiled, %same
  br i1 %ok3, label %streamed, label %slow
streamed:
  %default = icmp ule i64 %stream, 1
  br i1 %default, label %healthy, label %other
other:
  %s.first = state STREAMS
  %s.last = state STREAMS_END
  %s.off = sub i64 %stream, %s.first
  %s.room = sub i64 %s.last, %s.first
  %s.known = icmp ult i64 %s.off, %s.room
  %s.rest = and i64 %s.off, 7
  %s.whole = icmp eq i64 %s.rest, 0
  %ok4 = and i1 %s.known, %s.whole
  br i1 %ok4, label %its.context, label %slow
its.context:
  %s.p = inttoptr i64 %stream to ptr
  %s.context = load i64, ptr %s.p
  %ok5 = icmp eq i64 %s.context, %context
  br i1 %ok5, label %healthy, label %slow
healthy:
  %ctx = inttoptr i64 %context to ptr
  %error = get ERROR
  %ok6 = icmp eq i64 %error, 0
  br i1 %ok6, label %sizes, label %slow
sizes:
  %gx64 = zext i32 %gx to i64
  %gy64 = zext i32 %gy to i64
  %gz64 = zext i32 %gz to i64
  %bx64 = zext i32 %bx to i64
  %by64 = zext i32 %by to i64
  %bz64 = zext i32 %bz to i64
  %sh64 = zext i32 %shared to i64
  %mx = kernel MOST_X
  %my = kernel MOST_Y
  %mz = kernel MOST_Z
  %exact = kernel EXACT
  %dynamic.most = kernel DYNAMIC_MOST
  %x.ok = icmp ule i64 %bx64, %mx
  %y.ok = icmp ule i64 %by64, %my
  %z.ok = icmp ule i64 %bz64, %mz
  %sh.ok = icmp ule i64 %sh64, %dynamic.most
  %bxy = mul i64 %bx64, %by64
  %threads = mul i64 %bxy, %bz64
  %t.low = sub i64 %threads, 1
  %t.ok = icmp ult i64 %t.low, 1024
  %gx.low = sub i64 %gx64, 1
  %gy.low = sub i64 %gy64, 1
  %gz.low = sub i64 %gz64, 1
  %gx.ok = icmp ult i64 %gx.low, 2147483647
  %gy.ok = icmp ult i64 %gy.low, 65535
  %gz.ok = icmp ult i64 %gz.low, 65535
  %free = icmp eq i64 %exact, 0
  %a1 = and i1 %x.ok, %y.ok
  %a2 = and i1 %z.ok, %sh.ok
  %a3 = and i1 %t.ok, %gx.ok
  %a4 = and i1 %gy.ok, %gz.ok
  %a5 = and i1 %a1, %a2
  %a6 = and i1 %a3, %a4
  %a7 = and i1 %a5, %a6
  %ok7 = and i1 %a7, %free
  br i1 %ok7, label %gather, label %slow
gather:
  %count = kernel PARAM_COUNT
  %layout = kernel PARAM_LAYOUT
  %layout.p = inttoptr i64 %layout to ptr
  %params.p = inttoptr i64 %params to ptr
  %any = icmp ne i64 %count, 0
  br i1 %any, label %param, label %go
param:
  %i = phi i64 [ 0, %gather ], [ %i1, %param ]
  %two = shl i64 %i, 1
  %two1 = or i64 %two, 1
  %o.p = getelementptr i64, ptr %layout.p, i64 %two
  %n.p = getelementptr i64, ptr %layout.p, i64 %two1
  %o = load i64, ptr %o.p
  %n = load i64, ptr %n.p
  %from.p = getelementptr ptr, ptr %params.p, i64 %i
  %from = load ptr, ptr %from.p
  %to = getelementptr i8, ptr %given, i64 %o
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %param, label %go
go:
  %r = call i32 @run(i64 %f, i64 %gx64, i64 %gy64, i64 %gz64, i64 %bx64, i64 %by64, i64 %bz64, i64 %sh64, ptr %given)
  ret i32 0
slow:
  %slow.r = call i32 inttoptr (i64 SLOW to ptr)(i64 %f, i32 %gx, i32 %gy, i32 %gz, i32 %bx, i32 %by, i32 %bz, i32 %shared, i64 %stream, i64 %params, i64 %extra)
  ret i32 %slow.r
}

define i32 @run(i64 %f, i64 %gx, i64 %gy, i64 %gz, i64 %bx, i64 %by, i64 %bz, i64 %shared, ptr %given) {
entry:
  %locked = call i32 inttoptr (i64 MUTEX_LOCK to ptr)(i64 MUTEX)
  %k = inttoptr i64 %f to ptr
  %context = kernel CONTEXT
  %ctx = inttoptr i64 %context to ptr
  put GRID_X %gx
  put GRID_Y %gy
  put GRID_Z %gz
  put BLOCK_X %bx
  put BLOCK_Y %by
  put BLOCK_Z %bz
  %bxy = mul i64 %bx, %by
  %threads = mul i64 %bxy, %bz
  put THREADS %threads
  %given.i = ptrtoint ptr %given to i64
  put PARAMS %given.i
  %globals = kernel GLOBALS
  put GLOBALS %globals
  put DYNAMIC %shared
  put COUNT 0
  put LOCAL_FIRST -1
  put LOCAL_LAST 0
  %fixed = kernel SHARED_FIXED
  %used = kernel SHARED_USED
  %dynamic = icmp ne i64 %shared, 0
  %static = icmp ne i64 %used, 0
  %either = or i1 %dynamic, %static
  %both = add i64 %fixed, %shared
  %size = select i1 %either, i64 %both, i64 0
  put SHARED_SIZE %size
  %delta = get DELTA
  %shared.at = get SHARED
  %e1 = add i64 %shared.at, %size
  %e2 = add i64 %e1, %delta
  %e.p = inttoptr i64 %e2 to ptr
  call void @llvm.memset.p0.i64(ptr %e.p, i8 0, i64 16, i1 false)
  %local = kernel LOCAL_SIZE
  %has.local = icmp ne i64 %local, 0
  br i1 %has.local, label %owner, label %go
owner:
  %whose = state OWNER
  %of = state OWNER_THREADS
  %mine = icmp eq i64 %whose, %f
  %enough = icmp uge i64 %of, %threads
  %made = and i1 %mine, %enough
  br i1 %made, label %go, label %make
make:
  %together = kernel TOGETHER
  %is.together = icmp ne i64 %together, 0
  %states = select i1 %is.together, i64 %threads, i64 1
  %kept = select i1 %is.together, i64 %threads, i64 1024
  keep OWNER %f
  keep OWNER_THREADS %kept
  %states.at = get STATES
  %local.at = kernel LOCAL_AT
  %stride = kernel STATE_SIZE
  br label %state
state:
  %i = phi i64 [ 0, %make ], [ %i1, %state ]
  %s.off = mul i64 %i, %stride
  %s1 = add i64 %states.at, %s.off
  %s2 = add i64 %s1, %local.at
  %s3 = add i64 %s2, %delta
  %s.p = inttoptr i64 %s3 to ptr
  call void @llvm.memset.p0.i64(ptr %s.p, i8 1, i64 %local, i1 false)
  %s4 = add i64 %s3, %local
  %s4.p = inttoptr i64 %s4 to ptr
  call void @llvm.memset.p0.i64(ptr %s4.p, i8 0, i64 16, i1 false)
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %states
  br i1 %more, label %state, label %go
go:
  %epoch = state EPOCHS
  %epoch1 = add i64 %epoch, 1
  put EPOCH %epoch1
  put LAUNCH_EPOCH %epoch1
  put WARP_EPOCH 0
  %launch = kernel LAUNCH
  %launch.p = inttoptr i64 %launch to ptr
  %gxy = mul i64 %gx, %gy
  %blocks = mul i64 %gxy, %gz
  %bad = call i32 %launch.p(ptr %ctx, i64 0, i64 %blocks)
  %epoch2 = get EPOCH
  keep EPOCHS %epoch2
  %ran = get COUNT
  %all = state INSTRUCTIONS_ALL
  %all1 = add i64 %all, %ran
  keep INSTRUCTIONS_ALL %all1
  %launches = state LAUNCHES
  %launches1 = add i64 %launches, 1
  keep LAUNCHES %launches1
  %before = kernel INSTRUCTIONS
  %after = add i64 %before, %ran
  %a.p = getelementptr i64, ptr %k, i64 K_INSTRUCTIONS
  store i64 %after, ptr %a.p
  %most = kernel INSTRUCTIONS_MOST
  %hot = icmp ugt i64 %after, %most
  br i1 %hot, label %again, label %done
again:                                            ; the next launch compiles it better
  %l.p = getelementptr i64, ptr %k, i64 K_LAUNCH
  store i64 0, ptr %l.p
  br label %done
done:
  %is.bad = icmp ne i32 %bad, 0
  br i1 %is.bad, label %failed, label %end
failed:
  keep OWNER 0
  call void inttoptr (i64 FAILED to ptr)(i64 %f)
  br label %end
end:
  %unlocked = call i32 inttoptr (i64 MUTEX_UNLOCK to ptr)(i64 MUTEX)
  ret i32 %bad
}
"""
_WORD = re.compile(r"^  (%[\w.]+) = (get|state|kernel) (\w+)|^  (put|keep) (\w+) (\S+)", re.M)


class Native:
    """The compiled functions, and the records that they read."""

    def __init__(self, llvm: Any, machine: Any, slow: int, failed: Callable[[int], None]):
        self.kernel_bytes = 8 * len(KERNEL)
        self.room = reserve(self.kernel_bytes * MOST_KERNELS)
        self.streams = reserve(8 * MOST_STREAMS)
        self.words = (ctypes.c_uint64 * len(STATE))()
        self.count = self.stream_count = 0
        libc = ctypes.CDLL(None)
        self.mutex = ctypes.create_string_buffer(256)  # a mutex of zeros is an open one
        self.failed = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(failed)
        constants = {
            "PTHREAD_SELF": _address(libc.pthread_self), "MUTEX_LOCK": _address(libc.pthread_mutex_lock),
            "MUTEX_UNLOCK": _address(libc.pthread_mutex_unlock), "MUTEX": ctypes.addressof(self.mutex), "SLOW": slow,
            "FAILED": _address(self.failed), "KERNEL_BYTES": self.kernel_bytes, "K_LAUNCH": KERNEL["LAUNCH"],
            "K_INSTRUCTIONS": KERNEL["INSTRUCTIONS"],
        }  # fmt: skip
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(self._text(constants)), machine)
        self.engine.finalize_object()
        self.launch = self.engine.get_function_address("cuLaunchKernel")
        words = [ctypes.c_uint64] * 8
        self.run = ctypes.CFUNCTYPE(ctypes.c_int, *words, ctypes.c_void_p)(self.engine.get_function_address("run"))
        self.begin()

    def _text(self, constants: dict[str, int]) -> str:
        count = 0
        here = ctypes.addressof(self.words)

        def word(m) -> str:
            nonlocal count
            count += 1
            kind, name = m[2] or m[4], m[3] or m[5]
            if kind in ("get", "put"):
                p = f"getelementptr i64, ptr %ctx, i64 {FIELDS[name]}"
            elif kind == "kernel":
                p = f"getelementptr i64, ptr %k, i64 {KERNEL[name]}"
            else:
                p = f"inttoptr i64 {here + 8 * STATE[name]} to ptr"
            last = f"%w{count}"
            done = f"{m[1]} = load i64, ptr {last}" if m[2] else f"store i64 {m[6]}, ptr {last}"
            return f"  {last} = {p}\n  {done}"

        text = _WORD.sub(word, _TEXT)
        for name, value in constants.items():
            text = re.sub(rf"(?<![@\w]){name}\b", str(value), text)
        return text

    def begin(self) -> None:
        """No kernels, no streams."""
        ctypes.memset(self.room, 0, self.kernel_bytes * self.count)
        ctypes.memset(self.streams, 0, 8 * self.stream_count)
        self.count = self.stream_count = 0
        for name in STATE:
            if name != "EPOCHS":  # no two epochs of a process are the same
                self[name] = 0
        self["FIRST"] = self["LAST"] = self.room
        self["STREAMS"] = self["STREAMS_END"] = self.streams

    def __getitem__(self, name: str) -> int:
        return self.words[STATE[name]]

    def __setitem__(self, name: str, value: int) -> None:
        self.words[STATE[name]] = value

    def new_kernel(self) -> Any:
        """The record of one more kernel; None where there is no more room."""
        if self.count == MOST_KERNELS:
            return None
        record = (ctypes.c_uint64 * len(KERNEL)).from_address(self.room + self.kernel_bytes * self.count)
        self.count += 1
        self["LAST"] = self.room + self.kernel_bytes * self.count
        return record

    def new_stream(self, context: int) -> int:
        """A handle for a stream of a context; 0 where there is no more room."""
        if self.stream_count == MOST_STREAMS:
            return 0
        handle = self.streams + 8 * self.stream_count
        ctypes.c_uint64.from_address(handle).value = context
        self.stream_count += 1
        self["STREAMS_END"] = self.streams + 8 * self.stream_count
        return handle

    def no_stream(self, handle: int) -> None:
        if self.streams <= handle < self["STREAMS_END"]:
            ctypes.c_uint64.from_address(handle).value = 0

    def seen(self, context: int) -> None:
        """This thread has a context: its next launches may go straight on."""
        self["THREAD"], self["THREAD_CONTEXT"] = threading.get_ident(), context

    def unseen(self) -> None:
        self["THREAD"] = 0


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
