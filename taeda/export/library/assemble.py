"""All of a library's code as one object: kernels, the driver, the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from taeda.kernels.build import Compiler, source
from taeda.kernels.host_functions import host_function
from taeda.kernels.ir import Function
from taeda.kernels.routine import module_text
from taeda.kernels.target import Target

from . import driver, processor, threads
from .header import VERSION, Interface
from .processor import is_able
from .record import Kernel
from .tables import Tables, address_text, bytes_text, variants_text, words_text


def _kernel_text(f: Function, symbol: str) -> str:
    """A kernel's module, seen by the others."""
    if any(x.startswith("amx") for x in f.features):
        raise NotImplementedError(
            f"build: {f.label} is for processors with AMX, whose use a program must ask for; set TAEDA_TARGET=avx512"
        )
    return f.text().replace(f"define void @{f.name}(", f"define hidden void @{symbol}(", 1)


def _metas(interface: Interface) -> str:
    found = []
    for name, tensors in (("input", interface.inputs), ("output", interface.outputs)):
        found += [words_text(f"{name}{i}", t.meta()) for i, t in enumerate(tensors)]
        found.append(words_text(f"{name}s", [address_text(f"{name}{i}") for i in range(len(tensors))]))
    return "".join(found)


def _texts(interface: Interface) -> str:
    texts = interface.texts()
    found = [bytes_text(f"text{code}", text.encode() + b"\0", 1) for code, text in texts.items()]
    table = [word for code in texts for word in (code, address_text(f"text{code}"))]
    unknown = bytes_text("unknown", b"unknown error code\0", 1)
    return "".join([*found, unknown, words_text("texts", table)])


def _held(beside: bytes | None) -> str:
    """The symbol of the weights: they stand behind the code, or are not there yet."""
    if beside is None:
        return "@weights = external global i8\n@held = internal global ptr @weights, align 8\n"
    texts = bytes_text("head", beside, 1) + bytes_text("reading", b"rb\0", 1)
    return f"@held = internal global ptr null, align 8\n{texts}"


def _driver_text(
    interface: Interface, tables: Tables, symbol: Callable[[Kernel], str], target: Target, beside: bytes | None
) -> str:
    own, launch, set_threads = threads.routines(interface.name, target.triple.startswith("aarch64"))
    able = is_able(target)
    dimensions = sum(len(t.sizes) for t in interface.outputs)
    own += [able, *driver.routines(
        interface.name, len(interface.inputs), len(interface.outputs), dimensions,
        [(x.low, x.high) for x in interface.symbols],
        len(tables.variants), len(interface.texts()), VERSION, launch, set_threads, able,
    )]  # fmt: skip
    if beside is not None:
        own.append(driver.load(interface.name, driver.HEAD + tables.weights))
    declared = [
        "".join(f"declare hidden void @{symbol(k)}(ptr, ptr, i64, i64)\n" for k in tables.kernels()),
        _held(beside),
        "@kept = internal global i64 0, align 8\n", threads.GLOBALS, processor.GLOBALS, variants_text(tables, symbol),
        _metas(interface),
        _texts(interface),
    ]  # fmt: skip
    return module_text(own, "".join(declared))


def assemble(interface: Interface, tables: Tables, target: Target, beside: bytes | None = None) -> bytes:
    """The object, relocatable; ``beside`` is the beginning of the file of weights, if there is one."""
    names: dict[Kernel, str] = {k: f"kernel{i}" for i, k in enumerate(tables.kernels())}
    texts: Sequence[str] = [
        _driver_text(interface, tables, names.__getitem__, target, beside),
        *(_kernel_text(host_function(k) if isinstance(k, str) else source(k), symbol) for k, symbol in names.items()),
    ]
    return Compiler(target).objects_as_one(texts)
