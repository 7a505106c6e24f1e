"""Recorded launches as constant tables of a library, in the form that `driver.py` reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .driver import BASES
from .record import Kernel, Recording


@dataclass
class Structure:
    """The common part of launches for several combinations of sizes: all but the numbers in ``Variant.words``.

    Attributes:
        steps: ``(kernel, first slot, place of the numbers, of the total, of the grain, small, flags before, flags
            behind)``.
        inside: kernels among the words, by place.
        slots: what each slot holds before it is patched: a ``Kernel``, ``("constant", number, offset)`` or 0.
        patches: ``(slot, base, place of the offset, what is added to that each time that its group is repeated)``.
        groups: steps that are repeated: ``(first, behind the last, place of how often, first patch, behind the last)``.
        fills: ``(base, place of the offset, number of a constant)``.
        flags: bytes.
        scratch, sizes: places of the bytes of memory, and of the first size of the outputs.
    """

    steps: list[tuple] = field(default_factory=list)
    inside: list[tuple[int, Kernel]] = field(default_factory=list)
    slots: list[Any] = field(default_factory=list)
    patches: list[tuple[int, int, int, int]] = field(default_factory=list)
    groups: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    fills: list[tuple[int, int, int]] = field(default_factory=list)
    flags: int = 0
    scratch: int = 0
    sizes: int = 0


@dataclass
class Variant:
    """Launches for combinations of sizes ``first`` to ``last``: for ``n``, word ``i`` is
    ``words[i] + slopes[i] * (n - first)``.

    A combination is known by its number: for one size that changes, how far that is from its smallest value.
    """

    first: int
    last: int
    structure: Structure
    words: list[int]
    slopes: list[int] | None = None

    def at(self, which: int) -> list[int]:
        """The words for one combination."""
        slopes = self.slopes or [0] * len(self.words)
        return [w + s * (which - self.first) for w, s in zip(self.words, slopes, strict=True)]


class Tables:
    """Collects the launches for all combinations of sizes, with the weights and constants that they read."""

    def __init__(self, inputs: int, outputs: int):
        self.inputs, self.outputs = inputs, outputs
        self.variants: list[Variant] = []
        self.constants: dict[bytes, int] = {}
        self.held: dict[
            int, tuple[int, int, int]
        ] = {}  # by storage: where its bytes are among the weights, its address
        self.weights = 0
        self._alive: list[Any] = []

    def add(self, which: int, recording: Recording) -> None:
        """Add the launches for the next combination: to the variant before, where they follow its line."""
        held = len(self.held)
        structure, words = self._words(recording)
        if len(self.held) > held:
            self._alive.append(recording.alive)  # storages are known by their ids
        if self.variants:
            last = self.variants[-1]
            if last.last == which - 1 and last.structure == structure and self._joins(last, which, words):
                last.last = which
                return
        self.variants.append(Variant(which, which, structure, words))

    @staticmethod
    def _joins(last: Variant, which: int, words: list[int]) -> bool:
        if len(words) != len(last.words):
            return False
        if last.first == last.last:
            last.slopes = [b - a for a, b in zip(last.words, words, strict=True)]
            return True
        return last.at(which) == words

    def constant(self, content: bytes) -> int:
        return self.constants.setdefault(content, len(self.constants))

    def _base(self, kind: str, number: int) -> int:
        if kind == "input":
            return number
        return self.inputs + number if kind == "output" else self.inputs + self.outputs + BASES.index(kind)

    def _held_at(self, key: int, address: int, nbytes: int) -> int:
        if key not in self.held:
            self.held[key] = (self.weights, address, nbytes)
            self.weights += -(-nbytes // 64) * 64
        return self.held[key][0]

    def _words(self, r: Recording) -> tuple[Structure, list[int]]:
        words: list[int] = []
        s = Structure()

        def add(*numbers: int) -> int:
            words.extend(numbers)
            return len(words) - len(numbers)

        def place(kind: str, number: int, offset: int) -> tuple[int, int]:
            if kind == "held":
                offset += self._held_at(*r.held[number])
            return self._base(kind, number if kind in ("input", "output") else 0), add(offset)

        number = _new_numbers(r, groups := find_groups(r))

        def fill_slot(old: int, following: int | None) -> None:
            kind, *where = r.slots[old]
            s.slots.append(0)
            if kind == "kernel":
                s.slots[-1] = where[0]
            elif kind == "constant":
                s.slots[-1] = ("constant", self.constant(r.constants[where[0]]), where[1])
            elif kind == "number":
                if where[0]:
                    s.patches.append((len(s.slots) - 1, *place(kind, 0, where[0]), 0))
            else:
                if kind == "slots":
                    where[1] = 8 * number[where[1] // 8] + where[1] % 8
                moved = 0 if following is None else r.slots[following][2] - r.slots[old][2]
                s.patches.append((len(s.slots) - 1, *place(kind, *where), moved))

        before, known = 0, dict[tuple, int]()
        for first, length, times in groups:
            step, patch = len(s.steps), len(s.patches)
            for i in range(first, first + length):
                launch = r.launches[i]
                key = (launch.numbers, launch.inside, launch.total, launch.grain)
                if key not in known:  # launches that share their numbers have them once
                    known[key] = at = add(*launch.numbers, launch.total, launch.grain)
                    s.inside += [(at + k, kernel) for k, kernel in launch.inside]
                at, end = known[key], known[key] + len(launch.numbers)
                s.steps.append((launch.kernel, len(s.slots), at, end, end + 1, launch.small, before, launch.flags))
                before = launch.flags
                for k in range(launch.slots):
                    fill_slot(launch.first + k, r.launches[i + length].first + k if times > 1 else None)
            s.groups.append((step, len(s.steps), add(times), patch, len(s.patches)))
        s.flags = before
        for old in range(_slots_of_launches(r), len(r.slots)):
            fill_slot(old, None)
        s.fills = [(*place(kind, n, offset), self.constant(content)) for kind, n, offset, content in r.fills]
        s.scratch, s.sizes = add(r.scratch), add(*(n for sizes in r.outputs for n in sizes))
        return s, words

    def kernels(self) -> list[Kernel]:
        found: dict[Kernel, None] = {}
        for v in self.variants:
            named = [step[0] for step in v.structure.steps] + [kernel for _, kernel in v.structure.inside]
            found.update(dict.fromkeys([*named, *(x for x in v.structure.slots if x and not isinstance(x, tuple))]))
        return list(found)


# ---- launches that are repeated --------------------------------------------------------------------------------------


def _slots_of_launches(r: Recording) -> int:
    """The number of slots of launches; the slots of tables follow them."""
    return max((launch.first + launch.slots for launch in r.launches), default=0)


def _new_numbers(r: Recording, groups: Sequence[tuple[int, int, int]]) -> dict[int, int]:
    """The new numbers of the slots that are kept: for each group the slots of its first time, then those of tables."""
    kept = [
        launch.first + k
        for first, length, _ in groups
        for launch in r.launches[first : first + length]
        for k in range(launch.slots)
    ]
    return {old: new for new, old in enumerate([*kept, *range(_slots_of_launches(r), len(r.slots))])}


#: Launches that are repeated together, at most.
_LONGEST = 8


def find_groups(r: Recording) -> list[tuple[int, int, int]]:
    """Launches that are done again and again, each time so many bytes further on: ``(first, launches, times)``.

    A product of a batch of matrices, one by one, is such a group.
    """
    found, at = [], 0
    while at < len(r.launches):
        tried = [(length, _times(r, at, length)) for length in range(1, _LONGEST + 1)]
        length, times = max(tried, key=lambda x: (x[0] * x[1] if x[1] > 1 else 1, -x[0]))
        found.append((at, length, times) if times > 1 else (at, 1, 1))
        at += length * times if times > 1 else 1
    return found


def _times(r: Recording, first: int, length: int) -> int:
    """The number of times that ``length`` launches from ``first`` on are repeated."""
    times = 1
    while first + (times + 1) * length <= len(r.launches):
        if not all(_follows(r, first + i, length, times) for i in range(length)):
            break
        times += 1
    return times


def _follows(r: Recording, i: int, length: int, times: int) -> bool:
    """Whether launch ``i + times * length`` repeats launch ``i``, with the same step as the times before."""
    a, b, c = (r.launches[i + k * length] for k in (0, 1, times))
    flags = r.launches[i - 1].flags if i else 0
    if (a.kernel, a.slots, a.numbers, a.inside) != (c.kernel, c.slots, c.numbers, c.inside) or c.flags != flags:
        return False
    if (a.total, a.grain, a.small) != (c.total, c.grain, c.small):
        return False
    for k in range(a.slots):
        x, y, z = (r.slots[launch.first + k] for launch in (a, b, c))
        if x[0] in ("kernel", "number", "constant", "slots", "flags"):
            if x != z:
                return False
        elif x[:2] != z[:2] or z[2] - x[2] != times * (y[2] - x[2]):
            return False
    return True


# ---- as text ---------------------------------------------------------------------------------------------------------


def words_text(name: str, words: Iterable[int | str]) -> str:
    """A table of words: numbers, or what LLVM writes an address as."""
    items = [f"i64 {_signed(w)}" if isinstance(w, int) else f"i64 {w}" for w in words]
    return f"@{name} = internal constant [{len(items)} x i64] [{', '.join(items)}], align 8\n"


def _signed(x: int) -> int:
    return x - (1 << 64) if x >= 1 << 63 else x


def address_text(symbol: str, offset: int = 0) -> str:
    return f"ptrtoint (ptr getelementptr (i8, ptr @{symbol}, i64 {offset}) to i64)"


def bytes_text(name: str, content: bytes, align: int = 8) -> str:
    inside = "".join(f"\\{b:02X}" for b in content)
    return f'@{name} = internal constant [{len(content)} x i8] c"{inside}", align {align}\n'


class _Once:
    """Tables, of which equal ones are one."""

    def __init__(self) -> None:
        self.names: dict[tuple, str] = {}
        self.texts: list[str] = []

    def __call__(self, words: Sequence[int | str]) -> str:
        if not words:
            return "0"
        key = tuple(words)
        if key not in self.names:
            self.names[key] = f"t{len(self.names)}"
            self.texts.append(words_text(self.names[key], key))
        return address_text(self.names[key])


def variants_text(tables: Tables, symbol: Callable[[Kernel], str]) -> str:
    """All variants and constants, as globals; ``symbol`` names a kernel."""
    once = _Once()
    fields: list[int | str] = []
    for v in tables.variants:
        s = v.structure
        steps: list[int | str] = []
        for kernel, slot, numbers, total, grain, small, begin, end in s.steps:
            steps += [address_text(symbol(kernel)), 8 * slot, 8 * numbers, 8 * total, 8 * grain, int(small), begin, end]
        words: list[int | str] = list(v.words)
        for place, kernel in s.inside:
            words[place] = address_text(symbol(kernel))
        slots: list[int | str] = []
        for x in s.slots:
            if isinstance(x, tuple):
                slots.append(address_text(f"c{x[1]}", x[2]))
            else:
                slots.append(address_text(symbol(x)) if x else 0)
        patches = [n for slot, base, place, moved in s.patches for n in (8 * slot, base, 8 * place, moved)]
        groups = [n for group in s.groups for n in (*group[:2], 8 * group[2], *group[3:])]
        fills: list[int | str] = []
        sizes = {number: len(content) for content, number in tables.constants.items()}
        for base, place, number in s.fills:
            fills += [base, 8 * place, address_text(f"c{number}"), sizes[number]]
        slopes = v.slopes if v.slopes and any(v.slopes) else []
        fields += [
            v.first, v.last, once(steps), len(s.steps), once(words), once(slopes), len(words), once(slots), len(slots),
            once(patches), len(s.patches), once(groups), len(s.groups), once(fills), len(s.fills), s.flags,
            8 * s.scratch, 8 * s.sizes,
        ]  # fmt: skip
    constants = [bytes_text(f"c{number}", content, 64) for content, number in tables.constants.items()]
    return "".join([*constants, *once.texts, words_text("variants", fields)])
