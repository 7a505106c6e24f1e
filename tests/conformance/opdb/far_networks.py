"""Modules and optimisers of PyTorch's databases on another device: results, gradients, state, bit for bit those of the CPU.

TAEDA_TARGET=lane python -m tests.conformance.opdb.far_networks [REGEX [SAMPLES]]     (0: all samples; see far.py)
"""

from __future__ import annotations

import copy
import re
import sys
import warnings

import taeda

from .. import test_module_db as modules
from .. import test_optim_db as optimisers
from .checks import explain, seeded, tensors
from .far import CLOSE, DEVICE, EXACT, bits, moved, report, same
from .translate import translate


def outcome(exact, function, *args):
    """Tensors as bits (or as they are, if they need only be close), or the error, and the devices."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, error = seeded(function, *args)
    if error is not None:
        return None, set(), error
    return [bits(t, exact) for t in made], {t.device.type for t in made}, None


def compare(label, here, there, exact=EXACT) -> list[str]:
    """What differs between the outcomes on the CPU and on the device."""
    (want, _, refused), (got, devices, error) = here, there
    if got is None or want is None:
        if type(error) is type(refused):
            return []
        return [f"{label}: raises {explain(error) if error else f'nothing; the CPU {explain(refused)}'}"]
    if len(got) != len(want):
        return [f"{label}: {len(got)} results, not {len(want)}"]
    other = [k for k, (g, w) in enumerate(zip(got, want, strict=True)) if not same(g, w, exact)]
    if other:
        return [f"{label}: other bits in {other}"]
    return [f"{label}: results on {devices}"] if devices - {DEVICE} else []


def pass_both_ways(module, args, kwargs):
    """The results of a module, the gradients of its inputs and parameters, its buffers."""
    made = [t for t in tensors(module(*args, **kwargs)) if t.numel()]
    leaves = [t for t in [*tensors([args, kwargs]), *module.parameters()] if t.requires_grad]
    roots = [t for t in made if t.requires_grad]
    found = taeda.autograd.grad(roots, leaves, [taeda.ones_like(t) for t in roots], allow_unused=True) if roots else []
    return [*made, *(t for t in found if t is not None), *module.buffers()]


def check_module(name, limit) -> list[str]:
    info, bad, exact = modules.ENTRIES[name], [], EXACT and name not in CLOSE
    for training in (True, False):
        for sample in modules.inputs(info, training=training, requires_grad=True, limit=limit):
            ours, _ = modules.pair(info, sample, training=training)
            args, kwargs = modules.call(sample.forward_input, "taeda")
            there = copy.deepcopy(ours).to(DEVICE)
            bad += compare(f"{sample.desc} {'training' if training else 'evaluation'}",
                           outcome(exact, pass_both_ways, ours, args, kwargs),
                           outcome(exact, pass_both_ways, there, *moved([args, kwargs])), exact)  # fmt: skip
    return bad


def steps(optimiser, params, sparse):
    """Parameters and state after five steps."""
    optimisers.run(optimiser, taeda, params, sparse, 5)
    state = [v for p in params for v in optimiser.state[p].values()] if not sparse else []
    return [*params, *(v for v in tensors(state) if v.dim())]


def check_optimiser(name, limit) -> list[str]:
    info, bad = optimisers.ENTRIES[name], []
    sparse = info.only_supports_sparse_grads
    for k, sample in enumerate(optimisers.samples(name)[:limit]):
        found = []
        for device in ("cpu", DEVICE):
            params = [taeda.nn.Parameter(p.detach().to(device)) for p in optimisers.parameters(taeda, sparse)]
            kwargs = {key: translate(v) for key, v in copy.deepcopy(sample.kwargs).items()}
            kwargs = moved(kwargs) if device == DEVICE else kwargs
            found.append(
                outcome(EXACT, lambda p=params, w=kwargs: steps(getattr(taeda.optim, name)(p, **w), p, sparse))
            )
        bad += compare(f"sample {k}", *found)
    return bad


def main() -> None:
    pattern = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    limit = (int(sys.argv[2]) if len(sys.argv) > 2 else 1) or sys.maxsize
    checks = {**dict.fromkeys(modules.ENTRIES, check_module), **dict.fromkeys(optimisers.ENTRIES, check_optimiser)}
    report([(name, check, name, limit) for name, check in checks.items() if pattern.search(name)])


if __name__ == "__main__":
    main()
