"""83 mistakes that people make, as small programs, with patterns for the error or warning of each.

``T`` is the framework, so that the same program runs on PyTorch too. ``cause`` and ``mend`` are patterns for the
message, which must name the cause in the user's terms and say what to write instead. An empty pattern means that the
message does not do so, which the page says too. ``tests/test_common_mistakes.py`` runs them, ``tools/errors.py`` writes
``docs/errors.md``.
"""

from __future__ import annotations

import copy
import io
import re
import traceback
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Mistake:
    """One mistake.

    Attributes:
        title: what it is.
        section: the heading that it stands under.
        program: takes the framework; makes the mistake. One that no error tells of gives the arguments of ``check_step``.
        error: the type of the exception, or of the warning; None for what ``check_step`` finds, and for what works.
        cause, mend: patterns of the message.
        torch: what PyTorch 2.13 names: ``"c"``, ``"m"``, both or neither.
        where: the module's path that the message has to name; empty where there is no module.
        works: it is a mistake in PyTorch alone.
    """

    title: str
    section: str
    program: Callable[[Any], Any]
    error: type | None
    cause: str
    mend: str
    torch: str = ""
    where: str = ""
    works: bool = False


MISTAKES: list[Mistake] = []
_section = ""


def section(title: str) -> None:
    """Begin a section."""
    global _section
    _section = title


def mistake(
    title: str, error: type | None, cause: str, mend: str, torch: str = "", where: str = "", works: bool = False
):
    """Add the program below to the list."""

    def add(program: Callable) -> None:
        MISTAKES.append(Mistake(title, _section, program, error, cause, mend, torch, where, works))

    return add


def message(one: Mistake, T: Any) -> tuple[type | None, str]:
    """Run a mistake on framework ``T``: the type of the error or warning, and all that it says when it is printed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            one.program(T)
        except Exception as error:
            return type(error), "".join(traceback.format_exception_only(error)).strip()
    for warning in caught:
        if one.error is not None and issubclass(warning.category, one.error):
            return warning.category, str(warning.message)
    return None, ""


def finding(one: Mistake, T: Any) -> str:
    """The message of ``check_step`` on a mistake that raises no error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = T.utils.check_step(*one.program(T))
    return str(report)


def names(one: Mistake, text: str) -> tuple[bool, bool]:
    """Whether ``text`` names the cause, and the mend."""
    return tuple(bool(pattern and re.search(pattern, text, re.S)) for pattern in (one.cause, one.mend))


def net(T: Any) -> Any:
    """A small model."""
    nn = T.nn
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


# ---- sizes -----------------------------------------------------------------------------------------------------------

section("Sizes")


@mistake(
    "layers that do not fit each other",
    RuntimeError,
    "4x16 and 12x8.*16 features",
    r"Linear\(16, 8\)",
    where="layers.1",
)
def _(T):
    class N(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = T.nn.ModuleList([T.nn.Linear(4, 16), T.nn.Linear(12, 8)])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    N()(T.randn(4, 4))


@mistake(
    "flattened size after convolutions guessed wrong", RuntimeError, "1800 features", r"Linear\(1800, 10\)", where="2"
)
def _(T):
    nn = T.nn
    model = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(8192, 10))
    model(T.randn(2, 3, 32, 32))


@mistake(
    "images with channels last given to Conv2d",
    RuntimeError,
    r"3 channels.*channels last",
    r"permute\(0, 3, 1, 2\)",
    where="0",
)
def _(T):
    T.nn.Sequential(T.nn.Conv2d(3, 8, 3))(T.randn(2, 32, 32, 3))


@mistake(
    "batch dimension forgotten before BatchNorm2d",
    ValueError,
    "4D input.*batch dimension",
    r"unsqueeze\(0\)",
    where="0",
)
def _(T):
    T.nn.Sequential(T.nn.BatchNorm2d(3))(T.randn(3, 8, 8))


@mistake(
    "LSTM made for another number of features",
    RuntimeError,
    "Expected 10, got 12",
    "input_size=12",
    torch="c",
    where="LSTM",
)
def _(T):
    T.nn.LSTM(10, 20)(T.randn(5, 7, 12))


@mistake(
    "embed_dim that num_heads does not divide",
    AssertionError,
    "embed_dim must be divisible by num_heads",
    "2, 5",
    torch="c",
)
def _(T):
    T.nn.MultiheadAttention(10, 3)


@mistake("a @ b with the second not transposed", RuntimeError, "16 columns.*5 rows", r"\.mT")
def _(T):
    T.randn(2, 5, 16) @ T.randn(2, 5, 16)


@mistake(
    "addition of sizes that do not broadcast",
    RuntimeError,
    r"tensor a \(3\) must match.*tensor b \(4\)",
    r"unsqueeze\(1\)",
    torch="c",
)
def _(T):
    T.randn(4, 3) + T.randn(4)


@mistake("cat of tensors with other sizes", RuntimeError, "Expected size 3 but got size 4", "dim=1", torch="c")
def _(T):
    T.cat([T.randn(2, 3), T.randn(2, 4)])


@mistake(
    "a batch of samples of unequal sizes", RuntimeError, r"equal size.*\[3, 6\]", "pad_sequence.*collate_fn", torch="c"
)
def _(T):
    next(iter(T.utils.data.DataLoader([T.randn(3, 5), T.randn(3, 6)], batch_size=2)))


@mistake("view of a transposed tensor", RuntimeError, "not compatible", "reshape", torch="cm")
def _(T):
    T.randn(4, 6).t().view(24)


@mistake("reshape to a wrong number of elements", RuntimeError, "size 24", "-1", torch="c")
def _(T):
    T.randn(4, 6).reshape(5, 5)


@mistake("a dimension that is not there", IndexError, "out of range.*got 2", "last.*1 or -1", torch="c")
def _(T):
    T.randn(2, 3).softmax(2)


@mistake("softmax without a dimension", UserWarning, "Implicit dimension", "dim=X", torch="cm")
def _(T):
    T.nn.functional.softmax(T.randn(2, 3))


# ---- losses ----------------------------------------------------------------------------------------------------------

section("Losses")


@mistake(
    "mse_loss of (N, 1) and (N), which broadcast",
    UserWarning,
    "different to the input size",
    r"view_as\(input\)",
    torch="c",
)
def _(T):
    T.nn.functional.mse_loss(T.randn(8, 1), T.randn(8))


@mistake(
    "binary cross entropy of (N, 1) and (N)",
    ValueError,
    "must be the same as input size",
    r"view_as\(input\)",
    torch="c",
)
def _(T):
    T.nn.functional.binary_cross_entropy_with_logits(T.randn(8, 1), T.zeros(8))


@mistake("BCELoss given scores", RuntimeError, "between 0 and 1.*scores", "with_logits", where="BCELoss")
def _(T):
    T.nn.BCELoss()(T.tensor([-1.0, 2.0]), T.ones(2))


@mistake("binary cross entropy with integers as targets", RuntimeError, "floating point.*target", r"target\.float\(\)")
def _(T):
    T.nn.functional.binary_cross_entropy_with_logits(T.randn(4), T.ones(4, dtype=T.int64))


@mistake("cross entropy with classes as floats", RuntimeError, "target dtype", r"long\(\)", torch="c")
def _(T):
    T.nn.functional.cross_entropy(T.randn(4, 3), T.ones(4))


@mistake("cross entropy with targets of (N, 1)", RuntimeError, r"\[4, 1\]", r"squeeze\(-1\)")
def _(T):
    T.nn.functional.cross_entropy(T.randn(4, 3), T.ones(4, 1, dtype=T.int64))


@mistake("cross entropy with classes 1 to C", IndexError, r"(?i)target 3 is out of bounds.*\[0, 2\]", "target - 1")
def _(T):
    T.nn.functional.cross_entropy(T.randn(4, 3), T.tensor([1, 2, 3, 1]))


@mistake(
    "cross entropy with one-hot integers", RuntimeError, "(?i)floating point.*probabilities", r"argmax\(1\)", torch="c"
)
def _(T):
    T.nn.functional.cross_entropy(T.randn(4, 3), T.eye(4, 3, dtype=T.int64))


@mistake("cross entropy with target and input swapped", NotImplementedError, "order", r"cross_entropy\(input, target\)")
def _(T):
    T.nn.functional.cross_entropy(T.tensor([0, 1, 2, 0]), T.randn(4, 3))


@mistake("softmax before cross entropy", None, "softmax itself.*twice", "without softmax")
def _(T):
    model, y = T.nn.Sequential(net(T), T.nn.Softmax(1)), T.tensor([0, 1, 2, 0])
    return (lambda: T.nn.functional.cross_entropy(model(T.randn(4, 4)), y).backward()), model


@mistake("probabilities into nll_loss", None, "logarithms of probabilities", r"log_softmax\(\)")
def _(T):
    model, y = T.nn.Sequential(net(T), T.nn.Softmax(1)), T.tensor([0, 1, 2, 0])
    return (lambda: T.nn.functional.nll_loss(model(T.randn(4, 4)), y).backward()), model


# ---- a step of training ----------------------------------------------------------------------------------------------

section("Training")


@mistake("zero_grad() forgotten", None, "nobody clears the gradients", r"zero_grad\(\) before backward")
def _(T):
    model, x, y = net(T), T.randn(4, 4), T.tensor([0, 1, 2, 0])
    optimizer = T.optim.SGD(model.parameters(), lr=0.1)

    def step():
        T.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step, model, optimizer


@mistake("dropout active in evaluation", None, r"under no_grad\(\): results are random", r"model\.eval\(\)")
def _(T):
    model = T.nn.Sequential(net(T), T.nn.Dropout(0.5))

    def evaluate():
        with T.no_grad():
            return model(T.randn(4, 4))

    return evaluate, model


@mistake(
    "batch norm in training with one sample",
    ValueError,
    "more than 1 value per channel",
    r"eval\(\)",
    torch="c",
    where="0",
)
def _(T):
    T.nn.Sequential(T.nn.BatchNorm1d(4))(T.randn(1, 4))


# ---- autograd --------------------------------------------------------------------------------------------------------

section("Autograd")


@mistake("a parameter written in place", RuntimeError, "leaf Variable that requires grad", r"no_grad\(\)", torch="c")
def _(T):
    w = T.zeros(3, requires_grad=True)
    w -= 0.1


@mistake(
    "what the backward pass needs is changed in place",
    RuntimeError,
    "modified by an inplace operation",
    "out-of-place form",
    torch="c",
)
def _(T):
    h = T.randn(2, 3, requires_grad=True).sigmoid()
    h += 1
    h.sum().backward()


@mistake("backward twice", RuntimeError, "second time", "retain_graph=True", torch="cm")
def _(T):
    loss = (T.randn(3, requires_grad=True) ** 2).sum()
    loss.backward()
    loss.backward()


@mistake("the state of an RNN carried over", RuntimeError, "second time.*state", r"state\.detach\(\)")
def _(T):
    cell, h = T.nn.RNNCell(4, 8), T.zeros(2, 8)
    for _ in range(2):
        h = cell(T.randn(2, 4), h)
        h.sum().backward()


@mistake("backward of a vector", RuntimeError, "only for scalar outputs", r"\.sum\(\)", torch="c")
def _(T):
    (T.randn(3, requires_grad=True) * 2).backward()


@mistake("the loss wrapped in tensor()", RuntimeError, r"does not require grad.*tensor\(\)", "use the result itself")
def _(T):
    loss = (T.randn(3, requires_grad=True) ** 2).sum()
    T.tensor(loss).backward()


@mistake("forward pass under no_grad", RuntimeError, r"does not require grad.*no_grad\(\)", r"outside of no_grad\(\)")
def _(T):
    with T.no_grad():
        loss = net(T)(T.randn(4, 4)).sum()
    loss.backward()


@mistake("numpy() of a tensor that requires grad", RuntimeError, "requires grad", r"detach\(\)\.numpy\(\)", torch="cm")
def _(T):
    T.randn(3, requires_grad=True).numpy()


@mistake("NumPy's functions on a tensor that requires grad", None, "", "", works=True)
def _(T):
    x = T.randn(3, requires_grad=True)
    np.sin(x).sum().backward()


@mistake(".grad of a result", UserWarning, "not a leaf", r"retain_grad\(\)", torch="cm")
def _(T):
    _ = (T.randn(3, requires_grad=True) * 2).grad


@mistake(
    "gradients of integers",
    RuntimeError,
    "floating point and complex dtype can require gradients",
    "dtype|float",
    torch="cm",
)
def _(T):
    T.tensor([1, 2], requires_grad=True)


@mistake("requires_grad of a result turned off", RuntimeError, "leaf variables", r"detach\(\)", torch="cm")
def _(T):
    (T.randn(3, requires_grad=True) * 2).requires_grad_(False)


@mistake("deepcopy of a result", RuntimeError, "created explicitly by the user", r"detach\(\)|clone\(\)", torch="c")
def _(T):
    copy.deepcopy(T.randn(3, requires_grad=True) * 2)


@mistake("argmax in the loss", RuntimeError, "does not require grad.*argmax", "differentiable loss")
def _(T):
    logits = net(T)(T.randn(4, 4))
    loss = (logits.argmax(1) - T.tensor([0, 1, 2, 0])).abs().float().mean()
    loss.backward()


@mistake("// in the loss", RuntimeError, "derivative.*floor_divide", r" / ", torch="c")
def _(T):
    x = T.randn(3, requires_grad=True)
    (x // 2).sum().backward()


@mistake(".data written between forward and backward", None, r"changed through \.data", r"after backward\(\)")
def _(T):
    model, x = net(T), T.randn(4, 4)

    def step():
        h = model[0](x).exp()
        h.data.clamp_(max=1)
        h.sum().backward()

    return (step,)


@mistake("squeeze() that removes the batch dimension", None, "batch dimension of a batch of one", r"squeeze\(-1\)")
def _(T):
    model = T.nn.Linear(4, 1)
    return (lambda: model(T.randn(1, 4)).squeeze().sum().backward()), model


# ---- NaN -------------------------------------------------------------------------------------------------------------

section("NaN")


@mistake(
    "log of 0 in the loss, in anomaly mode", RuntimeError, "LogBackward0' returned nan", "add a small number", torch="c"
)
def _(T):
    x = T.zeros(3, requires_grad=True)
    with T.autograd.set_detect_anomaly(True):
        T.where(x > 0, x.log(), x).sum().backward()


@mistake(
    "root of 0 in the loss, in anomaly mode",
    RuntimeError,
    "SqrtBackward0' returned nan",
    "add a small number",
    torch="c",
)
def _(T):
    x = T.zeros(3, requires_grad=True)
    with T.autograd.set_detect_anomaly(True):
        (x.sqrt() * 0).sum().backward()


@mistake("a loss that is NaN", None, "NaN: .*", "look at the values")
def _(T):
    model, x = net(T), -T.ones(2, 4)
    return (lambda: (model(x) * 0 - 1).log().sum().backward()), model


# ---- dtypes and devices ----------------------------------------------------------------------------------------------

section("Dtypes and devices")


@mistake(
    "float64 from NumPy into a model of float32",
    RuntimeError,
    "(?i)same dtype.*(float64|double)",
    r"\.to\(|float\(\)",
    torch="c",
    where="0",
)
def _(T):
    net(T)(T.from_numpy(np.ones((2, 4))))


@mistake(
    "integers into Linear", RuntimeError, "(?i)same dtype.*(int64|long)", r"\.to\(|float\(\)", torch="c", where="0"
)
def _(T):
    net(T)(T.ones(2, 4, dtype=T.int64))


@mistake("floats into Embedding", RuntimeError, "indices.*Long", r"long\(\)", torch="c", where="Embedding")
def _(T):
    T.nn.Embedding(10, 4)(T.ones(3))


@mistake(
    "a token that the Embedding has not", IndexError, "index 10 .*size 10|10 rows", "num_embeddings", where="Embedding"
)
def _(T):
    T.nn.Embedding(10, 4)(T.tensor([3, 10]))


@mistake("a GPU that is not there", AssertionError, "(?i)not compiled with CUDA", "cuda.is_available", torch="c")
def _(T):
    net(T).to("cuda")


@mistake("tensors on two devices", RuntimeError, "device.*meta.*cpu", r"\.to\(")
def _(T):
    net(T)(T.ones(2, 4, device="meta"))


@mistake("a file of a GPU where there is none", RuntimeError, "(?i)cuda", "map_location", torch="cm")
def _(T):
    made, changed = io.BytesIO(), io.BytesIO()
    T.save(T.ones(2), made)
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("data.pkl"):
                data = data.replace(b"X\x03\0\0\0cpu", b"X\x06\0\0\0cuda:0")
            new.writestr(name, data)
    changed.seek(0)
    T.load(changed)


# ---- modules ---------------------------------------------------------------------------------------------------------

section("Modules")


@mistake("layers in a Python list", ValueError, "empty parameter list.*list", "ModuleList")
def _(T):
    class N(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [T.nn.Linear(4, 4)]

    T.optim.SGD(N().parameters(), lr=0.1)


@mistake("super().__init__() forgotten", AttributeError, "before Module.__init__", r"super\(\).__init__", torch="c")
def _(T):
    class N(T.nn.Module):
        def __init__(self):
            self.layer = T.nn.Linear(4, 4)

    N()


@mistake("a module called when it is made: ReLU(x)", TypeError, "not ReLU", r"ReLU\(\)\(x\)", torch="c")
def _(T):
    layer = T.nn.Linear(4, 4)
    layer(T.nn.ReLU(T.randn(2, 4)))


@mistake("forward() misspelt", NotImplementedError, 'missing the required "forward"', "foward", torch="c")
def _(T):
    class N(T.nn.Module):
        def foward(self, x):
            return x

    N()(T.ones(2))


@mistake(
    "load_state_dict() of another architecture",
    RuntimeError,
    r"Missing key.*1\.weight",
    "as the one that was saved",
    torch="c",
)
def _(T):
    nn = T.nn
    one, other = (
        nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)),
        nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)),
    )
    one.load_state_dict(other.state_dict())


@mistake("load_state_dict() of DataParallel's", RuntimeError, r"Unexpected key.*module\.weight", "prefix", torch="c")
def _(T):
    layer = T.nn.Linear(4, 4)
    layer.load_state_dict({f"module.{name}": value for name, value in layer.state_dict().items()})


@mistake(
    "a misspelt argument",
    TypeError,
    "Conv2d.__init__.*unexpected keyword argument 'kernel_sise'",
    "kernel_size'",
    torch="c",
)
def _(T):
    T.nn.Conv2d(3, 8, kernel_sise=3)


# ---- optimisers ------------------------------------------------------------------------------------------------------

section("Optimisers")


@mistake("parameters without the call", TypeError, "method", r"parameters\(\)", torch="c")
def _(T):
    T.optim.SGD(net(T).parameters, lr=0.1)


@mistake(
    "the model in place of its parameters", TypeError, "'Linear' object is not iterable", r"parameters\(\)", torch="c"
)
def _(T):
    T.optim.SGD(T.nn.Linear(2, 2), lr=0.1)


@mistake(
    "scheduler.step() before optimizer.step()", UserWarning, "before `optimizer.step", "opposite order", torch="cm"
)
def _(T):
    optimizer = T.optim.SGD(net(T).parameters(), lr=0.1)
    T.optim.lr_scheduler.StepLR(optimizer, 1).step()


@mistake("the learning rate as text", TypeError, "lr .*number.*str", r"float\(")
def _(T):
    T.optim.Adam(net(T).parameters(), lr="1e-3")


@mistake("parameters that the optimizer never got", None, "no optimizer has 2.weight", "after the model is complete")
def _(T):
    model = net(T)
    optimizer = T.optim.SGD(model[0].parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        model(T.randn(4, 4)).sum().backward()
        optimizer.step()

    return step, model, optimizer


# ---- data ------------------------------------------------------------------------------------------------------------

section("Data")


class Failing:
    """A data set with an error."""

    def __len__(self):
        return 2

    def __getitem__(self, i):
        return {}["label"]


@mistake("an error in a worker of a DataLoader", KeyError, "KeyError in DataLoader worker", "num_workers=0", torch="c")
def _(T):
    next(iter(T.utils.data.DataLoader(Failing(), num_workers=1)))


@mistake("a lambda in a worker that is spawned", AttributeError, "local object", "top of a module", torch="c")
def _(T):
    class Squares(T.utils.data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return i * i

    next(iter(T.utils.data.DataLoader(Squares(), num_workers=1, multiprocessing_context="spawn")))


@mistake("an iterable data set shuffled", ValueError, "unspecified shuffle", r"__iter__", torch="c")
def _(T):
    class Stream(T.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(3))

    T.utils.data.DataLoader(Stream(), shuffle=True)


@mistake("a data set without a length", TypeError, r"has no len\(\)", "__len__.*IterableDataset", torch="c")
def _(T):
    class Numbers(T.utils.data.Dataset):
        def __getitem__(self, i):
            return i

    T.utils.data.DataLoader(Numbers(), shuffle=True)


# ---- tensors ---------------------------------------------------------------------------------------------------------

section("Tensors")


@mistake(
    "if on a tensor of several elements",
    RuntimeError,
    "more than one value is ambiguous",
    r"any\(\) or all\(\)",
    torch="c",
)
def _(T):
    if T.ones(3) > 0:
        pass


@mistake("a mask of floats as an index", IndexError, "tensors used as indices", r"bool\(\)", torch="c")
def _(T):
    x = T.randn(4)
    x[(x > 0).float()]


@mistake("tensor() of lists of unequal lengths", ValueError, "expected sequence of length 2 at dim 1", "pad", torch="c")
def _(T):
    T.tensor([[1, 2], [3]])


@mistake("from_numpy() of objects", TypeError, "numpy.object_", "supported types are|astype", torch="cm")
def _(T):
    T.from_numpy(np.array([1, None], dtype=object))


@mistake("from_numpy() of a list", TypeError, "got list", r"tensor\(", torch="c")
def _(T):
    T.from_numpy([1, 2])


@mistake("a write to an expanded tensor", RuntimeError, "single memory location", "clone", torch="cm")
def _(T):
    T.zeros(1, 3).expand(2, 3).add_(1)


@mistake("gather with an index of floats", RuntimeError, "int64", r"long\(\)", torch="c")
def _(T):
    T.randn(3, 4).gather(1, T.zeros(3, 1))


@mistake("gather with an index that is too large", RuntimeError, r"\[5, 1\].*\[3, 4\]", r"index\[", torch="c")
def _(T):
    T.randn(3, 4).gather(1, T.zeros(5, 1, dtype=T.int64))


@mistake("a number in place of a tensor", TypeError, "must be Tensor, not float", r"tensor\(", torch="c")
def _(T):
    T.relu(1.5)


@mistake("a list in place of a tensor", TypeError, "must be Tensor, not list", r"tensor\(", torch="c", where="0")
def _(T):
    net(T)([1.0, 2.0, 3.0, 4.0])


@mistake("a misspelt function", AttributeError, "no attribute 'sofmax'", "softmax", torch="c")
def _(T):
    T.sofmax(T.randn(2, 3), 1)


@mistake("a method of NumPy's arrays", AttributeError, "no attribute 'astype'", "", torch="c")
def _(T):
    T.ones(2).astype("float64")
