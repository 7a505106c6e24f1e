"""An archive is a stranger's: what is damaged or means harm gives an exception, and no code of Python's runs."""

import io
import pickle
import random
import sys
import zipfile

import pytest

import taeda

torch = pytest.importorskip("torch")
from programs import PROGRAMS  # noqa: E402
from test_archive import archive, ours  # noqa: E402

SEEN = ["detector", "streaming", "text", "named_tuples", "enums", "classes", "interfaces", "indexing", "futures"]


def records(data):
    """The records of an archive by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def packed(entries):
    """An archive of records."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def archives():
    torch.manual_seed(0)
    return [records(archive(torch.jit.script(PROGRAMS[name]()[0].eval()))) for name in SEEN]


def mutated(rng, content, pieces):
    """The content with some bytes changed, dropped, doubled or taken from elsewhere."""
    out = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(out) + 1)
        how = rng.randrange(6)
        if how == 0 and out:
            out[min(at, len(out) - 1)] = rng.randrange(256)
        elif how == 1:
            del out[at : at + rng.choice((1, 4, 30))]
        elif how == 2:
            out[at:at] = out[at : at + rng.choice((1, 4, 60))]
        elif how == 3:
            out[at:at] = rng.choice(pieces)
        elif how == 4:
            word = rng.choice(pieces)
            out[at : at + len(word)] = word
        else:
            out[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 3))))
    return bytes(out)


def fuzz(archives, seed, count):
    """Load ``count`` damaged archives; how many loaded all the same."""
    rng = random.Random(seed)
    pieces = [
        b"torch.",
        b"self",
        b"(",
        b")",
        b"[0]",
        b"List[",
        b"Tensor",
        b"0",
        b"-1",
        b"None",
        b"\n",
        b"  ",
        b"q\x00",
        b"c",
        b"__torch__",
    ]
    pieces += [
        line.strip() + b"\n" for a in archives for n, c in a.items() if n.endswith(".py") for line in c.splitlines()
    ]
    loaded = 0
    for _ in range(count):
        entries = dict(rng.choice(archives))
        names = [n for n in entries if n.endswith((".py", ".pkl")) or rng.random() < 0.05]
        name = rng.choice(names)
        how = rng.random()
        if how < 0.85:
            entries[name] = mutated(rng, entries[name], pieces)
        elif how < 0.9:
            del entries[name]
        data = packed(entries)
        if how > 0.9:
            data = mutated(rng, data, pieces) if how > 0.95 else data[: rng.randrange(len(data))]
        try:
            taeda.jit.load(io.BytesIO(data))
            loaded += 1
        except (RuntimeError, pickle.UnpicklingError, EOFError, ValueError):
            pass
    return loaded


def test_damaged_archives_give_exceptions(archives):
    assert 0 < fuzz(archives, 1, 3000) < 2000


@pytest.mark.sweep
def test_many_damaged_archives(archives):
    for seed in range(2, 52):
        assert fuzz(archives, seed, 3000) < 2000


def program(body, extra="", result="Tensor", attributes=""):
    """An archive whose ``forward`` has a body."""
    code = f"class P(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n{attributes}"
    code += f"  def forward(self: __torch__.P,\n    x: Tensor) -> {result}:\n    {body}\n{extra}"
    data = b"\x80\x02c__torch__\nP\n)\x81}X\x08\x00\x00\x00training\x89sb."
    return packed({
        "a/data.pkl": data, "a/code/__torch__.py": code.encode(), "a/constants.pkl": b"\x80\x02).", "a/version": b"3\n"
    })  # fmt: skip


HOSTILE = [
    "return torch.os.system(x)", "return ops.os.system(x)", "return (x).__class__", "return getattr(x, \"__class__\")",
    "return getattr(self, \"__dict__\")", "return torch.__class__(x)", "return __import__(\"os\")",
    "return eval(\"x\")",
    "return exec(\"x\")", "return open(\"/etc/passwd\")", "import os\n    return x", "return (lambda: x)()",
    "return ().__class__.__bases__", "return self.__init__(x)", "return self.forward.__globals__",
    "return x.__reduce__()",
    "return torch.load(\"f\")", "return torch.save(x, \"f\")", "return torch.from_file(\"/etc/passwd\")",
    "return taeda.zeros(x)",
    "return torch.nothing(x)", "return ops.mine.op(x)", "return CONSTANTS.c0", "return __torch__.os.system(x)",
    "return y",
    "return torch.add(x)", "return torch.add(x, \"text\")", "return 3", "return [x for x in [x]]",
    "global x\n    return x", "try:\n      return x\n    except:\n      return x", "return print",
    "return __builtins__", "yield x", "return await_(x)", "return x if x else", "return self.nothing",
    "return " + "(" * 500 + "x" + ")" * 500, "return " + "-" * 100_000 + "x",
    "return " + "torch.neg(" * 95 + "x" + ")" * 95,
]  # fmt: skip


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_op_is_refused(body):
    with pytest.raises((RuntimeError, pickle.UnpicklingError)):
        taeda.jit.load(io.BytesIO(program(body)))


@pytest.mark.parametrize(
    "extra",
    [
        "class T(NamedTuple):\n  __class__ : Tensor\ndef f(x: __torch__.T) -> Tensor:\n  return x.__class__\n",
        "class T(NamedTuple):\n  a : __torch__.T\n",
        "class E(Enum):\n  A = __import__('os')\n",
        "class C:\n  a : List[int] = torch.mul([0], 1000000000)\n",
    ],
)
def test_types_that_mean_harm_are_refused(extra):
    body = "y = annotate(Optional[__torch__.{}], None)\n    return x".format(
        extra.split("(")[0].split(":")[0].split()[1]
    )
    with pytest.raises((RuntimeError, pickle.UnpicklingError, ValueError)):
        taeda.jit.load(io.BytesIO(program(body, extra)))


def test_text_of_formats_reaches_no_attribute():
    module = taeda.jit.load(io.BytesIO(program('return torch.format("{0.__class__} {} {!r}", x)', result="str")))
    assert module(taeda.ones(1)).startswith("{0.__class__} tensor")


def test_endless_recursion_is_an_exception():
    module = taeda.jit.load(io.BytesIO(program("return (self).forward(x)")))
    with pytest.raises(RuntimeError):
        module(taeda.ones(1))


def test_no_code_of_python_runs():
    """No ``exec``, no import and no compilation but to a syntax tree, from the first byte to the result."""
    events = []
    watching = []

    def hook(event, args):
        if watching and event in ("exec", "compile", "import", "os.system", "subprocess.Popen", "open"):
            events.append((event, args[0] if event != "compile" else type(args[0]).__name__))

    sys.addaudithook(hook)
    torch.manual_seed(0)
    made = [(archive(torch.jit.script(PROGRAMS[name]()[0].eval())), PROGRAMS[name]()[1]) for name in SEEN]
    for data, calls in made:  # once before, for what is imported when first used
        module = taeda.jit.load(io.BytesIO(data))
        for method, args in calls:
            getattr(module, method)(*ours(args))
    for data, calls in made:
        converted = [(method, ours(args)) for method, args in calls]
        watching.append(1)
        module = taeda.jit.load(io.BytesIO(data))
        for method, args in converted:
            getattr(module, method)(*args)
        watching.clear()
    assert [e for e in events if e[0] != "compile"] == [] and len(events) > 0


def test_division_is_that_of_the_file():
    data = program("return torch.div(x, 2)")
    for version, expected in ((b"3\n", [-3, 3]), (b"4\n", [-3.5, 3.5])):
        entries = records(data)
        entries["a/version"] = version
        assert taeda.jit.load(io.BytesIO(packed(entries)))(taeda.tensor([-7, 7])).tolist() == expected
    entries["a/version"] = b"11\n"
    old = records(program("return torch.full([2], 3, dtype=None, layout=None, device=None, pin_memory=None) + x"))
    old["a/version"] = b"4\n"
    with pytest.raises(RuntimeError, match="full with an int"):  # it gave floats
        taeda.jit.load(io.BytesIO(packed(old)))(taeda.tensor([1, 2]))
    with pytest.raises(RuntimeError, match="version"):
        taeda.jit.load(io.BytesIO(packed(entries)))
