"""Operators of scripts on numbers at the edges, as PyTorch's scripts have them: integers wrap at 64 bits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from agree import imported

import taeda

torch = pytest.importorskip("torch")

LIMIT = 2**63
VALUES = {
    "int": [0, 1, -1, 2, -3, 7, 64, -64, 2**53 + 1, 2**62, -(2**62), LIMIT - 1, -LIMIT],
    "float": [0.0, -0.0, -1.5, 2.5, math.inf, -math.inf, math.nan, 1e300, 3e18, 9.3e18],
    "bool": [False, True],
    "Tensor": [1.5, -2.0, 0.0, 3, -7, 2**62, 0],
}
BINARY = "+ - * / // % ** << >> & | ^ == < >=".split()
UNARY = ["-a", "~a", "not a", "abs(a)", "int(a)", "float(a)", "bool(a)", "round(a)", "math.floor(a)", "math.ceil(a)"]
CALLS = ["min", "max", "math.fmod", "math.gcd", "divmod"]


def sources(kinds):
    """Bodies of functions, and the types of their parameters."""
    for (a, b), op in itertools.product(itertools.product(kinds, repeat=2), BINARY):
        yield f"return a {op} b", (a, b)
    for (a, b), op in itertools.product(itertools.product(("int", "float", "bool"), repeat=2), [*BINARY[:3], "%"]):
        yield f"a {op}= b; return a", (a, b)
    for call in CALLS:
        yield f"return {call}(a, b)", ("int", "int")
    for text, a in itertools.product(UNARY, kinds):
        yield f"return {text}", (a,)
    yield "return math.factorial(a)", ("int",)
    yield "return [i * a for i in range(3)]", ("int",)
    for a, op, b in itertools.product((LIMIT - 1, 3, -3), "+ - * // %".split(), (LIMIT - 1, -3, 2)):
        yield f"return {a} {op} {b}", ()


def module_of(package, programs, folder):
    text = [f"import math\nfrom {package} import Tensor\n"]
    for i, (body, kinds) in enumerate(programs):
        parameters = ", ".join(f"{name}: {kind}" for name, kind in zip("ab", kinds, strict=False))
        text.append(f"def f{i}({parameters}):\n" + "".join(f"    {line}\n" for line in body.split("; ")))
    path = folder / f"arithmetic_of_{package}.py"
    path.write_text("".join(text))
    return imported(path)


def ends_the_process(body, values):
    """Whether PyTorch divides by zero in the processor, or overflows there."""
    if not ("//" in body or "%" in body or "divmod" in body or "gcd" in body):
        return False
    whole = all(isinstance(v, int) for v in values)
    return bool(values) and whole and (not values[-1] or (values[0] == -LIMIT and values[-1] == -1) or "gcd" in body)


def outcome(lib, function, kinds, values):
    given = [lib.tensor(v) if kind == "Tensor" else v for kind, v in zip(kinds, values, strict=True)]
    try:
        made = function(*given)
    except Exception:
        return "refused"
    return repr(made.tolist()) + str(made.dtype).rpartition(".")[2] if isinstance(made, lib.Tensor) else repr(made)


def compiled(lib, function):
    try:
        return lib.jit.script(function)
    except Exception:
        return None


def is_known(body, kinds, values):
    """Whether taeda does otherwise on purpose: the sign of a zero of ``-b + a``, a tensor divided by a bool."""
    if kinds[-1:] == ("Tensor",) and body == "return a - b":
        return not values[0]
    return body == "return a // b" and kinds == ("Tensor", "bool")


def check(programs, folder):
    theirs, mine = module_of("torch", programs, folder), module_of("taeda", programs, folder)
    wrong = []
    for i, (body, kinds) in enumerate(programs):
        there = compiled(torch, getattr(theirs, f"f{i}"))
        if there is None:
            continue
        here = compiled(taeda, getattr(mine, f"f{i}"))
        assert here is not None, f"{body} of {kinds} is refused"
        for values in itertools.product(*[VALUES[kind] for kind in kinds]):
            if ends_the_process(body, values) or is_known(body, kinds, values):
                continue
            want, got = outcome(torch, there, kinds, values), outcome(taeda, here, kinds, values)
            if want != got:
                wrong.append(f"{body} of {values}: {got}, in PyTorch {want}")
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:20])


def test_numbers(tmp_path):
    check([*sources(("int", "float"))], tmp_path)


@pytest.mark.sweep
def test_numbers_booleans_and_tensors(tmp_path):
    check([*sources(VALUES)], tmp_path)


def test_an_integer_that_does_not_fit_is_refused():
    def same(n: int) -> int:
        return n

    with pytest.raises((RuntimeError, OverflowError)):
        taeda.jit.script(same)(2**63)
    with pytest.raises(RuntimeError):
        taeda.jit.script(parsed)("9223372036854775808")


def taken_as(lib, kind, value):
    function = {"int": whole, "float": real, "bool": flag, "complex": pair}[kind]
    try:
        return repr(lib.jit.script(function)(value))
    except RuntimeError:
        return "refused"


def whole(x: int):
    return x


def real(x: float):
    return x


def flag(x: bool):
    return x


def pair(x: complex):
    return x


@pytest.mark.parametrize("kind", ["int", "float", "bool", "complex"])
def test_numbers_that_are_given_for_another_kind(kind):
    given = [1, 0, 2, True, 1.5, None, 1j, 2**63, -(2**63), np.int64(3), np.float32(1.5), np.bool_(True), "a", [1], []]
    for value in given:
        assert taken_as(taeda, kind, value) == taken_as(torch, kind, value), value


def parsed(text: str) -> int:
    return int(text)


def generator(seed: int, n: int) -> int:
    for _ in range(n):
        seed = seed * 6364136223846793005 + 1442695040888963407
        seed ^= seed >> 29
        seed = seed << 7
    return seed


def total(n: int) -> int:
    return sum([n, n])


def text_hash(text: str) -> int:
    made = -3750763034362895579
    for c in text:
        made = (made ^ ord(c)) * 1099511628211
    return made


def test_a_sum_wraps_at_64_bits():
    assert taeda.jit.script(total)(2**62) == -(2**63)
    assert taeda.jit.script(total)(2**31) == 2**32  # PyTorch adds in 32 bits


def test_generators_and_hashes():
    for function, args in ((generator, (12345, 20)), (text_hash, ("a longer text",))):
        assert taeda.jit.script(function)(*args) == torch.jit.script(function)(*args)


def remainder_in_place(a: taeda.Tensor, b: taeda.Tensor):
    a %= b
    a <<= 1
    return a


def test_augmented_assignments_write_to_the_tensor():
    x = taeda.tensor([-7, 5])
    made = taeda.jit.script(remainder_in_place)(x, taeda.tensor(3))
    assert made is x and x.tolist() == [-2, 4]


def _text_of_complex(x: complex):
    return str(x), f"{x}", str([x])


def _float_of_text(x: str):
    return float(x)


def test_texts_of_numbers():
    ours, theirs = taeda.jit.script(_text_of_complex), torch.jit.script(_text_of_complex)
    for x in (1 + 2j, -1j, 0j, 1.5 - 0.25j, complex("nan+infj"), 1e20 + 1j, complex(-0.0, -0.0)):
        assert ours(x) == theirs(x)
    ours, theirs = taeda.jit.script(_float_of_text), torch.jit.script(_float_of_text)
    for text in ("1.5", "-inf", "0x10", "+5", "1e400", "-1e400", "1e-400", "0e5", "1_000", "1.5x", "1e", ""):
        found = []
        for function in (ours, theirs):
            try:
                found.append(function(text))
            except RuntimeError:
                found.append("refused")
        assert found[0] == found[1], text
