"""From kernel text to an address: hash, look up on disk, else compile, then load.

A kernel is content-addressed: its name is the hash of its text, its target and the compiler's version. Look-up order:
objects shipped with the package, the user's disk cache, then LLVM. Cache files are written to a temporary name and
renamed, so that processes can share a cache; an entry that does not load is dropped and built again.
"""

from __future__ import annotations

import functools
import os
import tempfile
import threading
import zlib
from pathlib import Path
from typing import Any

from .ir import Function
from .target import Target, host

FORMAT = 1  # changes when the cache's layout does
_SHIPPED = Path(__file__).with_name("shipped")
_lock = threading.RLock()
_addresses: dict[str, int] = {}
_alive: list[object] = []  # what LLVM must not free


def cache_dir() -> Path:
    """The folder of compiled kernels: ``TAEDA_CACHE``, else ``taeda`` in the user's cache folder."""
    chosen = os.environ.get("TAEDA_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "taeda"


@functools.cache
def _compiler_version() -> str:
    import llvmlite  # the package alone: LLVM itself is loaded when something must be compiled or loaded

    return f"llvmlite-{llvmlite.__version__}-{FORMAT}"


class _Compiler:
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
            cpu=target.cpu,
            features=target.features,
            opt=2,
            reloc="default" if gpu else "pic",
            codemodel="default" if gpu else "small",
        )
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

    def load(self, name: str, code: bytes) -> int:
        """Put object code into executable memory; the address of ``name`` in it (0 if it is not there)."""
        if self._engine is None:
            self._engine = self.llvm.create_mcjit_compiler(self.llvm.parse_assembly(""), self.machine)
        handle = self.llvm.ObjectFileRef.from_data(code)
        self._engine.add_object_file(handle)
        self._engine.finalize_object()
        _alive.append(handle)
        return self._engine.get_function_address(name)


_compilers: dict[str, _Compiler] = {}


def compiler(target: Target | None = None) -> _Compiler:
    """The compiler for ``target`` (default: this machine), made on first use."""
    target = target or host()
    with _lock:
        if target.key not in _compilers:
            _compilers[target.key] = _Compiler(target)
        return _compilers[target.key]


def _read(path: Path) -> bytes | None:
    """A cache entry's object code, or None where there is none or its checksum fails (then it is removed)."""
    try:
        blob = path.read_bytes()
    except OSError:
        return None
    if len(blob) > 4 and zlib.crc32(blob[4:]).to_bytes(4, "little") == blob[:4]:
        return blob[4:]
    path.unlink(missing_ok=True)
    return None


def _write(path: Path, code: bytes) -> None:
    """Store an entry atomically. A cache that cannot be written is no error: the kernel works all the same."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(zlib.crc32(code).to_bytes(4, "little") + code)
        os.replace(temporary, path)
    except OSError:
        pass


def build(f: Function) -> int:
    """The address of the compiled kernel ``f`` on this machine.

    Raises:
        RuntimeError: LLVM refuses the text (a fault of the kernel's author).
    """
    text = f.text()
    target = host()
    import hashlib

    digest = hashlib.sha256(f"{target.key}\n{_compiler_version()}\n{text}".encode()).hexdigest()[:32]
    address = _addresses.get(digest)
    if address is not None:
        return address
    with _lock:
        if digest in _addresses:
            return _addresses[digest]
        name = f"k{digest}"
        places = (_SHIPPED / f"{digest}.o", cache_dir() / digest[:2] / f"{digest}.o")
        for path in places:
            code = _read(path)
            if code is not None:
                address = compiler().load(name, code)
                if address:
                    _addresses[digest] = address
                    return address
                path.unlink(missing_ok=True)
        code = compiler().object(text.replace(f"@{f.name}(", f"@{name}(", 1))
        _write(places[1], code)
        address = compiler().load(name, code)
        _addresses[digest] = address
        return address


class kernel:
    """Make ``emit(f, *key)`` a table from ``key`` to the address of a compiled kernel.

    ``@kernel`` over a function that writes one kernel into the builder ``f``. Calling the result with hashable arguments
    (dtype names, layout classes, constants) gives the address; the second call with equal arguments is one dict look-up.
    """

    def __init__(self, emit):
        self.emit = emit
        self.table: dict[tuple, int] = {}
        self.__doc__ = emit.__doc__
        self.__name__ = emit.__name__

    def __call__(self, *key) -> int:
        try:
            return self.table[key]
        except KeyError:
            f = self.text(*key)
            address = self.table[key] = build(f)
            return address

    def text(self, *key, target: Target | None = None) -> Function:
        """The kernel as IR, for ``target`` (default: this machine)."""
        f = Function(vector_bytes=(target or host()).vector_bytes)
        self.emit(f, *key)
        return f
