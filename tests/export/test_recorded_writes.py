"""Generated forwards that write to views: what each recorder makes of them gives eager's numbers in every run, or it
refuses when it records.

A forward makes a tensor ``b``, views it as ``v``, writes, and reads. The default run takes one of 97 combinations, and
the mark ``sweep`` all of those with the kinds of tensors in turn.
"""

from __future__ import annotations

import copy
import ctypes
import io
import itertools
import warnings

import numpy
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
BYTES = (
    """v.untyped_storage()[3]=65|v.untyped_storage().fill_(0)|v.untyped_storage()[:8].fill_(0)|v.storage()[0]=5
v.untyped_storage().copy_(taeda.zeros(8).untyped_storage())|v.storage().fill_(5)|numpy.asarray(v)[0]=7
numpy.frombuffer(memoryview(v),"f4")[0]=7|ctypes.memset(v.data_ptr(),0,4)|numpy.from_dlpack(v)[0]=2
taeda.from_dlpack(v).add_(1)|v.untyped_storage().resize_(64)|taeda.frombuffer(v,dtype=taeda.float32).add_(1)
taeda.empty(0).set_(v.untyped_storage()).add_(1)|taeda.from_numpy(v.numpy()).add_(1)|copy.copy(v).add_(1)
v.add_(copy.deepcopy(v))|v.add_(v.untyped_storage()[3])|v.add_(v.sum().item())|v.add_(1);v.mul_(v.tolist()[0][0])
v.mul_(2 if taeda.equal(v,taeda.arange(8.0).view(2,4)-1) else 3)|v.add_(1 if taeda.is_nonzero(v[0,1]) else 2)
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
STATES = """self.b=self.b+1|self.b=self.b+x|self.b=self.b.t()|self.b=taeda.cat([self.b,x])|self.b=self.b.double()+1
self.b=self.b.detach();self.b.add_(1)|self.b,self.e=self.e,self.b|self.b=self.p.detach();self.b.add_(1)|self.b=x
self.c=self.c+1|self.l[0]=self.l[0]+1;x=x+self.l[0]|self.register_buffer("n",getattr(self,"n",x)*2);x=x+self.n
self.p=nn.Parameter(self.p+1)|self.double();x=x+self.b|self.half();x=x+self.b|self.to(taeda.float64)
self.p.requires_grad_(False)|self.b=taeda.sum(x)|taeda.sum(x,out=self.b)|taeda.sum(x,out=self.c)|taeda.add(x,1,out=self.c)
self.state_dict()["b"].add_(1)|self.load_state_dict({k:q*2 for k,q in self.state_dict().items()})
self._buffers["b"]=self.b*2|vars(self)["c"]=self.c*2;x=x+self.c|self.p.grad=x*1;x=x+self.p.grad
x.add_(1);self.b.copy_(x)|self.c.swapaxes_(0,1)|self.b.t_()|self.p.data.t_()""".replace("\n", "|").split("|")
PAIRS = """x.add_(1);return x*y,y*1|y.add_(1);return x*y,x*1|x.mul_(2);y.add_(1);return x,y|return x,y,x|return x*y,y
v=x[0];y.add_(1);return v*1,x|x.copy_(y+1);return x,y*1|self.b.add_(1);x.add_(1);return x*1,y*1,self.b*1
x[0]=y[1];return x*1,y*1|x.set_(y.clone()*2);return x*1,y*1|x.t_();return x*1,y*1""".replace("\n", "|").split("|")
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
        self.l = [taeda.ones(2, 4)]
        self.register_buffer("b", taeda.arange(8.0).view(2, 4) - 2)
        self.register_buffer("e", taeda.ones(2, 4))
        self.register_buffer("z", taeda.complex(taeda.arange(8.0).view(2, 4), taeda.arange(8.0).view(2, 4) - 2))


def model(make, view, write, read):
    lines = [f"b = {make}", f"v = {view}", "u = b[1:]", "early = b * 2", *write.split(";"), f"return {read}"]
    return net("self, x", lines)


def net(parameters, lines):
    space = {"taeda": taeda, "nn": nn, "numpy": numpy, "ctypes": ctypes, "copy": copy}
    exec(f"def forward({parameters}):\n    " + "\n    ".join(lines), space)
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
    """What ``record``, which runs ``net``, gives; the elements of the state of ``net`` are as before."""
    state = {name: getattr(net, name).detach().clone() for name in "pcbz"}
    made = record()
    for name, value in state.items():
        getattr(net, name).data.copy_(value)
    return made


def example():
    return (X[0].clone(),)


RECORDERS = {
    "export": lambda net, given=None: export.export(net, given or example()).module(),
    "decomposed": lambda net, given=None: export.export(net, given or example()).run_decompositions().module(),
    "pt2": lambda net, given=None: read_back(export.export(net, given or example())),
    "make_fx": lambda net, given=None: as_before(net, lambda: make_fx(net)(*(given or example()))),
    "trace": lambda net, given=None: as_before(
        net, lambda: taeda.jit.trace(net, given or example(), check_trace=False)
    ),
    "compile": lambda net, given=None: taeda.compile(net, backend=lambda module, args: module),
}


def check(make, view, write, read):
    """Whether eager runs the forward; else there is nothing to compare with."""
    kind = model({**REAL, **COMPLEX}[make], view, write, read)
    try:
        want = observed(kind())
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return
    for name, record in RECORDERS.items():
        try:
            program = record(kind())
            got = observed(program) if name == "compile" else None  # it records when it is called
        except (RuntimeError, NotImplementedError, ValueError, BufferError, taeda.jit.TracerWarning):
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


@pytest.fixture
def no_warnings():
    """A trace says by a warning what it does not record."""
    with warnings.catch_warnings(), taeda.no_grad():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", taeda.jit.TracerWarning)
        yield


@pytest.mark.parametrize("write", BYTES)
def test_writes_and_reads_past_the_ops(write, no_warnings):
    for make in ("attribute", "buffer", "input", "computed", "new"):
        check(make, "b", write, "b * 1, v * 1, self.c * 1, self.b * 1")


@pytest.mark.parametrize("write", STATES)
def test_state_that_changes(write, no_warnings):
    check("buffer", "b", write, "x * self.b, self.c * 1, self.p * 1, b * 1")


SHARED = {
    "same": lambda x: (x, x), "view": lambda x: (x, x.view(2, 4)), "part": lambda x: (x, x[:1]),
    "distinct": lambda x: (x, x * 2),
}  # fmt: skip


@pytest.mark.parametrize("example, given", [*itertools.product(SHARED, SHARED)])
def test_arguments_that_share_memory(example, given, no_warnings):
    if "part" in (example, given) and example != given:
        return  # of other sizes

    def seen(program):
        arguments = SHARED[given](X[1].clone())
        return [(values(program(*arguments)), values(arguments)) for _ in range(2)]

    for body in PAIRS:
        kind = net("self, x, y", body.split(";"))
        try:
            want = seen(kind())
        except (RuntimeError, IndexError):
            continue
        for name, record in RECORDERS.items():
            module = kind()
            try:
                program = record(module, SHARED[example](X[0].clone()))
                got = seen(program)
            except (RuntimeError, NotImplementedError):
                continue
            assert got == want, (name, body)


def test_decomposed_programs_refuse_arguments_that_share_what_they_write():
    made = export.export(net("self, x, y", ["x.add_(1)", "return x * y"])(), (X[0].clone(), X[1].clone()))
    x = X[0].clone()
    assert made.module()(x, x).equal((X[0] + 1) ** 2)
    with pytest.raises(RuntimeError, match="shares memory with another argument"):
        made.run_decompositions().module()(x, x)


def test_sizes_that_follow_from_values_of_constants():
    def forward(self, x):
        return x * taeda.tensor([1.0, 0.0, 2.0]).nonzero().numel(), taeda.tensor([3, 3, 1]).unique() + x[0, 0]

    module = type("Net", (State,), {"forward": forward})()
    for name in ("export", "decomposed", "pt2"):
        assert values(RECORDERS[name](module)(X[1])) == values(module(X[1])), name


def test_sizes_in_place_that_may_be_more_or_fewer():
    def forward(self, x):
        y = x * 1
        y.resize_(x.shape[0] * 3, 2)
        return y.shape[0] * x

    module = type("Net", (State,), {"forward": forward})()
    made = export.export(module, (taeda.ones(3, 4),), dynamic_shapes=({0: export.Dim("n", min=3, max=9)},))
    with pytest.raises(RuntimeError, match=r"'resize_' has no form without writes for all sizes(.|\n)*y.resize_"):
        made.run_decompositions()


def run(combinations, kinds=None, times=1):
    """Check forwards; the kind of tensor and what is read change from one to the next."""
    makes = list(kinds or {**REAL, **COMPLEX})
    with warnings.catch_warnings(), taeda.no_grad():
        warnings.simplefilter("ignore")
        for i, (view, write) in enumerate(combinations):
            for k in range(times):
                check(makes[(i + 5 * k) % len(makes)], view, write, READS[(i + k) % len(READS)])
