"""One entry of the database, compared: values, dtypes, sizes, aliasing, forms, gradients, second gradients, errors."""

from __future__ import annotations

import copy
import functools
import itertools
import math
import traceback
import warnings

import torch
from torch.testing._internal import common_utils
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo import core

import taeda

from ..trees import mapped
from .translate import Missing, back, translate

LEFT_OUT = ("jiterator", "_refs", "_scaled", "to_sparse", "sparse.", "ops.aten", "torch.ops")
UNSPECIFIED = (  # the values of these are whatever the memory held
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "resize_",
    "resize_as_",
)
TIES = (
    "sort",
    "argsort",
    "msort",
    "topk",
    "kthvalue",
    "median",
    "nanmedian",
    "mode",
)  # equal elements: any of their places
DTYPES = (
    torch.float32,
    torch.float64,
    torch.complex32,
    torch.complex64,
    torch.complex128,
    torch.float16,
    torch.bfloat16,
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
)
TOLERANCE = {  # relative, absolute
    torch.float32: (1.3e-5, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex32: (2e-3, 1e-4),
    torch.complex64: (1.3e-5, 1e-5),
    torch.complex128: (1e-7, 1e-7),
    torch.float16: (2e-3, 1e-4),
    torch.bfloat16: (1.6e-2, 1e-4),
}
WIDER = {
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
}
# A seed is for all devices. Missing devices keep it, with the text of the call stack: half the time of these tests.
for _device in (torch.cuda, torch.xpu, torch.mtia):
    _device.manual_seed_all = lambda seed: None
# The test that draws samples is looked up in the call stack, each time: most of the rest.
common_utils.extract_test_fn = core.extract_test_fn = lambda: None
KINDS = ("value", "view", "out", "inplace", "method", "gradient", "second", "error")


def name_of(op) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def is_compared(op) -> bool:
    private = op.name.startswith("_") and not op.name.startswith("__")
    return not private and not any(part in op.name for part in LEFT_OUT)


@functools.cache
def entries() -> dict:
    return {name_of(op): op for op in op_db if is_compared(op)}


def family_of(op) -> str:
    kind = type(op).__name__
    head = op.name.rpartition(".")[0]
    if head:
        return head
    if kind in ("UnaryUfuncInfo", "BinaryUfuncInfo", "ReductionOpInfo", "ShapeFuncInfo", "SpectralFuncInfo"):
        return {"UnaryUfuncInfo": "unary", "BinaryUfuncInfo": "binary", "ReductionOpInfo": "reduction"}.get(
            kind, "shape"
        )
    return "torch"


class Differs(AssertionError):
    pass


def close(got, want, label="", exact=None, unspecified=False):
    """Same structure, sizes, dtypes, and values in tolerance, or no further than PyTorch's from the value in double precision."""
    if isinstance(want, (tuple, list)):
        if not isinstance(got, (tuple, list)) or len(got) != len(want):
            raise Differs(f"{label}: {len(want)} results expected, got {got!r:.80}")
        exact = exact if exact is not None and isinstance(exact, (tuple, list)) else [None] * len(want)
        for g, w, e in zip(got, want, exact, strict=True):
            close(g, w, label, e, unspecified)
        return
    if isinstance(want, dict):
        for key in want:
            close(got[key], want[key], label, None, unspecified)
        return
    if not isinstance(want, torch.Tensor):
        if isinstance(want, torch.dtype):
            same = back(got) == want
        elif isinstance(want, (float, complex)) and not isinstance(got, taeda.Tensor):
            same = torch.allclose(torch.tensor(got), torch.tensor(want), equal_nan=True)
        else:
            same = type(got) is type(want) and got == want
        if not same:
            raise Differs(f"{label}: {got!r:.60} instead of {want!r:.60}")
        return
    if not isinstance(got, taeda.Tensor):
        raise Differs(f"{label}: {type(got).__name__} instead of a tensor")
    if tuple(got.shape) != tuple(want.shape):
        raise Differs(f"{label}: shape {tuple(got.shape)} instead of {tuple(want.shape)}")
    if str(got.dtype).split(".")[-1] != str(want.dtype).split(".")[-1]:
        raise Differs(f"{label}: dtype {got.dtype} instead of {want.dtype}")
    if unspecified:
        return
    got, want = back(got), want.detach().resolve_conj().resolve_neg()
    rtol, atol = TOLERANCE.get(want.dtype, (0, 0))
    try:
        torch.testing.assert_close(got, want, rtol=rtol, atol=atol, equal_nan=True, check_stride=False)
    except AssertionError as error:
        if isinstance(exact, torch.Tensor) and exact.shape == want.shape:
            truth = exact.detach().resolve_conj().to(torch.complex128)
            ours = (got.to(torch.complex128) - truth).abs().nan_to_num(0, 0)
            theirs = (want.to(torch.complex128) - truth).abs().nan_to_num(0, 0)
            nans = got.isnan() == want.isnan()
            if bool(nans.all()) and bool((ours <= 2 * theirs.max() + (rtol * truth.abs()).nan_to_num(0) + atol).all()):
                return
        raise Differs(f"{label}: " + " ".join(str(error).split())[:200]) from None


def seeded(fn, *args, **kwargs):
    """A call with both generators at the same place and no warnings; gives (value, error)."""
    torch.manual_seed(42)
    taeda.manual_seed(42)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fn(*args, **kwargs), None
    except Exception as error:
        return None, error


def tensors(thing) -> list:
    if isinstance(thing, (torch.Tensor, taeda.Tensor)):
        return [thing]
    if isinstance(thing, dict):
        thing = list(thing.values())
    if isinstance(thing, (list, tuple)):
        return [t for x in thing for t in tensors(x)]
    return []


def widened(thing, dtype):
    def wide(x):
        if isinstance(x, torch.Tensor):
            return x.detach().to(dtype) if x.dtype in WIDER else x
        return dtype if isinstance(x, torch.dtype) and x in WIDER else x

    return mapped(wide, thing)


def pick(samples, limit):
    """At most ``limit`` of the samples, spread over them (each generator is read to its end only if it is short)."""
    found = list(itertools.islice(samples, 400))
    if limit is None or len(found) <= limit:
        return found
    step = len(found) / limit
    return [found[int(k * step)] for k in range(limit)]


class Entry:
    """The checks of one entry; ``failures`` maps a kind of check to its failures, ``counts`` to the number of checks."""

    def __init__(self, op, limit=None, dtypes=DTYPES):
        self.op, self.limit = op, limit
        self.dtypes = [d for d in dtypes if d in op.supported_dtypes("cpu")]
        self.failures: dict[str, list[str]] = {}
        self.counts = dict.fromkeys(KINDS, 0)
        self.unspecified = op.name in UNSPECIFIED

    def note(self, kind, text):
        self.failures.setdefault(kind, []).append(text)

    def run(self):
        try:
            self.ours = translate(self.op.op)
        except Missing as error:
            self.note("value", str(error))
            return self
        for dtype in self.dtypes:
            self.values(dtype)
            if self.op.supports_autograd and dtype in self.op.supported_backward_dtypes("cpu"):
                self.gradients(dtype)
        self.errors()
        return self

    def samples(self, dtype, requires_grad=False):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            return pick(self.op.sample_inputs("cpu", dtype, requires_grad=requires_grad), self.limit)

    # values, aliasing, forms

    def values(self, dtype):
        try:
            samples = self.samples(dtype)
        except Exception as error:  # the database's own failure
            self.note("database", f"{dtype}: {error!r:.100}")
            return
        for index, sample in enumerate(samples):
            label = f"{str(dtype)[6:]} #{index} {describe(sample)}"
            plain = copy.deepcopy((sample.input, sample.args, sample.kwargs))
            args, kwargs = (sample.input, *sample.args), sample.kwargs
            memo: dict = {}
            our_args, our_kwargs = translate(args, memo), translate(dict(kwargs), memo)
            want, their_error = seeded(self.op.op, *args, **kwargs)
            if their_error is not None:
                continue
            self.counts["value"] += 1
            got, our_error = seeded(self.ours, *our_args, **our_kwargs)
            if our_error is not None:
                self.note("value", f"{label}: raises {explain(our_error)}")
                continue
            exact = None
            if dtype in WIDER:
                wide_args, wide_kwargs = widened((plain[0], *plain[1]), WIDER[dtype]), widened(plain[2], WIDER[dtype])
                exact, _ = seeded(self.op.op, *wide_args, **wide_kwargs)
            try:
                close(got, want, label, exact, self.unspecified)
            except Differs as failure:
                try:  # results defined only up to a sign or a phase
                    process = sample.output_process_fn_grad
                    close(translate(process)(got), process(want), label, None if exact is None else process(exact))
                except Exception:
                    if not self.tied(sample, got, want):
                        self.note("value", str(failure))
                        continue
            self.aliasing(label, memo, got, want)
            self.forms(label, plain, want, exact)

    def tied(self, sample, got, want) -> bool:
        """Whether results differ only in which of several equal elements they name."""
        if self.op.name not in TIES:
            return False
        try:
            if isinstance(want, (tuple, list)):
                close(got[0], want[0])
            else:  # argsort: the order of the elements that it names
                input, dim = (
                    sample.input,
                    (*sample.args, *([sample.kwargs["dim"]] if "dim" in sample.kwargs else []), -1)[0],
                )
                assert torch.equal(*(torch.take_along_dim(input, order, dim) for order in (back(got), want)))
        except (Differs, AssertionError):
            return False
        return True

    def aliasing(self, label, memo, got, want):
        """A result that shares memory with an input in PyTorch does in taeda, with the same strides; and the reverse."""
        for g, w in zip(tensors(got), tensors(want), strict=False):
            if w.numel() == 0 or w.layout != torch.strided:
                continue
            for ours, theirs in memo.values():
                if theirs.numel() == 0:
                    continue
                self.counts["view"] += 1
                here = g.untyped_storage().data_ptr() == ours.untyped_storage().data_ptr()
                there = w.untyped_storage().data_ptr() == theirs.untyped_storage().data_ptr()
                if here != there:
                    self.note("view", f"{label}: shares memory with an input {here}, in PyTorch {there}")
                elif there and not w.is_conj() and steps(g) != steps(w):
                    self.note("view", f"{label}: strides {tuple(g.stride())} instead of {tuple(w.stride())}")

    def forms(self, label, plain, want, exact):
        first, rest, kwargs = plain
        if self.op.supports_out and tensors(want) and "out" not in kwargs:
            room = [torch.empty_like(w) for w in tensors(want)]
            out = room[0] if isinstance(want, torch.Tensor) else tuple(room)
            self.form("out", label, self.op.op, (first, *rest), {**kwargs, "out": out}, exact)
        for kind, variant in (("inplace", self.op.inplace_variant), ("method", self.op.method_variant)):
            if variant is not None and isinstance(first, torch.Tensor):
                self.form(kind, label, variant, (first, *rest), kwargs, exact)

    def form(self, kind, label, fn, args, kwargs, exact):
        args, kwargs = copy.deepcopy((args, kwargs))
        try:
            ours = translate(fn)
        except Missing as error:
            if str(error) not in self.failures.get(kind, ()):
                self.note(kind, str(error))
            return
        memo: dict = {}
        our_args, our_kwargs = translate(args, memo), translate(kwargs, memo)
        want, their_error = seeded(fn, *args, **kwargs)
        got, our_error = seeded(ours, *our_args, **our_kwargs)
        self.counts[kind] += 1
        if their_error is not None:
            if our_error is None:
                self.note(kind, f"{label}: PyTorch raises {explain(their_error)}")
            return
        if our_error is not None:
            self.note(kind, f"{label}: raises {explain(our_error)}")
            return
        if want is None:
            return
        try:
            close(got, want, label, exact, self.unspecified)
            if kind == "inplace" and got is not our_args[0]:
                raise Differs(f"{label}: does not return its first argument")
        except Differs as failure:
            if "shape" in str(failure) or "dtype" in str(failure) or kind == "inplace":
                self.note(kind, str(failure))

    # gradients

    def gradients(self, dtype):
        try:
            samples = self.samples(dtype, requires_grad=True)
        except Exception as error:
            self.note("database", f"{dtype}: {error!r:.100}")
            return
        second = self.op.supports_gradgrad and dtype in (torch.float64, torch.complex128)
        for index, sample in enumerate(samples):
            label = f"{str(dtype)[6:]} #{index} {describe(sample)}"
            args, kwargs = leaves(((sample.input, *sample.args), dict(sample.kwargs)))
            memo: dict = {}
            our_args, our_kwargs = translate(args, memo), translate(kwargs, memo)
            process = sample.output_process_fn_grad
            try:
                our_process = translate(process)
            except Missing as error:
                self.note("gradient", f"{label}: {error}")
                continue
            want, their_error = seeded(
                differentiate, torch, lambda a, k, p=process: p(self.op.op(*a, **k)), args, kwargs, second
            )
            if their_error is not None:
                continue
            self.counts["gradient"] += 1
            got, our_error = seeded(
                differentiate, taeda, lambda a, k, p=our_process: p(self.ours(*a, **k)), our_args, our_kwargs, second
            )
            if our_error is not None:
                self.note("gradient", f"{label}: raises {explain(our_error)}")
                continue
            exact = None
            if dtype in WIDER and not second:
                wide = WIDER[dtype]
                exact, _ = seeded(
                    differentiate,
                    torch,
                    lambda a, k, p=process: p(self.op.op(*a, **k)),
                    grown(args, wide),
                    grown(kwargs, wide),
                    False,
                )
            for kind, g, w, e in zip(
                ("gradient", "second"), got, want, exact if exact is not None else (None, None), strict=True
            ):
                if w is None:
                    continue
                self.counts[kind] += kind == "second"
                try:
                    same_gradients(g, w, label, e)
                except Differs as failure:
                    if self.op.name in TIES and dtype in (torch.float16, torch.bfloat16):
                        continue  # many equal elements
                    self.note(kind, str(failure))

    # errors

    def errors(self):
        if self.op.error_inputs_func is None:
            return
        try:
            inputs = list(self.op.error_inputs("cpu"))
        except Exception as error:
            self.note("database", f"error inputs: {error!r:.100}")
            return
        for index, bad in enumerate(inputs):
            sample = bad.sample_input
            args, kwargs = (sample.input, *sample.args), sample.kwargs
            memo: dict = {}
            _, their_error = seeded(self.op.op, *args, **kwargs)
            if their_error is None or on_another_device(args, kwargs):
                continue
            self.counts["error"] += 1
            got = None
            converted, our_error = seeded(lambda a=args, k=kwargs, m=memo: (translate(a, m), translate(dict(k), m)))
            if our_error is None:  # otherwise the tensor itself is refused: too many dimensions
                got, our_error = seeded(self.ours, *converted[0], **converted[1])
            if our_error is None:
                self.note(
                    "error", f"#{index} {describe(sample)}: gives {got!r:.40}; PyTorch raises {explain(their_error)}"
                )
            elif not isinstance(our_error, kind_of(their_error)):
                self.note(
                    "error", f"#{index} {describe(sample)}: {explain(our_error)} instead of {explain(their_error)}"
                )


def kind_of(error):
    """PyTorch's subclasses of RuntimeError for its own use count as RuntimeError."""
    for kind in (IndexError, TypeError, ValueError, NotImplementedError, torch.linalg.LinAlgError):
        if isinstance(error, kind):
            return taeda.linalg.LinAlgError if kind is torch.linalg.LinAlgError else kind
    return RuntimeError if isinstance(error, RuntimeError) else type(error)


def on_another_device(args, kwargs) -> bool:
    return any(t.device.type != "cpu" for t in tensors([list(args), kwargs]))


def leaves(thing):
    """``thing`` with true leaves in place of views that were made without recording, of leaves that ask for gradients.

    PyTorch says that such a view asks for a gradient, and gives it none.
    """

    def leaf(x):
        half = isinstance(x, torch.Tensor) and x.requires_grad and x.is_leaf and x._is_view()
        return x.detach().requires_grad_() if half else x

    return mapped(leaf, thing)


def grown(thing, dtype):
    """A copy in another precision whose tensors ask for gradients where the originals do."""

    def grow(x):
        made = widened(x, dtype)
        return made.requires_grad_(x.requires_grad) if made is not x and isinstance(x, torch.Tensor) else made

    return mapped(grow, thing)


def differentiate(framework, call, args, kwargs, second):
    """Gradients of all inputs that ask for them, and of those gradients, for fixed gradients of the outputs."""
    leaves = [t for t in tensors([list(args), kwargs]) if t.requires_grad]
    outs = [t for t in tensors(call(args, kwargs)) if t.requires_grad]
    if not outs or not leaves:
        return None, None

    def like(t, k):
        count = math.prod(t.shape)
        wave = [math.cos(1.7 * i + 0.3 + k) for i in range(count)]
        dtype = getattr(framework, str(t.dtype).split(".")[-1])
        made = framework.tensor(wave, dtype=framework.float64).reshape(tuple(t.shape))
        return made.to(dtype) * (1 + 0.5j) if t.is_complex() else made.to(dtype)

    first = framework.autograd.grad(outs, leaves, [like(o, 0) for o in outs], create_graph=second, allow_unused=True)
    if not second:
        return first, None
    live = [g for g in first if g is not None and g.requires_grad]
    if not live:
        return first, None
    return first, framework.autograd.grad(live, leaves, [like(g, 1) for g in live], allow_unused=True)


def same_gradients(got, want, label, exact):
    exact = exact or [None] * len(want)
    if got is None:
        got = [None] * len(want)
    for k, (g, w, e) in enumerate(zip(got, want, exact, strict=True)):
        if g is None or w is None:
            other = w if g is None else g
            if other is not None and bool((other.abs() > 1e-12).any()):
                raise Differs(f"{label}: gradient {k} is {'missing' if g is None else 'not None'}")
            continue
        close(g, w, f"{label}: gradient {k}", e)


def steps(t) -> list:
    """Strides of the dimensions that have any."""
    return [stride for stride, size in zip(t.stride(), t.shape, strict=True) if size > 1]


def describe(sample) -> str:
    """The arguments of a sample, short."""

    def short(x):
        if isinstance(x, torch.Tensor):
            return f"{tuple(x.shape)}" + ("" if x.is_contiguous() else "~")
        if isinstance(x, (list, tuple)):
            return "[" + ", ".join(short(y) for y in x) + "]"
        return repr(x)

    parts = [short(x) for x in (sample.input, *sample.args)]
    parts += [f"{k}={short(v)}" for k, v in sample.kwargs.items()]
    return ("(" + ", ".join(parts) + ")")[:160]


def explain(error) -> str:
    where = traceback.extract_tb(error.__traceback__)
    place = f" at {where[-1].filename.rsplit('/', 1)[-1]}:{where[-1].lineno}" if where else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:140]}{place}"


def check(name: str, limit: int | None = None, dtypes=None) -> dict:
    """The outcome of one entry, as plain data."""
    op = entries()[name]
    done = Entry(op, limit, dtypes or DTYPES).run()
    return {
        "op": name,
        "family": family_of(op),
        "counts": done.counts,
        "failures": {kind: found[:12] for kind, found in done.failures.items()},
        "failed": {kind: len(found) for kind, found in done.failures.items()},
    }
