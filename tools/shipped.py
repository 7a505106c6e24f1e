"""Compiles the kernels that a wheel brings along, for AVX2 and for the processors with AVX-512.

    python tools/shipped.py FILE             # taeda/kernels/shipped.pack in the sources that a wheel is made of

Programs are run, two steps each: what a newcomer runs first (``PROGRAMS``, of ``bench/workloads.py``), the README's
example and ``examples/regression.py``. The texts of the kernels that they used are compiled for each target. Extensions
of AVX-512 differ between processors; most kernels' code does not, and is kept once. A computer without AVX-512 compiles
those for AVX2 alone, and says so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEVELS = {"avx2": "x86-64-v3", "avx512": "x86-64-v4"}
#: Of AVX-512, as ``target.host()`` writes them: Skylake, Cascade Lake, Cooper Lake, Ice Lake, Sapphire Rapids.
EXTENSIONS = (
    "",
    "+avx512vnni",
    "+avx512bf16 +avx512vnni",
    "+avx512vnni +avx512vbmi",
    "+avx512bf16 +avx512vnni +avx512vbmi",
)
PROGRAMS = (
    "char-GPT 4 layers, 128 wide, context 64, batch 12, AdamW",
    "MNIST CNN, batch 64, Adadelta",
    "MLP 784-512-512-10, batch 128, SGD",
    "MLP 4-64-64-2, batch 32, Adam",
)


def first_example() -> str:
    """The program of the README."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[0]


def run_programs() -> None:
    """Two steps of each program, in this process: in the second an optimiser has its state."""
    import taeda

    sys.path.insert(0, str(ROOT / "bench"))
    import workloads

    for name in PROGRAMS:
        taeda.manual_seed(0)
        step = workloads.WORKLOADS[name][0](taeda)
        for _ in range(2):
            step()
    exec(compile(first_example(), "README.md", "exec"), {"__name__": "__main__"})
    example = str(ROOT / "examples" / "regression.py")
    sys.argv = [example]  # it has arguments of its own
    runpy.run_path(example, run_name="__main__")


def write_texts(path: str) -> None:
    """The kernels that the programs use on this process's target, as JSON: its key, digests and texts."""
    from taeda.kernels import build, target

    run_programs()
    kernels = [build.source(address) for address in build.names()]
    texts = {build.text_digest(f, f.text()): build.module_text(f) for f in kernels}
    host = target.host()
    Path(path).write_text(json.dumps([[host.cpu, host.features], texts]))


def targets_of(cpu: str, features: str) -> list:
    """The targets of a level, as ``target.host()`` gives them on the processors that there are."""
    from taeda.kernels.target import Target, host

    fixed = [x for x in features.split(",") if x and not x.startswith("+")]
    extensions = EXTENSIONS if cpu == "x86-64-v4" else [""]
    return [Target(host().triple, cpu, ",".join([*fixed, *some.split()]), 0) for some in extensions]


def compiled(cpu: str, features: str, texts: dict[str, str]) -> list[tuple[str, str, bytes]]:
    """(digest, target's key, object code) of all texts for all targets of a level."""
    from taeda.kernels.build import Compiler

    found = []
    for target in targets_of(cpu, features):
        compiler = Compiler(target)
        for digest, text in texts.items():
            needs = '"target-features"' in text or "@llvm.x86." in text  # written for the extensions that are here
            if not needs or set(features.split(",")) <= set(target.features.split(",")):
                found.append((digest, target.key, compiler.object(text)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--texts", action="store_true", help="write the texts of this process's target instead")
    args = parser.parse_args()
    if args.texts:
        write_texts(args.file)
        return
    from taeda.kernels import build, shipped

    kernels = []
    with tempfile.TemporaryDirectory() as folder:
        for level, name in LEVELS.items():
            path = os.path.join(folder, level)
            env = {**os.environ, "TAEDA_TARGET": level, "TAEDA_CACHE": os.path.join(folder, "cache")}
            subprocess.run([sys.executable, __file__, "--texts", path], env=env, check=True, cwd=folder)
            (cpu, features), texts = json.loads(Path(path).read_text())
            if cpu != name:
                print(f"This computer has no {level}: its kernels are not shipped.", flush=True)
                continue
            kernels += compiled(cpu, features, texts)
    version = build._compiler_version()
    shipped.write(Path(args.file), version, kernels)
    pack = shipped.Pack(version, Path(args.file))
    print(f"{pack.kernels} kernels, {Path(args.file).stat().st_size / 1e6:.1f} MB, for")
    print("\n".join(pack.targets))


if __name__ == "__main__":
    main()
