"""``script``: compiled programs give what Python gives, and are written as archives that PyTorch reads."""

import copy
import io
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import taeda
from taeda import Tensor, nn

torch = pytest.importorskip("torch")
from agree import close, imported  # noqa: E402
from language import EXAMPLES  # noqa: E402
from test_archive import agree, ours  # noqa: E402

NAMES = {
    "import torch.nn.functional as F": "import taeda.nn.functional as F",
    "from torch import Tensor, nn": "from taeda import Tensor, nn",
    "from torch.nn.utils": "from taeda.nn.utils",
    "from torch import Tensor\n": "from taeda import Tensor\n",
    "import torch\n": "import taeda as torch\n",
}


def of_taeda(name, folder):
    """A file of programs with taeda's names in place of PyTorch's, as a module."""
    source = Path(__file__).with_name(f"{name}.py").read_text()
    for old, new in NAMES.items():
        source = source.replace(old, new)
    path = folder / f"{name}_of_taeda.py"
    path.write_text(source)
    return imported(path)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The programs of ``programs.py``, of taeda's modules."""
    return of_taeda("programs", tmp_path_factory.mktemp("programs")).PROGRAMS


@pytest.fixture(scope="module")
def language(tmp_path_factory):
    """The functions of ``language.py``, of taeda's."""
    return of_taeda("language", tmp_path_factory.mktemp("language")).EXAMPLES


def theirs(x):
    """taeda's tensors as PyTorch's, in any container."""
    if isinstance(x, taeda.Tensor):
        return torch.tensor(x.detach().tolist(), dtype=getattr(torch, str(x.dtype)[6:])).reshape(tuple(x.shape))
    if isinstance(x, dict):
        return {k: theirs(v) for k, v in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(theirs, x))
    return type(x)(map(theirs, x)) if isinstance(x, (list, tuple)) else x


from programs import PROGRAMS  # noqa: E402


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(programs, name):
    taeda.manual_seed(0)
    module, calls = programs[name]()
    python = copy.deepcopy(module.eval())
    agree(python, taeda.jit.script(module), calls)


@pytest.mark.parametrize("name", PROGRAMS)
def test_saved(programs, name):
    """Both taeda and PyTorch run what is written."""
    taeda.manual_seed(0)
    module, calls = programs[name]()
    buffer = io.BytesIO()
    taeda.jit.script(module.eval()).save(buffer)
    data = buffer.getvalue()
    agree(copy.deepcopy(module), taeda.jit.load(io.BytesIO(data)), calls)
    agree(torch.jit.load(io.BytesIO(data)), taeda.jit.load(io.BytesIO(data)), theirs(calls))


@pytest.mark.parametrize("name", PROGRAMS)
def test_frozen(programs, name):
    """Constants in place of parameters and attributes change no value."""
    taeda.manual_seed(0)
    module, calls = programs[name]()
    kept = [m for m in ("count", "reset", "counts", "describe") if hasattr(module, m)]
    frozen = taeda.jit.freeze(taeda.jit.script(module.eval()), kept)
    assert not any(p.requires_grad for p in frozen.parameters())
    buffer = io.BytesIO()
    frozen.save(buffer)
    agree(copy.deepcopy(module), frozen, calls)
    agree(copy.deepcopy(module), taeda.jit.load(io.BytesIO(buffer.getvalue())), calls)
    str(frozen.graph), str(frozen.inlined_graph)


@pytest.mark.parametrize("name", EXAMPLES)
def test_language(language, name):
    """Each part of the language gives what PyTorch's scripts give; so do our archives of it, there and here."""
    function, args = EXAMPLES[name]
    expected = torch.jit.script(function)(*copy.deepcopy(args))
    own, given = language[name]
    scripted = taeda.jit.script(own)
    close(expected, scripted(*copy.deepcopy(given)))
    assert scripted.code and str(scripted.graph).startswith("graph(") and scripted.schema.startswith(name)
    buffer = io.BytesIO()
    scripted.save(buffer)
    close(expected, taeda.jit.load(io.BytesIO(buffer.getvalue()))(*copy.deepcopy(given)))
    close(expected, torch.jit.load(io.BytesIO(buffer.getvalue()))(*copy.deepcopy(args)))


def test_mistakes(tmp_path):
    """What PyTorch refuses is refused, by the same kind of error and with the line."""
    import mistakes

    own = of_taeda("mistakes", tmp_path)
    names = [n for n, f in vars(mistakes).items() if getattr(f, "__module__", "") == "mistakes"]
    assert len(names) > 30
    for name in names:
        expected = got = None
        try:
            torch.jit.script(getattr(mistakes, name))
        except Exception as error:
            expected = error
        try:
            taeda.jit.script(getattr(own, name))
        except Exception as error:
            got = error
        assert (expected is None) == (got is None), (name, expected, got)
        if expected is not None:
            assert isinstance(got, RuntimeError) and "<--- HERE" in str(got) and "mistakes_of_taeda.py" in str(got), (
                name
            )
            if type(expected).__name__ == "UnsupportedNodeError":
                assert isinstance(got, taeda.jit.frontend.UnsupportedNodeError), name


def test_arguments_are_checked():
    @taeda.jit.script
    def f(x: taeda.Tensor, n: int = 2, *, flag: bool | None = None) -> taeda.Tensor:
        return x * n

    assert f(taeda.ones(2)).tolist() == [2, 2] and f(x=taeda.ones(1), n=3).tolist() == [3]
    for args, kwargs, text in [
        ((3,), {}, "Expected a value of type 'Tensor' for argument 'x' but instead found type 'int'"),
        ((taeda.ones(1), "a"), {}, "Expected a value of type 'int' for argument 'n' but instead found type 'str'"),
        ((), {}, "missing value for argument 'x'"),
        ((taeda.ones(1), 1, True, 1), {}, "expected at most 3 argument"),
        ((taeda.ones(1),), {"m": 1}, "Unknown keyword argument 'm'"),
    ]:
        with pytest.raises(RuntimeError, match=text.replace("(", r"\(")):
            f(*args, **kwargs)


def test_lists_and_tuples_stand_for_each_other():
    @taeda.jit.script
    def f(a: tuple[Tensor, int], b: list[int], c: tuple[int, int] | None = None) -> Tensor:
        x = a[0] * a[1] + len(b)
        if c is not None:
            x = x + c[1]
        return x

    assert f([taeda.ones(1), 3], range(2)).item() == 5
    assert f([taeda.ones(1), 3], (1,), [1, 7]).item() == 11
    with pytest.raises(RuntimeError, match=r"Expected a value of type 'Tuple\[Tensor, int\]' for argument 'a'"):
        f([taeda.ones(1)], [])


class Helpers(nn.Module):
    """What a script leaves to Python."""

    scale: taeda.jit.Final[int] = 3

    def __init__(self):
        super().__init__()
        self.seen = []
        self.value = taeda.jit.Attribute(1.5, float)

    @taeda.jit.ignore
    def note(self, x: Tensor, word: str) -> int:
        self.seen.append(word)
        return len(self.seen)

    @taeda.jit.unused
    def never(self, x: Tensor) -> Tensor:
        return undefined(x)  # noqa: F821

    @taeda.jit.ignore
    def apart(self, word):  # forward does not call it
        return self.scale, word

    @taeda.jit.unused
    def aside(self, x):
        return {"given": x}

    @property
    def doubled(self) -> float:
        return self.value * 2

    def forward(self, x: Tensor, branch: bool = False) -> Tensor:
        if not taeda.jit.is_scripting():
            return undefined(x)  # noqa: F821
        if branch:
            x = self.never(x)
        return x * self.scale + self.note(x, "seen") + self.doubled


def test_what_is_left_to_python():
    module = taeda.jit.script(Helpers())
    assert module(taeda.ones(1)).tolist() == [7.0] and module(taeda.ones(1)).tolist() == [8.0]
    with pytest.raises(taeda.jit.Error, match="unused"):
        module(taeda.ones(1), True)
    assert module.scale == 3 and module.value == 1.5
    assert module.apart("word") == (3, "word") and module.aside(1) == {"given": 1}
    module.value = 2
    assert module.value == 2.0 and type(module.value) is float
    with pytest.raises(RuntimeError, match="Expected a value of type 'float'"):
        module.value = "text"
    with pytest.raises(RuntimeError, match="a function of Python"):
        module.save(io.BytesIO())


def test_modules_of_scripts_are_modules():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    scripted = taeda.jit.script(net)
    assert list(scripted.state_dict()) == list(net.state_dict()) and scripted[0].weight is net[0].weight
    assert (
        isinstance(scripted, taeda.jit.ScriptModule) and scripted.original_name == "Sequential" and len(scripted) == 3
    )
    scripted.train()
    assert scripted[2].training and not scripted.eval()[2].training
    x = taeda.randn(5, 3)
    close(net.eval()(x), scripted(x))
    scripted(x).sum().backward()
    assert net[0].weight.grad is not None
    scripted.to(taeda.float64)
    assert scripted(x.double()).dtype is taeda.float64
    other = copy.deepcopy(scripted)
    other[0].weight.data.zero_()
    assert (
        bool(scripted[0].weight.any())
        and "def forward" in scripted.code
        and scripted.graph.findNode("prim::CallMethod") is not None
    )
    assert scripted.inlined_graph.findNode("aten::linear") is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        scripted.nothing()


def test_units_of_text():
    unit = taeda.jit.CompilationUnit(
        "def double(x):\n    return x * 2\n\ndef f(x, n: int):\n    for i in range(n):\n        x = double(x) + "
        "torch.ones(1)\n    return x\n"
    )
    assert unit.f(taeda.ones(2), 2).tolist() == [7, 7]
    with pytest.raises(AttributeError):
        unit.g()
    with pytest.raises(RuntimeError, match="HERE"):
        taeda.jit.CompilationUnit("def f(x):\n    return y\n")


def test_names_of_a_unit_are_those_of_its_place():
    factor = 3

    def twice(x):
        return x * 2

    unit = taeda.jit.CompilationUnit(
        "def f(x):\n    y = nn.functional.relu(taeda.special.expit(twice(x))) * factor\n"
        "    return taeda.linalg.norm(y) + taeda.fft.rfft(y).abs().sum()\n"
    )
    x = taeda.tensor([0.5, 1.0])
    y = taeda.sigmoid(x * 2) * factor
    assert taeda.allclose(unit.f(x), y.norm() + taeda.fft.rfft(y).abs().sum())


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN"])
def test_layers_of_several_signatures(layer):
    made = getattr(nn, layer)(3, 4, 2, batch_first=True, bidirectional=True)
    scripted, x = taeda.jit.script(made), taeda.randn(2, 5, 3)
    packed = nn.utils.rnn.pack_padded_sequence(x, taeda.tensor([5, 3]), batch_first=True)
    close(made(x), scripted(x))
    close(made(x[0]), scripted(x[0]))
    close(tuple(made(packed)[0])[:2], tuple(scripted(packed)[0])[:2])
    with pytest.raises(RuntimeError, match="Expected a value of type"):
        scripted("text")


def test_the_usual_under_the_stand_in():
    path = Path(__file__).with_name("usual.py")
    done = subprocess.run([sys.executable, "-m", "taeda.standin", path], capture_output=True, text=True)
    assert done.stdout == "ok\n", done.stderr


@pytest.mark.parametrize(
    "name, args",
    [
        ("silu", ()), ("softmax", (1,)), ("dropout", (0.5, False)), ("layer_norm", ([5],)), ("pad", ([1, 2],)),
        ("cross_entropy", ("target",)), ("mse_loss", ("like",)), ("leaky_relu", (0.2, True)), ("selu", (True,)),
        ("rrelu", (0.1, 0.3, True)), ("alpha_dropout", (0.5, True)), ("dropout1d", (0.5, True, True)),
        ("dropout2d", (0.5, True)), ("gumbel_softmax", (0.5, True)), ("normalize", (1.0,)), ("softmin", ()),
        ("log_softmax", (0,)), ("local_response_norm", (3,)),
    ],
)  # fmt: skip
def test_functions_of_nn_themselves(name, args):
    x = torch.randn(3, 2, 5) if name == "local_response_norm" else torch.randn(3, 5)
    given = {"target": torch.tensor([1, 0, 4]), "like": torch.ones(3, 5)}
    args = (x, *(given.get(a, a) if isinstance(a, str) else a for a in args))
    theirs = torch.jit.script(getattr(torch.nn.functional, name))
    mine = taeda.jit.script(getattr(nn.functional, name))
    assert mine.name == theirs.name == name
    converted = ours(args)  # before the call, which may write to its argument
    taeda.manual_seed(0)
    torch.manual_seed(0)
    close(theirs(*args), mine(*converted), name)


@pytest.mark.filterwarnings("ignore:size_average")
@pytest.mark.parametrize("name", [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy",
    "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss", "multi_margin_loss",
    "multilabel_margin_loss", "nll_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss",
    "triplet_margin_loss",
])  # fmt: skip
def test_losses_take_the_arguments_that_their_functions_take(name):
    x, y = torch.linspace(0.1, 0.8, 12).reshape(4, 3), torch.linspace(0.9, 0.2, 12).reshape(4, 3)
    labels, signs = torch.tensor([0, 2, 1, 1]), torch.tensor([1.0, -1.0, 1.0, -1.0])
    args = {
        "cross_entropy": (x, labels), "nll_loss": (x, labels), "multi_margin_loss": (x, labels),
        "multilabel_margin_loss": (x, torch.tensor([[0, 2, -1]] * 4)), "cosine_embedding_loss": (x, y, signs),
        "margin_ranking_loss": (x, y, signs[:, None]), "triplet_margin_loss": (x, y, x + 1),
    }.get(name, (x, y))  # fmt: skip
    older = [] if name == "huber_loss" else [{"size_average": False}, {"reduce": False}, {"size_average": True}]
    weights = [{"weight": y, "reduction": r} for r in ("none", "mean", "sum")] * (
        name in ("mse_loss", "l1_loss", "huber_loss")
    )
    theirs = torch.jit.script(getattr(torch.nn.functional, name))
    mine = taeda.jit.script(getattr(nn.functional, name))
    for given in ({}, *({"reduction": r} for r in ("none", "mean", "sum")), *older, *weights):
        close(theirs(*args, **given), mine(*ours(args), **ours(given)), f"{name} {given}")


@pytest.mark.parametrize("name, args", [
    ("gradient", ()), ("unbind_copy", ()), ("split_copy", (1,)), ("split_with_sizes_copy", ([1, 2],)),
    ("tensor_split", (3,)), ("hsplit", (5,)), ("where", ()),
])  # fmt: skip
def test_what_gives_several_tensors_gives_a_list(name, args):
    """In scripts, also where Python's function gives a tuple."""
    x = torch.arange(15.0).reshape(3, 5)
    given = ", ".join(("x", *map(repr, args)))
    results = [
        framework.jit.CompilationUnit(f"def f(x):\n    return torch.{name}({given})\n").f(x)
        for framework, x in ((torch, x), (taeda, ours(x)))
    ]
    assert [type(r) for r in results] == [list, list]
    close(*results)


X4 = torch.linspace(-1, 1, 96).reshape(2, 3, 4, 4)
WEIGHT, INDICES, GRID = torch.linspace(0, 1, 30).reshape(10, 3), torch.tensor([1, 2, 4, 9]), torch.zeros(2, 2, 2, 2)
PLACES = torch.arange(8).expand(2, 3, 8) * 2


@pytest.mark.parametrize(
    "name, args, named",
    [
        ("embedding", (INDICES, WEIGHT, 20), {}), ("embedding", (INDICES, WEIGHT, -11), {}),
        ("embedding_bag", (INDICES, WEIGHT, torch.tensor([0, 2])), {"mode": "median"}),
        ("grid_sample", (X4, GRID, "wrong"), {}), ("grid_sample", (X4, GRID, "nearest", "wrong"), {}),
        ("hardtanh", (X4, 2.0, 1.0), {}), ("interpolate", (X4, [5, 5], [2.0, 2.0]), {}), ("interpolate", (X4,), {}),
        ("interpolate", (X4, [5, 5, 5]), {}), ("interpolate", (X4, [5, 5]), {"align_corners": True}),
        ("interpolate", (X4, [5, 5]), {"antialias": True}), ("interpolate", (X4, [5, 5]), {"mode": "wrong"}),
        ("max_unpool1d", (torch.ones(2, 3, 8), PLACES, 2), {"output_size": [19]}),
    ],
)  # fmt: skip
def test_functions_refuse_in_scripts_what_they_refuse_elsewhere(name, args, named):
    with pytest.raises((ValueError, AssertionError, NotImplementedError)):
        getattr(torch.nn.functional, name)(*args, **named)
    with pytest.raises(RuntimeError):
        taeda.jit.script(getattr(nn.functional, name))(*ours(args), **ours(named))


@pytest.mark.parametrize("given", [{"output_size": [2, 2]}, {"output_ratio": [0.5, 0.5]}])
def test_fractional_pools_in_scripts(given):
    samples = torch.full((2, 3, 2), 0.5)
    want = torch.nn.functional.fractional_max_pool2d(X4, 2, **given, _random_samples=samples)
    scripted = taeda.jit.script(nn.functional.fractional_max_pool2d)
    close(want, scripted(ours(X4), [2, 2], **given, _random_samples=ours(samples)))
    assert scripted(ours(X4), [2, 2], **given).shape == want.shape


def test_embeddings_in_scripts_keep_to_a_norm():
    """PyTorch's scripts leave the norm out of account; its functions do not."""
    for name in ("embedding", "embedding_bag"):
        weight = ours(WEIGHT)
        got = taeda.jit.script(getattr(nn.functional, name))(ours(INDICES[None]), weight, max_norm=1.0)
        want = WEIGHT.clone()
        close(getattr(torch.nn.functional, name)(INDICES[None], want, max_norm=1.0), got)
        close(want, weight)


@pytest.mark.parametrize("name", ["dropout2d", "softmax"])
def test_functions_warn_in_scripts_as_elsewhere(name):
    for framework in (torch, taeda):
        with pytest.warns(UserWarning, match=name):
            framework.jit.script(getattr(framework.nn.functional, name))(framework.ones(2, 3, 4))


@pytest.mark.parametrize(
    ("comment", "right"),
    [("# type: (int) -> int  # a note", True), ("#type: (int) -> int", False), ("#  type : (int) -> int", False)],
)
def test_prefixes_of_comments_with_types(comment, right):
    program = f"def double(a):\n    {comment}\n    return a * 2\n"
    if right:
        assert taeda.jit.CompilationUnit(program).double(2) == 4
    else:
        with pytest.raises(RuntimeError, match="prefix"):
            taeda.jit.CompilationUnit(program).double(2)


def test_an_indented_text():
    program = """
        def double(a: int) -> int:
            return a * 2
    """
    assert taeda.jit.CompilationUnit(program).double(2) == 4


def test_types_that_do_not_say_what_they_hold():
    def first(a: typing.Dict) -> int:  # noqa: UP006
        return 1

    with pytest.raises(RuntimeError, match="Unknown type"):
        taeda.jit.script(first)


def test_types_beside_the_arguments():
    def repeated(
        x,  # type: Tensor
        times,  # type: int
        word,  # type: str
    ):
        # type: (...) -> List[str]
        return [word] * (times + len(x))

    assert taeda.jit.script(repeated)(taeda.ones(2), 1, "a") == ["a"] * 3


def test_a_script_is_not_compiling():
    def function(x):
        return x if taeda.compiler.is_compiling() else x + 1

    assert taeda.jit.script(function)(taeda.zeros(1)).tolist() == [1.0]


def takes_a_tensor_or_a_list(x: taeda.Tensor | list[int]) -> int:
    if isinstance(x, taeda.Tensor):
        x = x + 1
    elif isinstance(x, list):
        x = x[1:]
    return takes_either(x)


def takes_either(x: taeda.Tensor | list[int]) -> int:
    if isinstance(x, taeda.Tensor):
        return int(x.sum())
    return len(x)


def test_branches_that_narrow_a_union_differently():
    scripted = taeda.jit.script(takes_a_tensor_or_a_list)
    assert scripted(taeda.ones(3)) == 6 and scripted([1, 2, 3]) == 2


def test_a_dict_with_further_keys():
    def function(d: typing.Dict[str, int]):  # noqa: UP006
        return (
            dict(d, baz=3),
            dict({"a": 1}, b=2),
            dict([("a", 1)], c=3),
            dict({chr(65 + i): i for i in range(2)}, foo=2),
        )

    assert taeda.jit.script(function)({"foo": 1}) == function({"foo": 1})


def test_containers_and_texts_as_conditions():
    def function(a: typing.List[int], d: typing.Dict[str, int], s: str):  # noqa: UP006
        n = 0
        if a:
            n += 1
        while d:
            d.popitem()
            n += 10
        return n, bool(a), not d, bool(s)

    script = taeda.jit.script(function)
    assert script([1], {"a": 1}, "") == (11, True, True, False) and script([], {}, "x") == (0, False, True, True)


def test_a_module_says_what_is_scripted_in_its_place():
    class Smooth(nn.SELU):
        def __prepare_scriptable__(self):
            return nn.ReLU()

    x = taeda.tensor([-1.0, 1.0])
    for module in (Smooth(), nn.Sequential(Smooth())):
        assert taeda.jit.script(module)(x).tolist() == [0.0, 1.0]


def test_an_object_has_another_ignored_method():
    class Net(nn.Module):
        @taeda.jit.ignore
        def number(self) -> int:
            return 1

        def forward(self) -> int:
            return self.number()

    @taeda.jit.ignore
    def other(self) -> int:
        return 2

    net = Net()
    net.number = other.__get__(net)
    assert taeda.jit.script(net).number() == taeda.jit.script(net)() == 2


def test_small_functions_of_the_language():
    unit = taeda.jit.CompilationUnit("def f(x: List[int]):\n    return x[slice(1, None)], x[slice(2)]")
    assert unit.f([1, 2, 3]) == ([2, 3], [1, 2])

    def function(x: typing.Optional[Tensor]):  # noqa: UP045
        y = taeda.jit._unwrap_optional(x)
        return complex(y, 1.5)

    assert taeda.jit.script(function)(taeda.tensor(2.0)) == 2 + 1.5j
    for kind in (typing.List, typing.Dict, typing.Tuple):  # noqa: UP006
        with pytest.raises(RuntimeError, match="contained type"):
            taeda.jit.isinstance([1], kind)
    assert issubclass(taeda.jit.TracingCheckError, Exception)
