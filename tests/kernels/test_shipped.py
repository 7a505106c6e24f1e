"""Kernels that a wheel brings along are found by text and target, and are used instead of compiling."""

import hashlib

import pytest

from taeda.kernels import shipped, target


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def pack(tmp_path):
    path = tmp_path / "shipped.pack"
    for_both, for_one, other = b"both" * 50, b"one" * 70, b"another" * 20
    kernels = [(_digest("x"), "a", for_both), (_digest("x"), "b", for_both)]
    kernels += [(_digest("y"), "a", for_one), (_digest("y"), "b", other)]
    shipped.write(path, "1", [*kernels, *((_digest(str(n)), "a", b"%d" % n) for n in range(100))])
    return path


def test_every_kernel_is_found_for_its_targets_alone(pack):
    found = shipped.Pack("1", pack)
    assert found.targets == ["a", "b"]
    assert found.kernels == 103  # equal code of "x" once
    assert found.find(_digest("x"), "a") == found.find(_digest("x"), "b") == b"both" * 50
    assert (found.find(_digest("y"), "a"), found.find(_digest("y"), "b")) == (b"one" * 70, b"another" * 20)
    assert [found.find(_digest(str(n)), "a") for n in range(100)] == [b"%d" % n for n in range(100)]
    assert found.find(_digest("7"), "b") is None  # of target a alone
    assert found.find(_digest("x"), "c") is None
    assert found.find(_digest("z"), "a") is None


def test_without_a_file_there_are_no_kernels(tmp_path):
    found = shipped.Pack("1", tmp_path / "none")
    assert found.find(_digest("x"), target.host().key) is None


def test_damaged_code_is_not_used(pack):
    content = bytearray(pack.read_bytes())
    content[-3:] = b"\0\0\0"  # in the checksum of what is last, the code of the largest hash
    pack.write_bytes(content)
    last = max([*map(str, range(100)), "x", "y"], key=_digest)
    found = shipped.Pack("1", pack)
    damaged = found.find(_digest(last), "a"), found.find(_digest(last), "b")
    assert None in damaged
    first = min(map(str, range(100)), key=_digest)
    assert found.find(_digest(first), "a") == first.encode()


@pytest.mark.parametrize("size", [0, 1, 30, 60, 100, 500])
def test_a_file_that_is_cut_off_is_as_none(pack, size):
    content = pack.read_bytes()
    for damaged in (content[:size], b"\0" * size, b"[1]\n" + content, content.replace(b'"kernels"', b'"kernel"')):
        pack.write_bytes(damaged)
        assert shipped.Pack("1", pack).find(_digest("x"), "a") is None


def test_the_kernels_of_another_compiler_are_not_used(pack):
    assert shipped.Pack("2", pack).find(_digest("x"), "a") is None


_PROGRAM = """
import pathlib, sys
import taeda
from taeda.kernels import build, shipped, target
path, way = sys.argv[1:]
compiled = []
object = build.Compiler.object
build.Compiler.object = lambda self, text: compiled.append(text) or object(self, text)
if way == "read":
    pack = shipped.Pack(build._compiler_version(), pathlib.Path(path))
    build._shipped = lambda: pack
print(((taeda.arange(10.0) * 3).sin() + 0.5).sum().item(), len(compiled) > 0)
if way == "write":
    kernels = [build.source(address) for address in build.names()]
    compiler, key = build.compiler(), target.host().key
    shipped.write(pathlib.Path(path), build._compiler_version(), [
        (build.text_digest(f, f.text()), key, object(compiler, build.module_text(f))) for f in kernels
    ])
"""


def test_a_program_takes_its_kernels_from_the_file(run_python, tmp_path):
    path = str(tmp_path / "shipped.pack")
    value, compiled = run_python(_PROGRAM, path, "write", TAEDA_CACHE=str(tmp_path / "first")).split()
    assert compiled == "True"
    again = run_python(_PROGRAM, path, "read", TAEDA_CACHE=str(tmp_path / "second")).split()
    assert again == [value, "False"]
    assert not list((tmp_path / "second").rglob("*.o"))
