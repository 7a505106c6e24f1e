"""Connectionist temporal classification (Graves et al. 2006): the forward and backward recursions over alignments.

A label sequence of length ``S`` is extended with blanks to ``2 S + 1`` states. All states of a time step are computed
together, in vectors, from those of the step before, in logarithms throughout. Samples are independent.
"""

from __future__ import annotations

import math

from . import scalar as s
from .build import kernel
from .ir import I64, TYPES, Function, Type, Value
from .reduce import greater
from .scalar.exponential import exp_negative

#: States before the first and after the last that are always impossible, so that neighbours are read unchecked.
PAD = 2


def _log_add(f: Function, *xs: Value) -> Value:
    """The logarithm of the sum of exponentials; -inf where all inputs are."""
    top = xs[0]
    for x in xs[1:]:
        top = greater(f, top, x)
    base = f.select(top == -math.inf, 0.0, top)
    total = exp_negative(xs[0] - base)
    for x in xs[1:]:
        total = total + exp_negative(x - base)
    return s.log(total) + base


class _Sample:
    """The values of sample ``n`` that both kernels need; see :func:`ctc_forward` for the arguments."""

    def __init__(self, f: Function, t: Type, n: Value, first: int):
        self.f, self.t, self.n = f, t, n
        self.steps_most, self.batch, self.classes, self.states_most = (f.size(i) for i in range(4))
        pointers = [f.data(first + i) for i in range(5)]
        log_p, labels, skips, steps, lengths = pointers
        self.log_p = f.offset(log_p, n * self.classes * t.bytes)
        self.step = self.batch * self.classes * t.bytes
        self.labels = f.offset(labels, n * self.states_most * 8)
        self.skips = f.offset(skips, n * (self.states_most + PAD) * t.bytes)
        self.steps = f.load(f.offset(steps, n * 8), I64)
        self.states = f.load(f.offset(lengths, n * 8), I64) * 2 + 1
        self.width = self.states_most + 2 * PAD

    def row(self, table: Value, time: Value) -> Value:
        """The first state of a time step in a table ``[batch, steps, PAD + states + PAD]``."""
        start = (self.n * self.steps_most + time) * self.width + PAD
        return self.f.offset(table, start * self.t.bytes)

    def fill(self, row: Value) -> None:
        """Make every state impossible, the padding too."""
        f, t = self.f, self.t
        with f.loop(-PAD, self.width - PAD) as L:
            f.store(f.offset(row, L.index * t.bytes), f.const(t, -math.inf))

    def emit(self, time: Value, state: Value, lanes: int, mask: Value | None) -> Value:
        """Log-probabilities of the states' labels."""
        f = self.f
        labels = f.load(f.offset(self.labels, state * 8), I64, lanes, mask)
        base = f.offset(self.log_p, time * self.step)
        if lanes == 1:
            return f.load(f.offset(base, labels * self.t.bytes), self.t)
        return f.gather_at(base, labels * self.t.bytes, self.t, mask)

    def at(self, row: Value, state: Value, shift: int, lanes: int, mask: Value | None) -> Value:
        return self.f.load(self.f.offset(row, (state + shift) * self.t.bytes), self.t, lanes, mask)

    def advance(self, before: Value, row: Value, time: Value, sign: int) -> None:
        """Compute all states of ``row`` from the states of ``before``: stay, move by one, or skip a blank."""
        f, t, lanes = self.f, self.t, self.f.lanes(self.t)
        with f.loop(0, self.states_most, lanes) as L:
            i = L.index
            mask = f.first(self.states_most - i, lanes) if lanes > 1 else None
            allowed = self.at(self.skips, i, 0 if sign < 0 else 2, lanes, mask)
            stay, move = (self.at(before, i, k, lanes, mask) for k in (0, sign))
            skip = self.at(before, i, 2 * sign, lanes, mask) + allowed
            x = _log_add(f, stay, move, skip) + self.emit(time, i, lanes, mask)
            f.store(f.offset(row, i * t.bytes), x, mask)


@kernel
def ctc_forward(f: Function, dtype: str) -> None:
    """The loss of each sample and the table of forward variables.

    ``ptr``: loss ``[batch]``, alpha ``[batch, steps, PAD + states + PAD]``, log-probabilities
    ``[steps, batch, classes]``, extended labels ``[batch, states]`` (int64), what skipping to a state adds (0 or -inf)
    ``[batch, states + PAD]``, steps and target length of each sample (int64). ``arg``: steps, batch, classes, states.
    """
    t = TYPES[dtype]
    with f.loop(f.begin, f.end) as N:
        sample = _Sample(f, t, N.index, 2)
        loss, alpha = f.offset(f.data(0), N.index * t.bytes), f.data(1)
        none = f.const(t, -math.inf)
        f.store(loss, f.select(sample.states == 1, f.const(t, 0.0), math.inf))
        with f.when(sample.steps > 0):
            zero = f.i64(0)
            row = sample.row(alpha, zero)
            sample.fill(row)
            f.store(row, sample.emit(zero, zero, 1, None))
            with f.when(sample.states > 1):
                f.store(f.offset(row, t.bytes), sample.emit(zero, f.i64(1), 1, None))
            with f.loop(1, sample.steps) as T:
                row = sample.row(alpha, T.index)
                sample.fill(row)
                sample.advance(sample.row(alpha, T.index - 1), row, T.index, -1)
            last = sample.row(alpha, sample.steps - 1)
            end = f.load(f.offset(last, (sample.states - 1) * t.bytes), t)
            label = f.load(f.offset(last, (sample.states - 2) * t.bytes), t)
            f.store(loss, -_log_add(f, end, f.select(sample.states > 1, label, none)))


@kernel
def ctc_backward(f: Function, dtype: str) -> None:
    """The gradient of the log-probabilities, which are taken to be normalized.

    ``ptr``: the gradient ``[steps, batch, classes]`` (initially zero), a table like alpha for the backward variables,
    log-probabilities, labels, skips, steps, lengths as in :func:`ctc_forward`, then alpha, loss, its gradient
    ``[batch]``.
    """
    t = TYPES[dtype]
    with f.loop(f.begin, f.end) as N:
        sample = _Sample(f, t, N.index, 2)
        grad = f.offset(f.data(0), N.index * sample.classes * t.bytes)
        beta, alpha = f.data(1), f.data(7)
        loss = f.load(f.offset(f.data(8), N.index * t.bytes), t)
        g = f.load(f.offset(f.data(9), N.index * t.bytes), t)
        with f.loop(0, sample.steps) as T:
            time = sample.steps - 1 - T.index
            row = sample.row(beta, time)
            sample.fill(row)
            with f.branch(T.index == 0) as B:
                _last_states(sample, row, time)
                B.otherwise()
                sample.advance(sample.row(beta, time + 1), row, time, 1)
            here = f.offset(grad, time * sample.step)
            base = f.offset(sample.log_p, time * sample.step)
            before = sample.row(alpha, time)
            with f.loop(0, sample.states) as S:  # the probability that the alignment is in a state, by label
                label = f.load(f.offset(sample.labels, S.index * 8), I64) * t.bytes
                log_p = f.load(f.offset(base, label), t)
                both = sample.at(before, S.index, 0, 1, None) + sample.at(row, S.index, 0, 1, None)
                share = s.exp(f.select(both == -math.inf, both, both - log_p + loss))
                place = f.offset(here, label)
                f.store(place, f.load(place, t) + share)
            with f.loop(0, sample.classes) as C:
                place = f.offset(here, C.index * t.bytes)
                p = s.exp(f.load(f.offset(base, C.index * t.bytes), t))
                f.store(place, (p - f.load(place, t)) * g)


def _last_states(sample: _Sample, row: Value, time: Value) -> None:
    """At the last step an alignment is in the last label or the blank after it."""
    f, t = sample.f, sample.t
    for back in (1, 2):
        state = sample.states - back
        with f.when(state >= 0):
            f.store(f.offset(row, state * t.bytes), sample.emit(time, state, 1, None))
