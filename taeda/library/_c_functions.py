"""Functions in C: reading their declarations, building their files and binding them, for ``taeda.library.bind``."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shlex
import shutil
import sys
import sysconfig
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .. import _core
from .._core.custom import CFunction
from ..kernels import foreign
from ..kernels.build import cache_dir, write_to_cache
from ..kernels.files import read_regular
from ..kernels.target import host

_LONG = ctypes.sizeof(ctypes.c_long) * 8

#: Words of a type in C, in order: its dtype in memory, and its kind among ``kernels.foreign.NUMBERS`` as a number.
C_TYPES: dict[str, tuple[str, str]] = {
    "float": ("float32", "f32"), "double": ("float64", "f64"), "_Float16": ("float16", ""), "__bf16": ("bfloat16", ""),
    "_Complex float": ("complex64", ""), "_Complex double": ("complex128", ""),
    "bool": ("bool", "u8"), "_Bool": ("bool", "u8"),
    "size_t": ("uint64", "u64"), "ptrdiff_t": ("int64", "i64"), "ssize_t": ("int64", "i64"),
    "char signed": ("int8", "i8"), "char unsigned": ("uint8", "u8"),
    **{f"int{n}_t": (f"int{n}", f"i{n}") for n in (8, 16, 32, 64)},
    **{f"uint{n}_t": (f"uint{n}", f"u{n}") for n in (8, 16, 32, 64)},
    **{
        " ".join(sorted([*words.split(), *sign.split()])): (f"{letter}int{bits}", f"{letter or 'i'}{bits}")
        for words, bits in (("short", 16), ("int short", 16), ("int", 32), ("", 32), ("long", _LONG),
                            ("int long", _LONG), ("long long", 64), ("int long long", 64))
        for sign, letter in (("", ""), ("signed", ""), ("unsigned", "u")) if words or sign
    },
}  # fmt: skip
_IGNORED = {"restrict", "__restrict", "__restrict__", "register", "extern", "inline", '"C"'}


class Parameter(NamedTuple):
    """A parameter in C: ``dims`` is None for a number, ``()`` for a plain pointer; else names or numbers of sizes."""

    name: str
    dtype: str
    kind: str
    const: bool
    dims: tuple[str | int, ...] | None


def parse(declaration: str) -> tuple[str, list[Parameter]]:
    """Name and parameters of a function declared as ``void f(const float *x, float *y, int64_t n);``."""
    if not isinstance(declaration, str):
        raise TypeError(f"library.bind: expected a declaration in C, a str, got {type(declaration).__name__}")
    plain = " ".join(re.sub(r"/\*.*?\*/|//[^\n]*", " ", declaration, flags=re.S).split()).rstrip("; ")
    found = re.fullmatch(r"(?P<result>.*?)\b(?P<name>[A-Za-z_]\w*) ?\((?P<inside>.*)\)", plain)
    if found is None:
        raise ValueError(
            f"library.bind: expected a declaration like 'void f(const float *x, float *y, int64_t n)', got "
            f"{declaration!r}"
        )
    name, result = found["name"], " ".join(w for w in found["result"].split() if w not in _IGNORED)
    if result != "void":
        raise ValueError(
            f"library.bind: {name} gives {result or 'nothing that is named'!r}; expected 'void': let it write its "
            f"results through a pointer, such as 'float *result'"
        )
    inside = found["inside"].strip()
    params = [] if inside in ("", "void") else [_parameter(name, text.strip()) for text in inside.split(",")]
    names = [p.name for p in params]
    if len(set(names)) < len(names):
        raise ValueError(f"library.bind: two parameters of {name} have one name: {', '.join(names)}")
    return name, params


def _parameter(function: str, text: str) -> Parameter:
    def fail(why: str) -> ValueError:
        return ValueError(f"library.bind: {function}: {why}, in the parameter '{text}'")

    tokens = re.findall(r"[A-Za-z_]\w*|\*|\[[^\]]*\]|\S", text)
    if "..." in text or "(" in text:
        raise fail("pointers to functions and '...' are not taken")
    stars = tokens.count("*")
    before = tokens[: tokens.index("*")] if stars else tokens
    rest = tokens[len(tokens) - tokens[::-1].index("*") :] if stars else []
    arrays = [token[1:-1].strip() for token in tokens if token.startswith("[")]
    words = [w for w in before if w.isidentifier() and w not in _IGNORED]
    const = "const" in words
    words = [w for w in words if w != "const"]
    named = [w for w in rest if w.isidentifier() and w not in _IGNORED | {"const"}] if stars else words[-1:]
    words = words if stars else words[:-1]
    if stars + bool(arrays) > 1:
        raise fail("expected one pointer, such as 'float *x' or 'float x[rows][columns]'")
    if len(named) != 1:
        raise fail("expected a name: sizes and arguments go by names")
    if "volatile" in words or any(not re.fullmatch(r"\w+|\*|\[[^\]]*\]", token) for token in tokens):
        raise fail("expected types, names, '*' and '[size]' alone")
    spelled = " ".join(sorted(words))
    if spelled not in C_TYPES:
        hint = {"char": "; write int8_t or uint8_t", "void": "; say what it points to, such as float"}.get(spelled, "")
        known = "float, double, _Float16, __bf16, bool, int8_t to uint64_t, int, long, size_t and the like"
        raise fail(f"unknown type {' '.join(words) or 'of no words'!r}{hint} (known are {known})")
    dtype, kind = C_TYPES[spelled]
    if not stars and not arrays:
        if not kind:
            raise fail(f"a number of type {' '.join(words)!r} cannot be given; use float or double")
        return Parameter(named[0], dtype, kind, const, None)
    sizes = [" ".join(w for w in re.split(r"\s+", a) if w not in _IGNORED | {"static", "const"}) for a in arrays]
    wrong = [size for size in sizes if not re.fullmatch(r"[A-Za-z_]\w*|[0-9]+", size)]
    if wrong:
        raise fail(f"expected a number or the name of a parameter as a size, got '[{wrong[0]}]'")
    return Parameter(named[0], dtype, "pointer", const, tuple(int(s) if s.isdigit() else s for s in sizes))


class Bound(NamedTuple):
    """A function in C as an op: the function that computes it, its schema in PyTorch's form, and written arguments."""

    function: CFunction
    schema: str
    takes: tuple[str, ...]


#: Ranges of whole numbers by kind; unsigned numbers of 64 bits are checked separately.
_RANGE = {f"i{n}": (-(2 ** (n - 1)), 2 ** (n - 1) - 1) for n in (8, 16, 32, 64)} | {
    f"u{n}": (0, 2**n - 1) for n in (8, 16, 32)
}


def as_op(
    label: str, declared: tuple[str, list[Parameter]], address: int, written: Sequence[str], threads: str | None,
    library: Any,
) -> Bound:  # fmt: skip
    """Make an op of a function in C.

    Args:
        label: ``namespace::name``.
        declared: what :func:`parse` gave.
        address: of the function.
        written: names of parameters that are read and written.
        threads: the size along which threads share the work.
        library: what keeps the function loaded.

    Raises:
        ValueError: the declaration, ``written`` and ``threads`` do not fit each other.
    """
    name, params = declared
    by_name = {p.name: p for p in params}

    def fail(why: str) -> ValueError:
        return ValueError(f"library.bind: {name}: {why}")

    for w in written:
        if w not in by_name or by_name[w].dims is None:
            raise fail(f"mutates_args has {w!r}, and the declaration has no pointer of that name")
        if by_name[w].const:
            raise fail(f"mutates_args has {w!r}, which is declared const: a const parameter is read alone")
    pointers = [p for p in params if p.dims is not None]
    plain = [p for p in pointers if not p.dims]
    symbols = ["n" if plain else ""]
    if plain:
        counted = by_name.get("n")
        if counted is None or counted.kind in ("pointer", "f32", "f64"):
            raise fail(
                f"nothing says how many elements '{plain[0].name}' has: add a parameter 'int64_t n', the number of "
                f"elements, or write its sizes, as in 'float {plain[0].name}[rows][columns]'"
            )
        if all(not p.const and p.name not in written for p in plain):
            raise fail("it has no input of the shape of its results: declare what is read alone const")
    for p in pointers:
        for size in p.dims or ():
            if isinstance(size, str):
                if size not in by_name or by_name[size].kind in ("pointer", "f32", "f64"):
                    raise fail(f"'{p.name}[{size}]': there is no whole number {size!r} among the parameters")
                if size not in symbols:
                    symbols.append(size)
    known = {size for p in pointers if p.const or p.name in written for size in p.dims or ("n",)}
    split = -1
    if threads is not None:
        if threads not in symbols or not threads:
            raise fail(f"threads={threads!r} names no size of a tensor; there are {', '.join(filter(None, symbols))}")
        for p in pointers:
            first, *rest = p.dims or ("n",)
            if first != threads or threads in rest:
                raise fail(
                    f"threads={threads!r}: '{p.name}' does not have it as its first dimension, so parts would overlap"
                )
        split = symbols.index(threads)
    rows: list[tuple] = []
    given, takes, results = [], [], []
    for i, p in enumerate(params):
        if p.dims is None:
            symbol = symbols.index(p.name) if p.name in symbols else -1
            low, high = _RANGE.get(p.kind, (0, -1))
            if p.name in known:
                role = "derived"
                high = high if high >= 0 else 2**63 - 1
            else:
                role = "real" if p.kind in ("f32", "f64") else "whole"
                given.append(f"{'float' if role == 'real' else 'SymInt'} {p.name}")
                takes.append("float" if role == "real" else "int")
            rows.append((role, p.name, None, None, symbol, low, high))
            continue
        role = "written" if p.name in written else "read" if p.const else "made"
        dims = tuple(symbols.index(s) if isinstance(s, str) else -1 - s for s in p.dims) if p.dims else None
        dtype = _core.bool_ if p.dtype == "bool" else getattr(_core, p.dtype)
        rows.append((role, p.name, dtype, dims, -1, 0, 0))
        if role == "made":
            results.append("Tensor")
        else:
            given.append(f"Tensor{f'(a{i}!)' if role == 'written' else ''} {p.name}")
            takes.append("Tensor")
    if not results and not written:
        raise fail("every pointer is const, so it gives nothing: results go through pointers that are not")
    at = -1 if split < 0 else next(i for i, p in enumerate(params) if p.name == threads)
    kernel = foreign.call_c(tuple(p.kind for p in params), at)
    function = CFunction(label, address, kernel, tuple(rows), tuple(symbols), split, library)
    result = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return Bound(function, f"({', '.join(given)}) -> {result}", tuple(takes))


def load(library: Any) -> Any:
    """A shared library: an open one, or the file that is named; None means this program itself."""
    if isinstance(library, ctypes.CDLL):
        return library
    try:
        return ctypes.CDLL(None if library is None else os.fspath(library))
    except OSError as error:
        raise OSError(f"library.bind: cannot load {os.fspath(library)!r}: {error}") from None


def address_of(library: Any, name: str) -> int:
    """The address of a function of a library."""
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    except AttributeError:
        raise AttributeError(
            f"library.bind: {library._name or 'this program'} has no symbol {name!r}. A function that is static is not "
            f'visible, and C++ changes names unless they are declared extern "C"'
        ) from None


# ---- building --------------------------------------------------------------------------------------------------------


def compiler() -> list[str]:
    """The command of the machine's C compiler: ``CC``, or the first of cc, gcc and clang that there is."""
    asked = os.environ.get("CC")
    for command in [asked] if asked else [sysconfig.get_config_var("CC"), "cc", "gcc", "clang"]:
        words = shlex.split(command or "")
        if words and shutil.which(words[0]):
            return words
    raise RuntimeError(
        f"cpp_extension: found no C compiler{f' named {asked!r}, as CC says' if asked else ' (cc, gcc, clang)'}. "
        f"Install one (on Debian: apt install gcc libc6-dev), or name yours in the environment variable CC"
    )


def build(
    name: str, sources: Mapping[str, str], flags: Sequence[str], linking: Sequence[str], verbose: bool,
    include: Sequence[str] = (),
) -> Path:  # fmt: skip
    """The shared library of C sources, from the cache if they were built before with this compiler and these flags.

    Args:
        sources: texts by file name.
        flags: after ``-O3 -march=native -fPIC``.
        linking: after the files.
        include: folders of headers.

    Raises:
        RuntimeError: there is no compiler, or it refuses the sources.
    """
    import subprocess
    import tempfile

    words = compiler()
    version = subprocess.run([*words, "--version"], capture_output=True, text=True, check=False).stdout
    command = [*words, "-shared", "-fPIC", "-O3", "-march=native", *flags, *(f"-I{folder}" for folder in include)]

    def run(*command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"Error building extension {name!r}: {' '.join(words)} says\n{done.stderr}")
        return done.stdout

    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / file) for file in sources]
        for file, text in zip(files, sources.values(), strict=True):
            Path(file).write_text(text)
        whole = [run(*command, "-E", "-P", file) for file in files]  # with the files that they include
        key = repr((host().key, version, command, whole, list(linking)))
        digest = hashlib.sha256(key.encode()).hexdigest()[:32]
        path = cache_dir() / "c" / digest[:2] / f"{digest}.so"
        if _is_whole(path):
            return path
        if verbose:
            print(f"{name}: {' '.join(command)}", file=sys.stderr)
        made = Path(folder) / "made.so"
        run(*command, "-o", str(made), *files, *linking)
        code = made.read_bytes()
    # loaders ignore the checksum behind the end
    write_to_cache(path, code + zlib.crc32(code).to_bytes(4, "little"))
    if not _is_whole(path):  # the cache cannot be written
        path = Path(tempfile.mkdtemp(prefix="taeda-")) / f"{digest}.so"
        path.write_bytes(code)
    return path


def _is_whole(path: Path) -> bool:
    try:
        blob = read_regular(path)
    except ValueError:
        return False
    return blob is not None and len(blob) > 4 and zlib.crc32(blob[:-4]).to_bytes(4, "little") == blob[-4:]


def functions_in(source: str) -> Iterator[str]:
    """The declarations of functions without a result that a C source defines, those that are static left out."""
    plain = re.sub(r"/\*.*?\*/|//[^\n]*", " ", source, flags=re.S)
    for found in re.finditer(r"(?:^|[;}\n])\s*((?:[A-Za-z_]\w*\s+)*?void\s+[A-Za-z_]\w*\s*\([^(){}]*\))\s*\{", plain):
        if "static" not in found[1].split():
            yield " ".join(found[1].split())
