"""safetensors files: round trips, and headers that lie."""

import json
import struct
import subprocess
import sys

import pytest

import taeda
from taeda.io import safetensors


def test_round_trip(tmp_path):
    tensors = {"b": taeda.arange(6.0).reshape(2, 3).t(), "a": taeda.tensor([True, False]), "empty": taeda.zeros(0, 3)}
    safetensors.save_file(tensors, tmp_path / "x.safetensors", metadata={"k": "v"})
    for back in (safetensors.load_file(tmp_path / "x.safetensors"), safetensors.load(safetensors.save(tensors))):
        assert sorted(back) == ["a", "b", "empty"]
        assert back["b"].tolist() == tensors["b"].tolist() and back["b"].is_contiguous()
        assert back["a"].dtype is taeda.bool_ if hasattr(taeda, "bool_") else back["a"].tolist() == [True, False]
        assert tuple(back["empty"].shape) == (0, 3)


def test_writing_to_a_loaded_tensor_leaves_the_file_alone(tmp_path):
    path = tmp_path / "x.safetensors"
    safetensors.save_file({"a": taeda.zeros(1000)}, path)
    safetensors.load_file(path)["a"].fill_(1.0)
    assert safetensors.load_file(path)["a"].sum().item() == 0.0


def test_what_the_format_does_not_have():
    x = taeda.arange(4.0)
    with pytest.raises(RuntimeError, match="'a' and 'b' share memory"):
        safetensors.save({"a": x, "b": x[1:]})
    safetensors.save({"a": x[:2], "b": x[2:]})
    with pytest.raises(ValueError, match="complex128"):
        safetensors.save({"a": taeda.zeros(1, dtype=taeda.complex128)})
    with pytest.raises(ValueError, match="got int for 'a'"):
        safetensors.save({"a": 1})
    with pytest.raises(TypeError, match="expected a dict"):
        safetensors.save([x])


def made(header, data=b"\0" * 8):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


FIELD = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def test_the_header_of_these_tests_is_right():
    assert safetensors.load(made({"a": FIELD}))["a"].tolist() == [0.0, 0.0]


def test_the_name_of_the_metadata_is_no_tensor_s():
    with pytest.raises(ValueError, match="__metadata__"):
        safetensors.save({"__metadata__": taeda.ones(2)})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"1234567",
        struct.pack("<Q", 2**63) + b"{}",
        made(b"{"),
        made(b"[]"),
        made(b'{"a":' * 100_000),
        made({"a": 1}),
        made({"a": {}}),
        made({"a": {**FIELD, "dtype": "F99"}}),
        made({"a": {**FIELD, "dtype": []}}),
        made({"a": {**FIELD, "shape": [-2]}}),
        made({"a": {**FIELD, "shape": [2**62, 2**62]}}),
        made({"a": {**FIELD, "shape": 2}}),
        made({"a": {**FIELD, "shape": [2.0]}}),
        made({"a": {**FIELD, "shape": [3]}}),
        made({"a": {**FIELD, "data_offsets": [8, 0]}}),
        made({"a": {**FIELD, "data_offsets": [0, 2**70]}}),
        made({"a": {**FIELD, "data_offsets": [4, 12]}}),
        made({"a": {**FIELD, "data_offsets": [0]}}),
        made({"a": FIELD, "b": FIELD}),
        made({"a": FIELD}, b"\0" * 9),
        made({"a": FIELD}, b"\0" * 7),
        made(
            b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
        ),
    ],
)
def test_files_that_lie(data):
    with pytest.raises(RuntimeError, match="safetensors: the file is damaged"):
        safetensors.load(data)


def test_the_library_s_torch_side_works_on_taeda(tmp_path):
    """Through the stand-in the library reads and writes taeda's tensors: mapped, bfloat16 too."""
    pytest.importorskip("safetensors")
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, torch\n"
        "from safetensors import safe_open\n"
        "from safetensors.torch import load, load_file, load_model, save, save_file, save_model\n"
        "path = sys.argv[1]\n"
        "state = {'a': torch.arange(6.0).reshape(2, 3), 'b': torch.ones(3, dtype=torch.bfloat16), 'c': torch.tensor(True)}\n"
        "save_file(state, path)\n"
        "for found in (load_file(path), load(save(state))):\n"
        "    assert all(torch.equal(found[k], v) and found[k].dtype is v.dtype for k, v in state.items())\n"
        "with safe_open(path, 'pt') as file:\n"
        "    assert file.get_slice('a')[1:, :2].tolist() == [[3.0, 4.0]]\n"
        "model = torch.nn.Linear(2, 2)\n"
        "save_model(model, path)\n"
        "load_model(model, path)\n"
        "assert torch.__name__ == 'torch' and 'taeda' in sys.modules\n"
    )
    command = [sys.executable, "-m", "taeda.standin", str(program), str(tmp_path / "x.safetensors")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
