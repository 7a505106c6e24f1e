"""Devices that are not there: which names there are, and what is raised, against PyTorch without a GPU."""

import warnings

import pytest

import taeda

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")

NAMES = """cpu cuda cuda:0 cuda:1 mps xpu:0 xpu hip hip:0 meta meta:0 cpu:0 xla privateuseone ipu hpu mtia vulkan fpga
opencl ve lazy ideep maia gpu CPU cuda: cuda:a cuda:-1 cuda:01 cuda:0:1 cpu:-1 tpu npu""".split()
ARGUMENTS = [
    (0,), (1,), (-1,), ("cuda", 0), ("cuda", -1), ("cuda", "0"), ("cuda:0", 1), (None,), (1.5,), ("cpu", 0), ([],),
    (True,), (), ("",), (" cuda",),
]  # fmt: skip


def given(f, call):
    """The result as text, or the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(call(f)).replace("taeda", "torch")
        except Exception as error:
            return error


@pytest.mark.parametrize(
    "args",
    [("cpu",), ("cpu:0",), (True,), (False,), (True, True), ("cpu", True), (None, True), ("cpu", None, True),
     (float, True), (float, False, True), ("cpu", float, False, True)],
)  # fmt: skip
def test_to_by_position(args):
    """The dtype, the device, and whether it is a copy; a bool that comes first is a dtype."""

    def call(f):
        x, values = f.arange(3.0), [f.float32 if a is float else a for a in args]
        made = x.to(*values)
        return made.dtype, made.device, made is x

    want, got = given(torch, call), given(taeda, call)
    assert type(got) is type(want) and (got == want or isinstance(want, Exception))


def same(call):
    want, got = (given(f, call) for f in (torch, taeda))
    if isinstance(want, Exception):
        assert isinstance(got, type(want)), (want, got)
    else:
        assert got == want
    return want, got


@pytest.mark.parametrize("name", NAMES)
def test_names(name):
    same(lambda f: f.device(name))


@pytest.mark.parametrize("args", ARGUMENTS)
def test_arguments(args):
    same(lambda f: f.device(*args))


def test_comparisons():
    same(lambda f: [f.device(a) == f.device(b) for a, b in (("cuda", "cuda:0"), ("xpu:1", "xpu:1"), ("cpu", "meta"))])
    same(lambda f: [f.device("xpu:0").type, f.device("xpu:0").index, str(f.device("xpu:0")), f.device("hip").index])


MOVES = [  # positional and named arguments of `to`
    (("cpu",), {}),
    (("cpu", None, False, True), {}),
    ((), {"device": "cpu", "non_blocking": True}),
    ((), {"device": None, "dtype": "float32"}),
    ((), {"device": "cpu", "dtype": "float64", "copy": True}),
    (("cpu",), {"dtype": "complex64"}),
    ((), {"device": "cpu", "copy": True}),
    (("cpu",), {"memory_format": "channels_last"}),
    (("meta",), {}),
    ((), {"no_such": 1}),
    (([],), {}),
]


@pytest.mark.parametrize("args, kwargs", MOVES)
@pytest.mark.parametrize("kind", ["float32", "complex64"])
def test_moves_of_what_is_there(kind, args, kwargs):
    """The tensor itself where nothing changes, else a copy."""

    def moved(f):
        x = f.ones(1, 2, 2, 2, dtype=getattr(f, kind))
        named = {k: getattr(f, v) if k in ("dtype", "memory_format") else v for k, v in kwargs.items()}
        y = x.to(*args, **named)
        again = x.to(*[f.device(a) if isinstance(a, str) else a for a in args], **named)
        return [(z is x, z.dtype, z.device, z.stride()) for z in (y, again, x.cpu(), x.to(x), x.to(f.device("cpu")))]

    same(moved)


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "xpu", "xpu:0", "bad", 0, 1, -1])
def test_tensors_and_modules_there(name):
    for make in (
        lambda f: f.ones(2).to(name),
        lambda f: f.ones(2, device=name),
        lambda f: f.tensor([1.0], device=name),
        lambda f: f.rand(2, device=name),
        lambda f: f.nn.Linear(1, 1, device=name),
        lambda f: f.nn.Linear(1, 1).to(name),
    ):
        want, got = same(make)
        assert isinstance(want, Exception)
        if "not compiled" in str(want):
            assert str(got).startswith(str(want))


MOVES = {
    "cuda": lambda f: f.ones(1).cuda(),
    "cuda(0)": lambda f: f.ones(1).cuda(0),
    "xpu": lambda f: f.ones(1).xpu(),
    "module.cuda": lambda f: f.nn.Linear(1, 1).cuda(),
    "module.xpu": lambda f: f.nn.Linear(1, 1).xpu(),
    "current_device": lambda f: f.cuda.current_device(),
    "get_device_name": lambda f: f.cuda.get_device_name(),
    "synchronize": lambda f: f.cuda.synchronize(),
    "counts": lambda f: [f.cuda.is_available(), f.cuda.device_count(), f.xpu.is_available(), f.cuda.memory_allocated()],
    "pin_memory": lambda f: f.ones(1).pin_memory(),
    "is_pinned": lambda f: f.ones(1).is_pinned(),
    "pinned sparse": lambda f: f.eye(2).to_sparse().pin_memory(),
    "set_default_device": lambda f: f.set_default_device("bad"),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves(name):
    same(MOVES[name])


@pytest.mark.parametrize(
    "make",
    [
        lambda f: f.ones(2, pin_memory=True),
        lambda f: f.empty(2, pin_memory=True),
        lambda f: f.tensor([1], pin_memory=True),
        lambda f: f.rand(2, pin_memory=True),
        lambda f: f.full((2,), 1.0, pin_memory=True),
        lambda f: f.arange(2, pin_memory=True),
        lambda f: f.ones(1).new_zeros(2, pin_memory=True),
        lambda f: f.empty_like(f.ones(1), pin_memory=True),
        lambda f: f.zeros(2, pin_memory=False),
    ],
)
def test_pinned_memory(make):
    same(make)


@pytest.mark.parametrize("options", [{}, {"pin_memory_device": "cuda"}])
def test_a_loader_warns(options):
    told = []
    for f in (torch, taeda):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            loader = f.utils.data.DataLoader(f.utils.data.TensorDataset(f.ones(4)), 2, pin_memory=True, **options)
            assert [x.tolist() for (x,) in loader] == [[1, 1], [1, 1]]
        told.append([str(x.message) for x in found])
    assert told[0] == told[1]


def queues(t):
    """What events and streams of the CPU answer."""
    event, stream = t.Event(), t.Stream()
    yield lambda: (event.device.type, event.query(), event.synchronize(), event.wait(), event.event_id)
    yield lambda: (stream.device.type, stream.query(), stream.synchronize(), stream.stream_id, stream.is_capturing())
    yield lambda: stream == t.Stream("cpu") and hash(stream) == hash(t.Stream())
    yield lambda: stream.wait_event(event)
    yield lambda: (repr(t.Event("meta", enable_timing=True)).partition(".")[2], repr(stream).partition(".")[2])
    yield from (event.record, stream.record_event, lambda: stream.wait_stream(stream))
    yield lambda: event.elapsed_time(t.Event())
    yield lambda: t.Event("cuda")
    yield lambda: t.Stream("nonsense")
    yield lambda: t.Stream(0)
    yield lambda: t.Event(3.5)


def test_events_and_streams():
    def outcome(call):
        try:
            return call()
        except Exception as error:
            return type(error)

    for a, b in zip(queues(torch), queues(taeda), strict=True):
        assert outcome(a) == outcome(b)
