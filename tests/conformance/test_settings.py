"""Settings, facts about types, and constructors of PyTorch's early days: the same text from each expression."""

import threading

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

#: Evaluated in turn in one new interpreter: they set what later ones ask for.
SETTINGS = """
torch.is_signed(torch.ones(1))
torch.is_signed(3)
torch.get_device(torch.ones(1))
torch.get_default_device()
torch.set_default_device(None)
torch.set_default_device('foo')
torch.set_default_tensor_type('torch.DoubleTensor')
torch.get_default_dtype()
torch.set_default_tensor_type(torch.FloatTensor)
torch.set_default_tensor_type('torch.LongTensor')
torch.set_default_tensor_type('torch.Foo')
torch.set_default_tensor_type(torch.HalfTensor)
torch.get_default_dtype()
torch.set_default_tensor_type(torch.FloatTensor)
torch.set_default_dtype(torch.int32)
torch.set_default_dtype(3)
torch.set_default_dtype(torch.complex64)
torch.use_deterministic_algorithms(True)
torch.are_deterministic_algorithms_enabled()
torch.get_deterministic_debug_mode()
torch.empty(3)
torch.empty(3,dtype=torch.int64)
torch.empty(2,dtype=torch.bool)
torch.empty(2,dtype=torch.complex64)
torch.use_deterministic_algorithms(False)
torch.use_deterministic_algorithms(True, warn_only=True)
torch.get_deterministic_debug_mode()
torch.is_deterministic_algorithms_warn_only_enabled()
torch.set_deterministic_debug_mode('error')
torch.get_deterministic_debug_mode()
torch.set_deterministic_debug_mode(1)
torch.set_deterministic_debug_mode('x')
torch.set_deterministic_debug_mode(7)
torch.set_deterministic_debug_mode(1.5)
torch.set_deterministic_debug_mode(0)
torch.use_deterministic_algorithms(1)
torch.use_deterministic_algorithms()
torch.set_flush_denormal(True)
torch.tensor([1e-323],dtype=torch.float64)
torch.set_flush_denormal(False)
torch.set_flush_denormal(1)
torch.get_num_interop_threads()
torch.set_num_interop_threads(2)
torch.set_num_interop_threads(0)
torch.set_num_threads(0)
torch.set_num_threads('a')
torch.get_float32_matmul_precision()
torch.set_float32_matmul_precision('high')
torch.set_float32_matmul_precision('x')
torch.get_float32_matmul_precision()
torch.set_warn_always(True)
torch.is_warn_always_enabled()
torch.set_warn_always(1)
torch.utils.deterministic.fill_uninitialized_memory
torch.set_grad_enabled('a')
torch.set_grad_enabled(1)
torch.autograd.set_detect_anomaly(1)
torch.set_anomaly_enabled('a')
torch.random.fork_rng(device_type='nope').__enter__()
torch.random.fork_rng(enabled=False, device_type='nope').__enter__()
torch.is_grad_enabled()
f"{torch.tensor(3.5, requires_grad=True):.3f}"
"""

EXPRESSIONS = """
torch.typename(torch.ones(1))
torch.typename(torch.nn.Parameter(torch.ones(1)))
torch.typename(torch.nn.Linear(1,1))
torch.typename(torch.nn.Linear)
torch.typename(3)
torch.typename(int)
torch.typename('a')
torch.sym_int(3.7), torch.sym_int(-3.7)
torch.sym_float(3)
torch.sym_not(True)
torch.sym_max(1,2.0), torch.sym_min(1,2), torch.sym_max(3,1.0)
torch.sym_ite(True,1,2)
torch.sym_ite(1,1,2)
torch.sym_sqrt(4)
torch.sym_sum([1,2,3])
torch.sym_int('a')
torch.finfo(torch.float16), torch.finfo(torch.bfloat16), torch.finfo(torch.float32), torch.finfo(torch.float64), torch.finfo(torch.complex64)
torch.finfo(torch.int8)
torch.finfo(3)
torch.finfo().dtype
torch.iinfo(torch.bool)
torch.iinfo(torch.uint64), torch.iinfo(torch.int8), torch.iinfo(torch.int64)
torch.iinfo(torch.int64).max
torch.iinfo(torch.float32)
torch.iinfo()
torch.finfo(torch.float32) == torch.finfo(torch.float32), torch.finfo(torch.float32) == 3
torch.iinfo(torch.uint8).dtype, torch.iinfo(torch.uint8).bits
torch.tensor([1,2]).new(2,3).shape, torch.tensor([1,2]).new([2,3]), torch.tensor([1.,2]).new((2,3))
torch.tensor([1,2]).new(torch.tensor([5,6]))
torch.tensor([1,2]).new(torch.tensor([5.,6]))
torch.tensor([1.,2]).new()
torch.ones(2).new(torch.Size([2,3])).shape
torch.FloatTensor(2,3).shape, torch.FloatTensor([2,3]), torch.FloatTensor((2,3)), torch.FloatTensor(torch.Size([2,3])).shape
torch.FloatTensor(torch.ones(2))
torch.FloatTensor(torch.ones(2).double())
torch.LongTensor([1.5,2])
torch.LongTensor(3.5)
torch.FloatTensor(3.5)
torch.FloatTensor('a')
torch.FloatTensor([[1,2],[3,4]])
torch.FloatTensor(-1)
torch.FloatTensor(torch.tensor(3))
torch.FloatTensor(3,dtype=torch.int)
torch.FloatTensor(2,3,device='cpu').shape
torch.FloatTensor(size=(2,3)).shape
torch.Tensor(data=[1,2])
torch.Tensor(3).shape, torch.Tensor([3]), torch.Tensor((3,4)), torch.Tensor(2,3).shape, torch.Tensor()
torch.Tensor(torch.tensor([1,2]))
torch.Tensor(np.array([1,2,3]))
torch.Tensor(2.5)
torch.Tensor([True,False])
torch.Tensor([[1,2],[3]])
torch.IntTensor(np.array([1,2]))
torch.FloatTensor, torch.FloatTensor.dtype, torch.FloatTensor.__name__, torch.FloatTensor.__module__
torch.FloatTensor.is_cuda, torch.FloatTensor.layout
isinstance(torch.ones(1),torch.FloatTensor), isinstance(torch.ones(1).double(),torch.FloatTensor), isinstance(torch.nn.Parameter(torch.ones(1)),torch.FloatTensor), issubclass(torch.FloatTensor, torch.Tensor)
torch.ones(1).type(), torch.ones(1).type(torch.LongTensor), torch.ones(1).type('torch.IntTensor'), torch.ones(1).type(torch.float64), torch.ones(1).type(int), torch.ones(1).type(float)
torch.ones(1).type('float')
torch.ones(1).type(3)
torch.ones(1).type(torch.FloatTensor)
torch.tensor(3.7).__format__('.2f'), f"{torch.tensor(3)}", f"{torch.tensor([3])}", "%d %s"%(torch.tensor(3),torch.tensor(3.)), f"{torch.tensor([3]):>20}"
list(reversed(torch.tensor([1,2,3]))), reversed(torch.tensor([1,2,3]))
reversed(torch.tensor(1))
"""

PROGRAM = """
import sys, warnings
warnings.simplefilter("ignore")
torch = __import__(sys.argv[1])
for line in sys.argv[2].strip().split("\\n"):
    try:
        text = repr(eval(line))
    except Exception as error:
        text = type(error).__name__
    print(line, "->", text.replace("taeda", "torch"))
"""


def test_settings(run_python):
    want = run_python(PROGRAM, "torch", SETTINGS)
    assert run_python(PROGRAM, "taeda", SETTINGS) == want


def evaluate(expression, framework):
    try:
        return repr(eval(expression, {"torch": framework, "np": np})).replace("taeda", "torch")
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().split("\n"))
def test_expression(expression):
    assert evaluate(expression, taeda) == evaluate(expression, torch)


NAMES = """bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex32 complex64 complex128
float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu""".split()


def _ask(function, *args):
    try:
        return str(function(*args)).rpartition(".")[2]
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("first", NAMES)
def test_pairs_of_dtypes(first):
    """Promotion and casting of every pair; taeda gives NumPy's answer where PyTorch has none (wide unsigned ints)."""
    for second in NAMES:
        a, b = (getattr(taeda, n) for n in (first, second))
        ta, tb = (getattr(torch, n) for n in (first, second))
        want = _ask(torch.promote_types, ta, tb)
        if want is not RuntimeError or "float8" in first + second:
            assert _ask(taeda.promote_types, a, b) == want, (first, second)
        else:
            assert taeda.promote_types(a, b) is taeda.promote_types(b, a)
        assert taeda.can_cast(a, b) == torch.can_cast(ta, tb), (first, second)
        for left, right in ((2, 0), (0, 2), (0, 0)):
            shapes = [(2,) * left, (2,) * right]
            want = _ask(torch.result_type, torch.ones(shapes[0], dtype=ta), torch.ones(shapes[1], dtype=tb))
            got = _ask(taeda.result_type, taeda.ones(shapes[0], dtype=a), taeda.ones(shapes[1], dtype=b))
            assert got == want or want is RuntimeError, (first, second, shapes, got, want)
    for number in (True, 3, 2.5, 1j):
        want = _ask(torch.result_type, torch.ones(2, dtype=ta), number)
        assert _ask(taeda.result_type, taeda.ones(2, dtype=a), number) == want, (first, number)


@pytest.mark.parametrize("device", ["cpu", "cpu:0", None, "meta", "nowhere", 3])
def test_modules_of_devices(device):
    try:
        want = torch.get_device_module(device)
    except RuntimeError:
        with pytest.raises(RuntimeError):
            taeda.get_device_module(device)
    else:
        assert taeda.get_device_module(device) is getattr(taeda, want.__name__.removeprefix("torch."))


def test_default_device_is_each_threads_own():
    with taeda.device("cpu:0") as inside:
        assert taeda.get_default_device() == inside
        seen = []
        thread = threading.Thread(target=lambda: seen.append(taeda.get_default_device()))
        thread.start()
        thread.join()
        assert seen == [taeda.device("cpu")]
    assert taeda.get_default_device() == taeda.device("cpu")
    with pytest.raises(RuntimeError, match="CUDA"):
        taeda.set_default_device("cuda")


@pytest.mark.parametrize("threads", [1, 2])
def test_flush_denormal(threads):
    """Also on the workers of a parallel op, which a launch tells how it treats such numbers."""
    before = taeda.get_num_threads()
    taeda.set_num_threads(threads)
    x = taeda.full((1 << 18,), 1e-40)
    try:
        assert taeda.set_flush_denormal(True)
        assert not (x * 1.5).any()
    finally:
        taeda.set_flush_denormal(False)
        taeda.set_num_threads(before)
    assert (x * 1.5).all()


def test_uninitialised_memory_is_filled():
    taeda.use_deterministic_algorithms(True)
    try:
        made = [
            taeda.empty(3),
            taeda.empty_like(taeda.ones(3)),
            taeda.empty_strided((2, 2), (1, 2)),
            taeda.ones(2).new_empty(3),
            taeda.ones(2).resize_(4)[2:],
            taeda.empty_permuted((2, 3), (1, 0)),
        ]
        assert all(bool(t.isnan().all()) for t in made)
        taeda.utils.deterministic.fill_uninitialized_memory = False
        assert not taeda.utils.deterministic.fill_uninitialized_memory
    finally:
        taeda.use_deterministic_algorithms(False)
        taeda.utils.deterministic.fill_uninitialized_memory = True


def test_swap_tensors():
    a, b = taeda.ones(2, 3, requires_grad=True), taeda.arange(4.0).clone()
    a.tag = "first"
    memory = a.data_ptr(), b.data_ptr()
    taeda.utils.swap_tensors(a, b)
    assert (b.data_ptr(), a.data_ptr()) == memory
    assert b.requires_grad and not a.requires_grad and b.tag == "first" and not hasattr(a, "tag")
    assert a.shape == (4,) and b.shape == (2, 3)
    b.sum().backward()
    assert b.grad.tolist() == [[1] * 3] * 2


def test_swapped_tensors_exchange_their_classes():
    def outcome(module):
        class Slotted(module.Tensor):
            __slots__ = ("mark",)

        class Plain(module.Tensor):
            pass

        made = []
        for cls in (module.nn.Parameter, Plain):
            a, b = cls(module.ones(2)), module.zeros(3)
            a.tag, b.other = 1, 2
            module.utils.swap_tensors(a, b)
            made.append([type(a).__name__, type(b).__name__, a.shape[0], b.requires_grad, a.other, b.tag])
            made.append([type(x * 2).__name__ for x in (a, b)])
        a, b = module.ones(2).as_subclass(Slotted), module.zeros(3).as_subclass(Slotted)
        a.mark = "a"
        module.utils.swap_tensors(a, b)
        made.append([hasattr(a, "mark"), b.mark, a.shape[0]])
        with pytest.raises(RuntimeError, match="different slots"):
            module.utils.swap_tensors(a, module.zeros(3))
        return made

    assert outcome(taeda) == outcome(torch)


def test_a_graph_whose_leaf_was_swapped():
    """It has no place for the gradient; graphs of before and after do."""
    for module in (taeda, torch):
        a, b = module.ones(2, requires_grad=True), module.zeros(2, requires_grad=True)
        loss = (a * 2).sum()
        module.utils.swap_tensors(a, b)
        with pytest.raises(RuntimeError, match="swap_tensors"):
            loss.backward()
        assert a.grad is None and b.grad is None
        (a * 3).sum().backward()
        assert a.grad.tolist() == [3, 3]
    loss = (a_ := taeda.ones(2, requires_grad=True)).sum()
    taeda.utils.swap_tensors(a_, taeda.zeros(2))
    with pytest.raises(RuntimeError, match="swap_tensors"):
        loss.backward()
    # nor has one that a replayed pass would take
    layer, x = taeda.nn.Linear(2, 2), taeda.ones(1, 2)
    taeda.__future__.set_swap_module_params_on_conversion(True)
    try:
        for _ in range(4):
            layer(x).sum().backward()
            loss = layer(x).sum()
            assert loss.grad_fn.next_functions[0][1] == 0
            layer.load_state_dict({k: v.clone() for k, v in layer.state_dict().items()})
            with pytest.raises(RuntimeError, match="swap_tensors"):
                loss.backward()
            layer.zero_grad()
            layer(x).sum().backward()
            assert layer.weight.grad.tolist() == [[1, 1], [1, 1]]
    finally:
        taeda.__future__.set_swap_module_params_on_conversion(False)


def test_gradients_of_a_swapped_leaf_that_are_not_asked_for():
    a, b = taeda.ones(2, requires_grad=True), taeda.full((2,), 3.0, requires_grad=True)
    loss = (a * b).sum()
    taeda.utils.swap_tensors(a, taeda.zeros(2, requires_grad=True))
    assert taeda.autograd.grad(loss, b, retain_graph=True)[0].tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="swap_tensors"):
        taeda.autograd.grad(loss, a)
    c = (a * 2).sum()
    assert taeda.autograd.grad(c, a)[0].tolist() == [2, 2]
    edge = taeda.autograd.graph.get_gradient_edge(a)
    assert taeda.autograd.grad((a * 2).sum(), edge)[0].tolist() == [2, 2]


#: Calls at the edge of what an op takes.
CALLS = """
torch.nn.utils.clip_grad_norm_([], 'a')
torch.linspace(-1, 3, 5, dtype=torch.uint8), torch.linspace(3, -1, 4, dtype=torch.uint8), torch.logspace(-1, 2, 4, dtype=torch.uint8)
torch.linspace(-1.5, 3, 5, dtype=torch.int8), torch.linspace(-1, 300, 2, dtype=torch.int16)
torch.linspace(0, 300, 2, dtype=torch.uint8)
torch.zeros(2).fill_(torch.tensor(3)), torch.fill(torch.zeros(2), torch.tensor(3.5))
torch.trapezoid(torch.ones(2, 3), dim=5)
torch.trapezoid(torch.ones(2, 3), torch.ones(3), dim=-5)
torch.trapezoid(torch.tensor(1.0))
torch.trapezoid(torch.ones(2, 3), dim=0), torch.trapezoid(torch.ones(2, 3), torch.arange(2), dim=-2), torch.trapezoid(torch.ones(0, 2), dim=-2)
torch.cumulative_trapezoid(torch.ones(2, 3), dim=2)
torch.cumulative_trapezoid(torch.ones(2, 3), torch.arange(3), dim=-1)
torch.lstm(torch.ones(5, 2, 3), (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)), [torch.ones(16, 3)] * 3, True, 1, 0.0, False, False, False)
torch.lstm(torch.ones(5, 2, 3), (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)), [torch.ones(16, 3), torch.ones(16, 4)], True, 1, 0.0, False, False, False)
torch.gru(torch.ones(5, 2, 3), torch.zeros(1, 2, 4), [], True, 1, 0.0, False, False, False)
torch.rnn_tanh(torch.ones(5, 2, 3), torch.zeros(1, 2, 4), [torch.ones(4, 3), torch.ones(4, 4)], False, 2, 0.0, False, False, False)
torch.svd_lowrank(torch.ones(4, 4, dtype=torch.int64), q=2)
torch.pca_lowrank(torch.ones(4, 4, dtype=torch.int64), q=2)
torch.nn.functional.multi_margin_loss(torch.tensor([[0.1, 0.5, 0.2]]), torch.tensor(1), reduction='none')
torch.nn.functional.multi_margin_loss(torch.ones(2, 3), torch.tensor(1))
torch.std(torch.ones(2, 2), True), torch.var(torch.ones(2, 2), 1, True)
torch.svd_lowrank(torch.ones(4))
torch.cumulative_trapezoid(torch.tensor(1.0))
"""


@pytest.mark.parametrize("call", CALLS.strip().split("\n"))
def test_call(call):
    assert evaluate(call, taeda) == evaluate(call, torch)
