"""The CUDA driver API on the emulated devices: a table of C functions, as the true driver exports them.

Names, arguments and numbers are those of NVIDIA's ``cuda.h`` (CUDA 13). Work is queued; see :class:`Order`.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import itertools
import os
import random
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np

from taeda.kernels.build import cache_dir, read_entry, write_entry

from . import capture, ptx
from .capture import Capturing, Failed, Node
from .capture import put as _put
from .counters import Counters, Trace
from .faults import describe
from .memory import CONSTANT, FREED, FRESH, NONE, WRITTEN, Memory
from .native import KERNEL, Native
from .runtime import FAULTS, FIELDS
from .translate import Translated

ERRORS = {
    0: "CUDA_SUCCESS", 1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY", 3: "CUDA_ERROR_NOT_INITIALIZED",
    100: "CUDA_ERROR_NO_DEVICE", 101: "CUDA_ERROR_INVALID_DEVICE", 200: "CUDA_ERROR_INVALID_IMAGE",
    201: "CUDA_ERROR_INVALID_CONTEXT", 209: "CUDA_ERROR_NO_BINARY_FOR_GPU", 218: "CUDA_ERROR_INVALID_PTX",
    222: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", 400: "CUDA_ERROR_INVALID_HANDLE", 500: "CUDA_ERROR_NOT_FOUND",
    600: "CUDA_ERROR_NOT_READY", 700: "CUDA_ERROR_ILLEGAL_ADDRESS", 701: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
    704: "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", 705: "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
    712: "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", 713: "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
    716: "CUDA_ERROR_MISALIGNED_ADDRESS", 718: "CUDA_ERROR_INVALID_PC", 719: "CUDA_ERROR_LAUNCH_FAILED",
    801: "CUDA_ERROR_NOT_SUPPORTED", 999: "CUDA_ERROR_UNKNOWN", **capture.ERRORS,
}  # fmt: skip
_TEXTS = {0: b"no error", 700: b"an illegal memory access was encountered", 716: b"misaligned address",
          719: b"unspecified launch failure", 2: b"out of memory", 1: b"invalid argument"}  # fmt: skip
_NUMBER = {name.removeprefix("CUDA_ERROR_"): number for number, name in ERRORS.items()}

P, N, I, U = ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint  # a pointer or handle, a size, int, unsigned
SIGNATURES: dict[str, tuple] = {
    "cuInit": (U,), "cuDriverGetVersion": (P,), "cuDeviceGetCount": (P,), "cuDeviceGet": (P, I),
    "cuDeviceGetName": (P, I, I), "cuDeviceGetAttribute": (P, I, I), "cuDeviceTotalMem_v2": (P, I),
    "cuDeviceGetUuid": (P, I), "cuDeviceGetUuid_v2": (P, I), "cuDeviceGetPCIBusId": (P, I, I),
    "cuDeviceCanAccessPeer": (P, I, I),
    "cuDevicePrimaryCtxRetain": (P, I), "cuDevicePrimaryCtxRelease_v2": (I,), "cuDevicePrimaryCtxReset_v2": (I,),
    "cuDevicePrimaryCtxGetState": (I, P, P), "cuDevicePrimaryCtxSetFlags_v2": (I, U),
    "cuCtxSetCurrent": (P,), "cuCtxGetCurrent": (P,), "cuCtxPushCurrent_v2": (P,), "cuCtxPopCurrent_v2": (P,),
    "cuCtxGetDevice": (P,), "cuCtxSynchronize": (), "cuCtxGetStreamPriorityRange": (P, P),
    "cuCtxEnablePeerAccess": (P, U), "cuCtxDisablePeerAccess": (P,),
    "cuMemGetInfo_v2": (P, P), "cuMemAlloc_v2": (P, N), "cuMemFree_v2": (P,), "cuMemAllocAsync": (P, N, P),
    "cuMemFreeAsync": (P, P), "cuMemGetAddressRange_v2": (P, P, P),
    "cuMemHostAlloc": (P, N, U), "cuMemAllocHost_v2": (P, N), "cuMemFreeHost": (P,),
    "cuMemHostRegister_v2": (P, N, U), "cuMemHostUnregister": (P,), "cuMemHostGetDevicePointer_v2": (P, P, U),
    "cuMemcpy": (P, P, N), "cuMemcpyAsync": (P, P, N, P),
    "cuMemcpyHtoD_v2": (P, P, N), "cuMemcpyHtoDAsync_v2": (P, P, N, P), "cuMemcpyDtoH_v2": (P, P, N),
    "cuMemcpyDtoHAsync_v2": (P, P, N, P), "cuMemcpyDtoD_v2": (P, P, N), "cuMemcpyDtoDAsync_v2": (P, P, N, P),
    "cuMemcpyPeer": (P, P, P, P, N), "cuMemcpyPeerAsync": (P, P, P, P, N, P),
    "cuMemsetD8_v2": (P, ctypes.c_ubyte, N), "cuMemsetD8Async": (P, ctypes.c_ubyte, N, P),
    "cuMemsetD16_v2": (P, ctypes.c_ushort, N), "cuMemsetD16Async": (P, ctypes.c_ushort, N, P),
    "cuMemsetD32_v2": (P, U, N), "cuMemsetD32Async": (P, U, N, P),
    "cuModuleLoadData": (P, P), "cuModuleLoadDataEx": (P, P, U, P, P), "cuModuleUnload": (P,),
    "cuModuleGetFunction": (P, P, P), "cuModuleGetGlobal_v2": (P, P, P, P),
    "cuFuncGetAttribute": (P, I, P), "cuFuncSetAttribute": (P, I, I), "cuFuncSetCacheConfig": (P, I),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (P, P, I, N),
    "cuLaunchKernel": (P, U, U, U, U, U, U, U, P, P, P), "cuLaunchHostFunc": (P, P, P),
    "cuStreamCreate": (P, U), "cuStreamCreateWithPriority": (P, U, I), "cuStreamDestroy_v2": (P,),
    "cuStreamSynchronize": (P,), "cuStreamQuery": (P,), "cuStreamWaitEvent": (P, P, U), "cuStreamGetPriority": (P, P),
    "cuStreamGetFlags": (P, P), "cuStreamGetCtx": (P, P),
    "cuEventCreate": (P, U), "cuEventRecord": (P, P), "cuEventRecordWithFlags": (P, P, U), "cuEventQuery": (P,),
    "cuEventSynchronize": (P,), "cuEventElapsedTime": (P, P, P), "cuEventElapsedTime_v2": (P, P, P),
    "cuEventDestroy_v2": (P,), "cuPointerGetAttribute": (P, I, P),
    "cuGetErrorName": (I, P), "cuGetErrorString": (I, P), "cuGetProcAddress_v2": (P, P, I, P, P),
    **capture.SIGNATURES,
}  # fmt: skip

HOT = 3_000_000  # after so many instructions of its threads a kernel is compiled with optimisation


class Missing(Exception):
    """A copy of bytes that are no memory now, or that other work accesses: address, count, the kind of the fault."""


def _array(at: int, count: int) -> np.ndarray:
    """Words of 8 bytes of this process."""
    return np.ctypeslib.as_array((ctypes.c_uint64 * count).from_address(at))


class Context:
    """The primary context of a device."""

    def __init__(self, driver: Driver, device: int):
        self.driver, self.device, self.arena = driver, device, driver.memory.devices[device]
        self.retained = 0
        self.peers: set[int] = set()
        self.words = (ctypes.c_uint64 * len(FIELDS))()
        self.words_at = ctypes.addressof(self.words)
        memory = driver.memory
        for name, value in (
            ("LOW", self.arena.first + memory.shift), ("SIZE", self.arena.size - 16),
            ("UNSHIFT", -memory.shift), ("DELTA", memory.delta),
            ("SHARED", memory.shared), ("STATES", memory.states), ("PINNED", memory.pinned.first),
            ("PINNED_SIZE", memory.pinned.size - 16), ("WRITTEN", ctypes.addressof(driver.written)),
            ("OTHER", ctypes.addressof(driver.written)), ("LOCAL_FIRST", -1),
        ):  # fmt: skip
            self.words[FIELDS[name]] = value & (2**64 - 1)

    @property
    def error(self) -> int:
        """The driver's number for what went wrong; it stays."""
        return self.words[FIELDS["ERROR"]]

    @error.setter
    def error(self, number: int) -> None:
        self.words[FIELDS["ERROR"]] = number


def _merge(clock: dict, other: dict) -> None:
    for stream, count in other.items():
        if clock.get(stream, 0) < count:
            clock[stream] = count


class Module:
    def __init__(self, driver: Driver, context: Context, text: str):
        self.driver, self.context, self.text = driver, context, text
        if folder := os.environ.get("TAEDA_EMULATOR_KEEPS"):
            Path(folder, hashlib.sha256(text.encode()).hexdigest()[:32] + ".ptx").write_text(text)
        self.ptx = ptx.parse(text)
        self.kernels: dict[str, Kernel] = {}
        self.variables = {}
        names = [v for v in self.ptx.variables.values() if v.space in ("global", "const")]
        self.table = (ctypes.c_uint64 * max(len(names), 1))()
        for f in self.ptx.functions.values():
            if f.entry:
                self.kernels[f.name] = Kernel(self, f.name)
        for k, v in enumerate(names):
            a = context.arena.allocate(max(v.size, 1), what=f"{v.space} variable {v.name}", state=FRESH)
            if a is None:
                raise Failed("OUT_OF_MEMORY")
            at = a.address - context.arena.shift
            # variables begin as zeros where nothing else is said
            data = (v.initial or b"").ljust(v.size, b"\0")
            ctypes.memmove(at, data, v.size)
            driver.memory.mark(at, v.size, CONSTANT if v.space == "const" else WRITTEN)
            self.table[k] = a.address
            self.variables[v.name] = a

    def unload(self) -> None:
        for a in self.variables.values():
            self.context.arena.free(a.address)
        for kernel in self.kernels.values():
            kernel.unload()


class Kernel:
    """A kernel of a module; compiled at its first launch, and once more, better, when it has run for long."""

    def __init__(self, module: Module, name: str):
        self.module, self.name = module, name
        self.code = code = Translated(module.ptx, name, module.driver.level)
        self.compiled: dict[str, tuple[int, bool]] = {}  # by level: the address, and whether it is well made
        layout = [x for v in code.f.params for x in (code.params[v.name], v.size)]
        self.layout = (ctypes.c_uint64 * max(len(layout), 1))(*layout)
        exact, most = code.f.exact_threads, code.f.max_threads
        sizes = ((*exact, 1, 1) if exact else (*most, 1, 1) if most else (1024, 1024, 64))[:3]
        native = module.driver.native
        self.record = native.new_kernel()
        if self.record is None:
            raise Failed("OUT_OF_MEMORY")
        self.handle = ctypes.addressof(self.record)
        self.set(
            CONTEXT=module.context.words_at, PARAM_COUNT=len(layout) // 2, PARAM_LAYOUT=ctypes.addressof(self.layout),
            DYNAMIC_MOST=48 * 1024 - code.dynamic_at, SHARED_FIXED=code.dynamic_at, SHARED_USED=code.shared_size,
            LOCAL_SIZE=code.local_size, LOCAL_AT=code.local_at, STATE_SIZE=code.state_size, TOGETHER=len(code.points),
            GLOBALS=ctypes.addressof(module.table), INSTRUCTIONS_MOST=HOT, MOST_X=sizes[0], MOST_Y=sizes[1],
            MOST_Z=sizes[2], EXACT=bool(exact), NUMBER=native.count,
        )  # fmt: skip

    def set(self, **values: int) -> None:
        for name, value in values.items():
            self.record[KERNEL[name]] = value

    def __getitem__(self, name: str) -> int:
        return self.record[KERNEL[name]]

    def prepare(self, level: str) -> None:
        """The record gets the compiled kernel for a level of checks."""
        found = self.compiled.get(level)
        if found is None or (self["INSTRUCTIONS"] > HOT and not found[1]):
            code = self.code if level == self.code.level else Translated(self.module.ptx, self.name, level)
            well = self["INSTRUCTIONS"] > HOT
            found = self.compiled[level] = self.module.driver.compiler.function(code, well), well
        big = self.code.param_size > 8000  # more than the function in native code has room for
        self.address = found[0]
        self.set(LAUNCH=0 if big else found[0], INSTRUCTIONS_MOST=2**64 - 1 if found[1] else HOT)

    def unload(self) -> None:
        self.set(LAUNCH=0, CONTEXT=0)


class Compiler:
    """LLVM for this process. Kernels that it made are kept in the cache of taeda's kernels."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        self.llvm = llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
        target = llvm.Target.from_default_triple()
        self.machines = [
            target.create_target_machine(cpu=cpu, features=features, opt=opt, codemodel="jitdefault") for opt in (0, 1)
        ]
        self.version = f"{llvm.llvm_version_info} {cpu} {features}"
        self.alive: list = []
        self.seconds = 0.0

    def function(self, code: Translated, well: bool) -> int:
        begin = time.perf_counter()
        llvm, machine, text = self.llvm, self.machines[well], code.text()
        digest = hashlib.sha256(f"{self.version}\n{well}\n{text}".encode()).hexdigest()[:32]
        path = cache_dir() / "emulator" / digest[:2] / f"{digest}.o"
        made = read_entry(path)
        if made is None:
            made = self.object(text, well)
            write_entry(path, made)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine, use_lmm=True)
        handle = llvm.ObjectFileRef.from_data(made)
        engine.add_object_file(handle)
        engine.finalize_object()
        self.alive.append((engine, handle))
        self.seconds += time.perf_counter() - begin
        return engine.get_function_address("launch")

    def object(self, text: str, well: bool) -> bytes:
        llvm, machine = self.llvm, self.machines[well]
        module = llvm.parse_assembly(text)
        module.verify()
        passes = llvm.create_new_function_pass_manager()
        passes.add_sroa_pass()
        if well:
            passes.add_simplify_cfg_pass()
            passes.add_instruction_combine_pass()
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=int(well)))
        for f in module.functions:
            if not f.is_declaration:
                passes.run(f, builder)
        return machine.emit_object(module)


class Operation:
    """Something queued: what it does, what must be done before, and whether other processes have done their part."""

    __slots__ = ("after", "clock", "do", "done", "ready", "stream", "time")

    def __init__(self, stream: Stream, do: Callable | None, after: list, clock: dict, ready: Callable | None = None):
        self.stream, self.do, self.after, self.done, self.time = stream, do, after, False, 0.0
        self.ready = ready
        self.clock = clock  # for each stream: how many of its operations come before, this one counted


class Stream:
    def __init__(self, context: Context, blocking: bool, priority: int = 0):
        self.context, self.blocking, self.priority = context, blocking, priority
        self.queue: deque[Operation] = deque()
        self.waits: list[Operation] = []
        self.clock: dict[Stream, int] = {}  # of its last operation


class Event:
    def __init__(self, context: Context, flags: int):
        self.context, self.timed = context, not flags & 2
        self.record: Operation | None = None


class Driver(Capturing):
    """The emulated driver: ``functions`` are its C addresses by name."""

    version = 13000
    capability = (9, 0)

    def __init__(self, devices: int = 1, device_bytes: int = 8 << 30):
        self.memory = Memory(devices, device_bytes)
        self.written = (ctypes.c_ubyte * 64)(*[WRITTEN] * 64)
        self.compiler = Compiler()
        self.lock = threading.RLock()
        self.moved = threading.Condition(self.lock)
        self.mover: threading.Thread | None = None
        self.keep: list = []
        slow = self.export("cuLaunchKernel", SIGNATURES["cuLaunchKernel"])
        self.native = Native(self.compiler.llvm, self.compiler.machines[1], slow, self.failed)
        self.faults: list = []
        self.notes: list[str] = []
        self.functions: dict[str, int] = {}
        self.begin()
        for name, args in SIGNATURES.items():
            self.functions[name] = self.native.launch if name == "cuLaunchKernel" else self.export(name, args)

    def begin(self) -> None:
        """Everything as at the beginning of a process."""
        self.native.begin()
        self.initialised = False
        self.contexts = [Context(self, k) for k in range(len(self.memory.devices))]
        self.handles: dict[int, object] = {}
        self.numbers = itertools.count(0x1000, 0x10)
        self.default = {c: Stream(c, True) for c in self.contexts}
        self.own: dict[tuple, Stream] = {}
        self.streams: dict[Context, list[Stream]] = {c: [self.default[c]] for c in self.contexts}
        self.host: dict[int, int] = {}
        self.current = threading.local()
        self.level = "fast"
        self.whim: random.Random | None = None
        self.clock: dict[Stream, int] = {}  # what the host has waited for
        self.begin_captures()
        self.recent: list[tuple[int, int, Operation]] = []  # work that it has not, with its epochs
        self.waiting: list[Operation] = []  # for other processes
        self.present: Operation | None = None
        self.check(self.level)

    def check(self, level: str = "fast", order: int | None = None) -> None:
        """What is checked from now on, and when work is done.

        Args:
            level: ``"fast"`` checks bounds, alignment, use after free, unwritten bytes and divergence; ``"full"`` races
                too; ``"count"`` does what fast does, and counts accesses (:attr:`counters`).
            order: None does all work when it is queued. With a number, work waits, and is done in an order that streams
                and events allow and that few programs expect; each number gives another one.
        """
        with self.lock:
            for context in self.contexts:
                self.finish_all(context)
        self.level, self.whim = level, None if order is None else random.Random(order)
        for thing in self.handles.values():
            if isinstance(thing, Kernel):
                thing.set(LAUNCH=0)
        self.changed()
        memory = self.memory
        if level == "count":
            self.trace = Trace()
        if level == "full":
            for context in self.contexts:
                for name, value in (
                    ("RACE", memory.races - 16 * memory.base), ("REGION", memory.base), ("REGION_SIZE", memory.size)
                ):  # fmt: skip
                    context.words[FIELDS[name]] = value & (2**64 - 1)

    def note(self, text: str) -> None:
        """A mistake of the emulator itself."""
        self.notes.append(text)
        print(text, file=sys.stderr, flush=True)

    def reset(self) -> None:
        self.memory.reset()
        self.faults.clear()
        self.notes.clear()
        self.begin()

    @property
    def counters(self) -> dict[str, Counters]:
        """What was counted since ``check("count")``, by the names of kernels."""
        return self.trace.kernels

    @property
    def launches(self) -> int:
        return self.native["LAUNCHES"]

    @property
    def instructions(self) -> int:
        """How many instructions threads ran."""
        return self.native["INSTRUCTIONS_ALL"]

    def export(self, name: str, args: tuple) -> int:
        method = getattr(self, name, None) or getattr(self, name.split("_v")[0])
        free = name in ("cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString", "cuGetProcAddress_v2")
        lock = self.lock

        def called(*given) -> int:
            try:
                with lock:
                    if not (self.initialised or free):
                        return 3
                    method(*given)
                    return 0
            except Failed as error:
                return _NUMBER[error.name]
            except BaseException:
                self.note(f"{name}: {traceback.format_exc()}")
                return 999

        callback = ctypes.CFUNCTYPE(ctypes.c_int, *args)(called)
        self.keep.append(callback)
        return ctypes.cast(callback, ctypes.c_void_p).value

    # ---- handles -----------------------------------------------------------------------------------------------------

    def give(self, pointer: int, thing: object) -> None:
        number = next(self.numbers)
        self.handles[number] = thing
        _put(pointer, number)

    def take(self, handle: int, kind: type):
        thing = self.handles.get(handle)
        if not isinstance(thing, kind):
            raise Failed("INVALID_HANDLE")
        return thing

    def context(self) -> Context:
        """The context of the calling thread; a fault in it stays."""
        context = getattr(self.current, "context", None)
        if context is None:
            raise Failed("INVALID_CONTEXT")
        self.healthy(context)
        return context

    def healthy(self, context: Context) -> None:
        if context.error:
            raise Failed(ERRORS[context.error].removeprefix("CUDA_ERROR_"))

    def stream(self, handle: int) -> Stream:
        if handle in (0, 1):
            return self.default[self.context()]
        if handle == 2:
            key = (threading.get_ident(), self.context())
            if key not in self.own:
                self.own[key] = Stream(key[1], True)
                self.streams[key[1]].append(self.own[key])
            return self.own[key]
        stream = self.take(handle, Stream)
        self.healthy(stream.context)
        return stream

    # ---- the order of work -------------------------------------------------------------------------------------------

    def queue(self, stream: Stream, do: Callable | None, ready: Callable | None = None) -> Operation | Node:
        """``do`` comes after what its stream holds, what that waits for, and by the rules of the default stream.

        Work of several processes is done when ``ready()`` says that the others' part is here. It is asked again and
        again, once what comes before is done, and may begin what takes time.
        """
        node = self.captured(stream, do)
        if node is not None:
            return node
        context = stream.context
        default = self.default[context]
        after = [x for x in stream.waits if not x.done]  # those done count for the clock alone
        if stream is default:
            after += [s.queue[-1] for s in self.streams[context] if s.blocking and s.queue]
        else:
            after += [s.queue[-1] for s in (stream, default) if s.queue and (s is stream or stream.blocking)]
        clock = dict(self.clock)
        before = [s for s in self.streams[context] if s.blocking] if stream is default else [default] * stream.blocking
        for x in (*(s.clock for s in (stream, *before)), *(w.clock for w in stream.waits)):
            _merge(clock, x)
        clock[stream] = clock.get(stream, 0) + 1
        stream.clock = clock
        stream.waits = []
        operation = Operation(stream, do, after, clock, ready)
        stream.queue.append(operation)
        if ready is not None:
            self.begin_to_wait(operation)
        if self.whim is None:
            self.finish(operation, patient=False)
        elif self.whim.random() < 0.3:
            self.drift(context)
        return operation

    def drift(self, context: Context) -> None:
        """Something that may be done now is done; which, is chance."""
        streams = [s for s in self.streams[context] if s.queue]
        if streams and self.whim is not None:
            queue = self.whim.choice(streams).queue
            self.finish(queue[self.whim.randrange(min(len(queue), 3))], patient=False)

    def begin_to_wait(self, operation: Operation) -> None:
        """There is work of several processes: it goes on while this process does something else."""
        self.waiting.append(operation)
        self.changed()
        self.moved.notify_all()
        if self.mover is None:
            self.mover = threading.Thread(target=self.go_on, name="emulated devices", daemon=True)
            self.mover.start()
            atexit.register(self.stop)

    def stop(self) -> None:
        """The program ends: nobody is to have the lock then."""
        with self.lock:
            self.mover, mover = None, self.mover
            self.moved.notify_all()
        if mover is not None:
            mover.join()

    def go_on(self) -> None:
        while True:
            with self.lock:
                while not self.waiting and self.mover is not None:
                    self.moved.wait()
                if self.mover is None:
                    return
                for x in list(self.waiting):
                    self.finish(x, patient=False)
                if self.whim is None:
                    for s in [s for streams in self.streams.values() for s in streams]:
                        self.finish(s.queue[-1] if s.queue else None, patient=False)
                self.waiting = [x for x in self.waiting if not x.done]
                self.changed()
                self.moved.notify_all()
            time.sleep(0.0005)

    def finish(self, operation: Operation | None, patient: bool = True) -> None:
        """Do ``operation`` and what must come before, and by chance more; only what can be done now, if not patient."""
        stack = [operation] if operation is not None else []
        while stack:
            x = stack[-1]
            if x.done:
                stack.pop()
                continue
            before = [y for y in x.after if not y.done]
            if before:
                if self.whim is not None:
                    self.whim.shuffle(before)
                stack.extend(before)
                continue
            if x.ready is not None and not x.ready():
                if not patient:
                    return
                self.moved.wait(0.001)
                continue
            stack.pop()
            self.perform(x)
            if self.whim is not None and self.whim.random() < 0.2:
                others = [s.queue[0] for s in self.streams[x.stream.context] if s.queue]
                if others:
                    self.finish(self.whim.choice(others), patient=False)

    def perform(self, x: Operation) -> None:
        x.done, x.after, do, x.do, x.ready = True, [], x.do, None, None
        x.stream.queue.popleft()
        x.time = time.perf_counter()
        if do is not None and not x.stream.context.error:
            self.present = x
            do()

    def finish_stream(self, stream: Stream) -> None:
        """The host waits for a stream; for the default one, for all that it waits for."""
        self.asks(stream)
        default, waited = stream is self.default[stream.context], []
        for s in (stream, *(s for s in self.streams[stream.context] if default and s.blocking)):
            if s.queue:
                self.finish(s.queue[-1])
            waited.append(s.clock)
        self.knows(*waited)
        self.healthy(stream.context)

    def knows(self, *clocks: dict) -> None:
        """The host has waited for what clocks tell of: all that it queues from now on comes after."""
        for clock in clocks:
            _merge(self.clock, clock)
        if self.recent:
            # what all that is still to be done comes after need not be kept
            waiting = [s.queue[0].clock for streams in self.streams.values() for s in streams if s.queue]
            self.recent = [
                x for x in self.recent
                if any(c.get(x[2].stream, 0) < x[2].clock[x[2].stream] for c in (self.clock, *waiting))
            ]  # fmt: skip

    def unordered(self, context: Context) -> list[tuple[int, int]]:
        """The epochs of recent work that nothing orders before the present operation."""
        x = self.present
        return [
            (first, last)
            for first, last, y in self.recent
            if y is not x and x.clock.get(y.stream, 0) < y.clock[y.stream]
        ]

    def finish_all(self, context: Context) -> None:
        for s in self.streams[context]:
            while s.queue:
                self.finish(s.queue[-1])
        self.knows(*(s.clock for s in self.streams[context]))

    def finish_context(self, context: Context) -> None:
        self.waits_for(context)
        self.finish_all(context)
        self.healthy(context)

    # ---- driver and devices ------------------------------------------------------------------------------------------

    def cuInit(self, flags):
        self.initialised = True

    def cuDriverGetVersion(self, to):
        _put(to, self.version, I)

    def cuDeviceGetCount(self, to):
        _put(to, len(self.contexts), I)

    def device(self, k: int) -> Context:
        if not 0 <= k < len(self.contexts):
            raise Failed("INVALID_DEVICE")
        return self.contexts[k]

    def cuDeviceGet(self, to, k):
        self.device(k)
        _put(to, k, I)

    def cuDeviceGetName(self, to, size, k):
        self.device(k)
        name = f"Emulated device {k}".encode()[: size - 1] + b"\0"
        ctypes.memmove(to, name, len(name))

    def cuDeviceGetAttribute(self, to, what, k):
        self.device(k)
        major, minor = self.capability
        known = {
            1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2**31 - 1, 6: 65535, 7: 65535, 8: 48 * 1024, 9: 65536, 10: 32, 12: 65536,
            11: 2**31 - 1, 13: 1_000_000, 14: 512, 15: 1, 16: 8, 17: 0, 18: 0, 19: 1, 20: 0, 31: 1, 32: 0, 33: k + 1, 34: 0, 35: 0,
            36: 1_000_000, 37: 512, 38: 1 << 22, 39: 2048, 40: 2, 41: 1, 50: 0, 75: major, 76: minor, 78: 1, 79: 1, 80: 1,
            81: 228 * 1024, 82: 65536, 83: 0, 84: 0, 86: 0, 87: 2, 88: 0, 89: 0, 90: 0, 91: 1, 95: 0, 97: 227 * 1024, 99: 1,
            102: 0, 106: 32, 111: 1024, 115: 1, 119: 0, 120: 0, 125: 0,
        }  # fmt: skip
        if what not in known:
            raise Failed("INVALID_VALUE")
        _put(to, known[what], I)

    def cuDeviceTotalMem(self, to, k):
        _put(to, self.device(k).arena.limit)

    def cuDeviceGetUuid(self, to, k):
        self.device(k)
        ctypes.memmove(to, b"taeda-emulated-" + bytes([k]), 16)

    def cuDeviceGetPCIBusId(self, to, size, k):
        self.device(k)
        name = f"0000:{k + 1:02x}:00.0".encode()[: size - 1] + b"\0"
        ctypes.memmove(to, name, len(name))

    def cuDeviceCanAccessPeer(self, to, k, other):
        self.device(k), self.device(other)
        _put(to, 0, I)

    def cuCtxEnablePeerAccess(self, context, flags):
        raise Failed("NOT_SUPPORTED")

    cuCtxDisablePeerAccess = lambda self, context: self.cuCtxEnablePeerAccess(context, 0)  # noqa: E731

    # ---- contexts ----------------------------------------------------------------------------------------------------

    def cuDevicePrimaryCtxRetain(self, to, k):
        context = self.device(k)
        context.retained += 1
        for number, thing in self.handles.items():
            if thing is context:
                return _put(to, number)
        self.give(to, context)

    def cuDevicePrimaryCtxRelease(self, k):
        context = self.device(k)
        if not context.retained:
            raise Failed("INVALID_CONTEXT")
        context.retained -= 1

    def cuDevicePrimaryCtxReset(self, k):
        raise Failed("NOT_SUPPORTED")

    def cuDevicePrimaryCtxGetState(self, k, flags, active):
        _put(flags, 0, U)
        _put(active, int(self.device(k).retained > 0), I)

    def cuDevicePrimaryCtxSetFlags(self, k, flags):
        self.device(k)

    def cuCtxSetCurrent(self, handle):
        self.current.context = context = self.take(handle, Context) if handle else None
        self.native.seen(context.words_at if context else 0)

    def cuCtxGetCurrent(self, to):
        context = getattr(self.current, "context", None)
        _put(to, next((n for n, x in self.handles.items() if x is context), 0) if context else 0)

    def cuCtxPushCurrent(self, handle):
        self.stack().append(getattr(self.current, "context", None))
        self.cuCtxSetCurrent(handle)

    def cuCtxPopCurrent(self, to):
        if not self.stack():
            raise Failed("INVALID_CONTEXT")
        if to:
            self.cuCtxGetCurrent(to)
        self.current.context = self.stack().pop()
        self.native.unseen()

    def stack(self) -> list:
        if not hasattr(self.current, "stack"):
            self.current.stack = []
        return self.current.stack

    def cuCtxGetDevice(self, to):
        context = getattr(self.current, "context", None)
        if context is None:
            raise Failed("INVALID_CONTEXT")
        _put(to, context.device, I)

    def cuCtxSynchronize(self):
        self.finish_context(self.context())

    def cuCtxGetStreamPriorityRange(self, least, greatest):
        if least:
            _put(least, 0, I)
        if greatest:
            _put(greatest, -5, I)

    # ---- memory ------------------------------------------------------------------------------------------------------

    def cuMemGetInfo(self, free, total):
        arena = self.context().arena
        _put(free, arena.limit - arena.used)
        _put(total, arena.limit)

    def cuMemAlloc(self, to, nbytes):
        self.unsafe()
        context = self.context()
        if not nbytes:
            raise Failed("INVALID_VALUE")
        a = context.arena.allocate(nbytes)
        if a is None:
            raise Failed("OUT_OF_MEMORY")
        _put(to, a.address)

    def cuMemFree(self, address):
        self.unsafe()
        context = self.context()
        if not address:
            return
        self.finish_context(context)
        self.release(address)

    def release(self, address: int) -> None:
        arena = self.memory.arena(address)
        if arena is None or arena is self.memory.pinned or arena.free(address) is None:
            raise Failed("INVALID_VALUE")

    def cuMemAllocAsync(self, to, nbytes, stream):
        s = self.stream(stream)
        if not nbytes:
            raise Failed("INVALID_VALUE")
        arena = s.context.arena
        a = arena.allocate(nbytes, state=NONE)
        if a is None:
            raise Failed("OUT_OF_MEMORY")
        _put(to, a.address)
        self.queue(s, lambda: self.memory.mark(a.address - arena.shift, nbytes, FRESH))

    def cuMemFreeAsync(self, address, stream):
        s = self.stream(stream)
        arena = self.memory.arena(address)
        a = arena.allocations.get(address) if arena else None
        if a is None or a.freed:
            raise Failed("INVALID_VALUE")
        self.queue(s, lambda: self.release(address))

    def cuMemGetAddressRange(self, base, size, address):
        arena = self.memory.arena(address)
        a = arena.near(address) if arena else None
        if a is None or a.freed or address >= a.address + a.size:
            raise Failed("NOT_FOUND")
        if base:
            _put(base, a.address)
        if size:
            _put(size, a.size)

    def cuMemHostAlloc(self, to, nbytes, flags):
        self.unsafe()
        self.context()
        a = self.memory.pinned.allocate(nbytes, what="pinned memory", state=WRITTEN)
        if a is None:
            raise Failed("OUT_OF_MEMORY" if nbytes else "INVALID_VALUE")
        _put(to, a.address)

    def cuMemAllocHost(self, to, nbytes):
        self.cuMemHostAlloc(to, nbytes, 0)

    def cuMemFreeHost(self, address):
        self.unsafe()
        self.finish_context(self.context())
        if self.memory.pinned.free(address) is None:
            raise Failed("INVALID_VALUE")

    def cuMemHostRegister(self, address, nbytes, flags):
        self.context()
        if address in self.host:
            raise Failed("HOST_MEMORY_ALREADY_REGISTERED")
        if not nbytes:
            raise Failed("INVALID_VALUE")
        self.host[address] = nbytes
        self.show_host()

    def cuMemHostUnregister(self, address):
        self.finish_context(self.context())
        if self.host.pop(address, None) is None:
            raise Failed("HOST_MEMORY_NOT_REGISTERED")
        self.show_host()

    def show_host(self) -> None:
        pairs = [x for pair in self.host.items() for x in pair]
        self.host_table = (ctypes.c_uint64 * max(len(pairs), 1))(*pairs)
        for context in self.contexts:
            context.words[FIELDS["HOST"]] = ctypes.addressof(self.host_table)
            context.words[FIELDS["HOST_COUNT"]] = len(self.host)

    def cuMemHostGetDevicePointer(self, to, address, flags):
        if not (self.memory.pinned.holds(address, 1) or any(a <= address < a + n for a, n in self.host.items())):
            raise Failed("INVALID_VALUE")
        _put(to, address)

    def cuPointerGetAttribute(self, to, what, address):
        arena = self.memory.arena(address)
        a = arena.near(address) if arena else None
        if a is None or a.freed or address >= a.address + a.size:
            raise Failed("INVALID_VALUE")
        host = arena is self.memory.pinned
        if what == 2:  # CU_POINTER_ATTRIBUTE_MEMORY_TYPE
            _put(to, 1 if host else 2, U)
        elif what == 9 and not host:  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
            _put(to, self.memory.devices.index(arena), I)
        else:
            raise Failed("NOT_SUPPORTED")

    # ---- copies ------------------------------------------------------------------------------------------------------

    def place(self, address: int, nbytes: int) -> tuple[int, bool]:
        """Where bytes of a device or of pinned memory are in this process, and whether their states are kept."""
        arena = self.memory.arena(address)
        if arena is None:
            return address, False
        if not arena.holds(address, nbytes):
            self.faults.append(describe(self, None, address, nbytes, "copy"))
            raise Failed("INVALID_VALUE")
        return address - arena.shift, True

    def on_device(self, address: int, nbytes: int) -> int:
        at, known = self.place(address, nbytes)
        if not known and not any(a <= address and address + nbytes <= a + n for a, n in self.host.items()):
            self.faults.append(describe(self, None, address, nbytes, "copy"))
            raise Failed("INVALID_VALUE")
        return at

    def is_pinned(self, address: int) -> bool:
        return self.memory.arena(address) is self.memory.pinned or any(
            a <= address < a + n for a, n in self.host.items()
        )

    def there(self, address: int, nbytes: int) -> None:
        """At the time of a copy all of its bytes must be memory."""
        arena = self.memory.arena(address)
        if arena is not None:
            states = self.memory.states_of(address - arena.shift, nbytes)
            if NONE in states or FREED in states:
                at = min(k for k in (states.find(NONE), states.find(FREED)) if k >= 0)
                raise Missing(address + at, nbytes - at)

    def touch(self, context: Context, ranges: list, nbytes: int) -> None:
        """A copy or fill accesses ranges of memory: address, place here, whether it writes."""
        if self.level != "full":
            return
        epoch = self.native["EPOCHS"] + 1
        self.native["EPOCHS"] = epoch
        unordered = self.unordered(context)
        for address, at, writes in ranges:
            cells = _array(self.memory.races + 16 * (at - self.memory.base), 2 * nbytes).reshape(nbytes, 2)
            for first, last in unordered:
                epochs = cells[:, : 2 if writes else 1] >> np.uint64(23)
                bad = ((epochs >= first) & (epochs < last)).any(1)
                if bad.any():
                    raise Missing(address + int(bad.argmax()), 1, "race")
            cells[:, 0 if writes else 1] = epoch << 23
        self.recent.append((epoch, epoch + 1, self.present))

    def guarded(self, context: Context, do: Callable) -> Callable:
        def run() -> None:
            try:
                do()
            except Missing as error:
                fault = describe(self, None, *(error.args if len(error.args) == 3 else (*error.args, "copy")))
                self.faults.append(fault)
                context.error = fault.error

        return run

    def copy(self, stream: Stream, to: int, source: int, nbytes: int, wait: bool) -> None:
        """Bytes and their states. What lies in pageable memory is read at once, as the driver stages it."""
        if not nbytes:
            return
        memory = self.memory
        (to_at, to_kept), (from_at, from_kept) = self.place(to, nbytes), self.place(source, nbytes)
        staged = None
        pageable = not (to_kept or self.is_pinned(to))
        if stream in self.captures:
            if wait or pageable:
                raise self.captures[stream].fail("STREAM_CAPTURE_UNSUPPORTED")
        elif (self.whim or self.waiting) and not wait and not from_kept and not self.is_pinned(source):
            staged = ctypes.create_string_buffer(ctypes.string_at(source, nbytes), nbytes)
            from_at = ctypes.addressof(staged)

        def do(kept=staged) -> None:
            self.there(to, nbytes), self.there(source, nbytes)
            self.touch(stream.context, [(source, from_at, False)] * from_kept + [(to, to_at, True)] * to_kept, nbytes)
            ctypes.memmove(to_at, from_at, nbytes)
            if to_kept and from_kept:
                ctypes.memmove(to_at + memory.delta, from_at + memory.delta, nbytes)
            elif to_kept:
                memory.mark(to_at, nbytes, WRITTEN)

        operation = self.queue(stream, self.guarded(stream.context, do))
        if wait or pageable:
            self.finish(operation)
            self.knows(operation.clock)
            self.healthy(stream.context)

    def cuMemcpyHtoD(self, to, source, nbytes):
        stream = self.stream(0)
        self.on_device(to, nbytes)
        self.copy(stream, to, source, nbytes, True)

    def cuMemcpyHtoDAsync(self, to, source, nbytes, stream):
        stream = self.stream(stream)
        self.on_device(to, nbytes)
        self.copy(stream, to, source, nbytes, False)

    def cuMemcpyDtoH(self, to, source, nbytes):
        stream = self.stream(0)
        self.on_device(source, nbytes)
        self.copy(stream, to, source, nbytes, True)

    def cuMemcpyDtoHAsync(self, to, source, nbytes, stream):
        stream = self.stream(stream)
        self.on_device(source, nbytes)
        self.copy(stream, to, source, nbytes, False)

    def cuMemcpyDtoD(self, to, source, nbytes):
        self.cuMemcpyDtoDAsync(to, source, nbytes, 0)

    def cuMemcpyDtoDAsync(self, to, source, nbytes, stream):
        stream = self.stream(stream)
        self.on_device(to, nbytes), self.on_device(source, nbytes)
        self.copy(stream, to, source, nbytes, False)

    def cuMemcpy(self, to, source, nbytes):
        self.copy(self.stream(0), to, source, nbytes, True)

    def cuMemcpyAsync(self, to, source, nbytes, stream):
        self.copy(self.stream(stream), to, source, nbytes, False)

    def cuMemcpyPeer(self, to, to_context, source, source_context, nbytes):
        self.cuMemcpyPeerAsync(to, to_context, source, source_context, nbytes, 0)
        self.finish_stream(self.stream(0))

    def cuMemcpyPeerAsync(self, to, to_context, source, source_context, nbytes, stream):
        for address, handle in ((to, to_context), (source, source_context)):
            context = self.take(handle, Context)
            self.healthy(context)
            if self.memory.arena(address) is not context.arena:
                raise Failed("INVALID_VALUE")
        self.copy(self.stream(stream), to, source, nbytes, False)

    def fill(self, to: int, value: bytes, count: int, stream: Stream, wait: bool) -> None:
        nbytes = count * len(value)
        if to % len(value):
            raise Failed("INVALID_VALUE")
        if not nbytes:
            return
        at = self.on_device(to, nbytes)

        def do() -> None:
            self.there(to, nbytes)
            if self.memory.arena(to):
                self.touch(stream.context, [(to, at, True)], nbytes)
            if len(set(value)) == 1:
                ctypes.memset(at, value[0], nbytes)
            else:
                ctypes.memmove(at, value * count, nbytes)
            if self.memory.arena(to):
                self.memory.mark(at, nbytes, WRITTEN)

        operation = self.queue(stream, self.guarded(stream.context, do))
        if wait:
            self.finish(operation)
            self.knows(operation.clock)
            self.healthy(stream.context)

    def cuMemsetD8(self, to, value, count):
        self.fill(to, bytes([value]), count, self.stream(0), True)

    def cuMemsetD8Async(self, to, value, count, stream):
        self.fill(to, bytes([value]), count, self.stream(stream), False)

    def cuMemsetD16(self, to, value, count):
        self.fill(to, value.to_bytes(2, "little"), count, self.stream(0), True)

    def cuMemsetD16Async(self, to, value, count, stream):
        self.fill(to, value.to_bytes(2, "little"), count, self.stream(stream), False)

    def cuMemsetD32(self, to, value, count):
        self.fill(to, value.to_bytes(4, "little"), count, self.stream(0), True)

    def cuMemsetD32Async(self, to, value, count, stream):
        self.fill(to, value.to_bytes(4, "little"), count, self.stream(stream), False)

    # ---- modules -----------------------------------------------------------------------------------------------------

    def cuModuleLoadData(self, to, image):
        self.cuModuleLoadDataEx(to, image, 0, 0, 0)

    def cuModuleLoadDataEx(self, to, image, count, options, values):
        self.unsafe()
        context = self.context()
        text = ctypes.string_at(image)
        if text[:4] == b"\x7fELF" or text[:4] == b"\x50\xed\x55\xba":
            raise Failed("INVALID_IMAGE")
        try:
            module = Module(self, context, text.decode())
            self.check_target(module.ptx.target, module.ptx.version)
        except (ptx.Refused, UnicodeDecodeError) as error:
            message = f"the emulated device refuses the PTX: {error}"
            self.log(message, count, options, values)
            raise Failed("INVALID_PTX") from None
        self.give(to, module)

    def check_target(self, target: str, version: str) -> None:
        major, minor = self.capability
        number = target.removeprefix("sm_").rstrip("af")
        if not number.isdigit() or not version:
            raise ptx.Refused(1, "no .target or no .version")
        if int(number) > 10 * major + minor or (target[-1] in "af" and int(number) != 10 * major + minor):
            raise Failed("NO_BINARY_FOR_GPU")

    def log(self, message: str, count: int, options: int, values: int) -> None:
        """CU_JIT_ERROR_LOG_BUFFER (5), of CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES (6) bytes."""
        given = {I.from_address(options + 4 * k).value: P.from_address(values + 8 * k).value for k in range(count)}
        if given.get(5) and given.get(6):
            data = message.encode()[: given[6] - 1] + b"\0"
            ctypes.memmove(given[5], data, len(data))

    def cuModuleUnload(self, handle):
        module = self.take(handle, Module)
        self.finish_context(self.context())
        module.unload()
        del self.handles[handle]

    def cuModuleGetFunction(self, to, handle, name):
        module = self.take(handle, Module)
        kernel = module.kernels.get(ctypes.string_at(name).decode())
        if kernel is None:
            raise Failed("NOT_FOUND")
        self.handles[kernel.handle] = kernel
        _put(to, kernel.handle)

    def cuModuleGetGlobal(self, to, size, handle, name):
        a = self.take(handle, Module).variables.get(ctypes.string_at(name).decode())
        if a is None:
            raise Failed("NOT_FOUND")
        if to:
            _put(to, a.address)
        if size:
            _put(size, a.size)

    def cuFuncGetAttribute(self, to, what, handle):
        kernel = self.take(handle, Kernel)
        f, version = kernel.code.f, kernel.module.ptx.version.split(".")
        limit = f.max_threads or f.exact_threads
        threads = 1
        for n in limit:
            threads *= n
        known = {
            0: threads if limit else 1024, 1: kernel.code.shared_size, 2: 0, 3: kernel.code.local_size,
            5: 10 * int(version[0]) + int(version[1]), 6: 10 * self.capability[0] + self.capability[1], 8: kernel["DYNAMIC_MOST"],
        }  # fmt: skip
        if what not in known:  # the number of registers, say: that is ptxas's affair
            raise Failed("NOT_SUPPORTED")
        _put(to, known[what], I)

    def cuFuncSetAttribute(self, handle, what, value):
        kernel = self.take(handle, Kernel)
        if what == 8:
            if not 0 <= value <= 227 * 1024 - kernel.code.shared_size:
                raise Failed("INVALID_VALUE")
            kernel.set(DYNAMIC_MOST=value)
        elif what != 9:
            raise Failed("NOT_SUPPORTED")

    def cuFuncSetCacheConfig(self, handle, config):
        self.take(handle, Kernel)

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, to, handle, threads, shared):
        raise Failed("NOT_SUPPORTED")  # it depends on registers

    # ---- launches ----------------------------------------------------------------------------------------------------

    def cuLaunchKernel(self, handle, gx, gy, gz, bx, by, bz, shared, stream, params, extra):
        kernel = self.take(handle, Kernel)
        stream = self.stream(stream)
        code, context = kernel.code, stream.context
        if context is not kernel.module.context:
            raise Failed("INVALID_HANDLE")
        current = getattr(self.current, "context", None)
        if current is not None:
            self.native.seen(current.words_at)
        threads = bx * by * bz
        most = kernel["MOST_X"], kernel["MOST_Y"], kernel["MOST_Z"]
        if (
            not (0 < gx < 2**31 and 0 < gy < 65536 and 0 < gz < 65536)
            or not 0 < threads <= 1024
            or any(a > b for a, b in zip((bx, by, bz), most, strict=True))
            or (code.f.exact_threads and (bx, by, bz) != most)
            or shared > kernel["DYNAMIC_MOST"]
            or code.dynamic_at + shared > 227 * 1024
        ):
            raise Failed("INVALID_VALUE")
        given = ctypes.create_string_buffer(code.param_size + 16)
        at = ctypes.addressof(given)
        if extra:
            words = (ctypes.c_uint64 * 5).from_address(extra)
            # CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END
            if words[0] != 1 or words[2] != 2 or ctypes.c_size_t.from_address(words[3]).value < code.param_size:
                raise Failed("INVALID_VALUE")
            ctypes.memmove(at, words[1], code.param_size)
        elif kernel["PARAM_COUNT"]:
            if not params:
                raise Failed("INVALID_VALUE")
            layout = iter(kernel.layout)
            for k, (offset, size) in enumerate(zip(layout, layout, strict=True)):
                ctypes.memmove(at + offset, ctypes.c_uint64.from_address(params + 8 * k).value, size)

        def run() -> None:
            kernel.prepare(self.level)
            kernel.set(LAUNCH=kernel.address)
            before = kernel["INSTRUCTIONS"]
            if self.level == "full":
                self.show_unordered(context)
            if self.level == "count":
                self.trace.attach(words, FIELDS)
                self.trace.begin(kernel.name)
            self.native.run(kernel.handle, gx, gy, gz, bx, by, bz, shared, at)
            if self.level == "count":
                self.trace.digest()
                self.trace.current.instructions += kernel["INSTRUCTIONS"] - before
            kernel.prepare(self.level)
            if self.level == "full":
                self.recent.append((words[FIELDS["LAUNCH_EPOCH"]], words[FIELDS["EPOCH"]] + 1, self.present))

        words = context.words
        run.given = given
        if code.local_size and (threads if code.points else 1) * code.state_size > 1 << 31:
            raise Failed("OUT_OF_MEMORY")
        self.queue(stream, run)

    def show_unordered(self, context: Context) -> None:
        pairs = [x for pair in self.unordered(context) for x in pair]
        self.unordered_table = (ctypes.c_uint64 * max(len(pairs), 1))(*pairs)
        context.words[FIELDS["UNORDERED"]] = ctypes.addressof(self.unordered_table)
        context.words[FIELDS["UNORDERED_COUNT"]] = len(pairs) // 2

    def failed(self, handle: int) -> None:
        """A launch ended with a fault; called from native code, with its lock held."""
        try:
            kernel = self.handles[handle]
            words = kernel.module.context.words
            kind = FAULTS[words[FIELDS["KIND"]]]
            fault = describe(self, kernel, words[FIELDS["ADDRESS"]], words[FIELDS["BYTES"]], kind)
            self.faults.append(fault)
            kernel.module.context.error = fault.error
        except BaseException:
            self.note(traceback.format_exc())

    def cuLaunchHostFunc(self, stream, function, data):
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)
        self.queue(self.stream(stream), lambda: call(data))

    # ---- streams and events ------------------------------------------------------------------------------------------

    def new_stream(self, context: Context, blocking: bool = False, priority: int = 0) -> Stream:
        stream = Stream(context, blocking, priority)
        self.streams[context].append(stream)
        return stream

    def cuStreamCreate(self, to, flags):
        self.cuStreamCreateWithPriority(to, flags, 0)

    def cuStreamCreateWithPriority(self, to, flags, priority):
        context = self.context()
        if flags not in (0, 1):
            raise Failed("INVALID_VALUE")
        stream = self.new_stream(context, not flags & 1, priority)
        handle = self.native.new_stream(context.words_at)
        if handle:
            self.handles[handle] = stream
            _put(to, handle)
        else:
            self.give(to, stream)

    def cuStreamDestroy(self, handle):
        stream = self.take(handle, Stream)
        self.native.no_stream(handle)
        if stream.queue:
            self.finish(stream.queue[-1])
        self.streams[stream.context].remove(stream)
        del self.handles[handle]

    def cuStreamSynchronize(self, handle):
        self.finish_stream(self.stream(handle))

    def cuStreamQuery(self, handle):
        stream = self.stream(handle)
        self.asks(stream)
        if stream.queue:
            self.drift(stream.context)
        self.healthy(stream.context)
        if stream.queue:
            raise Failed("NOT_READY")
        self.knows(stream.clock)

    def cuStreamWaitEvent(self, handle, event, flags):
        stream, event = self.stream(handle), self.take(event, Event)
        if event.record is not None and not self.wait_captured(stream, event.record):
            stream.waits.append(event.record)

    def cuStreamGetPriority(self, handle, to):
        _put(to, self.stream(handle).priority, I)

    def cuStreamGetFlags(self, handle, to):
        _put(to, 0 if self.stream(handle).blocking else 1, U)

    def cuStreamGetCtx(self, handle, to):
        context = self.stream(handle).context
        _put(to, next(n for n, x in self.handles.items() if x is context))

    def cuEventCreate(self, to, flags):
        self.give(to, Event(self.context(), flags))

    def cuEventRecord(self, handle, stream):
        event, stream = self.take(handle, Event), self.stream(stream)
        if event.context is not stream.context:
            raise Failed("INVALID_HANDLE")
        event.record = self.queue(stream, None)

    def cuEventRecordWithFlags(self, handle, stream, flags):
        self.cuEventRecord(handle, stream)

    def cuEventQuery(self, handle):
        event = self.take(handle, Event)
        self.asks_event(event.record)
        if event.record is not None and not event.record.done:
            self.drift(event.context)
        self.healthy(event.context)
        if event.record is not None:
            if not event.record.done:
                raise Failed("NOT_READY")
            self.knows(event.record.clock)

    def cuEventSynchronize(self, handle):
        event = self.take(handle, Event)
        self.asks_event(event.record)
        self.finish(event.record)
        if event.record is not None:
            self.knows(event.record.clock)
        self.healthy(event.context)

    def cuEventElapsedTime(self, to, begin, end):
        a, b = self.take(begin, Event), self.take(end, Event)
        if a.record is None or b.record is None or not (a.timed and b.timed):
            raise Failed("INVALID_HANDLE")
        self.asks_event(a.record), self.asks_event(b.record)
        if not (a.record.done and b.record.done):
            raise Failed("NOT_READY")
        _put(to, 1000 * (b.record.time - a.record.time), ctypes.c_float)

    def cuEventDestroy(self, handle):
        self.take(handle, Event)
        del self.handles[handle]

    # ---- errors and names --------------------------------------------------------------------------------------------

    def cuGetErrorName(self, number, to):
        self.text(to, ERRORS.get(number, "").encode())

    def cuGetErrorString(self, number, to):
        self.text(to, _TEXTS.get(number, ERRORS.get(number, "").encode()))

    def text(self, to: int, words: bytes) -> None:
        if not words:
            _put(to, 0)
            raise Failed("INVALID_VALUE")
        self.texts = getattr(self, "texts", {})
        if words not in self.texts:
            self.texts[words] = ctypes.create_string_buffer(words)
        _put(to, ctypes.addressof(self.texts[words]))

    def cuGetProcAddress(self, symbol, to, version, flags, status):
        name = ctypes.string_at(symbol).decode()
        found = self.functions.get(name)
        for k in (4, 3, 2):
            found = (
                self.functions.get(f"{name}_v{k}", found)
                if found is None or f"{name}_v{k}" in self.functions
                else found
            )
        _put(to, found or 0)
        if status:
            _put(status, 0 if found else 1, I)
        if not found:
            raise Failed("NOT_FOUND")
