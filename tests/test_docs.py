"""The programs in the documentation and the small examples run, and end where they should."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


FOLDERS = ["docs", "docs/first", "docs/site"]
PAGES = ["README.md", *sorted(f"{folder}/{path.name}" for folder in FOLDERS for path in (ROOT / folder).glob("*.md"))]
CHAPTERS = sorted(f"docs/how/{path.name}" for path in (ROOT / "docs/how").glob("*.md"))
#: What a page's blocks need that is not always there.
NEEDED = {"docs/onnx.md": "onnx.helper", "docs/first/training.md": "matplotlib"}
#: A block and what it prints, in the block after it.
PRINTS = re.compile(r"^```python\n(.*?)^```$(?:\n+^```text\n(.*?)^```$)?", re.S | re.M)


def _fences(page: str) -> list[tuple[str, str]]:
    """What stands between fences, each with the words after its first one."""
    return re.findall(r"^```([^\n]*)\n(.*?)^```$", (ROOT / page).read_text(), re.S | re.M)


def _blocks(page: str) -> list[tuple[str, str]]:
    """The Python blocks of a page, each with the reason, after ``python`` in its first line, why it is not run."""
    return [(info[6:].strip(), code) for info, code in _fences(page) if info.startswith("python")]


def _run(name: str, monkeypatch, *args: str) -> None:
    monkeypatch.setattr(sys, "argv", [name, *args])
    runpy.run_path(str(ROOT / name), run_name="__main__")


#: Runs the blocks of a page, given as JSON, one after the other. A process each: the page on the stand-in installs it.
RUN = """
import json, sys
names = {"__name__": "__main__"}
for number, block in enumerate(json.load(sys.stdin)):
    print(f"== block {number}")
    exec(compile(block, sys.argv[1], "exec"), names)
"""


@pytest.mark.parametrize("page", [page for page in PAGES if _blocks(page)])
def test_code_in_pages(page, tmp_path):
    """The blocks of a page run one after the other, in a process and a folder of their own."""
    if page in NEEDED:
        pytest.importorskip(NEEDED[page])
    blocks = [block for reason, block in _blocks(page) if not reason]
    if page == "README.md":
        blocks.append("assert loss.item() < 0.5")
    done = subprocess.run(
        [sys.executable, "-c", RUN, page], input=json.dumps(blocks), cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    text = (ROOT / page).read_text()
    printed = re.split(r"^== block \d+\n", done.stdout, flags=re.M)[1:]
    for (code, expected), found in zip(PRINTS.findall(text), printed, strict=False):
        assert not expected or found == expected, code
    for picture in re.findall(r"!\[[^\]]*\]\((\w+\.svg)\)", text):
        assert page.count("/") == 1 or (tmp_path / picture).stat().st_size > 1000, picture


#: Runs the pieces of a page in docs/how, (a block, the output that it shows or None): the outputs must be equal.
CHAPTER = """
import contextlib, io, json, sys
names = {"__name__": "__main__"}
for block, shown in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(block, sys.argv[1], "exec"), names)
    assert (shown or "") == out.getvalue(), f"{block} printed {out.getvalue()!r}, and the page shows {shown!r}"
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_the_program_in_c_that_uses_a_library(tmp_path):
    """What the page on deploying says, in a folder of its own: the library, the program, and the command between."""
    fences = _fences("docs/deploy.md")
    ((program,), (command,)) = ([code for _, code in fences if word in code] for word in ("int main", "./main"))
    (tmp_path / "main.c").write_text(program)
    blocks = [code for info, code in fences if info == "python"][:1]
    blocks.append("print(*model(taeda.zeros(1, 1, 8, 8)).flatten().tolist())")
    done = subprocess.run(
        [sys.executable, "-c", RUN, "deploy"], input=json.dumps(blocks), cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    want = [float(x) for x in done.stdout.splitlines()[-1].split()]
    found = subprocess.run(["sh", "-ec", command], cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert [float(x) for x in found.stdout.split()] == pytest.approx(want, rel=1e-7)


@pytest.mark.parametrize("page", CHAPTERS)
def test_chapters_run_alone_and_print_what_they_show(page, tmp_path):
    """Each of *How it works*, in a process that finds ``small.py`` beside the pages."""
    pieces = re.findall(r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", (ROOT / page).read_text(), re.S | re.M)
    assert len(pieces) > 8
    path = os.pathsep.join([str(ROOT / "docs/how"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", CHAPTER, page], input=json.dumps(pieces), cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_chapters_are_short_enough_to_read():
    """Six of them, at most 600 lines of code in all, without docstrings; blocks of at most 25 lines."""
    assert [page[9] for page in CHAPTERS] == list("123456")
    codes = [re.sub(r'^ *""".*?"""$', "", code, flags=re.S | re.M) for page in CHAPTERS for _, code in _blocks(page)]
    blocks = [[line for line in code.splitlines() if line.strip()] for code in codes]
    assert 400 < sum(map(len, blocks)) <= 600
    assert max(map(len, blocks)) <= 25, max(blocks, key=len)


def test_every_block_of_code_is_run():
    """None is left out, by a reason or since it does not say that it is Python."""
    blocks = [(page, *block) for page in [*PAGES, *CHAPTERS] for block in _blocks(page)]
    assert len(blocks) > 50 and [(page, reason) for page, reason, _ in blocks if reason] == []
    others = [(page, code) for page in [*PAGES, *CHAPTERS] for info, code in _fences(page) if not info]
    assert [page for page, code in others if re.search(r"^(import|from|with|def) ", code, re.M)] == []


#: A file with its folder, or of the kinds that only this project has: (the ../ of a link), the path.
NAMED = re.compile(
    r"(?<![\w/.:~*<>-])(?:\.\./)*((?:\w[\w.-]*/)+[\w.-]*\w\.(?:py|md|pyx|pxd|pxi)|\w+\.(?:pyx|pxd|pxi))\b"
)


def _named(text: str, files: set[str]) -> list[str]:
    """The paths that ``text`` names, in full or from a folder inside, which are not among ``files``."""
    return [name for name in NAMED.findall(text) if not any(f"/{file}".endswith(f"/{name}") for file in files)]


def test_files_that_are_named_exist():
    folders = [ROOT / name for name in ("taeda", "docs", "bench", "tools", "examples", "tests")]
    found = [p for folder in folders for p in folder.rglob("*") if p.suffix in (".py", ".md", ".pyx", ".pxd", ".pxi")]
    found += [*ROOT.glob("*.md"), ROOT / "setup.py"]
    files = {path.relative_to(ROOT).as_posix() for path in found}
    readable = [path for path in found if ROOT / "tests" not in path.parents]  # tests name files that they make
    missing = {path.relative_to(ROOT).as_posix(): _named(path.read_text(), files) for path in readable}
    assert {path: names for path, names in missing.items() if names} == {}
    named = "`kernels/build.py`, [x](../docs/tour.py), call.pxi, taeda/kernels/*.py, https://x.org/a/b.py, no/such.py"
    assert _named(named, files) == ["no/such.py"]


def _body(path: str, function: str) -> str:
    """The text of ``function`` in ``path``, down to the next line that stands no further in."""
    lines = (ROOT / path).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if re.match(rf"\s*(?:cdef|cpdef|def)\b.*\b{function}\(", line))
    indent = len(lines[start]) - len(lines[start].lstrip())
    inside = (i for i in range(start + 1, len(lines)) if lines[i].strip() and not lines[i].lstrip().startswith(")"))
    end = next((i for i in inside if len(lines[i]) - len(lines[i].lstrip()) <= indent), len(lines))
    return "\n".join(lines[start + 1 : end])


def test_the_path_of_a_call_is_as_the_page_says():
    """Each function of a table in ``docs/path.md`` is in the file that is named, and calls the next one."""
    page = (ROOT / "docs/path.md").read_text()
    tables = [re.findall(r"^\| \d \| `(\w+)` \| `([^`]+)` \|", part, re.M) for part in page.split("\n## ")]
    tables = [table for table in tables if table]
    assert len(tables) == 2 and all(len(table) <= 6 for table in tables)  # at most six hops
    assert all(len({path for _, path in table}) <= 4 for table in tables)  # and the stanza's file is the fifth
    for table in tables:
        for (function, path), (following, _) in pairwise(table):
            assert re.search(rf"\b{following}\(", _body(path, function)), (function, following)
        _body(table[-1][1], table[-1][0])
    for function, path in re.findall(r"`(\w+)` in `(taeda/[\w./]+)`", page):
        assert _body(path, function) or function == "add", (function, path)


#: Where a function of the way to the plan has its result: what follows is recording.
PLANNED = {"run": "if out is not None:", "run_host": "if op.kind == MUTATES:\n        result"}


def test_the_way_to_the_plan_is_as_short_as_the_page_says():
    page = (ROOT / "docs/path.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)` \| (\d+) \|$", page, re.M)
    assert [name for name, _, _ in rows][:2] == ["op_call", "unusual"] and rows[-1][0] == "compute"
    for name, path, count in rows:
        body = re.sub(r'""".*?"""', "", _body(path, name), count=1, flags=re.S)
        if name in PLANNED:
            assert PLANNED[name] in body
            body = body.partition(PLANNED[name])[0]
        lines = [line for line in body.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        assert len(lines) + 1 == int(count), name
    whole, pointwise = re.search(r"These are (\d+) lines, (\d+) of them", page).groups()
    assert sum(int(count) for _, _, count in rows) == int(whole) <= 100
    assert int(pointwise) == int(whole) - sum(int(count) for name, _, count in rows if name in ("run_host", "compute"))


def test_tour(monkeypatch, capsys):
    _run("docs/tour.py", monkeypatch)
    text = capsys.readouterr().out
    assert "right 100.0%" in text
    assert "gradient agrees with finite differences: True" in text


def test_regression(monkeypatch, capsys):
    _run("examples/regression.py", monkeypatch)
    assert capsys.readouterr().out.startswith("y = 3.0")


def test_custom_function(monkeypatch, capsys):
    _run("examples/custom_function.py", monkeypatch)
    assert "[3.0, -1.0, 4.0]" in capsys.readouterr().out


def test_digits(monkeypatch, capsys):
    pytest.importorskip("sklearn")
    _run("examples/digits.py", monkeypatch, "--epochs", "3")
    accuracy = float(capsys.readouterr().out.split()[-1].rstrip("%"))
    assert accuracy > 90


def test_vae(monkeypatch, capsys):
    pytest.importorskip("sklearn")
    _run("examples/vae.py", monkeypatch, "--epochs", "10")
    nats = float(capsys.readouterr().out.split(":")[1].split()[0])
    assert nats < 27


def test_compiled_and_eager_losses_are_equal(monkeypatch, capsys):
    pytest.importorskip("tqdm")
    monkeypatch.syspath_prepend(ROOT / "examples")
    _run("examples/compile.py", monkeypatch, "--steps", "4")
    assert capsys.readouterr().out.splitlines()[-1] == "losses equal: True"


def test_char_gpt_learns(monkeypatch, capsys, tmp_path):
    pytest.importorskip("tqdm")
    pytest.importorskip("matplotlib")
    _run("examples/char_gpt.py", monkeypatch, "--steps", "60", "--plot", str(tmp_path / "curve.png"))
    last = capsys.readouterr().out.splitlines()[-1]
    assert re.fullmatch(r"held-out loss: \d\.\d\d nats/char", last)
    assert float(last.split()[2]) < 3.0
    assert (tmp_path / "curve.png").stat().st_size > 5000
