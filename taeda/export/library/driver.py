"""The driver of a library, in IR: it checks the arguments of a call, finds the launches for their sizes, and runs them.

It is the same for every model. The differences are in tables (`tables.py`), whose entries are 8 bytes each.
"""

from __future__ import annotations

from collections.abc import Sequence

from taeda.kernels.ir import I8, I32, I64, PTR, Value
from taeda.kernels.routine import Routine, atomic_exchange

#: Error codes. A tensor's codes are TENSOR * (1 + its number) plus one of the last ones, and OUTPUT more for an output.
OK, NULL, INPUTS, OUTPUTS, BATCH, MEMORY, VALUE, PROCESSOR, WEIGHTS, FILE, OVERLAP = range(11)
TENSOR, OUTPUT = 16, 1 << 16
NO_DATA, DTYPE, DIMENSIONS, SIZES = range(4)

#: Bytes of the struct that callers fill: data, dtype and dimensions, sizes.
TENSOR_BYTES, _DTYPE, _NDIM, _SIZES = 24, 8, 12, 16
#: The description of an input or output, in words: dtype, dimensions, bytes of an element, then its sizes, -1 - k for
#: the k-th one that may change.
META_HEAD = 3
#: Fields of a variant, by their place.
FIELDS = (
    "first last steps nsteps words slopes nwords slots nslots patches npatches groups ngroups fills nfills flags "
    "scratch sizes"
).split()
VARIANT_BYTES = 8 * len(FIELDS)
STEP_WORDS, PATCH_WORDS, GROUP_WORDS, FILL_WORDS = 8, 4, 5, 4
#: Bases beside inputs and outputs, counted from the end of these.
BASES = ("held", "scratch", "slots", "flags", "number")
_LINE = 64
_HUGE, _HUGE_PAGES = 1 << 21, 14  # bytes of a huge page on most machines; MADV_HUGEPAGE
#: Bytes of a file of weights before these: they say which library it belongs to.
HEAD = _LINE


def _aligned(x: Value) -> Value:
    return (x + (_LINE - 1)) & -_LINE


def check_tensor() -> Routine:
    """Whether tensor p0 is as p1 says, with sizes at p2; error codes from p3 on.

    The code goes to p4. Size -1 - k is the k-th one that may change: its value goes to word k of p5, where this is -1
    so far. Gives its bytes.
    """
    f = Routine("check_tensor", [PTR, PTR, PTR, I64, PTR, PTR], I64)
    tensor, meta, sizes, codes, code, symbols = f.params
    nbytes = f.scratch(8, 8)
    f.store(nbytes, f.word(meta, 16))

    def fail(bad: Value, kind: int):
        with f.when(bad & (f.word(code) == 0)):
            f.store(code, codes + kind)

    fail(f.load(tensor, PTR) == f.const(PTR, 0), NO_DATA)
    fail(f.word(tensor, _DTYPE, I32).to(I64) != f.word(meta), DTYPE)
    fail(f.word(tensor, _NDIM, I32).to(I64) != f.word(meta, 8), DIMENSIONS)
    given = f.word(tensor, _SIZES, PTR)
    fail((given == f.const(PTR, 0)) & (f.word(meta, 8) > 0), SIZES)
    with f.when(f.word(code) == 0), f.loop(0, f.word(meta, 8)) as L:
        size, wanted = f.word(given, L.index * 8), f.word(sizes, L.index * 8)
        changes = wanted < 0
        value = f.offset(symbols, f.select(changes, (wanted + 1) * -8, 0))
        with f.when(changes & (f.word(value) == -1)):
            f.store(value, size)
        fail((size < 0) | (f.select(changes, f.word(value), wanted) != size), SIZES)
        f.store(nbytes, f.word(nbytes) * size)
    f.give(f.word(nbytes))
    return f


def check_all(check: Routine) -> Routine:
    """Check p1 tensors at p0 against the table p2 of addresses of their descriptions.

    Sizes are at p3, one tensor's after the other, or 0: in that table. Error codes from p4 on; p5: where the code goes;
    p6: where sizes that may change go; p7: where their bytes go.
    """
    f = Routine("check_all", [PTR, I64, PTR, PTR, I64, PTR, PTR, PTR])
    tensors, count, metas, sizes, codes, code, symbols, nbytes = f.params
    with f.loop(0, count, carry=[sizes]) as L:
        meta = f.word(metas, L.index * 8, PTR)
        at = f.select(sizes == f.const(PTR, 0), f.offset(meta, 8 * META_HEAD), L.carry[0])
        got = f.run(check, f.offset(tensors, L.index * TENSOR_BYTES), meta, at, codes + L.index * TENSOR, code, symbols)
        f.put(nbytes, L.index * 8, got)
        L.carry = (f.offset(L.carry[0], f.word(meta, 8) * 8),)
    return f


class _Variant:
    """Reads a variant's fields."""

    def __init__(self, f: Routine, at: Value):
        self.f, self.at = f, at

    def __getitem__(self, name: str) -> Value:
        return self.f.word(self.at, 8 * FIELDS.index(name), PTR if name in _ADDRESSES else I64)


_ADDRESSES = ("steps", "words", "slopes", "slots", "patches", "groups", "fills")


def _find_variant(variants: int) -> Routine:
    """The variant for combination p0 of sizes; null where there is none."""
    f = Routine("find_variant", [I64], PTR)
    with f.loop(0, variants, carry=[f.const(PTR, 0)]) as L:
        at = f.offset(f.symbol("variants"), L.index * VARIANT_BYTES)
        fits = (f.word(at) <= f.params[0]) & (f.params[0] <= f.word(at, 8))
        L.carry = (f.select(fits, at, L.carry[0]),)
    f.give(L.carry[0])
    return f


def _take_memory() -> Routine:
    """At least p0 bytes, after a line that says how many; null where there are not. Kept memory is used again."""
    f = Routine("take_memory", [I64], PTR)
    found = f.scratch(8, 8)
    f.store(found, atomic_pointer(f, f.const(PTR, 0)))
    with f.when(f.load(found, PTR) != f.const(PTR, 0)), f.when(f.word(f.load(found, PTR)) < f.params[0]):
        f.external("free", None, f.load(found, PTR))
        f.store(found, f.const(PTR, 0))
    with f.when(f.load(found, PTR) == f.const(PTR, 0)):
        size, large = _aligned(f.params[0] + _LINE), f.params[0] >= _HUGE
        unit = f.select(large, f.i64(_HUGE), _LINE)
        size = (size + unit - 1) & -unit
        made = f.external("aligned_alloc", PTR, unit, size)
        with f.when(large & (made != f.const(PTR, 0))):
            f.external("madvise", I32, made, size, f.const(I32, _HUGE_PAGES))
        f.store(found, made)
        with f.when(made != f.const(PTR, 0)):
            f.put(made, 0, f.params[0])
    f.give(f.load(found, PTR))
    return f


def atomic_pointer(f: Routine, x: Value) -> Value:
    """Put ``x`` where memory is kept between calls. Returns the old value."""
    kept = atomic_exchange(f, f.symbol("kept"), f.address(x))
    return f.emit(f"inttoptr {kept.typed} to ptr", PTR)


def _give_memory() -> Routine:
    """Keep memory p0, or null, for the next call; the memory kept before is freed."""
    f = Routine("give_memory", [PTR])
    f.external("free", None, atomic_pointer(f, f.params[0]))
    return f


def _patch() -> Routine:
    """Write the slots p1 of variant p0 by patches from p2 to p3, with bases p4 and words p5, for the p6-th time."""
    f = Routine("patch", [PTR, PTR, I64, I64, PTR, PTR, I64])
    variant, slots, first, last, bases, words, time = f.params
    patches = _Variant(f, variant)["patches"]
    with f.loop(first, last) as L:
        patch = f.offset(patches, L.index * (8 * PATCH_WORDS))
        slot, base, offset, moved = (f.word(patch, 8 * k) for k in range(PATCH_WORDS))
        f.put(slots, slot, f.word(bases, base * 8) + f.word(words, offset) + moved * time)
    return f


def _run_steps(launch: Routine) -> Routine:
    """Run the launches p4 to p5 of variant p0 with slots p1, words p2 and flags p3; the code."""
    f = Routine("run_steps", [PTR, PTR, PTR, PTR, I64, I64], I64)
    _, slots, words, flags, first, last = f.params
    steps = _Variant(f, f.params[0])["steps"]
    with f.while_([first, f.i64(OK)]) as L:
        i, code = L.carry
        L.test((i < last) & (code == OK))
        step = f.offset(steps, i * (8 * STEP_WORDS))
        kernel, slot, numbers, total, grain, small, begin, end = (
            f.word(step, 8 * k, I64 if k else PTR) for k in range(STEP_WORDS)
        )
        pointers, given = f.offset(slots, slot), f.offset(words, numbers)
        f.run(launch, kernel, pointers, given, f.word(words, total), f.word(words, grain), small)
        with f.loop(begin, end, carry=[f.i64(OK)]) as flag:
            bad = f.word(flags, flag.index, I8) != 0
            flag.carry = (f.select(bad, f.i64(VALUE), flag.carry[0]),)
        L.carry = (i + 1, flag.carry[0])
    f.give(L.carry[1])
    return f


def _run_groups(run_steps: Routine, patch: Routine) -> Routine:
    """Run variant p0 with slots p1, words p2, flags p3 and bases p4; the code."""
    f = Routine("run_groups", [PTR, PTR, PTR, PTR, PTR], I64)
    v, (variant, slots, words, flags, bases) = _Variant(f, f.params[0]), f.params
    with f.while_([f.i64(0), f.i64(0), f.i64(OK)]) as L:
        i, time, code = L.carry
        L.test((i < v["ngroups"]) & (code == OK))
        group = f.offset(v["groups"], i * (8 * GROUP_WORDS))
        first, last, often, patches, behind = (f.word(group, 8 * k) for k in range(GROUP_WORDS))
        with f.when(time > 0):
            f.run(patch, variant, slots, patches, behind, bases, words, time)
        got = f.run(run_steps, variant, slots, words, flags, first, last)
        again = time + 1 < f.word(words, often)
        L.carry = (f.select(again, i, i + 1), f.select(again, time + 1, 0), got)
    f.give(L.carry[2])
    return f


def _execute(run_groups: Routine, patch: Routine) -> Routine:
    """Run variant p0 for combination p1 of sizes with bases p2, of which p3 are given, in the memory p4; the code."""
    f = Routine("execute", [PTR, I64, PTR, I64, PTR], I64)
    v, (_, sizes, bases, given, memory) = _Variant(f, f.params[0]), f.params
    null = f.const(PTR, 0)
    own = f.offset(memory, _LINE)  # words, slots, flags, then scratch
    with f.when(v["slopes"] != null), f.loop(0, v["nwords"]) as L:
        moved = f.word(v["slopes"], L.index * 8) * (sizes - v["first"])
        f.put(own, L.index * 8, f.word(v["words"], L.index * 8) + moved)
    words = f.select(v["slopes"] != null, own, v["words"])
    slots = f.offset(own, v["nwords"] * 8)
    flags = f.offset(slots, v["nslots"] * 8)
    scratch = f.offset(own, _aligned(v["nwords"] * 8 + v["nslots"] * 8 + v["flags"]))
    f.external("memcpy", PTR, slots, v["slots"], v["nslots"] * 8)
    f.external("memset", PTR, flags, f.const(I32, 0), v["flags"])
    for k, base in enumerate((f.word(f.symbol("held"), 0, PTR), scratch, slots, flags, null)):
        f.put(bases, (given + k) * 8, base)
    f.run(patch, f.params[0], slots, f.i64(0), v["npatches"], bases, words, f.i64(0))
    with f.loop(0, v["nfills"]) as L:
        fill = f.offset(v["fills"], L.index * (8 * FILL_WORDS))
        to = f.offset(f.word(bases, f.word(fill) * 8, PTR), f.word(words, f.word(fill, 8)))
        f.external("memcpy", PTR, to, f.word(fill, 16, PTR), f.word(fill, 24))
    f.give(f.run(run_groups, f.params[0], slots, words, flags, bases))
    return f


def _place_tensors() -> Routine:
    """Choose where p1 tensors at p0, of bytes p2, are read or written: in place, or in aligned memory from p3 on.

    The addresses go to p4. With p5 inputs at p6, of bytes p7, tensors that share memory with one of these are not in
    place. Gives the memory behind.
    """
    f = Routine("place_tensors", [PTR, I64, PTR, PTR, PTR, I64, PTR, PTR], PTR)
    tensors, count, nbytes, memory, places, others, other_tensors, other_bytes = f.params
    with f.loop(0, count, carry=[memory]) as L:
        data, size = f.word(tensors, L.index * TENSOR_BYTES), f.word(nbytes, L.index * 8)
        with f.loop(0, others, carry=[(data & (_LINE - 1)) != 0]) as other:
            start = f.word(other_tensors, other.index * TENSOR_BYTES)
            meets = (start < data + size) & (data < start + f.word(other_bytes, other.index * 8))
            other.carry = (other.carry[0] | meets,)
        elsewhere = other.carry[0]
        f.put(places, L.index * 8, f.select(elsewhere, f.address(L.carry[0]), data))
        L.carry = (f.offset(L.carry[0], f.select(elsewhere, _aligned(size), 0)),)
    f.give(L.carry[0])
    return f


def _copy_tensors() -> Routine:
    """Copy p1 tensors at p0, of bytes p2, to their places p3, or with p4 back, where these are elsewhere."""
    f = Routine("copy_tensors", [PTR, I64, PTR, PTR, I64])
    tensors, count, nbytes, places, back = f.params
    with f.loop(0, count) as L:
        data, place = f.word(tensors, L.index * TENSOR_BYTES, PTR), f.word(places, L.index * 8, PTR)
        with f.when(data != place):
            to, source = f.select(back != 0, data, place), f.select(back != 0, place, data)
            f.external("memcpy", PTR, to, source, f.word(nbytes, L.index * 8))
    return f


def _call(
    inputs: int, outputs: int, execute: Routine, take: Routine, give: Routine, place: Routine, copy: Routine
) -> Routine:
    """Run variant p0, for combination p1 of sizes, on inputs p2 and outputs p3 of so many bytes (p4, p5); the code."""
    f = Routine("call", [PTR, I64, PTR, PTR, PTR, PTR], I64)
    v, (_, sizes, ins, outs, in_bytes, out_bytes) = _Variant(f, f.params[0]), f.params
    null = f.const(PTR, 0)
    bases, code = f.scratch(8 * (inputs + outputs + len(BASES)), 8), f.scratch(8, 8)
    of_outputs = f.offset(bases, 8 * inputs)
    words = v["words"]
    own = v["nwords"] * 8 + v["nslots"] * 8 + v["flags"]
    slope = f.scratch(8, 8)
    f.store(slope, f.i64(0))
    with f.when(v["slopes"] != null):
        f.store(slope, f.word(v["slopes"], v["scratch"]))
    scratch = _aligned(own) + _aligned(f.word(words, v["scratch"]) + f.word(slope) * (sizes - v["first"]))
    with f.loop(0, inputs, carry=[scratch]) as L:
        L.carry = (L.carry[0] + _aligned(f.word(in_bytes, L.index * 8)),)
    with f.loop(0, outputs, carry=[L.carry[0]]) as L:
        L.carry = (L.carry[0] + _aligned(f.word(out_bytes, L.index * 8)),)
    memory = f.run(take, L.carry[0] + 2 * _LINE)
    f.store(code, f.i64(MEMORY))
    with f.when(memory != null):
        free = f.offset(memory, scratch + _LINE)
        free = f.run(place, ins, f.i64(inputs), in_bytes, free, bases, f.i64(0), null, null)
        f.run(place, outs, f.i64(outputs), out_bytes, free, of_outputs, f.i64(inputs), ins, in_bytes)
        f.run(copy, ins, f.i64(inputs), in_bytes, bases, f.i64(0))
        result = f.run(execute, f.params[0], sizes, bases, f.i64(inputs + outputs), memory)
        f.store(code, result)
        with f.when(result == OK):
            f.run(copy, outs, f.i64(outputs), out_bytes, of_outputs, f.i64(1))
        f.run(give, memory)
    f.give(f.word(code))
    return f


def _meet() -> Routine:
    """1 where two of p1 tensors at p0, of bytes p2, share memory, else 0."""
    f = Routine("meet", [PTR, I64, PTR], I64)
    tensors, count, nbytes = f.params
    with f.loop(0, count, carry=[f.i64(0)]) as L:
        a = f.word(tensors, L.index * TENSOR_BYTES)
        behind = a + f.word(nbytes, L.index * 8)
        with f.loop(0, L.index, carry=[L.carry[0]]) as other:
            b = f.word(tensors, other.index * TENSOR_BYTES)
            meets = (a < b + f.word(nbytes, other.index * 8)) & (b < behind)
            other.carry = (f.select(meets, f.i64(1), other.carry[0]),)
        L.carry = (other.carry[0],)
    f.give(L.carry[0])
    return f


def _sizes_of_outputs(dimensions: int) -> Routine:
    """The sizes of all outputs of variant p0 for combination p1 of sizes, one after the other, to p2."""
    f = Routine("sizes_of_outputs", [PTR, I64, PTR])
    v, (_, sizes, to) = _Variant(f, f.params[0]), f.params
    with f.loop(0, dimensions) as L:
        at = v["sizes"] + L.index * 8
        f.put(to, L.index * 8, f.word(v["words"], at))
        with f.when(v["slopes"] != f.const(PTR, 0)):
            f.put(to, L.index * 8, f.word(v["words"], at) + f.word(v["slopes"], at) * (sizes - v["first"]))
    return f


def _run(
    name: str, inputs: int, outputs: int, dimensions: int, ranges: Sequence[tuple[int, int]], check: Routine,
    find: Routine, sizes_of: Routine, call: Routine, set_threads: Routine, is_able: Routine, meet: Routine,
) -> Routine:  # fmt: skip
    """``run(inputs, count, outputs, count)``; the code."""
    f = Routine(f"{name}_run", [PTR, I64, PTR, I64], I32, exported=True)
    ins, nins, outs, nouts = f.params
    null = f.const(PTR, 0)
    code, symbols = f.scratch(8, 8), f.scratch(8 * max(len(ranges), 1), 8)
    in_bytes, out_bytes = f.scratch(8 * max(inputs, 1), 8), f.scratch(8 * max(outputs, 1), 8)
    sizes = f.scratch(8 * max(dimensions, 1), 8)
    nothing = f.const(I64, 0)
    f.store(code, nothing)
    for k in range(len(ranges)):
        f.put(symbols, 8 * k, f.i64(-1))
    with f.when(f.word(f.symbol("pool"), 768) == 0):
        f.run(set_threads, f.i64(0))

    def fail(bad: Value, kind: int):
        with f.when(bad & (f.word(code) == OK)):
            f.store(code, f.i64(kind))

    able = f.run(is_able)
    fail(able == 0, PROCESSOR)
    fail(f.word(f.symbol("held"), 0, PTR) == null, WEIGHTS)
    fail(nins != inputs, INPUTS)
    fail(nouts != outputs, OUTPUTS)
    fail(((ins == null) & (nins > 0)) | ((outs == null) & (nouts > 0)), NULL)
    with f.when(f.word(code) == OK):
        f.run(check, ins, nins, f.symbol("inputs"), null, f.i64(TENSOR), code, symbols, in_bytes)
    which, step = f.i64(0), 1  # the combination of sizes: the first one changes fastest
    for k, (low, high) in enumerate(ranges):
        size = f.word(symbols, 8 * k)
        fail((size < low) | (size > high), BATCH)
        which, step = which + (size - low) * step, step * (high - low + 1)
    variant = f.run(find, which)
    fail(variant == null, BATCH)
    with f.when(f.word(code) == OK):
        f.run(sizes_of, variant, which, sizes)
        codes = f.i64(OUTPUT + TENSOR)
        f.run(check, outs, nouts, f.symbol("outputs"), sizes, codes, code, symbols, out_bytes)
    with f.when(f.word(code) == OK):
        f.store(code, f.select(f.run(meet, outs, nouts, out_bytes) == 0, f.i64(OK), OVERLAP))
    with f.when(f.word(code) == OK):
        result = f.run(call, variant, which, ins, outs, in_bytes, out_bytes)
        f.store(code, result)
    f.give(f.word(code).to(I32))
    return f


def _error(name: str, count: int) -> Routine:
    """The text of code p0."""
    f = Routine(f"{name}_error", [I32], PTR, exported=True)
    table = f.symbol("texts")
    with f.loop(0, count, carry=[f.symbol("unknown")]) as L:
        at = f.offset(table, L.index * 16)
        L.carry = (f.select(f.word(at) == f.params[0].to(I64), f.word(at, 8, PTR), L.carry[0]),)
    f.give(L.carry[0])
    return f


def _free(name: str, give: Routine) -> Routine:
    """Free the memory that is kept between calls."""
    f = Routine(f"{name}_free", exported=True)
    f.run(give, f.const(PTR, 0))
    return f


def _version(name: str, version: int) -> Routine:
    f = Routine(f"{name}_version", [], I32, exported=True)
    f.give(f.const(I32, version))
    return f


def load(name: str, size: int) -> Routine:
    """Map the file at path p0, of ``size`` bytes, which begins with the global ``head``'s bytes. Returns the code."""
    f = Routine(f"{name}_load", [PTR], I32, exported=True)
    null, code, at = f.const(PTR, 0), f.scratch(8, 8), f.scratch(8, 8)
    f.store(code, f.i64(OK))
    with f.when(f.word(f.symbol("held"), 0, PTR) == null):
        f.store(code, f.i64(FILE))
        f.store(at, null)
        with f.when(f.params[0] != null):
            f.store(at, f.external("fopen", PTR, f.params[0], f.symbol("reading")))
        file = f.load(at, PTR)
        with f.when(file != null):
            number = f.external("fileno", I32, file)
            length = f.external("lseek", I64, number, f.i64(0), f.const(I32, 2))
            with f.when(length == size):
                readable, private = f.const(I32, 1), f.const(I32, 2)
                data = f.external("mmap", PTR, null, f.i64(size), readable, private, number, f.i64(0))
                with f.when(f.address(data) != -1):
                    differs = f.external("memcmp", I32, data, f.symbol("head"), f.i64(HEAD))
                    with f.branch(differs == 0) as same:
                        f.store(f.symbol("held"), f.offset(data, HEAD))
                        f.store(code, f.i64(OK))
                        same.otherwise()
                        f.external("munmap", I32, data, f.i64(size))
            f.external("fclose", I32, file)
    f.give(f.load(code, I64).to(I32))
    return f


def routines(
    name: str, inputs: int, outputs: int, dimensions: int, ranges: Sequence[tuple[int, int]], variants: int, texts: int,
    version: int, launch: Routine, set_threads: Routine, is_able: Routine,
) -> list[Routine]:  # fmt: skip
    """All of a library's own functions.

    Args:
        name: before each public name.
        inputs: how many.
        outputs: how many.
        dimensions: of all outputs together.
        ranges: first and last value of each size that may change.
        variants: entries of that table.
        texts: entries of that table.
        version: of the interface.
        launch: of `threads.py`.
        set_threads: of `threads.py`.
        is_able: whether this processor has the instructions.
    Returns:
        The functions.
    """
    check = check_tensor()
    every, find, take, give = check_all(check), _find_variant(variants), _take_memory(), _give_memory()
    patch, steps = _patch(), _run_steps(launch)
    groups = _run_groups(steps, patch)
    execute = _execute(groups, patch)
    place, copy = _place_tensors(), _copy_tensors()
    call = _call(inputs, outputs, execute, take, give, place, copy)
    sizes_of, meet = _sizes_of_outputs(dimensions), _meet()
    run = _run(name, inputs, outputs, dimensions, ranges, every, find, sizes_of, call, set_threads, is_able, meet)
    own = [check, every, find, take, give, patch, steps, groups, execute, place, copy, call, sizes_of, meet, run]
    return [*own, _error(name, texts), _free(name, give), _version(name, version)]
