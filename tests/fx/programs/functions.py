"""The Node that a call of each public function makes with 1 to 4 Proxies."""

# ruff: noqa

import torch, inspect, types, torch.fx as fx, sys
import torch.nn.functional as F
import warnings

warnings.simplefilter("ignore")
for space, mod in (
    ("", torch),
    ("nn.functional", F),
    ("linalg", torch.linalg),
    ("fft", torch.fft),
    ("special", torch.special),
):
    for n in sorted(dir(mod)):
        if n.startswith(("_", "set_", "use_", "manual_seed")):  # they change settings of the process
            continue
        if n in ("result_type", "can_cast", "promote_types", "smm", "dsmm", "spmm"):  # of dtypes, and sparse tensors
            continue
        f = getattr(mod, n)
        if inspect.isclass(f) or inspect.ismodule(f) or not callable(f):
            continue
        for k in (1, 2, 3, 4):
            g = fx.Graph()
            tr = fx.proxy.GraphAppendingTracer(g)
            ps = [fx.Proxy(g.placeholder("p%d" % i), tr) for i in range(k)]
            try:
                o = f(*ps)
                if isinstance(o, fx.Proxy):
                    q = o.node
                    print(f"{space}.{n}/{k}", q.op, q.name, q._pretty_print_target(q.target), q.args, q.kwargs)
                else:
                    print(f"{space}.{n}/{k}", type(o).__name__)
            except BaseException as e:
                print(f"{space}.{n}/{k}", "ERR", type(e).__name__)
