"""Entries of the database on device far: results, gradients and second derivatives, bit for bit those of the CPU.

TAEDA_TARGET=lane python -m tests.conformance.opdb.far [REGEX [SAMPLES [PART/PARTS]]]     (0: all samples)

With TAEDA_TEST_DEVICE=cuda the entries run on that device, TAEDA_CUDA says which. A NaN is equal to any other there.

With TAEDA_TARGET=lane the CPU's kernels compute one element at a time as well, and the bits must be the same. Otherwise
sums differ in their order, and values must be close: that run finds what takes the processor's number of lanes for that
of the device. Entries run in another process, because reading memory of the device ends it.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import taeda
from taeda._core.random import draw_as_on

from ..trees import mapped
from .checks import UNSPECIFIED, explain, seeded, tensors
from .samples import chosen, dtype_of, plain_samples
from .translate import Missing, translate

DEVICE = os.environ.get("TAEDA_TEST_DEVICE", "far")
if DEVICE == "far":
    from taeda.testing.far import count_launches
else:
    from taeda.cuda._native import count_launches

#: Whether the CPU's kernels have one lane too.
EXACT = os.environ.get("TAEDA_TARGET") == "lane"

#: What gives a number or memory that holds anything, or changes the form alone.
NO_LAUNCH = {"item", "to", "empty", "empty_like", "new_empty", "new_empty_strided", "resize_", "resize_as_"}
#: Numbers drawn on the host and copied to the device.
DRAWN = set(
    "cauchy exponential geometric log_normal normal normal.in_place rand_like randint_like randn_like uniform".split()
)
#: Ops whose sums a GPU computes in another order, by other tiles: there values must be close.
CLOSE = set(
    "nn.functional.scaled_dot_product_attention nn.TransformerEncoder nn.TransformerEncoderLayer "
    "nn.TransformerDecoderLayer".split()
    if DEVICE != "far"
    else ()
)


def moved(thing):
    """``thing`` with tensors on the device in place of its tensors."""

    def there(x):
        if not isinstance(x, taeda.Tensor):
            return x
        return x.detach().to(DEVICE).requires_grad_(x.requires_grad)

    return mapped(there, thing)


def bits(t, exact=EXACT):
    """A key for comparing a tensor's elements: its bytes, in order; the elements themselves if they need only be close."""
    t = t.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if t.is_sparse or t.layout is not taeda.strided:
        return [bits(x, exact) for x in (t.coalesce().indices(), t.coalesce().values())]
    if not exact:
        return t
    if DEVICE != "far" and (t.is_floating_point() or t.is_complex()) and t.element_size() > 1:
        t = taeda.where(t.isnan(), taeda.full_like(t, float("nan")), t)
    elements = t.as_strided((t.numel(),), (1,))  # a stride of one element may be 0
    return str(t.dtype), tuple(t.shape), bytes(elements.view(taeda.uint8).tolist()) if t.numel() else b""


def has_elements(got):
    """Whether a result has elements."""
    return any(t[2] if isinstance(t, tuple) else len(t) if isinstance(t, list) else t.numel() for t in got[0])


def same(got, want, exact=EXACT):
    """Whether groups of tensors agree."""
    if exact:
        return got == want
    try:
        taeda.testing.assert_close(got, want, equal_nan=True, rtol=1e-4, atol=1e-5)
    except (AssertionError, ValueError):
        return False
    return True


def differentiated(made, given, smooth):
    """Gradients of the results, and of these: lists, None where there are none."""
    roots = [t for t in made if t.requires_grad]
    leaves = [t for t in tensors(given) if t.requires_grad]
    if not smooth or not roots or not leaves:
        return [], []
    first = taeda.autograd.grad(
        roots, leaves, [taeda.ones_like(t) for t in roots], allow_unused=True, create_graph=smooth > 1
    )
    again = [t for t in first if t is not None and t.requires_grad] if smooth > 1 else []
    if not again:
        return first, []
    return first, taeda.autograd.grad(again, leaves, [taeda.ones_like(t) for t in again], allow_unused=True)


def attempt(function, args, kwargs, smooth, exact=EXACT):
    """Results, gradients and second derivatives as bits, and their devices; or the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made, error = seeded(function, *args, **kwargs)
            if error is not None:
                return None, None, error
            made = tensors(made)
            found = [made, *differentiated(made, [list(args), kwargs], smooth)]
    except Exception as error:
        return None, None, error
    devices = {t.device.type for group in found for t in group if t is not None}
    return [[None if t is None else bits(t, exact) for t in group] for group in found], devices, None


def check(op, limit=1) -> list[str]:
    bad, dtype = [], dtype_of(op)
    if dtype is None:
        return []
    smooth = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    smooth = 2 if smooth and op.supports_gradgrad else int(smooth)
    try:
        function = translate(op.op)
    except Missing:
        return []  # opdb/broken.py lists them
    exact = EXACT and op.name not in CLOSE
    for sample in plain_samples(op, limit, dtype, requires_grad=bool(smooth)):
        args, kwargs = translate([sample.input, *sample.args]), translate(dict(sample.kwargs))
        label = str([tuple(t.shape) for t in tensors(args)])[:60]
        if any(str(v) == "cpu" for v in kwargs.values()):
            kwargs = {k: v for k, v in kwargs.items() if str(v) != "cpu"}
        want, _, refused = attempt(function, args, kwargs, smooth, exact)
        there = moved([args, kwargs])
        if not tensors(there):
            continue
        before = count_launches()
        got, devices, error = attempt(function, *there, smooth, exact)
        if got is None and want is None and type(error) is type(refused):
            continue
        if got is None or want is None:
            line = traceback.extract_tb(error.__traceback__)[-1] if error else None
            bad.append(f"{label}: raises {explain(error) if error else f'nothing; the CPU {explain(refused)}'} {line}")
        elif op.name in UNSPECIFIED:
            continue
        elif not same(got, want, exact):
            which = [
                n
                for n, a, b in zip(("results", "gradients", "second"), got, want, strict=True)
                if not same(a, b, exact)
            ]
            bad.append(f"{label}: other bits in {which}")
        elif "cpu" in devices and not any(str(x) == "cpu" for x in args):
            bad.append(f"{label}: results on {devices}")
        elif count_launches() == before and op.name not in NO_LAUNCH | DRAWN and has_elements(got):
            bad.append(f"{label}: nothing was launched")
    return bad


def apart(entries) -> Iterator[tuple[str, list[str]]]:
    """The name of each entry ``(name, function, *args)``, and the strings that the function gives.

    They run in another process. Where that ends, the entry says how, and another process goes on behind it.
    """
    at = 0
    while at < len(entries):
        with tempfile.TemporaryDirectory() as folder:
            said, trace = Path(folder, "said"), Path(folder, "trace")
            child = os.fork()
            if child == 0:
                _run(entries[at:], said, trace)
            _, status = os.waitpid(child, 0)
            found = [json.loads(line) for line in said.read_text().splitlines()]
            yield from zip([name for name, *_ in entries[at:]], found)  # noqa: B905 (the process may have ended)
            at += len(found)
            if at < len(entries):
                how = " ".join(trace.read_text().split("Extension modules")[0].split())
                yield entries[at][0], [f"ended ({os.waitstatus_to_exitcode(status)}): {how}"]
                at += 1


def _run(entries, said, trace):
    """Write what each entry gives, a line each, and end this process."""
    try:
        with open(said, "w") as lines, open(trace, "w") as crash:
            faulthandler.enable(crash)
            if DEVICE == "cuda":  # the CPU then draws as that device does
                draw_as_on(taeda.cuda.default_generators[0])
            for _, function, *args in entries:
                try:
                    found = function(*args)
                except Exception:
                    found = [traceback.format_exc()[-800:]]
                print(json.dumps([line.replace("\n", " ") for line in found]), file=lines, flush=True)
    finally:
        os._exit(0)


def report(entries) -> None:
    """Run entries, and print what differs."""
    differing = 0
    for name, lines in apart(entries):
        differing += bool(lines)
        for line in lines[:2]:
            print(f"{name}: {line[:700]}", flush=True)
    print(f"{len(entries) - differing} of {len(entries)} agree")


def main() -> None:
    part, _, parts = (sys.argv[3] if len(sys.argv) > 3 else "0/1").partition("/")
    report([(name, check, op, limit) for name, op, limit in chosen()][int(part) :: int(parts)])


if __name__ == "__main__":
    main()
