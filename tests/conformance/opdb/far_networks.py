"""Modules and optimisers of PyTorch's databases on device far: results, gradients, state, bit for bit those of the CPU.

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
from .far import bits, moved, report, same
from .translate import translate


def outcome(function, *args):
    """Tensors as bits, or the error, and the devices."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, error = seeded(function, *args)
    if error is not None:
        return None, set(), error
    return [bits(t) for t in made], {t.device.type for t in made}, None


def compare(label, here, there) -> list[str]:
    """What differs between the outcomes on the CPU and on far."""
    (want, _, refused), (got, devices, error) = here, there
    if got is None or want is None:
        if type(error) is type(refused):
            return []
        return [f"{label}: raises {explain(error) if error else f'nothing; the CPU {explain(refused)}'}"]
    if not same(got, want):
        return [f"{label}: other bits in {[k for k, (g, w) in enumerate(zip(got, want, strict=True)) if g != w]}"]
    return [f"{label}: results on {devices}"] if devices - {"far"} else []


def pass_both_ways(module, args, kwargs):
    """The results of a module, the gradients of its inputs and parameters, its buffers."""
    made = [t for t in tensors(module(*args, **kwargs)) if t.numel()]
    leaves = [t for t in [*tensors([args, kwargs]), *module.parameters()] if t.requires_grad]
    roots = [t for t in made if t.requires_grad]
    found = taeda.autograd.grad(roots, leaves, [taeda.ones_like(t) for t in roots], allow_unused=True) if roots else []
    return [*made, *(t for t in found if t is not None), *module.buffers()]


def check_module(name, limit) -> list[str]:
    info, bad = modules.ENTRIES[name], []
    for training in (True, False):
        for sample in modules.inputs(info, training=training, requires_grad=True, limit=limit):
            ours, _ = modules.pair(info, sample, training=training)
            args, kwargs = modules.call(sample.forward_input, "taeda")
            there = copy.deepcopy(ours).to("far")
            bad += compare(f"{sample.desc} {'training' if training else 'evaluation'}",
                           outcome(pass_both_ways, ours, args, kwargs),
                           outcome(pass_both_ways, there, *moved([args, kwargs])))  # fmt: skip
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
        for device in ("cpu", "far"):
            params = [taeda.nn.Parameter(p.detach().to(device)) for p in optimisers.parameters(taeda, sparse)]
            kwargs = {key: translate(v) for key, v in copy.deepcopy(sample.kwargs).items()}
            kwargs = moved(kwargs) if device == "far" else kwargs
            found.append(outcome(lambda p=params, w=kwargs: steps(getattr(taeda.optim, name)(p, **w), p, sparse)))
        bad += compare(f"sample {k}", *found)
    return bad


def main() -> None:
    pattern = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    limit = (int(sys.argv[2]) if len(sys.argv) > 2 else 1) or sys.maxsize
    checks = {**dict.fromkeys(modules.ENTRIES, check_module), **dict.fromkeys(optimisers.ENTRIES, check_optimiser)}
    report([(name, check, name, limit) for name, check in checks.items() if pattern.search(name)])


if __name__ == "__main__":
    main()
