"""A linker of one relocatable object to one shared object: ELF of 64 bits, x86-64 and arm64, as Linux loads it.

The object is what LLVM gives for position-independent code with small distances. Functions of the C library are called
through stubs, and bound when the library is loaded. Names of sections, symbols and relocations are those of the System
V ABI.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

_X86, _ARM = 62, 183  # e_machine
_ALLOCATED, _WRITABLE, _RUNNABLE = 2, 1, 4  # flags of a section
_NOBITS, _RELA, _SYMTAB = 8, 4, 2  # types of a section
_DROPPED = (".eh_frame", ".llvm_addrsig", ".note", ".comment", ".llvm.")


@dataclass
class _Section:
    name: str
    kind: int
    flags: int
    align: int
    data: bytearray
    size: int
    entry: int = 0
    link: str = ""
    info: int = 0
    address: int = -1
    offset: int = 0


@dataclass
class _Symbol:
    name: str
    section: _Section | None
    value: int
    size: int
    public: bool
    function: bool

    def address(self) -> int:
        assert self.section is not None
        return self.section.address + self.value


@dataclass
class _Relocation:
    section: _Section
    offset: int
    kind: int
    symbol: _Symbol
    addend: int


@dataclass
class _Object:
    machine: int
    sections: list[_Section] = field(default_factory=list)
    symbols: list[_Symbol] = field(default_factory=list)
    relocations: list[_Relocation] = field(default_factory=list)


def _text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


def _read(blob: bytes) -> _Object:
    """The sections, symbols and relocations of a relocatable object."""
    if blob[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", blob, 16)[0] != 1:
        raise NotImplementedError("build: LLVM gave no relocatable ELF object of 64 bits: only Linux can be built for")
    machine = struct.unpack_from("<H", blob, 18)[0]
    start, _, _, _, _, size, count, names = struct.unpack_from("<QIHHHHHH", blob, 40)
    heads = [struct.unpack_from("<IIQQQQIIQQ", blob, start + i * size) for i in range(count)]
    strings = blob[heads[names][4] :]
    found, made, symbols = _Object(machine), dict[int, _Section](), dict[int, _Symbol]()
    for i, (name, kind, flags, _, offset, nbytes, _, _, align, _) in enumerate(heads):
        label = _text(strings, name)
        if flags & _ALLOCATED and not label.startswith(_DROPPED):
            data = bytearray() if kind == _NOBITS else bytearray(blob[offset : offset + nbytes])
            made[i] = _Section(label, kind, flags & 7, max(align, 1), data, nbytes)
            found.sections.append(made[i])
    for _, kind, _, _, offset, nbytes, link, _, _, _ in heads:
        if kind != _SYMTAB:
            continue
        table = blob[heads[link][4] :]
        for i in range(nbytes // 24):
            name, info, other, section, value, extent = struct.unpack_from("<IBBHQQ", blob, offset + 24 * i)
            public = info >> 4 != 0 and other & 3 == 0 and section != 0
            symbols[i] = _Symbol(_text(table, name), made.get(section), value, extent, public, info & 15 == 2)
        found.symbols = list(symbols.values())
    for _, kind, _, _, offset, nbytes, _, info, _, _ in heads:
        if kind != _RELA or info not in made:
            continue
        for at in range(offset, offset + nbytes, 24):
            place, what, addend = struct.unpack_from("<QQq", blob, at)
            found.relocations.append(_Relocation(made[info], place, what & 0xFFFFFFFF, symbols[what >> 32], addend))
    return found


# ---- relocations of the two machines ---------------------------------------------------------------------------------

_X86_PC32, _X86_GOT = (2, 4), (9, 41, 42)  # relative to the place: to a symbol or its stub; to its address's place
#: arm64: kinds that take bits of an address within its page, and by how much these are shifted.
_ARM_LOW = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4, 312: 3}
_ARM_PAGE, _ARM_BRANCH, _ARM_GOT = (275, 311), (282, 283), (311, 312)


class _Machine:
    """The differences between x86-64 and arm64."""

    def __init__(self, number: int):
        if number not in (_X86, _ARM):
            raise NotImplementedError(f"build: expected code for x86-64 or arm64, got machine {number} of the ELF list")
        self.arm = number == _ARM
        self.number, self.page = number, 0x10000 if self.arm else 0x1000
        self.absolute, self.relative, self.bound = (257, 1027, 1025) if self.arm else (1, 8, 6)

    def needs_place(self, kind: int) -> bool:
        """Whether the address of the symbol is read from a table."""
        return kind in (_ARM_GOT if self.arm else _X86_GOT)

    def is_call(self, kind: int) -> bool:
        """Whether a stub may stand for the symbol."""
        return kind in (_ARM_BRANCH if self.arm else _X86_PC32)

    def stub(self, at: int, place: int) -> bytes:
        """Code at ``at`` that jumps to the address that ``place`` holds."""
        if not self.arm:
            return b"\xff\x25" + struct.pack("<i", place - at - 6) + b"\x66\x90"
        pages = (place >> 12) - (at >> 12)
        adrp = 0x90000010 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
        return struct.pack("<III", adrp, 0xF9400211 | (place & 0xFFF) >> 3 << 10, 0xD61F0220)

    def apply(self, data: bytearray, offset: int, kind: int, place: int, target: int) -> None:
        """Write the distance from ``place`` to ``target``, or bits of ``target``, as the instruction wants it."""
        if not self.arm:
            if kind not in _X86_PC32 and kind not in _X86_GOT:
                raise NotImplementedError(f"build: relocation {kind} of x86-64")
            struct.pack_into("<i", data, offset, target - place)
            return
        (word,) = struct.unpack_from("<I", data, offset)
        if kind in _ARM_BRANCH:
            word |= (target - place) >> 2 & 0x3FFFFFF
        elif kind in _ARM_PAGE:
            pages = (target >> 12) - (place >> 12)
            word |= (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
        elif kind in _ARM_LOW:
            word |= ((target & 0xFFF) >> _ARM_LOW[kind]) << 10
        elif kind == 261:  # a distance in data
            word = (target - place) & 0xFFFFFFFF
        else:
            raise NotImplementedError(f"build: relocation {kind} of arm64")
        struct.pack_into("<I", data, offset, word)


# ---- the library -----------------------------------------------------------------------------------------------------

_LIBRARIES = ("libc.so.6", "libpthread.so.0")  # threads are in the second before glibc 2.34


class _Strings:
    def __init__(self) -> None:
        self.data = bytearray(b"\0")

    def add(self, text: str) -> int:
        at = len(self.data)
        self.data += text.encode() + b"\0"
        return at


class _Linker:
    def __init__(self, blob: bytes, name: str, tail: Sequence[bytes], tail_symbol: str):
        self.object, self.name = _read(blob), name
        self.machine = _Machine(self.object.machine)
        self.tail, self.tail_symbol = tail, tail_symbol
        used = {id(r.symbol): r.symbol for r in self.object.relocations}
        self.weights = _Section(".weights", 1, _ALLOCATED, self.machine.page, bytearray(), sum(map(len, tail)))
        for symbol in self.object.symbols:
            if symbol.name == tail_symbol and symbol.section is None:
                symbol.section = self.weights
        self.imports = [s for s in used.values() if s.section is None]
        self.public = [s for s in self.object.symbols if s.public and s.section is not None]
        stubs = {id(r.symbol): r.symbol for r in self.object.relocations if self.machine.is_call(r.kind)}
        self.stubs = [s for s in stubs.values() if s.section is None]
        places = {id(r.symbol): r.symbol for r in self.object.relocations if self.machine.needs_place(r.kind)}
        self.places = list({id(s): s for s in [*places.values(), *self.stubs]}.values())

    def link(self) -> list[bytes | bytearray]:
        """The file, in parts."""
        sections, dynamic = self._sections()
        self._lay_out(sections)
        self._fill(sections, dynamic)
        return self._write(sections)

    def _sections(self) -> tuple[list[_Section], dict[str, _Section]]:
        """All sections in order: read-only, executable, writable, the weights."""
        own = self.object.sections
        count = 1 + len(self.imports) + len(self.public)
        dynamic = sum(
            self.machine.absolute == r.kind for r in self.object.relocations if r.section.flags & _ALLOCATED
        ) + len(self.places)
        code = 12 if self.machine.arm else 8
        size = {
            ".dynsym": 24 * count, ".hash": 4 * (2 + 1 + count), ".rela.dyn": 24 * dynamic,
            ".stubs": code * len(self.stubs), ".dynamic": 16 * 14, ".got": 8 * len(self.places), ".dynstr": 0,
        }  # fmt: skip
        strings = _Strings()
        self.strings, self.needed, self.so_name = strings, [strings.add(x) for x in _LIBRARIES], strings.add(self.name)
        self.name_of = {id(s): strings.add(s.name) for s in [*self.imports, *self.public]}
        size[".dynstr"] = len(strings.data)
        made = {
            name: _Section(name, kind, flags | _ALLOCATED, align, bytearray(size[name]), size[name], entry, link)
            for name, kind, flags, align, entry, link in (
                (".dynsym", 11, 0, 8, 24, ".dynstr"), (".dynstr", 3, 0, 1, 0, ""), (".hash", 5, 0, 8, 4, ".dynsym"),
                (".rela.dyn", 4, 0, 8, 24, ".dynsym"), (".stubs", 1, _RUNNABLE, 16, 0, ""),
                (".dynamic", 6, _WRITABLE, 8, 16, ".dynstr"), (".got", 1, _WRITABLE, 8, 8, ""),
            )
        }  # fmt: skip
        made[".dynsym"].info = 1
        made[".dynstr"].data = strings.data
        read = [made[n] for n in (".dynsym", ".dynstr", ".hash", ".rela.dyn")]
        read += [s for s in own if not s.flags & (_WRITABLE | _RUNNABLE)]
        run = [*(s for s in own if s.flags & _RUNNABLE), made[".stubs"]]
        written = [made[".dynamic"], made[".got"], *(s for s in own if s.flags & _WRITABLE and s.kind != _NOBITS)]
        written += [s for s in own if s.flags & _WRITABLE and s.kind == _NOBITS]
        self.groups = [(4, read), (5, run), (6, written), (4, [self.weights] if self.weights.size else [])]
        return [s for _, group in self.groups for s in group], made

    def _lay_out(self, sections: list[_Section]) -> None:
        """Give each section its place in the file and in memory, each group pages of its own."""
        page = self.machine.page
        self.segments: list[tuple[int, int, int, int, int]] = []  # flags, offset, address, bytes in the file, in memory
        heads = 64 + 56 * (len([g for _, g in self.groups if g]) + 2)
        offset = address = heads
        for n, (flags, group) in enumerate(self.groups):
            if not group:
                continue
            if n:
                offset = -(-offset // 64) * 64 if group[0] is not self.weights else -(-offset // page) * page
                address = -(-address // page) * page + offset % page
            first = (0, 0) if n == 0 else (offset, address)
            for s in group:
                step = -address % s.align
                address += step
                offset += step if s.kind != _NOBITS else 0
                s.address, s.offset = address, offset
                address += s.size
                offset += s.size if s.kind != _NOBITS else 0
            self.segments.append((flags, *first, offset - first[0], address - first[1]))
        self.end = offset

    def _fill(self, sections: list[_Section], made: dict[str, _Section]) -> None:
        """Write the sections that a linker makes, and relocate the others."""
        machine, got, stubs = self.machine, made[".got"], made[".stubs"]
        number = {id(s): i + 1 for i, s in enumerate([*self.imports, *self.public])}
        place = {id(s): got.address + 8 * i for i, s in enumerate(self.places)}
        width = 12 if machine.arm else 8
        stub = {id(s): stubs.address + width * i for i, s in enumerate(self.stubs)}
        for s in self.stubs:
            at = stub[id(s)]
            stubs.data[at - stubs.address : at - stubs.address + width] = machine.stub(at, place[id(s)])
        relocated = bytearray()
        for s in self.places:
            if s.section is None:
                relocated += struct.pack("<QQq", place[id(s)], number[id(s)] << 32 | machine.bound, 0)
            else:
                relocated += struct.pack("<QQq", place[id(s)], machine.relative, s.address())
        for r in self.object.relocations:
            at = r.section.address + r.offset
            if r.kind == machine.absolute:
                if r.symbol.section is None:
                    relocated += struct.pack("<QQq", at, number[id(r.symbol)] << 32 | machine.absolute, r.addend)
                else:
                    relocated += struct.pack("<QQq", at, machine.relative, r.symbol.address() + r.addend)
                continue
            if machine.needs_place(r.kind):
                target = place[id(r.symbol)]
            elif r.symbol.section is None:
                if id(r.symbol) not in stub:
                    raise NotImplementedError(f"build: {r.symbol.name} is read, and is not of this library")
                target = stub[id(r.symbol)]
            else:
                target = r.symbol.address()
            machine.apply(r.section.data, r.offset, r.kind, at, target + r.addend)
        made[".rela.dyn"].data[:] = relocated
        self._fill_symbols(sections, made)
        self._fill_dynamic(made)

    def _fill_symbols(self, sections: list[_Section], made: dict[str, _Section]) -> None:
        table, index = bytearray(24), {id(s): i + 1 for i, s in enumerate(sections)}
        for s in self.imports:
            table += struct.pack("<IBBHQQ", self.name_of[id(s)], 1 << 4, 0, 0, 0, 0)
        for s in self.public:
            kind = 1 << 4 | (2 if s.function else 1)
            table += struct.pack("<IBBHQQ", self.name_of[id(s)], kind, 0, index[id(s.section)], s.address(), s.size)
        made[".dynsym"].data[:] = table
        # One bucket: a library has a handful of names.
        count = 1 + len(self.imports) + len(self.public)
        chain = [*range(1, count), 0]
        words = [1, count, 1 if count > 1 else 0, 0, *chain[1:]]
        made[".hash"].data[:] = struct.pack(f"<{len(words)}I", *words)

    def _fill_dynamic(self, made: dict[str, _Section]) -> None:
        now, never_unloaded = 8, 1 << 3 | 1  # threads of the library may sleep in it
        entries = [
            *((1, x) for x in self.needed), (14, self.so_name), (4, made[".hash"].address),
            (5, made[".dynstr"].address),
            (6, made[".dynsym"].address), (10, made[".dynstr"].size), (11, 24), (7, made[".rela.dyn"].address),
            (8, made[".rela.dyn"].size), (9, 24), (30, now), (0x6FFFFFFB, never_unloaded), (0, 0),
        ]  # fmt: skip
        made[".dynamic"].data[:] = b"".join(struct.pack("<QQ", *e) for e in entries)

    def _write(self, sections: list[_Section]) -> list[bytes | bytearray]:
        names = _Strings()
        heads = bytearray(64)
        index = {s.name: i + 1 for i, s in enumerate(sections)}
        for s in sections:
            heads += struct.pack(
                "<IIQQQQIIQQ", names.add(s.name), s.kind, s.flags, s.address, s.offset, s.size,
                index.get(s.link, 0), s.info, s.align, s.entry,
            )  # fmt: skip
        label = names.add(".shstrtab")
        table_at = -(-(self.end + len(names.data)) // 8) * 8
        heads += struct.pack("<IIQQQQIIQQ", label, 3, 0, 0, self.end, len(names.data), 0, 0, 1, 0)
        count = len(sections) + 2
        programs = b"".join(
            struct.pack("<IIQQQQQQ", 1, flags, offset, address, address, stored, size, self.machine.page)
            for flags, offset, address, stored, size in self.segments
        )
        dynamic = next(s for s in sections if s.name == ".dynamic")
        programs += struct.pack(
            "<IIQQQQQQ", 2, 6, dynamic.offset, dynamic.address, dynamic.address, dynamic.size, dynamic.size, 8
        )
        programs += struct.pack("<IIQQQQQQ", 0x6474E551, 6, 0, 0, 0, 0, 0, 16)  # a stack that cannot be run
        head = struct.pack(
            "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, self.machine.number, 1, 0, 64, table_at, 0, 64, 56,
            len(programs) // 56, 64, count, count - 1,
        )  # fmt: skip
        parts: list[bytes | bytearray] = [head, programs]
        at = len(head) + len(programs)
        for s in sections:
            if s.kind == _NOBITS:
                continue
            parts.append(bytes(s.offset - at))
            if s is self.weights:
                parts += self.tail
            else:
                parts.append(s.data)
            at = s.offset + s.size
        parts += [bytes(self.end - at), names.data, bytes(table_at - self.end - len(names.data)), heads]
        return parts


def link(blob: bytes, name: str, tail: Sequence[bytes] = (), tail_symbol: str = "weights") -> list[bytes | bytearray]:
    """The parts of a shared object.

    Args:
        blob: a relocatable object, for x86-64 or arm64 Linux.
        name: by which the loader knows the library.
        tail: bytes that are mapped for reading behind the code, from a page on.
        tail_symbol: what the object calls their address.
    Returns:
        Parts, to be written one after the other.
    Raises:
        NotImplementedError: the object is none of those, or needs a relocation that is not known.
    """
    return _Linker(blob, name, tail, tail_symbol).link()
