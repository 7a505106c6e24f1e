"""Random calls on tensors of unusual kinds: sparse, nested, on device meta, batched by vmap, expanded, reversed, empty ...

The first calls of a family take every function with every kind of tensor alone; the others take pairs and triples, the
arguments of a valid call made over into other kinds, and the same under ``vmap``. What requires grad is differentiated with a
plain cotangent and one of another kind.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable

from calls import Call, flatten
from families import members

import taeda
from taeda import nested

_FLOATS = (taeda.float32, taeda.float64)


def _base(like=None):
    """A tensor of floats; of the sizes of ``like``, if that is given."""
    if like is None:
        return taeda.tensor([[0.0, 1.5, -2.0], [0.25, 0.0, 3.0]])
    return like.detach().to(taeda.float32) if like.dtype not in _FLOATS else like.detach()


def _matrix(x):
    """``x`` as a matrix, which compressed tensors are."""
    return x if x.dim() == 2 else x.reshape(x.shape[0] if x.dim() else 1, -1) if x.numel() else x.new_zeros(2, 3)


def _grad(x):
    return x.clone().requires_grad_()


def _rows(x):
    return [row.clone() for row in x.unbind(0)] if x.dim() else [x.reshape(1).clone()]


def _with_nan(x):
    x = x.clone(memory_format=taeda.contiguous_format)
    if x.numel():
        x.view(-1)[0] = math.nan
    return x


def _extreme(x):
    ends = taeda.tensor([-(2**63), 2**63 - 1, 0, -1, 1, 2**31])
    return ends.repeat(x.numel() // 6 + 1)[: x.numel()].reshape(x.shape)


#: A maker for each kind of tensor, with the sizes of a tensor of floats if the kind can have any.
KINDS: dict[str, Callable] = {
    "plain": lambda x: x.clone(),
    "with grad": _grad,
    "result": lambda x: _grad(x) * 1,
    "coo": lambda x: x.to_sparse() if x.dim() else x.reshape(1).to_sparse(),
    "coo with grad": lambda x: KINDS["coo"](x).requires_grad_(),
    "coo result": lambda x: KINDS["coo"](_grad(x)),
    "csr": lambda x: _matrix(x).to_sparse_csr(),
    "csr with grad": lambda x: _matrix(x).to_sparse_csr().requires_grad_(),
    "csc result": lambda x: _grad(_matrix(x)).to_sparse_csc(),
    "nested": lambda x: nested.nested_tensor(_rows(x)),
    "nested result": lambda x: nested.as_nested_tensor(_grad(x) if x.dim() else _grad(x.reshape(1))),
    "jagged with grad": lambda x: nested.nested_tensor(
        [taeda.ones(2, 3), taeda.ones(4, 3)], layout=taeda.jagged, requires_grad=True
    ),
    "meta": lambda x: x.to("meta"),
    "meta with grad": lambda x: x.to("meta").requires_grad_(),
    "expanded": lambda x: x[:1].expand(x.shape) if x.dim() and x.shape[0] else x,
    "reversed": lambda x: x[::-1] if x.dim() else x,
    "empty": lambda x: x.new_zeros((0, *x.shape[1:])),
    "0-d": lambda x: x.new_full((), 2.0),
    "conjugated": lambda x: taeda.complex(x.float(), x.float() + 1).conj(),
    "negated": lambda x: taeda.complex(x.float(), x.float() + 1).conj().imag,
    "half": lambda x: x.half(),
    "float8": lambda x: x.to(taeda.float8_e4m3fn),
    "bool": lambda x: x > 0,
    "extreme": _extreme,
    "int8": lambda x: _extreme(x).to(taeda.int8),
    "nan": _with_nan,
}
NAMES = list(KINDS)
#: Attributes that are read without a call.
ATTRIBUTES = [name for name in dir(taeda.Tensor) if inspect.isdatadescriptor(getattr(taeda.Tensor, name, None))]


class Case(Call):
    """A call of a family (``kinds FAMILY``) on tensors of unusual kinds."""

    def __init__(self, family: str, seed: int, number: int):
        self.number = number
        self.kinds: list[str] = []
        self.mapped = False
        super().__init__(family.removeprefix("kinds "), seed, number)
        self.differentiate, self.compare = True, False

    def fill(self) -> None:
        r, names = self.rng, members(self.family)
        turn, function = divmod(self.number, len(names))
        if turn < len(NAMES):  # as often as there are kinds, and with another of them each time
            self.args = [self.of_kind(NAMES[(turn + function) % len(NAMES)])]
            return
        form = r.choice(("pair", "triple", "call", "call"))
        if form == "call":
            super().fill()
            self.kwargs.pop("out", None)
            one = r.choice(NAMES)
            choose = r.choice((lambda: one, lambda: r.choice(NAMES), lambda: r.choice(("plain", one))))
            self.args = [self.made_over(x, choose) for x in self.args]
            self.kwargs = {k: self.made_over(x, choose) for k, x in self.kwargs.items()}
        else:
            self.args = [self.of_kind(r.choice(NAMES)) for _ in range(2 if form == "pair" else 3)]
        self.mapped = r.random() < 0.3

    def of_kind(self, kind: str, like=None):
        try:
            made = KINDS[kind](_base(like))
        except NotImplementedError:  # there is no such form for these sizes
            made, kind = _base(like), "plain"
        self.kinds.append(kind)
        return made

    def made_over(self, x, choose):
        if isinstance(x, taeda.Tensor):
            return self.of_kind(choose(), x) if x.dtype.is_floating_point else x
        return type(x)(self.made_over(y, choose) for y in x) if type(x) in (list, tuple) else x

    # ---- running ---------------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Call, differentiate, and read every result: results can be printed and copied."""
        for x in flatten(self.args[:1]):
            self.read_attribute(x)
        inputs = [x for x in flatten([self.args, list(self.kwargs.values())]) if x.requires_grad]
        results = flatten(self.called_under_vmap() if self.mapped else self.call(self.args))
        for x in results:
            readable(x)
        for x in results:
            if x.requires_grad and (x.is_floating_point() or x.is_complex()):
                self.differentiate_with(x, inputs)

    def call(self, args):
        """A method as programs call it: the class of the object has its own."""
        if self.name.startswith("Tensor.") and args and isinstance(args[0], taeda.Tensor):
            return getattr(args[0], self.name.removeprefix("Tensor."))(*args[1:], **self.kwargs)
        return self.function(*args, **self.kwargs)

    def read_attribute(self, x) -> None:
        """One after the other from call to call."""
        try:
            found = getattr(x, ATTRIBUTES[self.number % len(ATTRIBUTES)])
        except (RuntimeError, TypeError, ValueError, IndexError):
            return
        for y in flatten(found):
            readable(y)

    def called_under_vmap(self):
        """The call for two examples at once, with the arguments that can be stacked."""
        args = list(self.args)
        places = [i for i, x in enumerate(args) if type(x) is taeda.Tensor]
        mapped = [i for i in places if self.rng.random() < 0.7] or places[:1]

        def f(*given):
            for i, x in zip(mapped, given, strict=True):
                args[i] = x
            out = self.call(args)
            return out if isinstance(out, taeda.Tensor) else tuple(flatten(out))

        batches = [taeda.stack([args[i], args[i]]) for i in mapped]
        return taeda.vmap(f, randomness="different")(*batches)

    def differentiate_with(self, x, inputs) -> None:
        cotangents = [lambda: taeda.ones_like(x), lambda: taeda.ones(x.shape), lambda: taeda.ones(x.shape).to_sparse()]
        cotangents.append(lambda: KINDS[self.rng.choice(NAMES)](taeda.ones(x.shape)))
        for make in cotangents:
            for leaf in inputs:
                leaf.grad = None
            try:
                g = make()
                for d in taeda.autograd.grad(x, inputs, g, retain_graph=True, allow_unused=True):
                    if d is not None:
                        readable(d)
                x.backward(g, retain_graph=True)
            except AssertionError:
                raise
            except (RuntimeError, TypeError, ValueError, IndexError):
                continue
            for leaf in inputs:
                if leaf.is_leaf and leaf.grad is not None:
                    readable(leaf.grad)

    def __str__(self) -> str:
        how = " under vmap" if self.mapped else ""
        return f"{self.name}({', '.join(self.kinds)}){how}, arguments {[describe(x) for x in (*self.args, *self.kwargs.items())]}"


def readable(x) -> None:
    """Print and copy ``x``; AssertionError where it has no elements to be read."""
    try:
        repr(x)
        x.detach().clone()
    except NotImplementedError as error:
        raise AssertionError(f"a result that cannot be read: {type(x).__name__}: {error}") from error


def describe(x) -> str:
    return f"{type(x).__name__} {x.dtype}" if isinstance(x, taeda.Tensor) else repr(x)[:60]


if __name__ == "__main__":  # one call: kinds.py FAMILY SEED INDEX
    case = Case(sys.argv[1], *map(int, sys.argv[2:]))
    print(case, flush=True)
    case.run()
