"""Generated forwards that write to views: what each recorder makes of them gives eager's numbers in every run, or it
refuses when it records.

A forward makes a tensor ``b``, views it as ``v``, writes, and reads. The default run takes one of 97 combinations, and
the mark ``sweep`` all of those with the kinds of tensors in turn.
"""

from __future__ import annotations

import io
import itertools
import warnings

import pytest

import taeda
from taeda import export, nn
from taeda.fx.experimental.proxy_tensor import make_fx

REAL = {
    "parameter": "self.p", "buffer": "self.b", "attribute": "self.c", "input": "x", "computed": "x * 1",
    "constant": "taeda.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])", "empty": "taeda.empty(2, 4).fill_(3)",
    "new": "x.new_ones(2, 4)", "like": "taeda.full_like(x, 2.0)", "range": "taeda.arange(8.0).view(2, 4)",
    "strided": "(x * 2).t().contiguous().t()",
}  # fmt: skip
COMPLEX = {
    "complex buffer": "self.z", "complex": "taeda.complex(x, x + 1)", "as_complex": "taeda.view_as_complex(x.view(-1, 2))",
    "complex constant": "taeda.tensor([[1 + 1j, 2 - 1j, 3j, 4], [5, 6j, 7 - 1j, 8]])",
}  # fmt: skip
STATE = ("parameter", "buffer", "attribute", "complex buffer")
FORMS = ("unsqueeze_", "squeeze_", ".t_", "as_strided_", "resize_(2)", "set_")
VIEWS = """b b[0] b[:,1:3] b[:,::2] b[None] b.select(1,2) b.T b.mH b.adjoint() b.permute(1,0) b.view(-1) b.flatten()
b.unflatten(-1,(2,2)) b[None].expand(3,2,4)[1] b.view(taeda.int32) b.view(taeda.uint8) b.view(taeda.complex64)
b.view(taeda.float32) b.real b.imag taeda.view_as_real(b) taeda.view_as_complex(b.view(-1,2)).imag b.conj()
b.conj().imag b.conj().real b.resolve_conj() b.conj().resolve_conj() b.conj().imag[0] b.diagonal()
b.unfold(1,2,2) b.as_strided((2,2),(4,1),1) b.detach() b.data b.split(2,1)[1] b.chunk(2,1)[0] b.unbind(0)[1]
b.narrow(1,1,2) b[:1].squeeze(0) b.contiguous() b.to(b.dtype) b.t()[1:].view(taeda.int32)[0] b.detach()[:,1:].t()
b.view(4,2).unbind(1)[0][1:] b.squeeze()""".split()
WRITES = """v.add_(2)|v.mul_(3)|v.copy_(v.flip(0)+1)|v.copy_(x.sum())|v[:1]=5|v[...]=7|v[v>2]=1|v[[0]]=4|v[0]=x.sum()
v.index_put_((taeda.tensor([0]),),v[0]+1)|v.index_add_(0,taeda.tensor([0]),v[:1])|v.masked_fill_(v>2,1)|v.fill_(4)
v.scatter_(0,taeda.zeros(v.shape,dtype=taeda.int64)[:1],9)|taeda.mul(v,2,out=v)|v.set_(v.clone()*2)|v.zero_()
v.data=v.clone()*2|b.data=b.clone()*2;v.add_(1)|b.set_(b.clone()*2);v.add_(1)|v.resize_(v.shape)|v.resize_(2);v.fill_(1)
v.unsqueeze_(0);v.add_(1)|v.t_();v.add_(1)|v.as_strided_((2,),(1,));v.add_(1)|v.detach_();v.add_(1)|v.squeeze_();v.add_(1)
taeda._foreach_mul_([v,v],2)|v.normal_()|nn.functional.leaky_relu(v,0.5,inplace=True)|v.conj_physical_()|v.copy_(v.conj())
v.data.add_(2)|v.detach().mul_(2)|b.add_(1);v.mul_(2);b[0]=3|w=v.view(-1);v.add_(1);w.mul_(2)|v.real.add_(2)|v.mH.mul_(2)
v.imag.fill_(2)|v.view(taeda.int32).bitwise_and_(0x7fff0000)|taeda.utils.swap_tensors(v,v.clone()*2)|v.numpy()[...]=3
v.apply_(lambda q:q+1)""".replace("\n", "|").split("|")
READS = ["b * 1, v * 1, u * 1, early", "b, v", "v * 1, b * 1", "b.new_full(b.shape, 2), v.shape[0] * x"]
X = [
    taeda.tensor([[1.5, -2.0, 3.0, 0.5], [2.0, 4.0, -1.0, 6.0]]),
    taeda.tensor([[0.5, 2.0, -3.0, 1.5], [1.0, -4.0, 7.0, 2.0]]),
]


class State(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(taeda.arange(8.0).view(2, 4) - 3)
        self.c = taeda.arange(8.0).view(2, 4) - 1
        self.register_buffer("b", taeda.arange(8.0).view(2, 4) - 2)
        self.register_buffer("z", taeda.complex(taeda.arange(8.0).view(2, 4), taeda.arange(8.0).view(2, 4) - 2))


def model(make, view, write, read):
    lines = [f"b = {make}", f"v = {view}", "u = b[1:]", "early = b * 2", *write.split(";"), f"return {read}"]
    space = {"taeda": taeda, "nn": nn}
    exec("def forward(self, x):\n    " + "\n    ".join(lines), space)
    return type("Net", (State,), {"forward": space["forward"]})


def values(result):
    parts = result if isinstance(result, tuple) else (result,)
    return [(tuple(t.shape), t.dtype, repr(t.detach().resolve_conj().resolve_neg().tolist())) for t in parts]


def observed(program):
    """What three calls give, and their arguments afterwards."""
    seen = []
    for x in (X[0], X[1], X[0]):
        x = x.clone()
        taeda.manual_seed(3)
        seen.append((values(program(x)), values(x)))
    return seen


def read_back(made):
    file = io.BytesIO()
    export.save(made, file, format="pt2")
    file.seek(0)
    return export.load(file).module()


def as_before(net, record):
    """What ``record``, which runs ``net``, gives; the state of ``net`` is as before."""
    state = {name: getattr(net, name).detach().clone() for name in "pcbz"}
    made = record()
    for name, value in state.items():
        if getattr(net, name).shape != value.shape:
            raise RuntimeError("the state has another form")
        getattr(net, name).data.copy_(value)
    return made


RECORDERS = {
    "export": lambda net: export.export(net, (X[0],)).module(),
    "decomposed": lambda net: export.export(net, (X[0],)).run_decompositions().module(),
    "pt2": lambda net: read_back(export.export(net, (X[0],))),
    "make_fx": lambda net: as_before(net, lambda: make_fx(net)(X[0].clone())),
    "trace": lambda net: as_before(net, lambda: taeda.jit.trace(net, (X[0].clone(),), check_trace=False)),
    "compile": lambda net: taeda.compile(net, backend=lambda module, args: module),
}


def check(make, view, write, read):
    """Whether eager runs the forward; else there is nothing to compare with."""
    if make in STATE and any(change in write for change in FORMS):
        return  # state of another form, or memory, in the next run
    kind = model({**REAL, **COMPLEX}[make], view, write, read)
    try:
        want = observed(kind())
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return
    for name, record in RECORDERS.items():
        try:
            program = record(kind())
            got = observed(program) if name == "compile" else None  # it records when it is called
        except (RuntimeError, NotImplementedError, ValueError):
            continue
        assert (observed(program) if got is None else got) == want, (name, make, view, write, read)


COMBINATIONS = list(itertools.product(VIEWS, WRITES))


@pytest.mark.parametrize("start", range(0, 97, 8))
def test_sample(start):
    run(COMBINATIONS[start::97])


@pytest.mark.sweep
@pytest.mark.parametrize("view", VIEWS)
def test_sweep(view):
    for kinds in (REAL, COMPLEX):
        run([c for c in COMBINATIONS if c[0] == view], kinds, 3)


def run(combinations, kinds=None, times=1):
    """Check forwards; the kind of tensor and what is read change from one to the next."""
    makes = list(kinds or {**REAL, **COMPLEX})
    with warnings.catch_warnings(), taeda.no_grad():
        warnings.simplefilter("ignore")
        for i, (view, write) in enumerate(combinations):
            for k in range(times):
                check(makes[(i + 5 * k) % len(makes)], view, write, READS[(i + k) % len(READS)])
