"""Train the network of digits.py, write it in each form that leaves Python, and compare what these compute.

    pip install '.[demo]' && python examples/deploy.py

The forms: a program of ``taeda.export``, an archive of ``taeda.jit``, ONNX where onnx and onnxruntime are installed,
and one shared library, called by ctypes and, where there is a C compiler, by examples/deploy.c. The table says how far
each agrees with the model on the held-out pictures, its size, how long loading takes, and a batch of 64 pictures.
"""

import argparse
import ctypes
import importlib.util
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from digits import Network, fit, load

import taeda
from taeda import Tensor, nn
from taeda.export import Dim

BATCH = 64


@dataclass
class Form:
    """One way to run the model: its name, its file, and what loads it and gives a function of an array."""

    name: str
    path: Path | None
    load: Callable[[], Callable[[np.ndarray], np.ndarray]]


def on_arrays(function: Callable[[Tensor], Tensor]) -> Callable[[np.ndarray], np.ndarray]:
    """A function of tensors as one of arrays."""

    def call(x: np.ndarray) -> np.ndarray:
        with taeda.no_grad():
            return function(taeda.from_numpy(x)).numpy()

    return call


class DigitsTensor(ctypes.Structure):
    """``digits_tensor`` of the header."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
    ]  # fmt: skip

    @classmethod
    def of(cls, x: np.ndarray) -> "DigitsTensor":
        float32 = 1
        return cls(x.ctypes.data, float32, x.ndim, (ctypes.c_int64 * x.ndim)(*x.shape))


def load_library(path: Path) -> Callable[[np.ndarray], np.ndarray]:
    """The library's run as a function of an array."""
    library = ctypes.CDLL(str(path))
    library.digits_error.restype = ctypes.c_char_p

    def call(x: np.ndarray) -> np.ndarray:
        scores = np.empty((len(x), 10), np.float32)
        pictures, one = DigitsTensor.of(np.ascontiguousarray(x)), ctypes.c_int64(1)
        code = library.digits_run(ctypes.byref(pictures), one, ctypes.byref(DigitsTensor.of(scores)), one)
        if code:
            raise RuntimeError(library.digits_error(code).decode())
        return scores

    return call


def write_onnx(model: nn.Module, example: Tensor, path: Path) -> Form | None:
    """The model as ONNX, run by onnxruntime; None where that is not there."""
    if not all(importlib.util.find_spec(name) for name in ("onnx", "onnxruntime")):
        return None
    try:
        sizes = ({0: Dim("batch", min=1, max=BATCH)},)
        taeda.onnx.export(model, (example,), str(path), input_names=["x"], dynamic_shapes=sizes, dynamo=True)
    except NotImplementedError as error:
        print(f"no ONNX: {error}")
        return None

    def open_session() -> Callable[[np.ndarray], np.ndarray]:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = taeda.get_num_threads()
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return lambda x: session.run(None, {"x": x})[0]

    return Form("ONNX, onnxruntime", path, open_session)


def write(model: nn.Module, example: Tensor, folder: Path) -> list[Form]:
    """All forms of the model."""
    program = taeda.export.export(model, (example,), dynamic_shapes=({0: Dim("batch", min=1, max=BATCH)},))
    taeda.export.save(program, folder / "digits.pt2")
    taeda.jit.save(taeda.jit.trace(model, example), str(folder / "digits.pt"))
    taeda.export.build(program, folder / "digits.so")
    saved, archive, library = (folder / name for name in ("digits.pt2", "digits.pt", "digits.so"))
    forms = [
        Form("taeda", None, lambda: on_arrays(model)),
        Form("exported program", saved, lambda: on_arrays(taeda.export.load(saved).module())),
        Form("jit archive", archive, lambda: on_arrays(taeda.jit.load(str(archive)))),
        write_onnx(model, example, folder / "digits.onnx"),
        Form("shared library", library, lambda: load_library(library)),
    ]
    return [form for form in forms if form is not None]


def measure(call: Callable[[np.ndarray], np.ndarray], batch: np.ndarray) -> float:
    """The median time of a call, in milliseconds."""
    times = []
    for _ in range(200):
        start = time.perf_counter()
        call(batch)
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1000


def compare(forms: list[Form], pictures: np.ndarray, expected: np.ndarray) -> None:
    """Print the table.

    Raises:
        AssertionError: a form gives other scores than the model.
    """
    print(f"\n{'form':18} {'largest difference':>18} {'KB':>7} {'load, ms':>9} {f'batch of {BATCH}, ms':>16}")
    for form in forms:
        start = time.perf_counter()
        call = form.load()
        loaded = (time.perf_counter() - start) * 1000
        parts = [call(pictures[i : i + BATCH]) for i in range(0, len(pictures), BATCH)]
        difference = float(np.abs(np.concatenate(parts) - expected).max())
        # ONNX has the weights in a file beside
        files = [form.path, *form.path.parent.glob(f"{form.path.name}.*")] if form.path else []
        size = f"{sum(file.stat().st_size for file in files) / 1024:.0f}" if files else ""
        print(f"{form.name:18} {difference:18.1e} {size:>7} {loaded:9.2f} {measure(call, pictures[:BATCH]):16.3f}")
        assert difference < 1e-3, f"{form.name} differs"


def run_in_c(folder: Path, pictures: np.ndarray, labels: np.ndarray) -> None:
    """Classify the pictures by examples/deploy.c, where there is a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        print("no C compiler: examples/deploy.c is left out")
        return
    source, program = Path(__file__).with_name("deploy.c"), folder / "deploy"
    subprocess.run([compiler, "-O2", f"-I{folder}", source, folder / "digits.so", "-o", program], check=True)
    pictures.tofile(folder / "pictures.bin")
    command, paths = [program, folder / "pictures.bin"], {"LD_LIBRARY_PATH": str(folder)}
    lines = subprocess.run(command, env=paths, check=True, capture_output=True, text=True).stdout.split()
    same = sum(int(line) == label for line, label in zip(lines, labels, strict=True))
    print(f"the program in C gives {same} of {len(labels)} labels of the model")
    assert same == len(labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--folder", type=Path, help="where files go; else they are removed")
    args = parser.parse_args()
    taeda.manual_seed(0)
    train, held_out = load()
    model = Network()
    fit(model, train, held_out, args.epochs)
    model.eval()
    pictures = np.ascontiguousarray(held_out.tensors[0].numpy())
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        expected = on_arrays(model)(pictures)
        compare(write(model, train.tensors[0][:4], folder), pictures, expected)
        run_in_c(folder, pictures, expected.argmax(1))


if __name__ == "__main__":
    main()
