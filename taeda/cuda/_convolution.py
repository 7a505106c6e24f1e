"""Convolutions by tiles: products of which one operand is never in memory as a matrix.

The rows of that operand are ``(channel, tap)``, its columns are pixels of the result (:mod:`taeda.kernels.conv`). A
thread reads its numbers of a tile from the image, by an address for each. What is outside of the image is zero. All
else is the tile of :mod:`._products`, with the sums of the kernels for one lane.

- ``forward``: weights by pixels, of all images at once. Also the gradient of the input, whose dilation is negative.
- ``weights``: pixels are summed. Rows are ``(channel, tap)``, columns the channels of the gradient.

The sum goes by *segments*: a block of channels, or an image. A tile never has numbers of two segments.
"""

from __future__ import annotations

from typing import Any

from ..kernels.build import kernel
from ..kernels.conv import TILE_ARGS
from ..kernels.gemm import ELEMENT_ARGS
from ..kernels.ir import Function
from ._products import THREADS, TYPES, Product, _Matrices, _Side, _Tile

ARGS = (*ELEMENT_ARGS, "down", "across", *TILE_ARGS)


@kernel
def convolve_tiles(f: Function, dtype: str, form: int) -> None:
    """The kernel of one form of launches: its entry is the whole of it."""
    f.threads, f.schedule = THREADS, ("convolution", dtype, form)


class _Image(_Tile):
    """A tile of which one operand is read from an image."""

    names = ARGS

    def __init__(self, x: Any, pointers: int, p: Product, dims: int, weights: bool) -> None:
        super().__init__(x, pointers, p)
        self.dims, self.weights = dims, weights
        self.image = self.a if weights else self.b  # the operand that is read from it
        if weights and TYPES[p.dtype][1] == 2:
            self.result = "float"

    # ---- numbers of three dimensions ---------------------------------------------------------------------------------
    def narrow(self, x: str) -> str:
        return self.emit(f"trunc i64 {x} to i32")

    def three(self, name: str) -> list[str]:
        """A number of the launch for depth, rows and columns, in 32 bits. Dimensions that are not there have 1 or 0."""
        missing = "0" if name in "sdp" else "1"
        own = ("d", "h", "w")
        return [self.narrow(self.number(name + d)) if i >= 3 - self.dims else missing for i, d in enumerate(own)]

    def steps(self) -> list[str]:
        """Bytes from a position of the image to the next one, along each dimension."""
        return [self.number(f"x_{d}") if i >= 3 - self.dims else "0" for i, d in enumerate("dhw")]

    def digits(self, x: str, sizes: list[str]) -> tuple[str, list[str]]:
        """``x`` as a place within three sizes, and what is above."""
        found = []
        for i in (2, 1, 0):
            if i < 3 - self.dims:
                found.append("0")
                continue
            found.append(self.emit(f"urem i32 {x}, {sizes[i]}"))
            x = self.emit(f"udiv i32 {x}, {sizes[i]}")
        return x, found[::-1]

    def count_on(self, at: list[str], by: list[str], sizes: list[str]) -> tuple[list[str], list[str]]:
        """The place ``at`` moved on by ``by``; the carry of each dimension, an i1."""
        carry, made, carries = "0", [], []
        for i in (2, 1, 0):
            if i < 3 - self.dims:
                made.append("0")
                carries.append("false")
                continue
            x = self.emit(f"add i32 {self.emit(f'add i32 {at[i]}, {by[i]}')}, {carry}")
            full = self.emit(f"icmp uge i32 {x}, {sizes[i]}")
            made.append(self.emit(f"select i1 {full}, i32 {self.emit(f'sub i32 {x}, {sizes[i]}')}, i32 {x}"))
            carry = self.emit(f"zext i1 {full} to i32")
            carries.append(full)
        return made[::-1], carries[::-1]

    def along(self, at: list[str], by: list[str]) -> list[str]:
        return [self.emit(f"mul i32 {i}, {j}") for i, j in zip(at, by, strict=True)]

    def bytes_to(self, at: list[str], steps: list[str]) -> str:
        """Bytes from the beginning of a plane to a place."""
        total = "0"
        for i in range(3 - self.dims, 3):
            total = self.plus(total, self.times(self.emit(f"sext i32 {at[i]} to i64"), steps[i]))
        return total

    def inside(self, first: list[str], more: list[str]) -> str:
        """Whether the sum of two places is in the image."""
        found = "true"
        for i in range(3 - self.dims, 3):
            x = self.emit(f"add i32 {first[i]}, {more[i]}")
            found = self.emit(f"and i1 {found}, {self.emit(f'icmp ult i32 {x}, {self.size[i]}')}")
        return found

    def read_at(self, s: _Side, pointer: str, valid: str, deep: str | None) -> str:
        """The number there, zero where it is not ``valid``, and what fills a tile where it is not ``deep``."""
        t = "i16" if TYPES[self.p.dtype][1] == 2 else self.t
        zero = "0" if t == "i16" else "0.0"
        if deep is not None:
            valid = self.emit(f"and i1 {valid}, {deep}")
        here = self.emit(f"select i1 {valid}, ptr {pointer}, ptr {s.base}")
        x = self.emit(f"load {t}, ptr {here}, align {self.item}")
        x = self.emit(f"select i1 {valid}, {t} {x}, {t} {zero}")
        return x if deep is None else self.emit(f"select i1 {deep}, {t} {x}, {t} {s.pad}")

    def vector_of(self, numbers: list[str]) -> str:
        t = "i16" if TYPES[self.p.dtype][1] == 2 else self.t
        x = "poison"
        for i, one in enumerate(numbers):
            x = self.emit(f"insertelement {self.vector} {x}, {t} {one}, i32 {i}")
        return x

    # ---- the sum -----------------------------------------------------------------------------------------------------
    def begin_sides(self, at_a: str, at_b: str) -> None:
        self.segment, self.next = self.number("segment"), self.number("x_next")
        if self.weights:  # a part of the images
            most = self.number("most")
            self.k = self.least(most, self.emit(f"sub i64 {self.k}, {self.times(self.outer, most)}"))
        self.size = self.three("i")
        if self.weights:
            self.begin_rows(self.a, at_a)
            self.begin(self.b, at_b, self.first_column, self.n, self.number("b_n"), self.number("b_k"))
        else:
            self.begin(self.a, at_a, self.first_row, self.m, self.number("a_m"), self.number("a_k"))
            self.begin_pixels(self.b, at_b)

    def first_depth(self) -> str:
        return self.least(self.segment, self.k)

    def go_on(self, left: str) -> tuple[str, str]:
        (self.within,), self.within_after = self.phis("within", "i64", 1, ("ready", [self.first_left]), "next")
        self.last = self.emit(f"icmp sle i64 {self.within}, {self.depth}")  # tile of a segment
        take = self.emit(f"select i1 {self.last}, i64 {self.within}, i64 {self.depth}")
        rest = self.emit(f"sub i64 {left}, {take}")
        self.take = take
        deep = self.emit(
            f"select i1 {self.last}, i64 {self.least(self.segment, rest)}, i64 {self.plus(self.within, -self.depth)}"
        )
        self.deep = deep
        return rest, deep

    def goes_on(self) -> None:
        self.close(self.within_after, [self.deep])

    def ends_block(self, left: str, more: str) -> str:
        return self.emit(f"or i1 {super().ends_block(left, more)}, {self.last}")

    def read(self, name: str, pointers: list[list[str]], depth: str) -> list[list[str]]:
        if name == "first":
            self.first_left = depth
        return super().read(name, pointers, depth)

    def following(self, s: _Side, pointers: list[str]) -> list[str]:
        if s is self.image:
            return self.following_rows(pointers) if self.weights else self.following_pixels(pointers)
        if self.weights:  # the next pixels, or those of the next image
            done = self.emit(f"sub i64 {self.segment}, {self.within}")
            ahead = self.emit(f"sub i64 {self.number('y_next')}, {self.times(done, s.step)}")
            far = self.emit(f"select i1 {self.last}, i64 {ahead}, i64 {self.times(s.step, self.depth)}")
        else:
            far = self.times(self.take, s.step)
        return [self.move(pointer, far) for pointer in pointers]

    def fetch(self, s: _Side, pointers: list[str], depth: str, whole: bool) -> list[str]:
        if s is not self.image:
            return super().fetch(s, pointers, depth, whole)
        return (self.fetch_rows if self.weights else self.fetch_pixels)(s, pointers, depth, whole)

    # ---- forward: a thread has a pixel, and neighbouring (channel, tap) of it ----------------------------------------
    def begin_pixels(self, s: _Side, base: str) -> None:
        """``pointers``: the place of the thread's first ``(channel, tap)`` for its pixel, that of the segment's, and
        the tap."""
        own = self.depth * s.size // THREADS
        row = self.emit(f"and i32 %thread, {s.size - 1}")
        first = self.emit(f"mul i32 {self.emit(f'lshr i32 %thread, {s.size.bit_length() - 1}')}, {own}")
        s.base, s.places = base, []
        self.first_k = first
        for i in range(0, own, self.v):
            s.places.append((self.emit(f"add i32 {first}, {i}"), row))
        pixel = self.least(self.plus(self.emit(f"zext i32 {row} to i64"), self.first_column), self.plus(self.n, -1))
        image, place = self.digits(self.narrow(pixel), self.three("o"))
        stride, pad = self.three("s"), self.three("p")
        self.pixel = [self.emit(f"sub i32 {i}, {j}") for i, j in zip(self.along(place, stride), pad, strict=True)]
        steps, dilation, self.taps = self.steps(), self.three("d"), self.three("k")
        self.dilation = dilation  # in positions
        # From a tap to the next one along each dimension, and what is more where that is full.
        self.tap_steps = [
            self.times(self.emit(f"sext i32 {d} to i64"), step) for d, step in zip(dilation, steps, strict=True)
        ]
        channel = self.number("x_c")
        above = [channel, *self.tap_steps[:2]]
        self.full = []
        for i in range(3):
            further = channel if i == 3 - self.dims else above[i]
            whole = self.times(self.emit(f"sext i32 {self.taps[i]} to i64"), self.tap_steps[i])
            self.full.append(self.emit(f"sub i64 {further}, {whole}"))
        at = self.move(base, self.times(self.emit(f"zext i32 {image} to i64"), self.number("b_b0")))
        at = self.move(at, self.bytes_to(self.pixel, steps))
        channels, self.first_tap = self.digits(first, self.taps)
        self.tile_channels, self.tile_taps = self.digits(str(self.depth), self.taps)
        self.tile_bytes = self.bytes_of(self.tile_channels, self.tile_taps)
        at = self.move(at, self.bytes_of(channels, self.first_tap))
        s.pointers = [at, at, *self.first_tap]
        s.types = ["ptr", "ptr", "i32", "i32", "i32"]

    def bytes_of(self, channels: str, taps: list[str]) -> str:
        """Bytes from the first tap of the first channel to a tap of a channel."""
        before = self.times(self.emit(f"zext i32 {channels} to i64"), self.number("x_c"))
        return self.plus(before, self.bytes_to(taps, self.tap_steps))

    def next_tap(self, at: str, tap: list[str], by: list[str], nbytes: str) -> tuple[str, list[str]]:
        """The place of the ``(channel, tap)`` that comes later by ``by`` taps and their ``nbytes``."""
        tap, carries = self.count_on(tap, by, self.taps)
        for i in range(3 - self.dims, 3):
            nbytes = self.plus(nbytes, self.emit(f"select i1 {carries[i]}, i64 {self.full[i]}, i64 0"))
        return self.move(at, nbytes), tap

    def fetch_pixels(self, s: _Side, pointers: list[str], depth: str, whole: bool) -> list[str]:
        at, _, *tap = pointers
        first = self.emit(f"zext i32 {self.first_k} to i64")
        own = len(s.places) * self.v
        numbers: list[str] = []
        for i in range(own):
            valid = self.inside(self.pixel, self.along(tap, self.dilation))
            deep = None if whole else self.emit(f"icmp slt i64 {self.plus(first, i)}, {depth}")
            numbers.append(self.read_at(s, at, valid, deep))
            if i + 1 < own:
                at, tap = self.next_tap(at, tap, ["0", "0", "1"], self.tap_steps[2])
        return [self.vector_of(numbers[i : i + self.v]) for i in range(0, own, self.v)]

    def following_pixels(self, pointers: list[str]) -> list[str]:
        at, segment, *tap = pointers
        later, later_tap = self.next_tap(at, tap, self.tile_taps, self.tile_bytes)
        other = self.move(segment, self.next)
        made = [
            self.emit(f"select i1 {self.last}, ptr {other}, ptr {x}") for x, other in ((later, other), (segment, other))
        ]
        return made + [
            self.emit(f"select i1 {self.last}, i32 {i}, i32 {j}") if d >= 3 - self.dims else "0"
            for d, (i, j) in enumerate(zip(self.first_tap, later_tap, strict=True))
        ]

    # ---- gradients of weights: a thread has neighbouring (channel, tap), and a pixel of each tile --------------------
    def begin_rows(self, s: _Side, base: str) -> None:
        """``pointers``: the image, and the pixel."""
        lane, warp = self.emit("and i32 %thread, 31"), self.emit("lshr i32 %thread, 5")

        def bit(x: str, n: int, to: int) -> str:
            one = self.emit(f"and i32 {self.emit(f'lshr i32 {x}, {n}')}, 1")
            return self.emit(f"shl i32 {one}, {to}")

        if self.depth == 32:
            k, group = lane, warp
        else:  # eight threads that store at the same time meet at no bank, and eight neighbouring pixels are in a warp
            group = self.emit(f"or i32 {bit(lane, 0, 0)}, {self.emit(f'or i32 {bit(lane, 1, 2)}, {bit(warp, 1, 1)}')}")
            k = self.emit(f"or i32 {bit(lane, 2, 2)}, {self.emit('lshr i32 ' + lane + ', 3')}")
            k = self.emit(f"or i32 {k}, {bit(warp, 0, 3)}")
        row = self.emit(f"mul i32 {group}, {self.v}")
        s.base, s.places, self.first_k = base, [(k, row)], k
        self.taps, dilation, steps = self.three("k"), self.three("d"), self.steps()
        self.own_rows = []
        for j in range(self.v):
            own = self.plus(self.plus(self.emit(f"zext i32 {row} to i64"), self.first_row), j)
            own = self.least(own, self.plus(self.m, -1))
            channel, tap = self.digits(self.narrow(own), self.taps)
            place = self.along(tap, dilation)
            nbytes = self.times(self.emit(f"zext i32 {channel} to i64"), self.number("x_c"))
            self.own_rows.append((self.plus(nbytes, self.bytes_to(place, steps)), place))
        self.pixels = self.three("o")
        _, self.first_pixel = self.digits(k, self.pixels)
        _, self.tile_pixels = self.digits(str(self.depth), self.pixels)
        s.pointers = [base, *self.first_pixel]
        s.types = ["ptr", "i32", "i32", "i32"]

    def fetch_rows(self, s: _Side, pointers: list[str], depth: str, whole: bool) -> list[str]:
        image, *pixel = pointers
        place = [
            self.emit(f"sub i32 {i}, {j}")
            for i, j in zip(self.along(pixel, self.three("s")), self.three("p"), strict=True)
        ]
        at = self.move(image, self.bytes_to(place, self.steps()))
        deep = None if whole else self.emit(f"icmp slt i64 {self.emit(f'zext i32 {self.first_k} to i64')}, {depth}")
        numbers = [
            self.read_at(s, self.move(at, nbytes), self.inside(place, tap), deep) for nbytes, tap in self.own_rows
        ]
        return [self.vector_of(numbers)]

    def following_rows(self, pointers: list[str]) -> list[str]:
        image, *pixel = pointers
        later, _ = self.count_on(pixel, self.tile_pixels, self.pixels)
        other = self.move(image, self.next)
        return [self.emit(f"select i1 {self.last}, ptr {other}, ptr {image}")] + [
            self.emit(f"select i1 {self.last}, i32 {i}, i32 {j}") if d >= 3 - self.dims else "0"
            for d, (i, j) in enumerate(zip(self.first_pixel, later, strict=True))
        ]

    # ---- the result --------------------------------------------------------------------------------------------------
    def column_at(self, line: str, column: str, stride: str) -> str:
        if self.weights:
            return super().column_at(line, column, stride)
        pixels = self.narrow(self.number("pixels"))
        own = self.narrow(column)
        image = self.emit(f"udiv i32 {own}, {pixels}")
        rest = self.emit(f"urem i32 {own}, {pixels}")
        offset = self.times(self.emit(f"zext i32 {image} to i64"), self.number("c_b0"))
        return self.move(line, self.plus(offset, self.times(self.emit(f"zext i32 {rest} to i64"), stride)))


class _Halves(_Image, _Matrices):
    pass


def convolution_tile(x: Any, pointers: int, dtype: str, form: int) -> None:
    """The schedule ``("convolution", dtype, form)``, a form as in ``_core/conv_tiles.pxi``."""
    a_wide, b_wide, c_wide, several, large, weights, bias = (bool(form >> i & 1) for i in range(7))
    p = Product(dtype, 1 + large, not weights, a_wide, True, b_wide, c_wide, 4 if bias else 2, several)
    (_Halves if TYPES[dtype][1] == 2 else _Image)(x, pointers, p, form >> 7, weights).write()
