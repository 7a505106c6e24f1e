"""From kernel text to an address: hash, look up on disk, else compile, then load.

A kernel is content-addressed: by the hash of its text, its target and the compiler's version. Look-up order: the
wheel's kernels (:mod:`.shipped`), the user's disk cache, LLVM. Cache files are written to a temporary name and renamed,
so that processes can share a cache. An entry that does not load is dropped and built again.

Every kernel has a probe: an entry that jumps to the body (a load, a test and a jump) unless a profiler has put its
function there. Callers of the kernel's address need not know (:func:`watch`).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import target as targets
from .files import atomic_write, read_regular
from .forks import loading
from .ir import Function
from .shipped import Pack
from .target import Target, here, host

FORMAT = 2  # change it with the layout of the cache
_addresses: dict[str, int] = {}
_sources: dict[int, Callable[[], Function]] = {}  # by address: what writes the kernel's text again
_alive: list[object] = []  # objects that LLVM must not free
_probes: list[
    tuple[str, int]
] = []  # label and address of the probe of each loaded kernel; a kernel's number is its position here
_NOWHERE = Path(os.devnull) / "taeda"  # no file can be there
_warned = False  # whether a failure to keep kernels was reported
_watcher = 0  # the function that probes call; 0: none


def cache_dir() -> Path:
    """The folder of compiled kernels: ``TAEDA_CACHE``, else ``taeda`` in the user's cache folder."""
    chosen = os.environ.get("TAEDA_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    if not base:
        try:
            base = Path.home() / ".cache"
        except RuntimeError:  # no HOME, and the system does not know the user
            return _NOWHERE
    return Path(base) / "taeda"


@functools.cache
def _compiler_version() -> str:
    with loading:
        import llvmlite  # the package alone: LLVM itself is loaded when something must be compiled or loaded

    return f"llvmlite-{llvmlite.__version__}-{FORMAT}"


class Compiler:
    """LLVM for one target: text to object code and, on the host, object code to memory."""

    def __init__(self, target: Target):
        import llvmlite.binding as llvm

        if target is host():
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
        else:
            llvm.initialize_all_targets()
            llvm.initialize_all_asmprinters()
        self.llvm = llvm
        self.target = target
        gpu = target.triple.startswith("nvptx")
        self.machine = llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=2, reloc="default" if gpu else "pic",
            codemodel="default" if gpu else "small",
        )  # fmt: skip
        self._engine: Any = None

    def _module(self, text: str):
        if self.target.triple.startswith("nvptx"):
            text = text.replace("define void @", "define ptx_kernel void @", 1)
        module = self.llvm.parse_assembly(f'target triple = "{self.target.triple}"\n{text}')
        module.verify()
        return module

    def assembly(self, text: str) -> str:
        return self.machine.emit_assembly(self._module(text))

    def object(self, text: str) -> bytes:
        return self.machine.emit_object(self._module(text))

    def objects_as_one(self, texts: Sequence[str]) -> bytes:
        """Modules that call each other's functions, linked into one object."""
        self.llvm.initialize_native_asmparser()  # a module may contain assembly for this machine
        first, *others = map(self._module, texts)
        for module in others:
            first.link_in(module)
        return self.machine.emit_object(first)

    def load(self, name: str, code: bytes) -> int:
        """Put object code into executable memory; return the address of ``name`` in it, 0 if it is missing."""
        if self._engine is None:
            # LLVM's default places code and constants wherever there is room: with many GB of tensors too far apart.
            self._engine = self.llvm.create_mcjit_compiler(self.llvm.parse_assembly(""), self.machine, use_lmm=True)
        handle = self.llvm.ObjectFileRef.from_data(code)
        self._engine.add_object_file(handle)
        self._engine.finalize_object()
        _alive.append(handle)
        return self._engine.get_function_address(name)

    def probe(self, name: str) -> int:
        """The address of the probe of the loaded kernel ``name``, 0 where it has none."""
        return self._engine.get_global_value_address(f"{name}.probe")


_compilers: dict[str, Compiler] = {}


@functools.cache
def _shipped() -> Pack:
    return Pack(_compiler_version())


def compiler(target: Target | None = None) -> Compiler:
    """The compiler for ``target`` (default: this machine), made on first use."""
    target = target or host()
    with loading:
        if target.key not in _compilers:
            _compilers[target.key] = Compiler(target)
        return _compilers[target.key]


def read_entry(path: Path) -> bytes | None:
    """The content of a cache entry; None if there is none, or if its checksum fails (then it is removed)."""
    try:
        blob = read_regular(path)
    except ValueError:
        blob = b""
    if blob is None:
        return None
    if len(blob) > 4 and zlib.crc32(blob[4:]).to_bytes(4, "little") == blob[:4]:
        return blob[4:]
    with contextlib.suppress(OSError):
        path.unlink()
    return None


def write_entry(path: Path, code: bytes) -> None:
    """Store an entry atomically. A cache that cannot be written is no error: the kernel works all the same."""
    write_to_cache(path, zlib.crc32(code).to_bytes(4, "little") + code)


def write_to_cache(path: Path, content: bytes) -> None:
    """Store a file below :func:`cache_dir`. The first failure raises a warning."""
    global _warned
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, folder=cache_dir(), sync=False) as file:
            file.write(content)
    except OSError as error:
        if _warned:
            return
        _warned = True
        why = "there is no home folder" if _NOWHERE in path.parents else error
        warnings.warn(
            f"taeda keeps compiled kernels in memory only ({why}): every process compiles its own. Set TAEDA_CACHE to "
            "a folder that can be written to keep them.",
            stacklevel=2,
        )


_PROBE = """@{name}.probe = dso_local global {{ ptr, i64 }} zeroinitializer
define void @{name}(ptr %ptr, ptr %arg, i64 %begin, i64 %end) nounwind {{
  %watcher = load atomic ptr, ptr @{name}.probe monotonic, align 8
  %alone = icmp eq ptr %watcher, null
  br i1 %alone, label %straight, label %watched
straight:
  tail call void @body(ptr %ptr, ptr %arg, i64 %begin, i64 %end)
  ret void
watched:
  tail call void %watcher(ptr %ptr, ptr %arg, i64 %begin, i64 %end, ptr @{name}.probe, ptr @body)
  ret void
}}
"""


def _with_probe(f: Function, text: str, name: str) -> str:
    """The kernel's module, with its probe where it has one, for loading as ``name``."""
    if f.inner:
        return text.replace(f"@{f.name}(", f"@{name}(", 1)
    return _PROBE.format(name=name) + text.replace(f"define void @{f.name}(", "define internal void @body(", 1)


def _add_probe(label: str, probe: int) -> None:
    """Number a loaded kernel, and let its probe lead where the others do."""
    import ctypes

    ctypes.c_int64.from_address(probe + 8).value = len(_probes)
    _probes.append((label, probe))
    ctypes.c_int64.from_address(probe).value = _watcher


def watch(watcher: int) -> None:
    """From now on every run of a kernel goes to the C function at ``watcher``; 0: to its body again.

    The function gets a kernel's four arguments, its probe (where the second word is the kernel's number) and its body,
    which it is to call. That happens on any thread, with or without Python's lock.
    """
    global _watcher
    import ctypes

    with loading:
        _watcher = watcher
        for _, probe in _probes:
            ctypes.c_int64.from_address(probe).value = watcher


def watched_names() -> list[str]:
    """The name and key of each loaded kernel that has a probe, by its number."""
    return [label for label, _ in _probes]


def text_digest(f: Function, text: str) -> str:
    """The SHA-256 of the kernel ``f`` with the text ``text``, in hex: with its probe, without its target."""
    return hashlib.sha256(f"{'' if f.inner else _PROBE}{text}".encode()).hexdigest()


def module_text(f: Function) -> str:
    """The kernel as the module that is compiled, whichever the target."""
    text = f.text()
    return _with_probe(f, text, f"k{text_digest(f, text)[:32]}")


def build(f: Function, again: Callable[[], Function]) -> int:
    """The address of the compiled kernel ``f`` on this machine; ``again()`` writes its text again (:func:`source`).

    For a device whose kernels run elsewhere it is the number that its target gives.

    Raises:
        RuntimeError: LLVM refuses the text (a fault of the kernel's author).
    """
    target = here()
    if target.loads is not None:
        return target.loads(f, again)
    text = f.text()
    digest = text_digest(f, text)
    name = f"k{digest[:32]}"  # the text alone decides: the pack has one object for several targets
    digest = hashlib.sha256(f"{target.key}\n{_compiler_version()}\n{digest}".encode()).hexdigest()[:32]
    address = _addresses.get(digest)
    if address is not None:
        return address
    with loading:
        if digest in _addresses:
            return _addresses[digest]
        path = cache_dir() / digest[:2] / f"{digest}.o"
        code = _shipped().find(name[1:], target.key)
        if code is not None:
            address = compiler().load(name, code)
        elif (code := read_entry(path)) is not None:
            address = compiler().load(name, code)
            if not address:
                with contextlib.suppress(OSError):
                    path.unlink()
        if not address:
            code = compiler().object(_with_probe(f, text, name))
            write_entry(path, code)
            address = compiler().load(name, code)
        if not f.inner:
            _add_probe(f.label, compiler().probe(name))
        _addresses[digest] = address
        _sources[address] = again
        return address


def names() -> dict[int, str]:
    """The names of the kernels that were built in this process, hashes of their texts, by address."""
    return {address: name for name, address in _addresses.items()}


def is_kernel(address: int) -> bool:
    """Whether a kernel that was built in this process begins at ``address``."""
    return address in _sources


def source(address: int) -> Function:
    """The kernel at ``address`` as IR.

    Raises:
        KeyError: no kernel that was built in this process begins there.
    """
    return _sources[address]()


class kernel:
    """Make ``emit(f, *key)`` a table from ``key`` to the address of a compiled kernel.

    ``@kernel`` over a function that writes one kernel into the builder ``f``. Calling the result with hashable
    arguments (dtype names, layout classes, constants) gives the address; the second call with equal arguments is one
    dict look-up.
    """

    def __init__(self, emit):
        self.emit = emit
        self.table: dict[tuple, int] = {}
        self.tables = {0: self.table}  # by the number of the device
        self.path = f"{emit.__module__.rpartition('.')[2]}.{emit.__name__}"
        self.__doc__ = emit.__doc__
        self.__name__ = emit.__name__

    def __call__(self, *key) -> int:
        number = targets.place()
        try:
            return self.tables[number][key] if number else self.table[key]
        except KeyError:
            table = self.tables.setdefault(number, {})
            address = table[key] = (
                targets.build_there(number, self.path, key, functools.partial(self.compile, *key))
                if number
                else self.compile(*key)
            )
            return address

    def compile(self, *key) -> int:
        """The address of the kernel, compiled for this thread's place."""
        return build(self.text(*key), functools.partial(self.text, *key))

    def text(self, *key, target: Target | None = None) -> Function:
        """The kernel as IR, for ``target`` (default: this thread's place)."""
        f = Function(vector_bytes=(target or here()).vector_bytes)
        f.label = f"{self.__name__}({', '.join(map(str, key))})"
        self.emit(f, *key)
        return f
