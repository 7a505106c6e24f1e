"""Products of a few rows that read the matrix once and in place: matrix-vector products, inner product.

Where both operands are contiguous along k, the lanes of a vector are neighbours in k, and each accumulator of a block
is reduced to one number at the end. Where the matrix is row-major, some rows at a time are added to sums in the
first-level cache. These, and the sums of targets without vectors, are of blocks of k: one chain of float32 would stop
to grow at 16,777,216. The order of summation depends on the register width of the target and on nothing else.
"""

from __future__ import annotations

from .build import kernel
from .gemm import K_BLOCK
from .ir import BF16, F32, TYPES, Function, Type, Value
from .tile import multiply_add, smaller

#: The arguments of ``matmul_dot``: ``out[i, j] = sum_k x[i, k] w[j, k] + d[i, j]`` for ``p`` rows of x and ``q`` of w.
#: A task does ``qc`` rows of w. ``d`` is added where ``init`` is 1. ``n1`` is the inner batch dimension's size.
DOT_ARGS = tuple("p q k x_i w_j o_i o_j d_i d_j init qc n1 x_b0 x_b1 w_b0 w_b1 o_b0 o_b1 d_b0 d_b1".split())
#: The arguments of ``matmul_rows``: ``out[i, j] = sum_k x[i, k] b[k, j] + d[i, j]`` for ``p`` rows of x, at most
#: ``MOST_ROWS``; rows of b and of the output are contiguous. A task does ``nc`` columns, at most ``MOST_COLUMNS``.
ROWS_ARGS = tuple("p n k x_i x_k b_k o_i d_i d_j init nc n1 x_b0 x_b1 b_b0 b_b1 o_b0 o_b1 d_b0 d_b1".split())
MOST_ROWS, MOST_COLUMNS = 4, 1024
#: From this size in bytes, w is taken to come from memory: eight runs of rows are then read in parallel. The processor
#: prefetches within a page of 4 KiB only, and consecutive rows share pages: rows of 2 KiB came at 22 GB/s and now at
#: 35, of 1 KiB 13 and 33, of 4 KiB and more 33 either way. From the third-level cache it takes 1.1 to 1.3 of the time.
FAR = 1 << 20
AHEAD = 1024  # bytes of each run that are prefetched; 512 and 2048 gave 27 to 32 GB/s
DOT_CHUNK = 16384  # elements of an inner product that one task of ``dot`` sums


def rows_at_once(lanes: int) -> int:
    """The number of rows of w that share one pass over x."""
    return min(8, lanes)


def few_long_rows(vector_bytes: int) -> int:
    """The number of rows of 128 or more elements that are no slower here than by the blocked product.

    Four rows by eight make 32 sums. With AVX-512 they stay in the registers in two halves (13 to 24 rows take 0.7 to
    1.0 of the time), with AVX2 they do not (1.0 to 1.5 of it).
    """
    return 24 if vector_bytes == 64 else 12


def fold(vectors: list[Value]) -> Value:
    """The sum of each vector (a power of two of them, at most the lanes) in a vector of that many lanes."""
    want = len(vectors)
    if want > vectors[0].lanes:
        raise ValueError(f"fold: {want} vectors of {vectors[0].lanes} lanes")
    while len(vectors) > 1 or vectors[0].lanes > want:
        lanes = vectors[0].lanes
        if len(vectors) == 1:
            (v,) = vectors
            vectors = [v.shuffle(range(0, lanes, 2)) + v.shuffle(range(1, lanes, 2))]
        else:
            even, odd = range(0, 2 * lanes, 2), range(1, 2 * lanes, 2)
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [u.shuffle(even, v) + u.shuffle(odd, v) for u, v in pairs]
    return vectors[0]


def sums_along(f: Function, t: Type, x: list[Value], w: list[Value], k: Value, ahead: int | None = None) -> list[Value]:
    """``x[i] . w[j]`` for all pairs, a vector of partial sums each, x-major; bfloat16 is summed in float32.

    The rows of w are prefetched ``ahead`` bytes.
    """
    acc_type = F32 if t is BF16 else t
    lanes = f.lanes(acc_type)
    zero = f.const(acc_type, 0, lanes)
    whole = k / lanes * lanes * t.bytes

    def step(at: Value, acc, mask: Value | None):
        left = [f.load(f.offset(p, at), t, lanes, mask).to(acc_type) for p in x]
        for j, p in enumerate(w):
            if ahead is not None and mask is None:
                f.prefetch(f.offset(f.offset(p, at), ahead), 2)
            right = f.load(f.offset(p, at), t, lanes, mask).to(acc_type)
            for i in range(len(x)):
                acc[i * len(w) + j] = multiply_add(f, left[i], right, acc[i * len(w) + j])
        return acc

    with f.loop(0, whole, lanes * t.bytes, carry=[zero] * (len(x) * len(w))) as L:
        L.carry = step(L.index, list(L.carry), None)
    with f.loop(whole, k * t.bytes, lanes * t.bytes, carry=list(L.carry)) as L:  # at most once
        L.carry = step(L.index, list(L.carry), f.first(k - L.index / t.bytes, lanes))
    return list(L.carry)


@kernel
def matmul_dot(f: Function, dtype: str) -> None:
    """Few rows against many, both contiguous along k; see :data:`DOT_ARGS`. The range counts blocks of ``qc``."""
    t = TYPES[dtype]
    acc = F32 if t is BF16 else t
    q = rows_at_once(f.lanes(acc))
    g = {name: f.size(i) for i, name in enumerate(DOT_ARGS)}
    blocks = (g["q"] + g["qc"] - 1) / g["qc"]
    by_blocks = f.lanes(acc) == 1  # else the lanes share a long sum
    spare = f.scratch(acc.bytes)

    def finish(sums: list[Value], rows: int, out: Value, d: Value, left: Value | None, apart: Value | int = 1) -> None:
        """Store sums of rows of w that are ``apart``: the first ``left`` of them, or all."""
        o_j, d_j = g["o_j"] * apart, g["d_j"] * apart
        for i in range(rows):
            total = fold(sums[i * q : (i + 1) * q])
            to, add = f.offset(out, g["o_i"] * i), f.offset(d, g["d_i"] * i)
            if by_blocks:  # D is in the sum
                f.scatter(to, o_j, total.to(t), left)
                continue
            with f.branch(g["init"] == 1) as B:
                one = total + f.gather(add, d_j, t, q, left).to(total.type)
                f.scatter(to, o_j, one.to(t), left)
                B.otherwise()
                if left is None:
                    f.scatter(to, o_j, total.to(t))
                else:
                    with f.branch(o_j == t.bytes) as B2:
                        f.store(to, total.to(t), f.first(left, q))
                        B2.otherwise()
                        f.scatter(to, o_j, total.to(t), left)

    def addend(d: Value) -> Value:
        """Numbers to which the first block of k is added."""
        f.store(spare, f.const(acc, 0))
        with f.when(g["init"] == 1):
            f.store(spare, f.load(d, t).to(acc))
        return f.load(spare, acc)

    def all_sums(xs: list[Value], ws: list[Value], d: Value, ahead: int | None = None) -> list[Value]:
        if by_blocks:
            totals = [addend(f.offset(d, g["d_i"] * i)) for i in range(len(xs))]
            with f.loop(0, g["k"], K_BLOCK, carry=totals) as B:
                here = [[f.offset(p, B.index * t.bytes) for p in side] for side in (xs, ws)]
                block = sums_along(f, t, *here, smaller(f, f.i64(K_BLOCK), g["k"] - B.index), ahead)
                B.carry = [total + x for total, x in zip(B.carry, block, strict=True)]
            return list(B.carry)
        if len(xs) * q <= 16:
            return sums_along(f, t, xs, ws, g["k"], ahead)
        half = q // 2  # too many accumulators for one pass
        first, second = (sums_along(f, t, xs, part, g["k"], ahead) for part in (ws[:half], ws[half:]))
        return [s for n in range(len(xs)) for part in (first, second) for s in part[n * half : (n + 1) * half]]

    def block(rows: int, i: Value, j: Value, left: Value, x: Value, w: Value, out: Value, d: Value) -> None:
        # A row past the end repeats the last one; its sum is not stored.
        last = left - 1
        ws = [f.offset(w, smaller(f, f.i64(n), last) * g["w_j"]) for n in range(q)]
        xs = [f.offset(x, g["x_i"] * (i + n)) for n in range(rows)]
        to = f.offset(out, i * g["o_i"] + j * g["o_j"])
        add = f.offset(d, i * g["d_i"] + j * g["d_j"])
        finish(all_sums(xs, ws, add), rows, to, add, left)

    def runs(start: Value, count: Value, x: Value, w: Value, out: Value, d: Value) -> Value:
        """The rows that ``q`` equal runs cover of ``count`` rows of w, a row of each run at a time; return how many."""
        run = count / q

        def rows(number: int, i: Value, j: Value, ws: list[Value]) -> None:
            xs = [f.offset(x, g["x_i"] * (i + n)) for n in range(number)]
            to, add = f.offset(out, i * g["o_i"] + j * g["o_j"]), f.offset(d, i * g["d_i"] + j * g["d_j"])
            finish(all_sums(xs, ws, add, AHEAD), number, to, add, None, run)

        with f.loop(0, run) as R:
            j = start + R.index
            ws = [f.offset(w, (j + run * n) * g["w_j"]) for n in range(q)]
            with f.loop(0, g["p"] - 3, 4) as P:
                rows(4, P.index, j, ws)
            with f.loop(P.index, g["p"]) as P:
                rows(1, P.index, j, ws)
        return run * q

    with f.loop(f.begin, f.end) as T:
        batch, piece = T.index / blocks, T.index % blocks
        outer, inner = batch / g["n1"], batch % g["n1"]
        x, w, out, d = (
            f.offset(f.data(n), outer * g[f"{s}_b0"] + inner * g[f"{s}_b1"])
            for n, s in ((1, "x"), (2, "w"), (0, "o"), (3, "d"))
        )
        start = piece * g["qc"]
        stop = smaller(f, start + g["qc"], g["q"])
        far = g["q"] * g["w_j"] >= FAR
        done = runs(start, f.select(far, stop - start, 0), x, w, out, d)
        with f.loop(start + done, stop, q) as J:
            left = smaller(f, g["q"] - J.index, q)
            here = f.offset(w, J.index * g["w_j"])
            with f.loop(0, g["p"] - 3, 4) as P:
                block(4, P.index, J.index, left, x, here, out, d)
            with f.loop(P.index, g["p"]) as P:
                block(1, P.index, J.index, left, x, here, out, d)


@kernel
def matmul_rows(f: Function, dtype: str) -> None:
    """A few rows times a row-major matrix; see :data:`ROWS_ARGS`. The range counts pieces of ``nc`` columns.

    It reads eight rows of b at a time (four for more than two rows of x), as streams that the processor prefetches.
    """
    t = TYPES[dtype]
    acc = F32 if t is BF16 else t
    lanes = f.lanes(acc)
    g = {name: f.size(i) for i, name in enumerate(ROWS_ARGS)}
    pieces = (g["n"] + g["nc"] - 1) / g["nc"]
    line = MOST_COLUMNS * acc.bytes
    sums, totals = f.scratch(MOST_ROWS * line), f.scratch(MOST_ROWS * line)

    def add(rows: int, streams: int, x: Value, b: Value, start: Value, stop: Value, n: Value) -> Value:
        """All groups of ``streams`` rows of b from ``start`` to ``stop``; return where they end."""
        with f.loop(start, stop - (streams - 1), streams) as K:
            scales = [
                f.splat(f.load(f.offset(x, g["x_i"] * i + (K.index + u) * g["x_k"]), t).to(acc), lanes)
                for i in range(rows)
                for u in range(streams)
            ]
            lines = [f.offset(b, (K.index + u) * g["b_k"]) for u in range(streams)]
            with f.loop(0, n, lanes) as V:
                inside = f.first(n - V.index, lanes)
                columns = [f.load(f.offset(at, V.index * t.bytes), t, lanes, inside).to(acc) for at in lines]
                for i in range(rows):
                    to = f.offset(sums, V.index * acc.bytes + i * line)
                    total = f.load(to, acc, lanes)
                    for u in range(streams):
                        total = multiply_add(f, scales[i * streams + u], columns[u], total)
                    f.store(to, total)
        return K.index

    with f.loop(f.begin, f.end) as T:
        batch, start = T.index / pieces, T.index % pieces * g["nc"]
        outer, inner = batch / g["n1"], batch % g["n1"]
        x, b, out, d = (
            f.offset(f.data(i), outer * g[f"{s}_b0"] + inner * g[f"{s}_b1"])
            for i, s in ((1, "x"), (2, "b"), (0, "o"), (3, "d"))
        )
        n = smaller(f, g["nc"], g["n"] - start)
        b = f.offset(b, start * t.bytes)
        with f.loop(0, g["p"]) as P, f.loop(0, n, lanes) as V:
            to = f.offset(totals, P.index * line + V.index * acc.bytes)
            with f.branch(g["init"] == 1) as B:
                at = f.offset(d, P.index * g["d_i"] + (start + V.index) * g["d_j"])
                f.store(to, f.gather(at, g["d_j"], t, lanes, smaller(f, n - V.index, lanes)).to(acc))
                B.otherwise()
                f.store(to, f.const(acc, 0, lanes))
        with f.loop(0, g["k"], K_BLOCK) as K:
            stop = smaller(f, K.index + K_BLOCK, g["k"])
            with f.loop(0, g["p"]) as P, f.loop(0, n, lanes) as V:
                f.store(f.offset(sums, P.index * line + V.index * acc.bytes), f.const(acc, 0, lanes))
            for rows in range(1, MOST_ROWS + 1):
                with f.when(g["p"] == rows):
                    done = add(rows, 8 if rows <= 2 else 4, x, b, K.index, stop, n)
                    add(rows, 1, x, b, done, stop, n)
            with f.loop(0, g["p"]) as P, f.loop(0, n, lanes) as V:
                block, total = (f.offset(p, P.index * line + V.index * acc.bytes) for p in (sums, totals))
                f.store(total, f.load(total, acc, lanes) + f.load(block, acc, lanes))
        with f.loop(0, g["p"]) as P, f.loop(0, n, lanes) as V:
            total = f.load(f.offset(totals, P.index * line + V.index * acc.bytes), acc, lanes)
            to = f.offset(out, P.index * g["o_i"] + (start + V.index) * t.bytes)
            f.store(to, total.to(t), f.first(n - V.index, lanes))


@kernel
def dot(f: Function, dtype: str) -> None:
    """Inner product of two contiguous vectors of ``arg[0]`` elements: one sum per chunk of :data:`DOT_CHUNK`."""
    t = TYPES[dtype]
    lanes, streams = f.lanes(t), 8
    n, step = f.size(0), streams * lanes
    with f.loop(f.begin, f.end) as C:
        start = C.index * DOT_CHUNK
        stop = smaller(f, start + DOT_CHUNK, n)
        x, y = f.data(1), f.data(2)
        with f.loop(start, stop - (step - 1), step, carry=[f.const(t, 0, lanes)] * streams) as L:
            acc = list(L.carry)
            for s in range(streams):
                at = (L.index + s * lanes) * t.bytes
                acc[s] = multiply_add(f, f.load(f.offset(x, at), t, lanes), f.load(f.offset(y, at), t, lanes), acc[s])
            L.carry = acc
        acc = list(L.carry)
        with f.loop(L.index, stop, lanes, carry=[acc[0]]) as R:
            mask, at = f.first(stop - R.index, lanes), R.index * t.bytes
            a, b = f.load(f.offset(x, at), t, lanes, mask), f.load(f.offset(y, at), t, lanes, mask)
            R.carry = [multiply_add(f, a, b, R.carry[0])]
        acc[0] = R.carry[0]
        while len(acc) > 1:
            acc = [acc[i] + acc[i + 1] for i in range(0, len(acc), 2)]
        f.store(f.offset(f.data(0), C.index * t.bytes), acc[0].reduce(lambda a, b: a + b))


@kernel
def dot_complex(f: Function, dtype: str, conjugated: bool) -> None:
    """:func:`dot` of complex vectors of ``dtype``'s parts, the first ``conjugated`` or not; ``arg[0]`` counts parts."""
    t = TYPES[dtype]
    lanes, streams = max(f.lanes(t), 2), 4  # pairs of parts
    n, step = f.size(0), streams * lanes
    swapped = [i + 1 - i % 2 * 2 for i in range(lanes)]
    signed = [i + i % 2 * lanes for i in range(lanes)]
    zero = f.const(t, 0, lanes)

    def add(at: Value, mask: Value | None, along: Value, across: Value) -> tuple[Value, Value]:
        x, y = (f.load(f.offset(f.data(i), at * t.bytes), t, lanes, mask) for i in (1, 2))
        return multiply_add(f, x, y, along), multiply_add(f, x, y.shuffle(swapped), across)

    with f.loop(f.begin, f.end) as C:
        start = C.index * DOT_CHUNK
        stop = smaller(f, start + DOT_CHUNK, n)
        with f.loop(start, stop - (step - 1), step, carry=[zero] * (2 * streams)) as L:
            acc = [add(L.index + s * lanes, None, *L.carry[2 * s : 2 * s + 2]) for s in range(streams)]
            L.carry = [v for pair in acc for v in pair]
        with f.loop(L.index, stop, lanes, carry=list(L.carry[:2])) as R:
            R.carry = list(add(R.index, f.first(stop - R.index, lanes), *R.carry))
        pairs = [tuple(R.carry), *(tuple(L.carry[2 * s : 2 * s + 2]) for s in range(1, streams))]
        while len(pairs) > 1:
            pairs = [(a[0] + b[0], a[1] + b[1]) for a, b in zip(pairs[::2], pairs[1::2], strict=True)]
        for part, total in enumerate(pairs[0]):
            if (part == 0) is not conjugated:  # the odd lanes are subtracted
                total = total.shuffle(signed, total * -1.0)
            to = f.offset(f.data(0), C.index * (2 * t.bytes) + part * t.bytes)
            f.store(to, total.reduce(lambda a, b: a + b))
