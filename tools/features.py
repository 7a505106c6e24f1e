"""Measures the columns of ``docs/features.md``: a short program for each row, run with taeda and with PyTorch.

    python tools/features.py          # print what each program does with both, beside what the page says
    python tools/features.py --check  # exit 1 where the page says yes and a program fails, or no and it runs

Rows that need another machine, a network or a device are not measured; nor is how much of it works where the page says
"in part".
"""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

#: By row of the page: a program, in which ``T`` is the package, ``nn`` its layers and ``folder`` a place for files.
PROGRAMS = {
    "device `meta`": "assert (T.ones(2, device='meta') + 1).shape == (2,)",
    "floating point, complex, integers, bool": """
for d in (T.float16, T.bfloat16, T.float32, T.float64, T.complex64, T.int8, T.int64, T.bool): T.ones(3, dtype=d) * 1""",
    "unsigned integers of 16 to 64 bits": """
a = T.ones(3, dtype=T.uint32); assert (a + a).sum() == 6; assert T.sort(a)[0].dtype == T.uint32""",
    "quantised tensors": "T.quantize_per_tensor(T.ones(3), 0.1, 0, T.qint8)",
    "sparse: COO, CSR, CSC, BSR, BSC": """
x = T.eye(4)
for y in (x.to_sparse(), x.to_sparse_csr(), x.to_sparse_csc(), x.to_sparse_bsr((2, 2)), x.to_sparse_bsc((2, 2))):
    assert T.equal(y.to_dense(), x)""",
    "nested (jagged)": """
x = T.nested.nested_tensor([T.ones(2), T.ones(3)], layout=T.jagged); assert (x * 2).unbind()[1].sum() == 6""",
    "masked": """
x = T.masked.masked_tensor(T.ones(2), T.tensor([True, False])); assert x.sum().get_data() == 1""",
    "named dimensions": "assert T.ones(2, 3, names=('a', 'b')).sum('a').shape == (3,)",
    "negative steps, `a[::-1]`": "assert T.arange(3)[::-1].tolist() == [2, 1, 0]",
    "NumPy's functions with derivatives": """
import numpy as np
x = T.ones(2, requires_grad=True); np.stack([np.sin(x), x]).sum().backward()""",
    "reverse mode, higher derivatives, hooks": """
x = T.tensor(2.0, requires_grad=True); x.register_hook(lambda g: g * 1)
(g,) = T.autograd.grad(x**3, x, create_graph=True); assert T.autograd.grad(g, x)[0] == 12""",
    "forward mode": "assert T.func.jvp(T.exp, (T.zeros(1),), (T.ones(1),))[1] == 1",
    "`vmap`, `grad`, `jacrev`, `jacfwd`, `hessian`": """
f = lambda x: (x**3).sum()
x = T.ones(2); assert T.equal(T.func.hessian(f)(x), 6 * T.eye(2)); T.func.jacrev(f)(x); T.func.jacfwd(f)(x)
assert T.vmap(T.func.grad(f))(T.ones(3, 2)).shape == (3, 2)""",
    "checkpoints (`utils.checkpoint`)": """
from importlib import import_module
run = import_module(T.__name__ + '.utils.checkpoint').checkpoint
x = T.ones(2, requires_grad=True); run(T.sin, x, use_reentrant=False).sum().backward()""",
    "a step is checked for silent mistakes": "T.utils.check_step",
    "layers, losses, optimisers, schedules": """
m = nn.Linear(2, 1); o = T.optim.AdamW(m.parameters()); s = T.optim.lr_scheduler.StepLR(o, 1)
nn.functional.mse_loss(m(T.ones(3, 2)), T.ones(3, 1)).backward(); o.step(); s.step()""",
    "`autocast`, `GradScaler`": """
with T.autocast('cpu', dtype=T.bfloat16): assert nn.Linear(2, 2)(T.ones(1, 2)).dtype == T.bfloat16
T.amp.GradScaler('cpu')""",
    "`DataLoader` with worker processes": """
from importlib import import_module
data = import_module(T.__name__ + '.utils.data')
assert len(list(data.DataLoader(data.TensorDataset(T.arange(6)), batch_size=2, num_workers=1))) == 3""",
    "FlexAttention": """
from importlib import import_module
flex = import_module(T.__name__ + '.nn.attention.flex_attention').flex_attention
flex(*(T.ones(1, 1, 4, 8),) * 3, score_mod=lambda s, b, h, q, k: s)""",
    "pruning, parametrisations, averaged weights": """
from importlib import import_module
import_module(T.__name__ + '.nn.utils.prune').l1_unstructured(nn.Linear(2, 2), 'weight', 1)
nn.utils.parametrizations.orthogonal(nn.Linear(2, 2)); T.optim.swa_utils.AveragedModel(nn.Linear(2, 2))""",
    "summaries and pictures of models": "T.utils.summary(nn.Linear(2, 2), T.ones(1, 2)), T.utils.draw",
    "profiler": """
with T.profiler.profile() as p: T.ones(3) + 1
assert len(p.key_averages())""",
    "checkpoints of PyTorch, safetensors": """
T.save({'x': T.ones(2)}, folder + '/a.pt'); assert T.load(folder + '/a.pt')['x'].sum() == 2""",
    "`.pt2` (`export`)": """
p = T.export.export(nn.Linear(2, 2), (T.ones(1, 2),)); T.export.save(p, folder + '/a.pt2')
T.export.load(folder + '/a.pt2')""",
    "ONNX, read": "T.onnx.load",
    "TorchScript, read and written": """
m = T.jit.trace(nn.Linear(2, 2), T.ones(1, 2)); T.jit.save(m, folder + '/m.pt')
T.jit.load(folder + '/m.pt')(T.ones(1, 2))""",
    "`fx`": """
from importlib import import_module
import_module(T.__name__ + '.fx').symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))(T.ones(1, 2))""",
    "quantisation": """
from importlib import import_module
q = import_module(T.__name__ + '.ao.quantization'); q.quantize_dynamic(nn.Sequential(nn.Linear(2, 2)))(T.ones(1, 2))""",
    "`library.custom_op`, `autograd.Function`": """
f = T.library.custom_op('features::twice', mutates_args=(), schema='(Tensor x) -> Tensor')(lambda x: x * 2)
assert f(T.ones(2)).sum() == 4""",
    "a formula as a fused kernel, with its derivative": "T.kernel.elementwise",
    "a C function by its declaration": "T.library.bind",
    "`__torch_function__`, `__torch_dispatch__`": """
class Own(T.Tensor): pass
assert type(T.ones(2).as_subclass(Own) + 1) is Own""",
}


def said() -> dict[str, tuple[str, str]]:
    """What the page says, by row: of taeda and of PyTorch."""
    rows = [line.strip("|\n ").split("|") for line in (ROOT / "docs/features.md").read_text().splitlines()]
    return {row[0].strip(): (row[1].strip(), row[2].strip()) for row in rows if len(row) >= 3}


def runs(package: str, program: str) -> str:
    """An empty text where ``program`` runs with ``package``, else its error."""
    T = importlib.import_module(package)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            exec(program, {"T": T, "nn": importlib.import_module(f"{package}.nn"), "folder": folder})
        except Exception as error:
            return f"{type(error).__name__}: {error}".partition("\n")[0] or "error"
    return ""


def wrong(packages: tuple[str, ...]) -> list[str]:
    """Rows whose programs do otherwise than the page says, each with what happened."""
    page, found = said(), []
    for row, program in PROGRAMS.items():
        for package, word in zip(packages, page[row], strict=False):
            error = runs(package, program)
            print(f"{row:52} {package:6} page: {word:8} {error[:90] or 'runs'}")
            if (word == "yes" and error) or (word == "no" and not error):
                found.append(f"{row}: the page says {word!r} of {package}, and its program {error or 'runs'}")
    return found


if __name__ == "__main__":
    mistakes = wrong(("taeda", "torch"))
    print("\n".join(mistakes))
    sys.exit(bool(mistakes) and "--check" in sys.argv)
