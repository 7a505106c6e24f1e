"""Device cuda on the emulated driver, which runs the PTX that a GPU would be sent.

Each test is a process of its own: a process has a CUDA device or has none.
"""

import re
from importlib.util import find_spec

import pytest

from . import ptxas
from .program import ROOT, emulated


def test_names_memory_copies_and_streams():
    out = emulated(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(ROOT / "tests/cuda/on_device.py")
    )
    skipped = "" if find_spec("torch") else "s"  # the test that reads PyTorch's names
    assert re.search(rf"^\.{{15,}}{skipped}\.* +\[100%\]$", out, re.MULTILINE), out  # none failed, no other was skipped


def test_graphs():
    out = emulated("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(ROOT / "tests/cuda/graphs.py"))
    assert re.search(r"^\.{30,} +\[100%\]$", out, re.MULTILINE), out


@pytest.mark.timeout(600)
def test_compiled_programs():
    path = str(ROOT / "tests/cuda/compiled.py")
    out = emulated("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", path)
    lines = re.findall(r"^(\.+) +\[ *(\d+)%\]$", out, re.MULTILINE)  # none failed, none was skipped
    assert lines and lines[-1][1] == "100" and sum(len(dots) for dots, _ in lines) > 50, out


@pytest.mark.timeout(600)
def test_errors_and_backward_passes_behind_the_program():
    out = emulated("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(ROOT / "tests/cuda/behind.py"))
    assert re.search(r"^\.{25,} +\[100%\]$", out, re.MULTILINE), out


def test_everyday_programs():
    path = str(ROOT / "tests/cuda/everyday.py")
    out = emulated("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", path)
    assert re.search(r"^[.s]{30,} +\[100%\]$", out, re.MULTILINE), out


def test_a_launch_that_is_waited_for_raises_in_its_call():
    code = (
        "import taeda\nx = taeda.ones(3, device='cuda')\nbad = taeda.tensor([0, 3], device='cuda')\n"
        "try: x[bad]\nexcept IndexError as error: print(error)\nprint(x.sum().item())"
    )
    out = emulated("-c", code, TAEDA_CUDA_BLOCKING="1")
    assert "index(): an index is out of range; called in <string>, line 4\n3.0\n" in out


def test_files_of_safetensors(tmp_path):
    pytest.importorskip("safetensors")
    code = f"""if True:
        import torch
        from safetensors import safe_open
        from safetensors.torch import load_file, load_model, save_file, save_model
        path = {str(tmp_path / "a.safetensors")!r}
        x = torch.arange(6.0).reshape(2, 3)
        names = "float64 float16 bfloat16 float8_e4m3fn bool int8 uint8 int16 uint16 int32 uint32 int64 uint64"
        made = {{name: x.to(getattr(torch, name)) for name in names.split()}} | {{"none": x[:0], "one": x.sum()}}
        for given in (made, {{name: t.cuda() for name, t in made.items()}}):
            save_file(given, path)
            for device, where in (("cuda", "cuda:0"), ("cuda:1", "cuda:1"), (1, "cuda:1")):
                back = load_file(path, device=device)
                assert all(str(t.device) == where for t in back.values())
                assert all(back[name].dtype is t.dtype and torch.equal(back[name].cpu(), t) for name, t in made.items())
        with safe_open(path, framework="pt", device="cuda") as file:
            assert file.get_slice("float64")[1:, ::2].tolist() == [[3.0, 5.0]] and file.get_tensor("int8").is_cuda
        model, other = (torch.nn.Linear(2, 3).cuda() for _ in range(2))
        save_model(model, path)
        load_model(other, path, device="cuda")
        assert torch.equal(model.weight, other.weight) and other.weight.is_cuda
        print("same")"""
    assert emulated("-m", "taeda.standin", "-c", code).endswith("same\n")


DEFAULT_AND_SWEEP = pytest.mark.parametrize(
    "chosen", ["not sweep", pytest.param("sweep or not sweep", marks=pytest.mark.sweep)]
)


@DEFAULT_AND_SWEEP
@pytest.mark.timeout(900)
def test_counters_of_the_schedules(chosen, tmp_path):
    """Sectors, bytes and conflicts of banks; NVIDIA's assembler takes each kernel and spills nothing."""
    path = str(ROOT / "tests/cuda/schedules.py")
    out = emulated(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", chosen, path, TAEDA_TARGET="lane",
        TAEDA_EMULATOR_KEEPS=str(tmp_path),
    )  # fmt: skip
    lines = re.findall(r"^(\.+) +\[ *(\d+)%\]$", out, re.MULTILINE)  # none failed, none was skipped
    assert lines and lines[-1][1] == "100" and sum(len(dots) for dots, _ in lines) > 25, out
    assembler = ptxas.find()
    if assembler is None:
        pytest.skip("ptxas was not found: the counters hold, but NVIDIA's assembler saw no kernel")
    texts = ptxas.kernels(tmp_path)
    assert len(texts) > 15
    for name, text in texts.items():
        report = ptxas.assemble(assembler, text, "sm_80")
        assert (report.refused, report.spilled) == ("", 0), name


@DEFAULT_AND_SWEEP
@pytest.mark.timeout(900)
def test_convolutions_by_tiles(chosen, tmp_path):
    """Values, cost and races; NVIDIA's assembler takes each kernel, and spills nothing for sm_80."""
    path = str(ROOT / "tests/cuda/convolutions.py")
    out = emulated(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", chosen, path, TAEDA_TARGET="lane",
        timeout=900, TAEDA_EMULATOR_KEEPS=str(tmp_path),
    )  # fmt: skip
    lines = re.findall(r"^(\.+) +\[ *(\d+)%\]$", out, re.MULTILINE)  # none failed, none was skipped
    assert lines and lines[-1][1] == "100" and sum(len(dots) for dots, _ in lines) > 12, out
    assembler = ptxas.find()
    if assembler is None:
        pytest.skip("ptxas was not found: the counters hold, but NVIDIA's assembler saw no kernel")
    texts = {name: text for name, text in ptxas.kernels(tmp_path).items() if name.startswith("convolve_tiles")}
    assert len(texts) > 10
    for name, text in texts.items():
        for architecture in ("sm_80",) if chosen == "not sweep" else ptxas.ARCHITECTURES:
            report = ptxas.assemble(assembler, text, architecture)
            assert not report.refused and report.spilled <= (0 if architecture == "sm_80" else 64), (name, architecture)


@DEFAULT_AND_SWEEP
@pytest.mark.timeout(900)
def test_attention_by_tiles(chosen, tmp_path):
    """Values, cost and races; NVIDIA's assembler takes each kernel, and few spill: gradients of rows of 128 numbers and
    more, and of float64, have more sums than a thread has registers."""
    path = str(ROOT / "tests/cuda/attention.py")
    out = emulated(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", chosen, path, timeout=900,
        TAEDA_EMULATOR_KEEPS=str(tmp_path),
    )  # fmt: skip
    assert re.search(r"^\.{10,} +\[100%\]$", out, re.MULTILINE), out
    assembler = ptxas.find()
    if assembler is None:
        pytest.skip("ptxas was not found: the counters hold, but NVIDIA's assembler saw no kernel")
    texts = {name: text for name, text in ptxas.kernels(tmp_path).items() if re.match("forward|query|key", name)}
    assert len(texts) > 15
    reports = {name: ptxas.assemble(assembler, text, "sm_80") for name, text in texts.items()}
    assert not any(report.refused for report in reports.values())
    assert sum(report.spilled > 0 for report in reports.values()) <= 4, reports


@pytest.mark.timeout(600)
def test_programs_give_the_bits_of_the_cpu():
    out = emulated(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(ROOT / "tests/cuda/proofs.py"),
        TAEDA_TARGET="lane",
    )  # fmt: skip
    assert re.search(r"^\.{8,} +\[100%\]$", out, re.MULTILINE), out


@pytest.mark.parametrize("exact", ["0", "1"])
def test_products_of_sixteen_bits_may_be_exact(exact):
    """By matrix units blocks of k are multiples of 32, else the CPU's: here 176 of 528, after three copies; a kernel adds them."""
    code = (
        "import taeda\nfrom tests.cuda.emulator import driver\n"
        "a, b = (taeda.randn(s, generator=taeda.Generator().manual_seed(3)).half() for s in ((24, 528), (528, 64)))\n"
        "driver().check('count')\nmade = a.cuda() @ b.cuda()\ndriver().check('fast')\n"
        "print(made.cpu().equal(a @ b), len(driver().counters))\n"
    )
    out = emulated("-c", code, TAEDA_CUDA_EXACT=exact, TAEDA_TARGET="lane")
    same, kernels = out.split()
    assert kernels == ("1" if exact == "0" else "5") and (same == "True" or exact == "0")


@pytest.mark.timeout(600)
def test_the_check_of_a_machine(tmp_path):
    out = emulated("-m", "taeda.cuda.check", "--seconds", "60", "--out", str(tmp_path))
    assert "EMULATED" in out.splitlines()[0] and out.endswith("0 wrong\n") and "WRONG" not in out
    assert "random numbers are Philox's" in out and "add, taeda.float32: the same bits" in out
    assert (tmp_path / "report.txt").read_text() == out


def test_the_check_without_a_gpu_says_that_nothing_was_run(tmp_path):
    code = f"import sys; sys.argv[1:] = ['--out', {str(tmp_path)!r}]\nfrom taeda.cuda import check\nassert check.main() == 2"
    out = emulated("-c", code, TAEDA_CUDA="no.such.module")
    assert "not run: there is no GPU" in out and "names no module" in out


def test_an_example_runs_there():
    out = emulated(str(ROOT / "examples/regression.py"), "--device", "cuda")
    assert re.match(r"y = (2\.9|3\.0)\d x \+ 0\.(4|5)\d, loss 0\.0", out), out


@pytest.mark.parametrize("model", ["mlp", "cnn", "GPT", "LSTM"])
def test_training_gives_the_bits_of_the_cpu(model):
    """Losses, and from checkpoints of either device on either device."""
    out = emulated(str(ROOT / "tests/core/training.py"), "cuda", model, TAEDA_TARGET="lane")
    assert "the same bits" in out


@pytest.mark.parametrize("said, message", [
    ("no.such.module", "TAEDA_CUDA=no.such.module names no module"),
    ("tests.cuda.none_at_all", "names no module"),
])  # fmt: skip
def test_a_missing_driver_is_named(said, message):
    code = (
        "import taeda\nassert not taeda.cuda.is_available() and taeda.cuda.device_count() == 0\n"
        "try: taeda.ones(1).to('cuda')\nexcept AssertionError as error: print(error)"
    )
    assert message in emulated("-c", code, TAEDA_CUDA=said)


def test_a_forked_process_has_no_device():
    code = (
        "import os, taeda\nx = taeda.ones(2, device='cuda')\n"
        "if os.fork() == 0:\n    try: x + x\n    except RuntimeError as error: print(error, flush=True)\n    os._exit(0)\n"
        "os.wait(); print((x + x).tolist())"
    )
    out = emulated("-c", code)
    assert "Cannot re-initialize CUDA in forked subprocess" in out and "[2.0, 2.0]" in out
