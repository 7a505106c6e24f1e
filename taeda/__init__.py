"""taeda: a define-by-run deep-learning framework with PyTorch's API, written in Python down to its kernels."""

# PROVISIONAL while families land: replaced by explicit re-exports.
import importlib as _importlib
import sys as _sys

from . import _core
from ._core import *  # noqa: F403
from ._core import Tensor, Size, device, dtype, bool_ as bool  # noqa: F401

float, double, half, int, long, short = _core.float32, _core.float64, _core.float16, _core.int32, _core.int64, _core.int16
for _n in ("uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128 "
           "strided contiguous_format preserve_format channels_last channels_last_3d set_default_dtype get_default_dtype "
           "promote_types result_type set_num_threads get_num_threads").split():
    globals()[_n] = getattr(_core, _n)
for _name in ("views", "conversion", "pointwise", "arithmetic", "comparison", "elementary", "special", "activation", "reduction",
              "softmax", "normalization", "scan", "loss", "matmul", "conv", "pooling", "attention", "joining", "indexing", "scatter", "embedding",
              "sorting", "creation", "shape", "random", "resample", "exchange"):
    try:
        _importlib.import_module(f"taeda.ops.{_name}")
    except ModuleNotFoundError as _e:
        if f"taeda.ops.{_name}" != _e.name:
            print("provisional import:", _name, repr(_e), file=_sys.stderr)
    except Exception as _e:
        print("provisional import:", _name, repr(_e), file=_sys.stderr)
from .ops.exchange import as_tensor, asarray, from_dlpack, from_numpy, frombuffer, tensor  # noqa: F401
from .ops.table import OPS as _OPS

for _k, _v in _OPS.items():
    globals().setdefault(_k, _v)
for _name in ("autograd", "random", "nn", "optim", "utils", "io", "_print", "linalg", "fft", "special", "serialization"):
    try:
        globals()[_name] = _importlib.import_module(f"taeda.{_name}")
    except Exception as _e:
        print("provisional import:", _name, repr(_e), file=_sys.stderr)
try:
    from .autograd import no_grad, enable_grad, set_grad_enabled, inference_mode, is_grad_enabled  # noqa: F401
except Exception:
    pass
try:
    from .random import manual_seed, seed, initial_seed, get_rng_state, set_rng_state, Generator, default_generator  # noqa: F401
except Exception:
    pass
