"""Complex values: a pair of float Values with a Value's operators, so that a body works with either."""

from __future__ import annotations

from ..ir import Type, Value

Real = Value | int | float


class Complex:
    """``re + im * 1j`` in vectors or scalars of float32 or float64, with Python's operators.

    A Value or number on either side counts as real. There is equality, but no order, as in mathematics.
    """

    __slots__ = ("im", "re")

    def __init__(self, re: Value, im: Value | float = 0.0):
        self.re = re
        self.im = im if isinstance(im, Value) else re.fn.const(re.type, im, re.lanes)

    @property
    def fn(self):
        """The function that is being built."""
        return self.re.fn

    @property
    def type(self) -> Type:
        return self.re.type

    @property
    def lanes(self) -> int:
        return self.re.lanes

    def __repr__(self) -> str:
        return f"Complex({self.re!r}, {self.im!r})"

    def _other(self, x: Complex | Value | complex) -> Complex:
        if isinstance(x, Complex):
            return x
        if isinstance(x, Value):
            return Complex(x.fn.splat(x, self.lanes))
        x = complex(x)
        return Complex(self.fn.const(self.type, x.real, self.lanes), x.imag)

    def to(self, t: Type) -> Complex:
        """Both parts converted to ``t``."""
        return Complex(self.re.to(t), self.im.to(t))

    def conj(self) -> Complex:
        return Complex(self.re, -self.im)

    def __add__(self, o):
        if isinstance(o, (Value, int, float)):  # a real number has no imaginary part, not even +0
            return Complex(self.re + o, self.im)
        o = self._other(o)
        return Complex(self.re + o.re, self.im + o.im)

    __radd__ = __add__

    def __sub__(self, o):
        if isinstance(o, (Value, int, float)):
            return Complex(self.re - o, self.im)
        o = self._other(o)
        return Complex(self.re - o.re, self.im - o.im)

    def __rsub__(self, o):
        return Complex(o - self.re, -self.im) if isinstance(o, (Value, int, float)) else self._other(o) - self

    def __mul__(self, o):
        if isinstance(o, (Value, int, float)):
            return Complex(self.re * o, self.im * o)
        o = self._other(o)
        return Complex(self.re * o.re - self.im * o.im, self.re * o.im + self.im * o.re)

    __rmul__ = __mul__

    def __truediv__(self, o):
        if isinstance(o, (Value, int, float)):
            return Complex(self.re / o, self.im / o)
        return _divide(self, self._other(o))

    def __rtruediv__(self, o):
        return _divide(self._other(o), self)

    def __neg__(self):
        return Complex(-self.re, -self.im)

    def __eq__(self, o):  # type: ignore[override]
        o = self._other(o)
        return (self.re == o.re) & (self.im == o.im)

    def __ne__(self, o):  # type: ignore[override]
        o = self._other(o)
        return (self.re != o.re) | (self.im != o.im)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self):
        raise TypeError("a kernel Complex has no truth at build time; use scalar.select")


def _divide(a: Complex, b: Complex) -> Complex:
    """Robert Smith's algorithm (CACM 1962): no overflow unless the quotient overflows, in either part's scale.

    Division by zero divides each part by it, as NumPy and PyTorch do: infinities and NaN stay in their part.
    """
    f = b.fn
    size_re, size_im = f.unary("fabs", b.re), f.unary("fabs", b.im)
    swap = size_re < size_im
    # Where |im| is larger, a and b are multiplied by -1j, so that the division is always by `big`.
    big, small = f.select(swap, b.im, b.re), f.select(swap, b.re, b.im)
    ratio = small / big
    zero = (size_re == 0.0) & (size_im == 0.0)
    ratio = f.select(zero, small, ratio)
    denominator = big + small * ratio
    first, second = f.select(swap, a.im, a.re), f.select(swap, a.re, a.im)
    re = f.select(zero, first, first + second * ratio) / denominator
    im = f.select(zero, second, second - first * ratio)
    im = f.select(swap, -im, im) / denominator
    return Complex(re, im)
