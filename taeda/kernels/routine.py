"""Functions with their own parameters and result, in the IR of kernels: the driver of an exported library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .ir import I64, PTR, Function, Type, Value


class Routine(Function):
    """A function ``name(params) -> result``; write its body, return with :meth:`give`.

    Args:
        name: of the symbol.
        params: types of the parameters, found in ``params`` as values.
        result: type of the result; None for none.
        exported: whether the symbol is visible outside of the library.
    """

    def __init__(self, name: str, params: Sequence[Type] = (), result: Type | None = None, exported: bool = False):
        super().__init__(name)
        self.result, self.exported = result, exported
        self.params = [Value(self, t, 1, f"%p{i}") for i, t in enumerate(params)]
        self._given: Value | None = None

    def give(self, x: Value) -> None:
        """Return ``x``; called last."""
        self._given = x

    def text(self) -> str:
        """The definition alone; see :func:`module_text`."""
        params = ", ".join(p.typed for p in self.params)
        kind = "" if self.exported else "internal "
        end = "ret void" if self._given is None else f"ret {self._given.typed}"
        body = "\n".join(["entry:", *self._allocas, *self.lines, f"  {end}"])
        spelled = "void" if self.result is None else self.result.llvm
        return f"define {kind}{spelled} @{self.name}({params}) nounwind {{\n{body}\n}}\n"

    # ---- calls ------------------------------------------------------------------------------------------------------
    def run(self, routine: Routine, *args: Value) -> Any:
        """Call another routine of the module; return its result, None for none."""
        if [a.type for a in args] != [p.type for p in routine.params]:
            raise TypeError(f"{routine.name} takes {[p.type for p in routine.params]}, got {[a.type for a in args]}")
        inside = ", ".join(a.typed for a in args)
        if routine.result is None:
            self.lines.append(f"  call void @{routine.name}({inside})")
            return None
        return self.emit(f"call {routine.result.llvm} @{routine.name}({inside})", routine.result)

    def external(self, name: str, result: Type | None, *args: Value) -> Any:
        """Call a function of the C library; return its result, None for none."""
        if result is not None:
            return self.intrinsic(name, result, 1, *args)
        self.declarations[name] = f"declare void @{name}({', '.join(a.llvm for a in args)})"
        self.lines.append(f"  call void @{name}({', '.join(a.typed for a in args)})")
        return None

    def system_call(self, number: int, *args: Value) -> Value:
        self.declarations["syscall"] = "declare i64 @syscall(i64, ...)"
        inside = ", ".join(a.typed for a in (self.i64(number), *args))
        return self.emit(f"call i64 (i64, ...) @syscall({inside})", I64)

    # ---- memory -----------------------------------------------------------------------------------------------------
    def symbol(self, name: str) -> Value:
        """The address of a global."""
        return Value(self, PTR, 1, f"@{name}")

    def word(self, pointer: Value, nbytes: Value | int = 0, t: Type = I64) -> Value:
        """Load the word ``nbytes`` after ``pointer``."""
        return self.load(self.offset(pointer, nbytes), t)

    def put(self, pointer: Value, nbytes: Value | int, x: Value) -> None:
        """Store ``x`` at ``nbytes`` after ``pointer``."""
        self.store(self.offset(pointer, nbytes), x)


# ---- atomics: of any function, in one order of all -------------------------------------------------------------------


def atomic_load(f: Function, pointer: Value, t: Type = I64) -> Value:
    """Sequentially consistent load."""
    return f.emit(f"load atomic {t.llvm}, ptr {pointer.text} seq_cst, align {t.bytes}", t)


def atomic_store(f: Function, pointer: Value, x: Value) -> None:
    """Sequentially consistent store."""
    f.lines.append(f"  store atomic {x.typed}, ptr {pointer.text} seq_cst, align {x.type.bytes}")


def atomic_add(f: Function, pointer: Value, x: Value) -> Value:
    """Add ``x``; return the old value."""
    return f.emit(f"atomicrmw add ptr {pointer.text}, {x.typed} seq_cst", x.type)


def atomic_exchange(f: Function, pointer: Value, x: Value) -> Value:
    """Store ``x``; return the old value."""
    return f.emit(f"atomicrmw xchg ptr {pointer.text}, {x.typed} seq_cst", x.type)


def atomic_take(f: Function, pointer: Value) -> Value:
    """Set an int64 from 0 to 1; return whether it was 0."""
    return atomic_exchange(f, pointer, f.i64(1)) == 0


def module_text(routines: Sequence[Routine], declared: str) -> str:
    """A module of ``routines``, with the globals and declarations in ``declared``."""
    found: dict[str, str] = {}
    for routine in routines:
        found.update(routine.declarations)
    return "\n".join([declared, *(r.text() for r in routines), *(found[name] for name in sorted(found))]) + "\n"
