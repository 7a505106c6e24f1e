"""The C header of a library, and the texts of its error codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import driver

#: Version of the interface that the header declares. It changes if a program that was compiled for the previous one
#: would not work.
VERSION = 1

#: dtypes by their code, with the type in C where it has one.
DTYPES = {
    "float32": (1, "float"), "float64": (2, "double"), "float16": (3, "uint16_t"), "bfloat16": (4, "uint16_t"),
    "int8": (5, "int8_t"), "int16": (6, "int16_t"), "int32": (7, "int32_t"), "int64": (8, "int64_t"),
    "uint8": (9, "uint8_t"), "bool": (10, "uint8_t"), "complex64": (11, "float"), "complex128": (12, "double"),
    "uint16": (13, "uint16_t"), "uint32": (14, "uint32_t"), "uint64": (15, "uint64_t"), "complex32": (16, "uint16_t"),
}  # fmt: skip


_CODES = ("NULL", "INPUTS", "OUTPUTS", "BATCH", "MEMORY", "VALUE", "PROCESSOR", "WEIGHTS", "FILE", "OVERLAP")


@dataclass(frozen=True)
class Symbol:
    """A size that may change, the ``number``-th one: its name, and its first and last value."""

    name: str
    number: int
    low: int
    high: int

    def __str__(self) -> str:
        return self.name

    @property
    def count(self) -> int:
        """The number of its values."""
        return self.high - self.low + 1


@dataclass(frozen=True)
class Tensor:
    """An input or output: its name, dtype's name, bytes of an element, and sizes: a text says what depends on
    symbols."""

    name: str
    dtype: str
    itemsize: int
    sizes: tuple[int | str | Symbol, ...]

    def meta(self) -> list[int]:
        """The numbers with which the driver compares an argument."""
        return [
            DTYPES[self.dtype][0],
            len(self.sizes),
            self.itemsize,
            *(n if isinstance(n, int) else -1 - n.number if isinstance(n, Symbol) else -1 for n in self.sizes),
        ]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.sizes))}]"


@dataclass(frozen=True)
class Interface:
    """The inputs and outputs of a library.

    ``symbols`` are the sizes that may change; ``weights`` is the name of the file of weights, or None.
    """

    name: str
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    symbols: Sequence[Symbol] = ()
    weights: str | None = None

    def texts(self) -> dict[int, str]:
        """Error texts by code."""
        name = self.name
        ranges = " and ".join(f"{x} from {x.low} to {x.high}" for x in self.symbols)
        found = {
            driver.OK: "no error",
            driver.NULL: f"{name}_run: the list of inputs or of outputs is NULL",
            driver.INPUTS: f"{name}_run: expected {len(self.inputs)} inputs",
            driver.OUTPUTS: f"{name}_run: expected {len(self.outputs)} outputs",
            driver.BATCH: f"{name}_run: expected a {ranges}; the library was built for these",
            driver.MEMORY: f"{name}_run: no memory",
            driver.VALUE: f"{name}_run: a value is out of range, such as an index or a class",
            driver.PROCESSOR: f"{name}_run: this processor lacks instructions that the library was built for",
            driver.WEIGHTS: f"{name}_run: the weights are not loaded; call {name}_load first",
            driver.OVERLAP: f"{name}_run: two outputs share memory",
            driver.FILE: f"{name}_load: the file cannot be read, or holds the weights of another library",
        }
        for start, kind, tensors in ((0, "input", self.inputs), (driver.OUTPUT, "output", self.outputs)):
            for i, t in enumerate(tensors):
                code, what = start + driver.TENSOR * (1 + i), f"{name}_run: {kind} {i} ({t.name})"
                found[code + driver.NO_DATA] = f"{what} has no data: its pointer is NULL"
                found[code + driver.DTYPE] = f"{what}: expected dtype {t.dtype}, {DTYPES[t.dtype][0]}"
                found[code + driver.DIMENSIONS] = f"{what}: expected {len(t.sizes)} dimensions, {t}"
                names = " and one ".join(dict.fromkeys(str(n) for n in t.sizes if isinstance(n, Symbol)))
                found[code + driver.SIZES] = f"{what}: expected sizes {t}" + (
                    f", with one {names} for all" if names else ""
                )
        return found

    def _sizes(self) -> list[str]:
        """Macros for dtypes and sizes."""
        upper, found = self.name.upper(), []
        named = " and ".join(f"the {x}" for x in self.symbols)
        for kind, tensors in (("INPUT", self.inputs), ("OUTPUT", self.outputs)):
            for i, t in enumerate(tensors):
                label = f"#define {upper}_{kind}{i}"
                found += [f"{label}_DTYPE {upper}_{t.dtype.upper()}", f"{label}_NDIM {len(t.sizes)}"]
                sizes = ", ".join(str(n) if isinstance(n, int) else "-1" for n in t.sizes)
                found.append(f"{label}_SIZES {sizes or 0}{f'  /* -1: depends on {named} */' if '-1' in sizes else ''}")
        for x in self.symbols:
            label = f"#define {upper}_{x.name.upper()}"
            found += [f"{label}_MIN {x.low}", f"{label}_MAX {x.high}"]
        return found

    def header(self) -> str:
        name, upper = self.name, self.name.upper()
        of = {t.dtype: DTYPES[t.dtype][0] for t in (*self.inputs, *self.outputs)}
        lines = [
            f"/* {name}: a model as a library. Version {VERSION} of the interface.",
            *(f"   input {i}: {t.name}, {t}" for i, t in enumerate(self.inputs)),
            *(f"   output {i}: {t}" for i, t in enumerate(self.outputs)),
            *(f"   {x}: from {x.low} to {x.high}" for x in self.symbols),
            "   Data lies in C order, without gaps. */",
            f"#ifndef {upper}_H", f"#define {upper}_H", "#include <stdint.h>", "#ifdef __cplusplus", 'extern "C" {',
            "#endif", "", f"#define {upper}_VERSION {VERSION}",
            f"#define {upper}_INPUTS {len(self.inputs)}", f"#define {upper}_OUTPUTS {len(self.outputs)}",
            *(f"#define {upper}_{dtype.upper()} {code}  /* {DTYPES[dtype][1]} */" for dtype,
            code in sorted(of.items())),
            *self._sizes(), "",
            "/* Error codes of all tensors; input i has 16 * (1 + i) and more, output i 65536 + 16 * (1 + i) and "
            "more. */",
            *(f"#define {upper}_ERROR_{code} {getattr(driver, code)}" for code in _CODES),
            "", "typedef struct {",
            "  void *data;            /* any alignment; faster at multiples of 64 bytes */",
            f"  int32_t dtype;         /* {upper}_... */", "  int32_t ndim;", "  const int64_t *sizes;",
            f"}} {name}_tensor;", "",
            "/* Computes the outputs from the inputs. 0, or the code of an error; then the outputs hold anything. "
            "Outputs",
            "   may lie where inputs lie, but not two in one place. Several threads may call it at once. */",
            f"int {name}_run(const {name}_tensor *inputs, int64_t ninputs, const {name}_tensor *outputs, int64_t "
            "noutputs);",
            f"/* {upper}_VERSION of the library. */", f"int {name}_version(void);",
            "/* The text of a code. */", f"const char *{name}_error(int code);",
            "/* Lets a run use so many threads, at most 64; 0: as many as the process has processors, as at first.",
            "   Gives the number. Results do not depend on it. */",
            f"int64_t {name}_set_threads(int64_t count);",
            "/* Frees the memory that is kept from run to run. */", f"void {name}_free(void);",
            *([
                f"/* Reads the weights, from the file {self.weights}. 0, or the code of an error. Call it before "
                "anything",
                "   else. */", f"int {name}_load(const char *path);",
            ] if self.weights else []),
            "", "#ifdef __cplusplus", "}", "#endif", "#endif", "",
        ]  # fmt: skip
        return "\n".join(lines)
