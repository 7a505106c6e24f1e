"""Types of taeda's functions and of its Tensor. Written by tools/stubs.py: do not edit."""

# ruff: noqa
import builtins
from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType
from typing import Any, Self, SupportsIndex, TypeAlias, overload

import numpy

Number: TypeAlias = builtins.bool | builtins.int | builtins.float | builtins.complex
_Index: TypeAlias = (
    SupportsIndex | builtins.slice | EllipsisType | Tensor | builtins.tuple[Any, ...] | builtins.list[Any]
    | builtins.range | numpy.ndarray[Any, Any] | None
)

from . import accelerator as accelerator
from . import amp as amp
from . import array_api as array_api
from . import backends as backends
from . import compiler as compiler
from . import cpu as cpu
from . import cuda as cuda
from . import distributed as distributed
from . import distributions as distributions
from . import export as export
from . import fft as fft
from . import func as func
from . import futures as futures
from . import fx as fx
from . import hub as hub
from . import io as io
from . import jit as jit
from . import kernel as kernel
from . import library as library
from . import masked as masked
from . import mps as mps
from . import multiprocessing as multiprocessing
from . import nested as nested
from . import nn as nn
from . import onnx as onnx
from . import optim as optim
from . import profiler as profiler
from . import quasirandom as quasirandom
from . import serialization as serialization
from . import signal as signal
from . import sparse as sparse
from . import standin as standin
from . import testing as testing
from . import utils as utils
from . import xpu as xpu
from .accelerator import Event as Event
from .accelerator import Stream as Stream
from .amp import GradScaler as GradScaler
from .amp import autocast as autocast
from .amp.autocast_mode import autocast_decrement_nesting as autocast_decrement_nesting
from .amp.autocast_mode import autocast_increment_nesting as autocast_increment_nesting
from .amp.autocast_mode import clear_autocast_cache as clear_autocast_cache
from .amp.autocast_mode import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from .amp.autocast_mode import get_autocast_dtype as get_autocast_dtype
from .amp.autocast_mode import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from .amp.autocast_mode import is_autocast_cache_enabled as is_autocast_cache_enabled
from .amp.autocast_mode import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from .amp.autocast_mode import is_autocast_enabled as is_autocast_enabled
from .amp.autocast_mode import set_autocast_cache_enabled as set_autocast_cache_enabled
from .amp.autocast_mode import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from .amp.autocast_mode import set_autocast_cpu_enabled as set_autocast_cpu_enabled
from .amp.autocast_mode import set_autocast_dtype as set_autocast_dtype
from .amp.autocast_mode import set_autocast_enabled as set_autocast_enabled
from .amp.autocast_mode import set_autocast_gpu_dtype as set_autocast_gpu_dtype
from .autograd.anomaly import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from .autograd.anomaly import is_anomaly_enabled as is_anomaly_enabled
from .autograd.anomaly import set_anomaly_enabled as set_anomaly_enabled
from .compiler import compile as compile
from .func import vmap as vmap
from .func.control_flow import cond as cond
from .func.control_flow import while_loop as while_loop
from .nn.functional import adaptive_avg_pool1d as adaptive_avg_pool1d
from .nn.functional import avg_pool1d as avg_pool1d
from .nn.functional import channel_shuffle as channel_shuffle
from .nn.functional import cosine_similarity as cosine_similarity
from .nn.functional import max_pool1d as max_pool1d
from .nn.functional import max_pool2d as max_pool2d
from .nn.functional import max_pool3d as max_pool3d
from .nn.functional import native_channel_shuffle as native_channel_shuffle
from .nn.functional import pairwise_distance as pairwise_distance
from .nn.functional import pixel_shuffle as pixel_shuffle
from .nn.functional import pixel_unshuffle as pixel_unshuffle
from .nn.lower import adaptive_max_pool1d as adaptive_max_pool1d
from .nn.lower import affine_grid_generator as affine_grid_generator
from .nn.lower import batch_norm as batch_norm
from .nn.lower import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from .nn.lower import convolution as convolution
from .nn.lower import cosine_embedding_loss as cosine_embedding_loss
from .nn.lower import ctc_loss as ctc_loss
from .nn.lower import embedding_bag as embedding_bag
from .nn.lower import grid_sampler as grid_sampler
from .nn.lower import grid_sampler_2d as grid_sampler_2d
from .nn.lower import grid_sampler_3d as grid_sampler_3d
from .nn.lower import gru as gru
from .nn.lower import gru_cell as gru_cell
from .nn.lower import hinge_embedding_loss as hinge_embedding_loss
from .nn.lower import instance_norm as instance_norm
from .nn.lower import kl_div as kl_div
from .nn.lower import lstm as lstm
from .nn.lower import lstm_cell as lstm_cell
from .nn.lower import margin_ranking_loss as margin_ranking_loss
from .nn.lower import max_pool1d_with_indices as max_pool1d_with_indices
from .nn.lower import native_batch_norm as native_batch_norm
from .nn.lower import native_dropout as native_dropout
from .nn.lower import native_group_norm as native_group_norm
from .nn.lower import poisson_nll_loss as poisson_nll_loss
from .nn.lower import rnn_relu as rnn_relu
from .nn.lower import rnn_relu_cell as rnn_relu_cell
from .nn.lower import rnn_tanh as rnn_tanh
from .nn.lower import rnn_tanh_cell as rnn_tanh_cell
from .nn.lower import triplet_margin_loss as triplet_margin_loss
from .overrides import DisableTorchFunction as DisableTorchFunction
from .overrides import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from .serialization import load as load
from .serialization import save as save
from .sparse import dsmm as dsmm
from .sparse import hspmm as hspmm
from .sparse import resize_as_sparse_ as resize_as_sparse_
from .sparse import smm as smm
from .sparse import spmm as spmm
from .sparse import sspaddmm as sspaddmm
from .storage import TypedStorage as TypedStorage
from ._settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from . import autograd as autograd
from .ops.out import can_cast as can_cast
from .autograd.modes import enable_grad as enable_grad
from .types import finfo as finfo
from .random import fork_rng as fork_rng
from . import functional as functional
from ._settings import get_default_device as get_default_device
from ._settings import get_deterministic_debug_mode as get_deterministic_debug_mode
from ._settings import get_device_module as get_device_module
from ._settings import get_float32_matmul_precision as get_float32_matmul_precision
from ._settings import get_num_interop_threads as get_num_interop_threads
from ._print import get_printoptions as get_printoptions
from .random import get_rng_state as get_rng_state
from .types import iinfo as iinfo
from .autograd.modes import inference_mode as inference_mode
from .random import initial_seed as initial_seed
from ._settings import is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled
from .types import is_storage as is_storage
from .types import is_tensor as is_tensor
from ._settings import is_warn_always_enabled as is_warn_always_enabled
from . import kernels as kernels
from . import linalg as linalg
from .random import manual_seed as manual_seed
from .autograd.modes import no_grad as no_grad
from . import ops as ops
from . import overrides as overrides
from ._print import printoptions as printoptions
from . import random as random
from . import return_types as return_types
from .random import seed as seed
from ._settings import set_default_device as set_default_device
from ._settings import set_default_tensor_type as set_default_tensor_type
from ._settings import set_deterministic_debug_mode as set_deterministic_debug_mode
from ._settings import set_float32_matmul_precision as set_float32_matmul_precision
from ._settings import set_flush_denormal as set_flush_denormal
from .autograd.modes import set_grad_enabled as set_grad_enabled
from ._settings import set_num_interop_threads as set_num_interop_threads
from ._print import set_printoptions as set_printoptions
from .random import set_rng_state as set_rng_state
from ._settings import set_warn_always as set_warn_always
from . import special as special
from . import storage as storage
from ._scalars import sym_constrain_range as sym_constrain_range
from ._scalars import sym_constrain_range_for_size as sym_constrain_range_for_size
from ._scalars import sym_float as sym_float
from ._scalars import sym_int as sym_int
from ._scalars import sym_ite as sym_ite
from ._scalars import sym_max as sym_max
from ._scalars import sym_min as sym_min
from ._scalars import sym_not as sym_not
from ._scalars import sym_sqrt as sym_sqrt
from ._scalars import sym_sum as sym_sum
from .types import typename as typename
from . import types as types
from ._settings import use_deterministic_algorithms as use_deterministic_algorithms
from . import version as version

class dtype:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def code(self) -> Any: ...
    @property
    def is_complex(self) -> builtins.bool: ...
    @property
    def is_floating_point(self) -> builtins.bool: ...
    @property
    def is_signed(self) -> builtins.bool: ...
    @property
    def itemsize(self) -> builtins.int: ...
    @property
    def name(self) -> Any: ...
    def to_complex(self, *args: Any, **kwargs: Any) -> Any: ...
    def to_real(self, *args: Any, **kwargs: Any) -> Any: ...

class device:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def index(self) -> Any: ...
    @property
    def type(self) -> builtins.str: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *exc: object) -> None: ...

class Size(builtins.tuple[builtins.int, ...]):
    def numel(self) -> builtins.int: ...
    @overload
    def __getitem__(self, index: SupportsIndex) -> builtins.int: ...
    @overload
    def __getitem__(self, index: builtins.slice) -> Size: ...
    def __add__(self, other: builtins.tuple[builtins.int, ...]) -> Size: ...  # type: ignore[override]
    def __mul__(self, times: SupportsIndex) -> Size: ...
    def __rmul__(self, times: SupportsIndex) -> Size: ...

_dtype: TypeAlias = dtype
_device: TypeAlias = device

class BFloat16Storage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class BFloat16Tensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class BoolStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class BoolTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class ByteStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class ByteTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class CharStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class CharTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class ComplexDoubleStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class ComplexFloatStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class DoubleStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class DoubleTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class FloatStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class FloatTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class Generator:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def by_counter(self) -> Any: ...
    def clone_state(self, *args: Any, **kwargs: Any) -> Any: ...
    @property
    def device(self) -> Any: ...
    def get_offset(self, *args: Any, **kwargs: Any) -> Any: ...
    def get_state(self, *args: Any, **kwargs: Any) -> Any: ...
    def initial_seed(self, *args: Any, **kwargs: Any) -> Any: ...
    def manual_seed(self, *args: Any, **kwargs: Any) -> Any: ...
    def random(self, *args: Any, **kwargs: Any) -> Any: ...
    def random64(self, *args: Any, **kwargs: Any) -> Any: ...
    def seed(self, *args: Any, **kwargs: Any) -> Any: ...
    def set_offset(self, *args: Any, **kwargs: Any) -> Any: ...
    def set_state(self, *args: Any, **kwargs: Any) -> Any: ...
    def set_state_bytes(self, *args: Any, **kwargs: Any) -> Any: ...
    def state_bytes(self, *args: Any, **kwargs: Any) -> Any: ...

class HalfStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class HalfTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class IntStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class IntTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class LongStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class LongTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class OutOfMemoryError(builtins.RuntimeError): ...

class ShortStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class ShortTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def dtype(self) -> Any: ...

class layout:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class memory_format:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

Storage: TypeAlias = FloatStorage
UntypedStorage: TypeAlias = Storage
__version__: builtins.str
as_strided_: Any
as_tensor: Any
asarray: Any
bfloat16: _dtype
bool: _dtype
cdouble: _dtype
cfloat: _dtype
chalf: _dtype
channels_last: Any
channels_last_3d: Any
complex128: _dtype
complex32: _dtype
complex64: _dtype
contiguous_format: Any
default_generator: Any
double: _dtype
e: builtins.float
float: _dtype
float16: _dtype
float32: _dtype
float4_e2m1fn_x2: _dtype
float64: _dtype
float8_e4m3fn: _dtype
float8_e4m3fnuz: _dtype
float8_e5m2: _dtype
float8_e5m2fnuz: _dtype
float8_e8m0fnu: _dtype
from_dlpack: Any
from_numpy: Any
frombuffer: Any
def get_default_dtype(*args: Any, **kwargs: Any) -> _dtype: ...
get_num_threads: Any
half: _dtype
inf: builtins.float
int: _dtype
int16: _dtype
int32: _dtype
int64: _dtype
int8: _dtype
is_grad_enabled: Any
is_inference_mode_enabled: Any
jagged: Any
long: _dtype
nan: builtins.float
newaxis: None
pi: builtins.float
preserve_format: Any
def promote_types(*args: Any, **kwargs: Any) -> _dtype: ...
def result_type(*args: Any, **kwargs: Any) -> _dtype: ...
set_default_dtype: Any
set_num_threads: Any
short: _dtype
sparse_bsc: Any
sparse_bsr: Any
sparse_coo: Any
sparse_csc: Any
sparse_csr: Any
strided: Any
tensor: Any
uint16: _dtype
uint32: _dtype
uint64: _dtype
uint8: _dtype

class Tensor:
    """An n-dimensional array that records what is done with it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @classmethod
    def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any: ...
    @staticmethod
    def _make_subclass(*args: Any, **kwargs: Any) -> Any: ...
    @staticmethod
    def _make_wrapper_subclass(*args: Any, **kwargs: Any) -> Any: ...
    def __abs__(self) -> Tensor: ...
    def __add__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __and__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any: ...
    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any: ...
    def __array_ufunc__(self, ufunc: Any, method: Any, *inputs: Any, **kwargs: Any) -> Any: ...
    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: Any = False) -> Any: ...
    def __bool__(self) -> builtins.bool: ...
    def __complex__(self) -> builtins.complex: ...
    def __contains__(self, element: Any) -> builtins.bool: ...
    def __deepcopy__(self, memo: Any) -> Tensor: ...
    def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __float__(self) -> builtins.float: ...
    def __floordiv__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __format__(self, spec: Any) -> builtins.str: ...
    def __ge__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __getitem__(self, index: _Index) -> Tensor: ...
    def __gt__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __hash__(self) -> builtins.int: ...
    def __iadd__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __iand__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __ifloordiv__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __ilshift__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __imod__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __imul__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __index__(self) -> builtins.int: ...
    def __int__(self) -> builtins.int: ...
    def __invert__(self) -> Tensor: ...
    def __ior__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __ipow__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...  # type: ignore[misc]
    def __irshift__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __isub__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __itruediv__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __ixor__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __le__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __len__(self) -> builtins.int: ...
    def __lshift__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __lt__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __matmul__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __mod__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __mul__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __neg__(self) -> Tensor: ...
    def __or__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __pow__(self, other: Tensor | Number | numpy.ndarray[Any, Any], modulo: Any = None) -> Tensor: ...
    def __radd__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __rand__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __reduce_ex__(self, protocol: Any) -> Any: ...
    def __repr__(self) -> builtins.str: ...
    def __reversed__(self) -> Any: ...
    def __rfloordiv__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __rlshift__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __rmatmul__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __rmod__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __rmul__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __ror__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __rpow__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __rrshift__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __rshift__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __rsub__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __rtruediv__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __rxor__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __setitem__(self, index: _Index, value: Any) -> None: ...
    def __str__(self) -> builtins.str: ...
    def __sub__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __truediv__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __xor__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def backward(
        self, gradient: Tensor | None = None, retain_graph: builtins.bool | None = None, create_graph: builtins.bool =
        False, inputs: Any = None
    ) -> None: ...
    @property
    def data(self) -> Tensor: ...
    @data.setter
    def data(self, value: Any) -> None: ...
    def data_ptr(self) -> builtins.int: ...
    def detach(self) -> Tensor: ...
    def detach_(self) -> Tensor: ...
    @property
    def device(self) -> _device: ...
    def dim(self) -> builtins.int: ...
    @property
    def dtype(self) -> _dtype: ...
    def element_size(self) -> builtins.int: ...
    def get_device(self) -> builtins.int: ...
    @property
    def grad(self) -> Tensor | None: ...
    @grad.setter
    def grad(self, value: Any) -> None: ...
    @grad.deleter
    def grad(self) -> None: ...
    @property
    def grad_fn(self) -> Any: ...
    def has_names(self) -> builtins.bool: ...
    def is_complex(self) -> builtins.bool: ...
    def is_conj(self) -> builtins.bool: ...
    def is_contiguous(self, memory_format: Any = ...) -> builtins.bool: ...
    @property
    def is_cpu(self) -> builtins.bool: ...
    @property
    def is_cuda(self) -> builtins.bool: ...
    def is_floating_point(self) -> builtins.bool: ...
    def is_inference(self) -> builtins.bool: ...
    @property
    def is_leaf(self) -> builtins.bool: ...
    @property
    def is_meta(self) -> builtins.bool: ...
    @property
    def is_mps(self) -> builtins.bool: ...
    def is_neg(self) -> builtins.bool: ...
    @property
    def is_nested(self) -> builtins.bool: ...
    @property
    def is_quantized(self) -> builtins.bool: ...
    def is_signed(self) -> builtins.bool: ...
    @property
    def is_sparse(self) -> builtins.bool: ...
    def item(self) -> Any: ...
    @property
    def itemsize(self) -> builtins.int: ...
    @property
    def layout(self) -> Any: ...
    @property
    def names(self) -> Any: ...
    @property
    def nbytes(self) -> builtins.int: ...
    @property
    def ndim(self) -> builtins.int: ...
    def numel(self) -> builtins.int: ...
    @property
    def output_nr(self) -> builtins.int: ...
    def register_hook(self, hook: Callable[[Tensor], Any]) -> Any: ...
    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], Any]) -> Any: ...
    @property
    def requires_grad(self) -> builtins.bool: ...
    @requires_grad.setter
    def requires_grad(self, value: Any) -> None: ...
    def requires_grad_(self, requires_grad: builtins.bool = True) -> Tensor: ...
    def retain_grad(self) -> None: ...
    @property
    def retains_grad(self) -> builtins.bool: ...
    @property
    def shape(self) -> Size: ...
    @overload
    def size(self) -> Size:
        ...
    @overload
    def size(self, dim: builtins.int) -> builtins.int:
        ...
    def storage_offset(self) -> builtins.int: ...
    @overload
    def stride(self) -> tuple[builtins.int, ...]:
        ...
    @overload
    def stride(self, dim: builtins.int) -> builtins.int:
        ...
    def untyped_storage(self) -> Any: ...
    @property
    def H(self) -> Tensor: ...
    @property
    def T(self) -> Tensor: ...
    def argwhere(self, *args: Any, **kwargs: Any) -> Any: ...
    def as_strided_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def broadcast_to(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def ccol_indices(self, *args: Any, **kwargs: Any) -> Any: ...
    def coalesce(self, *args: Any, **kwargs: Any) -> Any: ...
    def col_indices(self, *args: Any, **kwargs: Any) -> Any: ...
    def const_data_ptr(self, *args: Any, **kwargs: Any) -> Any: ...
    def crow_indices(self, *args: Any, **kwargs: Any) -> Any: ...
    def dense_dim(self, *args: Any, **kwargs: Any) -> builtins.int: ...
    @property
    def imag(self) -> Tensor: ...
    def index(self, *args: Any, **kwargs: Any) -> Any: ...
    def indices(self, *args: Any, **kwargs: Any) -> Any: ...
    def is_coalesced(self, *args: Any, **kwargs: Any) -> Any: ...
    def is_distributed(self, *args: Any, **kwargs: Any) -> Any: ...
    @property
    def is_ipu(self) -> Any: ...
    @property
    def is_maia(self) -> Any: ...
    @property
    def is_mkldnn(self) -> Any: ...
    @property
    def is_mtia(self) -> Any: ...
    @property
    def is_sparse_csr(self) -> builtins.bool: ...
    @property
    def is_vulkan(self) -> Any: ...
    @property
    def is_xla(self) -> builtins.bool: ...
    @property
    def is_xpu(self) -> builtins.bool: ...
    @property
    def mH(self) -> Tensor: ...
    @property
    def mT(self) -> Tensor: ...
    def module_load(self, *args: Any, **kwargs: Any) -> Any: ...
    @property
    def name(self) -> Any: ...
    def ndimension(self, *args: Any, **kwargs: Any) -> builtins.int: ...
    def nelement(self, *args: Any, **kwargs: Any) -> builtins.int: ...
    def new(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def numpy(self, *args: Any, **kwargs: Any) -> numpy.ndarray[Any, Any]: ...
    @property
    def real(self) -> Tensor: ...
    def row_indices(self, *args: Any, **kwargs: Any) -> Any: ...
    def sparse_dim(self, *args: Any, **kwargs: Any) -> builtins.int: ...
    def sparse_resize_(self, *args: Any, **kwargs: Any) -> Any: ...
    def sparse_resize_and_clear_(self, *args: Any, **kwargs: Any) -> Any: ...
    def split_with_sizes(self, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]: ...
    def squeeze_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def storage(self, *args: Any, **kwargs: Any) -> Any: ...
    def storage_type(self, *args: Any, **kwargs: Any) -> Any: ...
    def swapaxes_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def swapdims_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def t_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def to_device(self, *args: Any, **kwargs: Any) -> Any: ...
    def tolist(self, *args: Any, **kwargs: Any) -> Any: ...
    def transpose_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def unsqueeze_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def values(self, *args: Any, **kwargs: Any) -> Any: ...
    def where(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def _draw_(self, chance: Any, value: Tensor | Number, *, generator: Any | None = None) -> Tensor:
        r"""Fill with ``value`` with probability ``chance``, else with 0."""
    def _is_all_true(self) -> Tensor:
        r"""Whether all elements of a bool tensor are true, as a tensor."""
    def _is_any_true(self) -> Tensor:
        r"""Whether any element of a bool tensor is true, as a tensor."""
    def _old_slogdet(self) -> Tensor:
        r"""The sign of the determinant and the logarithm of its absolute value: :func:`taeda.linalg.slogdet`."""
    def _pinverse(self, rcond: Number = 1e-15) -> Tensor:
        r"""The Moore-Penrose inverse, :func:`taeda.linalg.pinv`, with an older default of the tolerance."""
    def abs(self, *, out: Any = None) -> Tensor:
        r"""The absolute value, ``|input|``; of a complex number ``a + bi`` the real number ``sqrt(a ** 2 + ..."""
    def abs_(self) -> Tensor:
        r"""In-place form of :func:`abs`: ``input`` is overwritten with the result and given back."""
    def absolute(self, *, out: Any = None) -> Tensor:
        r"""The absolute value, ``|input|``; of a complex number ``a + bi`` the real number ``sqrt(a ** 2 + ..."""
    def absolute_(self) -> Tensor:
        r"""In-place form of :func:`abs`: ``input`` is overwritten with the result and given back."""
    def acos(self, *, out: Any = None) -> Tensor:
        r"""The arc cosine in radians, in [0, pi]; NaN outside of [-1, 1]."""
    def acos_(self) -> Tensor:
        r"""In-place form of :func:`acos`: ``input`` is overwritten with the result and given back."""
    def acosh(self, *, out: Any = None) -> Tensor:
        r"""The inverse hyperbolic cosine, ``log(input + sqrt(input ** 2 - 1))``; NaN below 1."""
    def acosh_(self) -> Tensor:
        r"""In-place form of :func:`acosh`: ``input`` is overwritten with the result and given back."""
    def add(self, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
        r"""``input + alpha * other``; of bools, whether either is true."""
    def add_(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        r"""In-place form of :func:`add`: ``input`` is overwritten with the result and given back."""
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        r"""``beta * input + alpha * sum_b(batch1[b] @ batch2[b])``: one product, with the batch folded into ..."""
    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        r"""In-place form of :func:`addbmm`"""
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | Number = 1, out: Any = None) -> Tensor:
        r"""``input + value * tensor1 / tensor2``: the step of an optimizer that divides by a scale."""
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | Number = 1) -> Tensor:
        r"""In-place form of :func:`addcdiv`: ``input`` is overwritten with the result and given back."""
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | Number = 1, out: Any = None) -> Tensor:
        r"""``input + value * tensor1 * tensor2``."""
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | Number = 1) -> Tensor:
        r"""In-place form of :func:`addcmul`: ``input`` is overwritten with the result and given back."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None) -> Tensor:
        r"""``beta * input + alpha * (mat1 @ mat2)``"""
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        r"""In-place form of :func:`addmm`: ``input`` is overwritten with the result and given back."""
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None) -> Tensor:
        r"""``beta * input + alpha * (mat @ vec)``. With ``beta`` 0 ``input`` is not read."""
    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        r"""In-place form of :func:`addmv`: ``input`` is overwritten with the result and given back."""
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        r"""``beta * input + alpha * outer(vec1, vec2)``."""
    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        r"""In-place form of :func:`addr`: ``input`` is overwritten with the result and given back."""
    def adjoint(self) -> Tensor:
        r"""The conjugate transpose of the last two dimensions: ``out[..., i, j] = conj(input[..., j, i])``."""
    def all(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any =
        None
    ) -> Tensor:
        r"""Whether all elements along ``dim`` are true, which every number but 0 is."""
    def allclose(
        self, other: Tensor | Number, rtol: Number = 1e-05, atol: Number = 1e-08, equal_nan: builtins.bool = False
    ) -> builtins.bool:
        r"""Whether all elements are close: ``|input - other| <= atol + rtol * |other|``."""
    def amax(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any =
        None
    ) -> Tensor:
        r"""The largest element over ``dim``; NaN where there is one"""
    def amin(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any =
        None
    ) -> Tensor:
        r"""The smallest element over ``dim``; NaN where there is one"""
    def aminmax(
        self, *, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, out: Any =
        None
    ) -> return_types.aminmax:
        r"""The smallest and the largest element over ``dim``, found in one pass."""
    def angle(self, *, out: Any = None) -> Tensor:
        r"""The argument of a complex number in radians, in [-pi, pi]; of a real one 0, or pi where it is ..."""
    def any(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any =
        None
    ) -> Tensor:
        r"""Whether any element along ``dim`` is true, which every number but 0 is."""
    def apply_(self, callable: Any) -> Any:
        r"""Every element becomes ``callable(element)``, in place. Slow: for what no op does, on the CPU."""
    def arccos(self, *, out: Any = None) -> Tensor:
        r"""The arc cosine in radians, in [0, pi]; NaN outside of [-1, 1]."""
    def arccos_(self) -> Tensor:
        r"""In-place form of :func:`acos`: ``input`` is overwritten with the result and given back."""
    def arccosh(self, *, out: Any = None) -> Tensor:
        r"""The inverse hyperbolic cosine, ``log(input + sqrt(input ** 2 - 1))``; NaN below 1."""
    def arccosh_(self) -> Tensor:
        r"""In-place form of :func:`acosh`: ``input`` is overwritten with the result and given back."""
    def arcsin(self, *, out: Any = None) -> Tensor:
        r"""The arc sine in radians, in [-pi/2, pi/2]; NaN outside of [-1, 1]."""
    def arcsin_(self) -> Tensor:
        r"""In-place form of :func:`asin`: ``input`` is overwritten with the result and given back."""
    def arcsinh(self, *, out: Any = None) -> Tensor:
        r"""The inverse hyperbolic sine, ``log(input + sqrt(input ** 2 + 1))``."""
    def arcsinh_(self) -> Tensor:
        r"""In-place form of :func:`asinh`: ``input`` is overwritten with the result and given back."""
    def arctan(self, *, out: Any = None) -> Tensor:
        r"""The arc tangent in radians, in [-pi/2, pi/2]."""
    def arctan2(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The angle in radians, in [-pi, pi], of the point with abscissa ``other`` and ordinate ``input``, ..."""
    def arctan2_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`atan2`: ``input`` is overwritten with the result and given back."""
    def arctan_(self) -> Tensor:
        r"""In-place form of :func:`atan`: ``input`` is overwritten with the result and given back."""
    def arctanh(self, *, out: Any = None) -> Tensor:
        r"""The inverse hyperbolic tangent, ``log((1 + input) / (1 - input)) / 2``; NaN outside of [-1, 1]."""
    def arctanh_(self) -> Tensor:
        r"""In-place form of :func:`atanh`: ``input`` is overwritten with the result and given back."""
    def argmax(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any =
        None
    ) -> Tensor:
        r"""The position of the first largest element along ``dim``. NaN counts as the largest."""
    def argmin(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any =
        None
    ) -> Tensor:
        r"""The position of the first smallest element along ``dim``. NaN counts as the smallest."""
    def argsort(
        self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False
    ) -> Tensor:
        r"""The indices that bring ``dim`` into order: ``input[argsort(input)]`` is sorted. See :func:`sort`."""
    def as_strided(
        self, size: Sequence[builtins.int] | builtins.int, stride: Sequence[builtins.int] | builtins.int,
        storage_offset: builtins.int | None = None
    ) -> Tensor:
        r"""A view with any sizes and strides on the memory of ``input``: element ``(i, j)`` is at ..."""
    def as_strided_scatter(
        self, src: Tensor | Number, size: Sequence[builtins.int] | builtins.int, stride: Sequence[builtins.int] |
        builtins.int, storage_offset: Any = None
    ) -> Tensor:
        r"""A copy of ``input`` with ``src`` where :func:`as_strided` with the same arguments would look."""
    def as_subclass(self, cls: Any) -> Any:
        r"""``input`` as an object of a subclass of Tensor: a view of it."""
    def asin(self, *, out: Any = None) -> Tensor:
        r"""The arc sine in radians, in [-pi/2, pi/2]; NaN outside of [-1, 1]."""
    def asin_(self) -> Tensor:
        r"""In-place form of :func:`asin`: ``input`` is overwritten with the result and given back."""
    def asinh(self, *, out: Any = None) -> Tensor:
        r"""The inverse hyperbolic sine, ``log(input + sqrt(input ** 2 + 1))``."""
    def asinh_(self) -> Tensor:
        r"""In-place form of :func:`asinh`: ``input`` is overwritten with the result and given back."""
    def at_least_(self, bound: Any) -> Tensor:
        r"""In-place form of :func:`at_least`: ``input`` is overwritten with the result and given back."""
    def at_most_(self, bound: Any) -> Tensor:
        r"""In-place form of :func:`at_most`: ``input`` is overwritten with the result and given back."""
    def atan(self, *, out: Any = None) -> Tensor:
        r"""The arc tangent in radians, in [-pi/2, pi/2]."""
    def atan2(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The angle in radians, in [-pi, pi], of the point with abscissa ``other`` and ordinate ``input``, ..."""
    def atan2_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`atan2`: ``input`` is overwritten with the result and given back."""
    def atan_(self) -> Tensor:
        r"""In-place form of :func:`atan`: ``input`` is overwritten with the result and given back."""
    def atanh(self, *, out: Any = None) -> Tensor:
        r"""The inverse hyperbolic tangent, ``log((1 + input) / (1 - input)) / 2``; NaN outside of [-1, 1]."""
    def atanh_(self) -> Tensor:
        r"""In-place form of :func:`atanh`: ``input`` is overwritten with the result and given back."""
    def baddbmm(
        self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None
    ) -> Tensor:
        r"""``beta * input + alpha * (batch1 @ batch2)``, batch by batch. With ``beta`` 0 ``input`` is not read."""
    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        r"""In-place form of :func:`baddbmm`: ``input`` is overwritten with the result and given back."""
    def bernoulli(self, p: Any = None, *, generator: Any | None = None, out: Any = None) -> Tensor:
        r"""Ones and zeros: a one with the probability that ``input`` holds at that place."""
    def bernoulli_(self, p: Any = 0.5, *, generator: Any | None = None) -> Tensor:
        r"""Fills ``input`` with ones, with probability ``p``, and zeros, in place."""
    def bfloat16(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as ``bfloat16``: ``input.to(taeda.bfloat16)``."""
    def bincount(self, weights: Any = None, minlength: builtins.int = 0) -> Tensor:
        r"""The count of each number from 0 on in a vector, or the sum of its weights."""
    def bitwise_and(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input & other``: the bits that both have."""
    def bitwise_and_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`bitwise_and`: ``input`` is overwritten with the result and given back."""
    def bitwise_left_shift(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input << other``, which is ``input * 2 ** other``; 0 where ``other`` is negative or not below ..."""
    def bitwise_left_shift_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`bitwise_left_shift`: ``input`` is overwritten with the result and given ..."""
    def bitwise_not(self, *, out: Any = None) -> Tensor:
        r"""``~input``: every bit turned over, which is ``-input - 1`` for signed numbers; of bools the ..."""
    def bitwise_not_(self) -> Tensor:
        r"""In-place form of :func:`bitwise_not`: ``input`` is overwritten with the result and given back."""
    def bitwise_or(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input | other``: the bits that either has."""
    def bitwise_or_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`bitwise_or`: ``input`` is overwritten with the result and given back."""
    def bitwise_right_shift(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input >> other``, which is ``floor(input / 2 ** other)``; a shift beyond the width leaves only ..."""
    def bitwise_right_shift_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`bitwise_right_shift`: ``input`` is overwritten with the result and given ..."""
    def bitwise_xor(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input ^ other``: the bits that exactly one has."""
    def bitwise_xor_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`bitwise_xor`: ``input`` is overwritten with the result and given back."""
    def bmm(self, mat2: Tensor, *, out: Any = None) -> Tensor:
        r"""The products of matrices, one per batch: ``out[b] = input[b] @ mat2[b]``"""
    def bool(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as ``bool``: ``input.to(taeda.bool)``."""
    def byte(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as ``uint8``: ``input.to(taeda.uint8)``."""
    def cauchy_(self, median: Number = 0.0, sigma: Number = 1.0, *, generator: Any | None = None) -> Tensor:
        r"""Fills ``input`` with random numbers of the Cauchy distribution, in place: ``median + sigma * ..."""
    def cdouble(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as ``complex128``: ``input.to(taeda.complex128)``."""
    def ceil(self, *, out: Any = None) -> Tensor:
        r"""The smallest whole number that is not below ``input``."""
    def ceil_(self) -> Tensor:
        r"""In-place form of :func:`ceil`: ``input`` is overwritten with the result and given back."""
    def cfloat(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as ``complex64``: ``input.to(taeda.complex64)``."""
    def chalf(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as ``complex32``: ``input.to(taeda.complex32)``."""
    def char(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as ``int8``: ``input.to(taeda.int8)``."""
    def cholesky(self, upper: builtins.bool = False) -> Tensor:
        r"""The Cholesky factor of positive definite matrices: :func:`taeda.linalg.cholesky`, which is ..."""
    def cholesky_inverse(self, upper: builtins.bool = False) -> Tensor:
        r"""The inverse of ``A = L @ L.mH``, given by its Cholesky factor ``L``."""
    def cholesky_solve(self, L: Any, upper: builtins.bool = False, *, out: Any = None) -> Tensor:
        r"""``X`` with ``A @ X = B``, for ``A = L @ L.mH`` given by its Cholesky factor ``L``."""
    def chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        r"""At most ``chunks`` pieces of equal size along ``dim``; the last may be smaller"""
    def clamp(self, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
        r"""``min(max(input, min), max)``: ``input`` held between two bounds. The gradient is 0 outside."""
    def clamp_(self, min: Any = None, max: Any = None) -> Tensor:
        r"""In-place form of :func:`clamp`: ``input`` is overwritten with the result and given back."""
    def clamp_between_(self, min: Any = None, max: Any = None) -> Tensor:
        r"""In-place form of :func:`clamp_between`: ``input`` is overwritten with the result and given back."""
    def clamp_max(self, max: Any, *, out: Any = None) -> Tensor:
        r"""``min(input, max)``: ``input``, at most ``max``."""
    def clamp_max_(self, max: Any) -> Tensor:
        r"""In-place form of :func:`clamp_max`: ``input`` is overwritten with the result and given back."""
    def clamp_min(self, min: Any, *, out: Any = None) -> Tensor:
        r"""``max(input, min)``: ``input``, at least ``min``."""
    def clamp_min_(self, min: Any) -> Tensor:
        r"""In-place form of :func:`clamp_min`: ``input`` is overwritten with the result and given back."""
    def clip(self, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
        r"""``min(max(input, min), max)``: ``input`` held between two bounds. The gradient is 0 outside."""
    def clip_(self, min: Any = None, max: Any = None) -> Tensor:
        r"""In-place form of :func:`clamp`: ``input`` is overwritten with the result and given back."""
    def clone(self, *, memory_format: Any = ...) -> Tensor:
        r"""A copy of ``input`` in memory of its own"""
    def combinations(self, r: builtins.int = 2, with_replacement: builtins.bool = False) -> Tensor:
        r"""All ways to choose ``r`` elements of a vector, in order of position, as rows."""
    def conj(self) -> Tensor:
        r"""The complex conjugate: ``a - bi`` for ``a + bi``"""
    def conj_physical(self, *, out: Any = None) -> Tensor:
        r"""The complex conjugate, computed: ``a - bi`` for ``a + bi``"""
    def conj_physical_(self) -> Tensor:
        r"""In-place form of :func:`conj_physical`: ``input`` is overwritten with the result and given back."""
    def conjugated_(self) -> Tensor:
        r"""In-place form of :func:`conjugated`: ``input`` is overwritten with the result and given back."""
    def contiguous(self, memory_format: Any = ...) -> Tensor:
        r"""``input`` itself if its elements lie in memory in the given order, else a copy that does."""
    def copy_(self, src: Tensor | Number, non_blocking: builtins.bool = False) -> Tensor:
        r"""In-place form of :func:`copy`: ``input`` is overwritten with the result and given back."""
    def copysign(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``|input|`` with the sign of ``other``, also that of -0.0 and NaN."""
    def copysign_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`copysign`: ``input`` is overwritten with the result and given back."""
    def corrcoef(self) -> Tensor:
        r"""Pearson's correlation coefficients: ``cov[i, j] / sqrt(cov[i, i] * cov[j, j])``, in [-1, 1]."""
    def cos(self, *, out: Any = None) -> Tensor:
        r"""The cosine of an angle in radians."""
    def cos_(self) -> Tensor:
        r"""In-place form of :func:`cos`: ``input`` is overwritten with the result and given back."""
    def cosh(self, *, out: Any = None) -> Tensor:
        r"""The hyperbolic cosine, ``(exp(input) + exp(-input)) / 2``."""
    def cosh_(self) -> Tensor:
        r"""In-place form of :func:`cosh`: ``input`` is overwritten with the result and given back."""
    def count_nonzero(self, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        r"""The number of elements along ``dim`` that are not 0."""
    def cov(self, *, correction: builtins.int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
        r"""The covariance matrix: ``out[i, j] = sum((x_i - mean_i) * (x_j - mean_j)) / (n - correction)``."""
    def cpu(self, memory_format: Any = None) -> Tensor:
        r"""``input`` on the CPU; itself where it is there already."""
    def cross(self, other: Tensor | Number, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        r"""The cross product of vectors of three elements, at right angles to both: ``(a2 b3 - a3 b2, a3 b1 ..."""
    def cube_(self) -> Tensor:
        r"""In-place form of :func:`cube`: ``input`` is overwritten with the result and given back."""
    def cuda(
        self, device: _device | builtins.str | None = None, non_blocking: builtins.bool = False, memory_format: Any =
        None
    ) -> Tensor:
        r"""``input`` on a CUDA device: a copy, or itself where it is there."""
    def cummax(self, dim: builtins.int, *, out: Any = None) -> return_types.cummax:
        r"""The running maximum along ``dim`` and where it was found."""
    def cummin(self, dim: builtins.int, *, out: Any = None) -> return_types.cummin:
        r"""The running minimum along ``dim`` and where it was found."""
    def cumprod(self, dim: builtins.int, *, dtype: _dtype | None = None, out: Any = None) -> Tensor:
        r"""The running product along ``dim``: ``out[i] = input[0] * ... * input[i]``."""
    def cumprod_(self, dim: builtins.int, *, dtype: _dtype | None = None) -> Tensor:
        r"""In-place form of :func:`cumprod`: ``input`` is overwritten with the result and given back."""
    def cumsum(self, dim: builtins.int, *, dtype: _dtype | None = None, out: Any = None) -> Tensor:
        r"""The running sum along ``dim``: ``out[i] = input[0] + .."""
    def cumsum_(self, dim: builtins.int, *, dtype: _dtype | None = None) -> Tensor:
        r"""In-place form of :func:`cumsum`: ``input`` is overwritten with the result and given back."""
    def deg2rad(self, *, out: Any = None) -> Tensor:
        r"""Degrees to radians: ``input * pi / 180``."""
    def deg2rad_(self) -> Tensor:
        r"""In-place form of :func:`deg2rad`: ``input`` is overwritten with the result and given back."""
    def det(self, *, out: Any = None) -> Tensor:
        r"""The determinant: how much a matrix scales volumes."""
    def detach_copy(self) -> Tensor:
        r"""A copy of ``input``, in memory of its own, that is not part of the graph."""
    def diag(self, diagonal: builtins.int = 0) -> Tensor:
        r"""A matrix with a vector on its diagonal, or the diagonal of a matrix."""
    def diag_embed(self, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1) -> Tensor:
        r"""Matrices with the last dimension of ``input`` on a diagonal and zeros elsewhere."""
    def diagflat(self, offset: builtins.int = 0) -> Tensor:
        r"""A matrix with all elements of ``input`` on its diagonal and zeros elsewhere."""
    def diagonal(self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
        r"""The diagonal of dimensions ``dim1`` and ``dim2``, as the last dimension: ``out[..., i] = ..."""
    def diagonal_scatter(
        self, src: Tensor | Number, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1
    ) -> Tensor:
        r"""A copy of ``input`` with ``src`` on the diagonal that :func:`diagonal` would view."""
    def diff(self, n: builtins.int = 1, dim: builtins.int = -1, prepend: Any = None, append: Any = None) -> Tensor:
        r"""The differences of neighbours along ``dim``, ``input[i + 1] - input[i]``, taken ``n`` times."""
    def digamma(self, *, out: Any = None) -> Tensor:
        r"""The derivative of :func:`lgamma`: ``gamma'(input) / gamma(input)``."""
    def digamma_(self) -> Tensor:
        r"""In-place form of :func:`digamma`: ``input`` is overwritten with the result and given back."""
    def dim_order(self, *, ambiguity_check: builtins.bool = False) -> Any:
        r"""The dimensions from the outermost in memory to the innermost."""
    def dist(self, other: Tensor | Number, p: Any = 2) -> Tensor:
        r"""The ``p``-norm of ``input - other``: their distance."""
    def div(self, other: Tensor | Number, *, rounding_mode: builtins.str | None = None, out: Any = None) -> Tensor:
        r"""``input / other``, also rounded."""
    def div_(self, other: Tensor | Number, *, rounding_mode: builtins.str | None = None) -> Tensor:
        r"""In-place form of :func:`div`: ``input`` is overwritten with the result and given back."""
    def divide(self, other: Tensor | Number, *, rounding_mode: builtins.str | None = None, out: Any = None) -> Tensor:
        r"""``input / other``, also rounded."""
    def divide_(self, other: Tensor | Number, *, rounding_mode: builtins.str | None = None) -> Tensor:
        r"""In-place form of :func:`div`: ``input`` is overwritten with the result and given back."""
    def dot(self, tensor: Tensor, *, out: Any = None) -> Tensor:
        r"""The inner product of two vectors: the sum of ``input[i] * tensor[i]``"""
    def double(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as ``float64``: ``input.to(taeda.float64)``."""
    def dsplit(self, indices_or_sections: Sequence[builtins.int] | builtins.int) -> tuple[Tensor, ...]:
        r"""Pieces along dimension 2: so many of equal size, or cut before given positions."""
    def eig(*args: Any, **kwargs: Any) -> Tensor:
        r"""Removed from PyTorch: use linalg.eig or linalg.eigvals, which are complex"""
    def elu_kernel_(self, alpha: Number, scale: Any, input_scale: Any, *, unit: builtins.bool = False) -> Tensor:
        r"""In-place form of :func:`elu_kernel`: ``input`` is overwritten with the result and given back."""
    def eq(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether the elements are equal; NaN equals nothing, not even NaN."""
    def eq_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`eq`: ``input`` is overwritten with the result and given back."""
    def equal(self, other: Tensor | Number) -> builtins.bool:
        r"""Whether the two have the same sizes and the same elements."""
    def erf(self, *, out: Any = None) -> Tensor:
        r"""The error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t * t)`` for ``t`` from 0 to ..."""
    def erf_(self) -> Tensor:
        r"""In-place form of :func:`erf`: ``input`` is overwritten with the result and given back."""
    def erfc(self, *, out: Any = None) -> Tensor:
        r"""``1 - erf(input)``, accurate also where it is small."""
    def erfc_(self) -> Tensor:
        r"""In-place form of :func:`erfc`: ``input`` is overwritten with the result and given back."""
    def erfinv(self, *, out: Any = None) -> Tensor:
        r"""The inverse of :func:`erf`; infinite at -1 and 1, NaN beyond."""
    def erfinv_(self) -> Tensor:
        r"""In-place form of :func:`erfinv`: ``input`` is overwritten with the result and given back."""
    def exp(self, *, out: Any = None) -> Tensor:
        r"""``e ** input``."""
    def exp2(self, *, out: Any = None) -> Tensor:
        r"""``2 ** input``."""
    def exp2_(self) -> Tensor:
        r"""In-place form of :func:`exp2`: ``input`` is overwritten with the result and given back."""
    def exp_(self) -> Tensor:
        r"""In-place form of :func:`exp`: ``input`` is overwritten with the result and given back."""
    def expand(self, *size: SupportsIndex | Sequence[SupportsIndex], implicit: builtins.bool = False) -> Tensor:
        r"""A view in which dimensions of size 1 are repeated, without copying."""
    def expand_as(self, other: Tensor | Number) -> Tensor:
        r""":meth:`Tensor.expand` to the sizes of ``other``."""
    def expit_(self) -> Tensor:
        r"""In-place form of :func:`sigmoid`: ``input`` is overwritten with the result and given back."""
    def expm1(self, *, out: Any = None) -> Tensor:
        r"""``e ** input - 1``, exact also for small ``input``, where the difference would cancel."""
    def expm1_(self) -> Tensor:
        r"""In-place form of :func:`expm1`: ``input`` is overwritten with the result and given back."""
    def exponential_(self, lambd: Number = 1.0, *, generator: Any | None = None) -> Tensor:
        r"""Fills ``input`` with random numbers of the exponential distribution, in place: ``-log(u) / ..."""
    def fill(self, value: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""A copy of ``input`` with ``value`` in every element. In place: ``input.fill_(value)``."""
    def fill_(self, value: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`fill`: ``input`` is overwritten with the result and given back."""
    def fill_diagonal_(self, fill_value: Any, wrap: builtins.bool = False) -> Tensor:
        r"""Writes ``fill_value`` on the main diagonal, in place."""
    def fix(self, *, out: Any = None) -> Tensor:
        r"""The whole part: ``input`` rounded toward zero."""
    def fix_(self) -> Tensor:
        r"""In-place form of :func:`trunc`: ``input`` is overwritten with the result and given back."""
    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
        r"""Dimensions ``start_dim`` to ``end_dim`` merged into one."""
    def flip(self, *dims: SupportsIndex | Sequence[SupportsIndex]) -> Tensor:
        r"""The elements in reverse order along ``dims``."""
    def fliplr(self) -> Tensor:
        r"""The columns in reverse order: :func:`flip` of dimension 1."""
    def flipud(self) -> Tensor:
        r"""The rows in reverse order: :func:`flip` of dimension 0."""
    def float(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as ``float32``: ``input.to(taeda.float32)``."""
    def float_power(self, exponent: Tensor | Number) -> Tensor:
        r"""``input ** exponent``, computed in ``float64`` or ``complex128``."""
    def float_power_(self, exponent: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`float_power`: ``input`` is overwritten with the result and given back."""
    def floor(self, *, out: Any = None) -> Tensor:
        r"""The largest whole number that is not above ``input``."""
    def floor_(self) -> Tensor:
        r"""In-place form of :func:`floor`: ``input`` is overwritten with the result and given back."""
    def floor_divide(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``floor(input / other)``, rounded down as Python's ``//`` does."""
    def floor_divide_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`floor_divide`: ``input`` is overwritten with the result and given back."""
    def floor_quotient_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`floor_quotient`: ``input`` is overwritten with the result and given back."""
    def fmax(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The larger of the two; a number wins over NaN."""
    def fmin(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The smaller of the two; a number wins over NaN."""
    def fmod(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input - other * trunc(input / other)``: the remainder with the sign of ``input``, as C's ..."""
    def fmod_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`fmod`: ``input`` is overwritten with the result and given back."""
    def frac(self, *, out: Any = None) -> Tensor:
        r"""``input - trunc(input)``: what follows the point, with the sign of ``input``."""
    def frac_(self) -> Tensor:
        r"""In-place form of :func:`frac`: ``input`` is overwritten with the result and given back."""
    def frexp(self, *, out: Any = None) -> return_types.frexp:
        r"""Mantissa and exponent: ``input = mantissa * 2 ** exponent`` with ``0.5 <= |mantissa| < 1``."""
    def gammainc_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`igamma`: ``input`` is overwritten with the result and given back."""
    def gammaincc_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`igammac`: ``input`` is overwritten with the result and given back."""
    def gammaln_(self) -> Tensor:
        r"""In-place form of :func:`lgamma`: ``input`` is overwritten with the result and given back."""
    def gather(
        self, dim: builtins.int, index: Tensor, *, sparse_grad: builtins.bool = False, out: Any = None
    ) -> Tensor:
        r"""The elements at ``index`` along ``dim``; for ``dim=1``: ``out[i][j] = input[i][index[i][j]]``."""
    def gcd(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The greatest common divisor, not negative."""
    def gcd_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`gcd`: ``input`` is overwritten with the result and given back."""
    def ge(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether ``input >= other``."""
    def ge_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`ge`: ``input`` is overwritten with the result and given back."""
    def geometric_(self, p: Any, *, generator: Any | None = None) -> Tensor:
        r"""Fills ``input`` with random numbers of trials up to the first success, in place: ``P(k) = (1 - ..."""
    def geqrf(self, *, out: Any = None) -> return_types.geqrf:
        r"""The QR factorisation as LAPACK packs it: ``R`` and, below its diagonal, Householder vectors with ..."""
    def ger(self, vec2: Tensor) -> Tensor:
        r"""The products of every pair: ``out[i, j] = input[i] * vec2[j]``."""
    def greater(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether ``input > other``."""
    def greater_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`gt`: ``input`` is overwritten with the result and given back."""
    def greater_equal(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether ``input >= other``."""
    def greater_equal_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`ge`: ``input`` is overwritten with the result and given back."""
    def gt(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether ``input > other``."""
    def gt_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`gt`: ``input`` is overwritten with the result and given back."""
    def half(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as ``float16``: ``input.to(taeda.float16)``."""
    def hardshrink(self, lambd: Number = 0.5, *, out: Any = None) -> Tensor:
        r"""``input`` where ``|input| > lambd``, 0 elsewhere."""
    def hardsigmoid_(self) -> Tensor:
        r"""In-place form of :func:`hardsigmoid`: ``input`` is overwritten with the result and given back."""
    def hardswish_(self) -> Tensor:
        r"""In-place form of :func:`hardswish`: ``input`` is overwritten with the result and given back."""
    def hardtanh_(self, min_val: Number = -1.0, max_val: Number = 1.0) -> Tensor:
        r"""In-place form of :func:`hardtanh`: ``input`` is overwritten with the result and given back."""
    def hash_tensor(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, *, keepdim: builtins.bool = False, mode: Number
        = 0
    ) -> Tensor:
        r"""A number that depends on the bits of the elements, as ``float64`` or integers of 64 bits, joined ..."""
    def heaviside(self, values: Any, *, out: Any = None) -> Tensor:
        r"""0 below 0, 1 above it, and ``values`` at 0."""
    def heaviside_(self, values: Any) -> Tensor:
        r"""In-place form of :func:`heaviside`: ``input`` is overwritten with the result and given back."""
    def histc(self, bins: builtins.int = 100, min: Number = 0, max: Number = 0, *, out: Any = None) -> Tensor:
        r"""The number of elements in each of ``bins`` equal intervals between ``min`` and ``max``."""
    def histogram(
        self, bins: Number = 100, *, range: Any = None, weight: Any = None, density: builtins.bool = False, out: Any =
        None
    ) -> return_types.histogram:
        r"""The number of elements in each bin, or the sum of their weights."""
    def hsplit(self, indices_or_sections: Sequence[builtins.int] | builtins.int) -> tuple[Tensor, ...]:
        r"""Pieces along dimension 1 (0 for vectors): so many of equal size, or cut before given positions."""
    def hypot(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``sqrt(input ** 2 + other ** 2)``, the length of the hypotenuse, without overflow on the way."""
    def hypot_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`hypot`: ``input`` is overwritten with the result and given back."""
    def i0(self, *, out: Any = None) -> Tensor:
        r"""The modified Bessel function of the first kind of order 0, ``I_0``: the sum of ``(input ** 2 / ..."""
    def i0_(self) -> Tensor:
        r"""In-place form of :func:`i0`: ``input`` is overwritten with the result and given back."""
    def igamma(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The regularised lower incomplete gamma function: the integral of ``t ** (input - 1) * exp(-t)`` ..."""
    def igamma_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`igamma`: ``input`` is overwritten with the result and given back."""
    def igammac(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The regularised upper incomplete gamma function: ``1 - igamma(input, other)``, accurate also ..."""
    def igammac_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`igammac`: ``input`` is overwritten with the result and given back."""
    def index_add(
        self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Number = 1, out: Any = None
    ) -> Tensor:
        r"""A copy of ``input`` with ``alpha`` times the slices of ``source`` added at ``index`` along ..."""
    def index_add_(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
        r"""In-place form of :func:`index_add`: ``input`` is overwritten with the result and given back."""
    def index_copy(self, dim: builtins.int, index: Tensor, source: Any, *, out: Any = None) -> Tensor:
        r"""A copy of ``input`` with the slices of ``source`` written at ``index`` along ``dim``."""
    def index_copy_(self, dim: builtins.int, index: Tensor, source: Any) -> Tensor:
        r"""In-place form of :func:`index_copy`: ``input`` is overwritten with the result and given back."""
    def index_fill(self, dim: builtins.int, index: Tensor, value: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""A copy of ``input`` with ``value`` in the slices at ``index`` along ``dim``."""
    def index_fill_(self, dim: builtins.int, index: Tensor, value: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`index_fill`: ``input`` is overwritten with the result and given back."""
    def index_put(self, indices: Any, values: Tensor, accumulate: builtins.bool = False, *, out: Any = None) -> Tensor:
        r"""A copy of ``input`` with ``values`` written at ``indices``, or added there: ``input[indices] = ..."""
    def index_put_(self, indices: Any, values: Tensor, accumulate: builtins.bool = False) -> Tensor:
        r"""In-place form of :func:`index_put`: ``input`` is overwritten with the result and given back."""
    def index_reduce(
        self, dim: builtins.int, index: Tensor, source: Any, reduce: builtins.str, *, include_self: builtins.bool =
        True, out: Any = None
    ) -> Tensor:
        r"""A copy of ``input`` with the slices of ``source`` combined into it at ``index`` along ``dim``."""
    def index_reduce_(
        self, dim: builtins.int, index: Tensor, source: Any, reduce: builtins.str, *, include_self: builtins.bool = True
    ) -> Tensor:
        r"""In-place form of :func:`index_reduce`: ``input`` is overwritten with the result and given back."""
    def index_select(self, dim: builtins.int, index: Tensor, *, out: Any = None) -> Tensor:
        r"""The slices of ``input`` at ``index`` along ``dim``: ``input[index]`` for ``dim=0``."""
    def inner(self, other: Tensor | Number) -> Tensor:
        r"""The sums of products along the last dimensions: ``out[..., ---]`` is the sum of ``input[..., k] ..."""
    def int(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as ``int32``: ``input.to(taeda.int32)``."""
    def inverse(self, *, out: Any = None) -> Tensor:
        r"""The inverse: ``A @ inv(A)`` is the identity"""
    def is_nonzero(self) -> builtins.bool:
        r"""Whether the one element of ``input`` is not zero, as a Python bool: what ``if x:`` asks."""
    def is_pinned(self, device: _device | builtins.str | None = None) -> builtins.bool:
        r"""Whether the memory is pinned for the accelerator."""
    def is_same_size(self, other: Tensor | Number) -> builtins.bool:
        r"""Whether two tensors have the same sizes."""
    def is_set_to(self, tensor: Tensor) -> builtins.bool:
        r"""Whether both are the same window on the same storage."""
    def is_shared(self) -> builtins.bool:
        r"""Whether the memory of ``input`` can be seen by other processes; see :meth:`share_memory_`."""
    def isclose(
        self, other: Tensor | Number, rtol: Number = 1e-05, atol: Number = 1e-08, equal_nan: builtins.bool = False
    ) -> Tensor:
        r"""Whether ``|input - other| <= atol + rtol * |other|``, element by element."""
    def isfinite(self, *, out: Any = None) -> Tensor:
        r"""Whether an element is neither infinite nor NaN."""
    def isinf(self, *, out: Any = None) -> Tensor:
        r"""Whether an element is infinite (either part of a complex one)."""
    def isnan(self, *, out: Any = None) -> Tensor:
        r"""Whether an element is NaN (either part of a complex one)."""
    def isneginf(self, *, out: Any = None) -> Tensor:
        r"""Whether an element is negative infinity."""
    def isposinf(self, *, out: Any = None) -> Tensor:
        r"""Whether an element is positive infinity."""
    def isreal(self, *, out: Any = None) -> Tensor:
        r"""Whether an element has no imaginary part."""
    def istft(
        self, n_fft: Any, hop_length: Any = None, win_length: Any = None, window: Any = None, center: builtins.bool =
        True, normalized: builtins.bool = False, onesided: Any = None, length: Any = None, return_complex: builtins.bool
        = False
    ) -> Tensor:
        r"""The signal whose :func:`stft` is nearest to ``input``: inverse transforms times the window, ..."""
    def kron(self, other: Tensor | Number) -> Tensor:
        r"""The Kronecker product: every element of ``input`` times the whole of ``other``."""
    def kthvalue(
        self, k: builtins.int, dim: builtins.int = -1, keepdim: builtins.bool = False, *, out: Any = None
    ) -> return_types.kthvalue:
        r"""The ``k``-th smallest element along ``dim``, and where it is."""
    def lcm(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The least common multiple, not negative."""
    def lcm_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`lcm`: ``input`` is overwritten with the result and given back."""
    def ldexp(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input * 2 ** other``: the inverse of :func:`frexp`."""
    def ldexp_(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""In-place form of :func:`ldexp`: ``input`` is overwritten with the result and given back."""
    def le(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether ``input <= other``."""
    def le_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`le`: ``input`` is overwritten with the result and given back."""
    def leaky_relu_(self, negative_slope: Number = 0.01) -> Tensor:
        r"""In-place form of :func:`leaky_relu`: ``input`` is overwritten with the result and given back."""
    def lerp(self, end: Any, weight: Any, *, out: Any = None) -> Tensor:
        r"""``input + weight * (end - input)``: between ``input`` (weight 0) and ``end`` (weight 1), exact ..."""
    def lerp_(self, end: Any, weight: Any) -> Tensor:
        r"""In-place form of :func:`lerp`: ``input`` is overwritten with the result and given back."""
    def less(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether ``input < other``."""
    def less_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`lt`: ``input`` is overwritten with the result and given back."""
    def less_equal(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether ``input <= other``."""
    def less_equal_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`le`: ``input`` is overwritten with the result and given back."""
    def lgamma(self, *, out: Any = None) -> Tensor:
        r"""The logarithm of ``|gamma(input)|``; at ``n + 1`` it is the logarithm of the factorial of ``n``."""
    def lgamma_(self) -> Tensor:
        r"""In-place form of :func:`lgamma`: ``input`` is overwritten with the result and given back."""
    def log(self, *, out: Any = None) -> Tensor:
        r"""The natural logarithm: -inf of 0, NaN of negative numbers."""
    def log10(self, *, out: Any = None) -> Tensor:
        r"""The logarithm to base 10: -inf of 0, NaN of negative numbers."""
    def log10_(self) -> Tensor:
        r"""In-place form of :func:`log10`: ``input`` is overwritten with the result and given back."""
    def log1p(self, *, out: Any = None) -> Tensor:
        r"""``log(1 + input)``, exact also for small ``input``, where the sum would be 1."""
    def log1p_(self) -> Tensor:
        r"""In-place form of :func:`log1p`: ``input`` is overwritten with the result and given back."""
    def log2(self, *, out: Any = None) -> Tensor:
        r"""The logarithm to base 2: -inf of 0, NaN of negative numbers."""
    def log2_(self) -> Tensor:
        r"""In-place form of :func:`log2`: ``input`` is overwritten with the result and given back."""
    def log_(self) -> Tensor:
        r"""In-place form of :func:`log`: ``input`` is overwritten with the result and given back."""
    def log_normal_(self, mean: Number = 1.0, std: Number = 2.0, *, generator: Any | None = None) -> Tensor:
        r"""Fills ``input`` with random numbers whose logarithm is normal, in place: ``exp(mean + std * z)``."""
    def log_softmax(self, dim: builtins.int, dtype: _dtype | None = None, *, out: Any = None) -> Tensor:
        r"""``input - log(sum(exp(input)))`` along ``dim``: the logarithm of :func:`softmax`, without its ..."""
    def logaddexp(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``log(exp(input) + exp(other))`` without overflow: the sum of two probabilities that are given ..."""
    def logaddexp2(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``log2(2 ** input + 2 ** other)`` without overflow."""
    def logcumsumexp(self, dim: builtins.int) -> Tensor:
        r"""``log(cumsum(exp(input)))`` along ``dim``, without overflow."""
    def logdet(self) -> Tensor:
        r"""The logarithm of the determinant: NaN where that is negative, ``-inf`` where it is 0."""
    def logical_and(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether both are true; any number but 0 is."""
    def logical_and_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`logical_and`: ``input`` is overwritten with the result and given back."""
    def logical_not(self, *, out: Any = None) -> Tensor:
        r"""Whether the element is false, which only 0 is."""
    def logical_not_(self) -> Tensor:
        r"""In-place form of :func:`logical_not`: ``input`` is overwritten with the result and given back."""
    def logical_or(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether either is true; any number but 0 is."""
    def logical_or_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`logical_or`: ``input`` is overwritten with the result and given back."""
    def logical_xor(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether exactly one is true; any number but 0 is."""
    def logical_xor_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`logical_xor`: ``input`` is overwritten with the result and given back."""
    def logit(self, eps: Any = None, *, out: Any = None) -> Tensor:
        r"""``log(input / (1 - input))``: the inverse of :func:`sigmoid`."""
    def logit_(self, eps: Any = None) -> Tensor:
        r"""In-place form of :func:`logit`: ``input`` is overwritten with the result and given back."""
    def logsumexp(self, dim: builtins.int, keepdim: builtins.bool = False) -> Tensor:
        r"""``log(sum(exp(input)))`` over ``dim``, without overflow: a smooth maximum."""
    def long(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as ``int64``: ``input.to(taeda.int64)``."""
    def lstsq(*args: Any, **kwargs: Any) -> Tensor:
        r"""Removed from PyTorch: use linalg.lstsq(A, B), whose arguments are in the other order and whose ..."""
    def lt(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether ``input < other``."""
    def lt_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`lt`: ``input`` is overwritten with the result and given back."""
    def lu(self, pivot: builtins.bool = True, get_infos: builtins.bool = False) -> Any:
        r"""The older form of :func:`taeda.linalg.lu_factor`."""
    def lu_solve(self, LU_data: Any, LU_pivots: Any) -> Tensor:
        r"""``X`` with ``A @ X = b``: :func:`taeda.linalg.lu_solve` with its arguments in an older order."""
    def map2_(self, x: Any, y: Any, callable: Any) -> Any:
        r"""Every element becomes ``callable(element, element of x, element of y)``, in place"""
    def map_(self, tensor: Tensor, callable: Any) -> Any:
        r"""Every element becomes ``callable(element, element of tensor)``, in place"""
    def masked_fill(self, mask: Tensor, value: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``value`` where ``mask`` is true, ``input`` elsewhere."""
    def masked_fill_(self, mask: Tensor, value: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`masked_fill`: ``input`` is overwritten with the result and given back."""
    def masked_scatter(self, mask: Tensor, source: Any) -> Tensor:
        r"""``input`` with the elements of ``source``, in order, where ``mask`` is true."""
    def masked_scatter_(self, mask: Tensor, source: Any) -> Tensor:
        r"""In-place form of :func:`masked_scatter`: ``input`` is overwritten with the result and given back."""
    def masked_select(self, mask: Tensor, *, out: Any = None) -> Tensor:
        r"""The elements of ``input`` where ``mask`` is true, in row-major order: ``input[mask]``."""
    def matmul(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The matrix product ``input @ other``: ``out[..., i, j]`` is the sum of ``input[..., i, k] * ..."""
    def matrix_exp(self, *, out: Any = None) -> Tensor:
        r"""The exponential of matrices, ``sum(input^k / k!)``: the solution at time 1 of ``x' = input @ x``"""
    def matrix_power(self, n: builtins.int) -> Tensor:
        r"""``input @ input @ ...``, ``n`` times, by repeated squaring."""
    @overload
    def max(self) -> Tensor:
        r"""The largest element of ``input``; along a dimension, with its position; or of two tensors, ..."""
    @overload
    def max(self, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.max:
        r"""The largest element of ``input``; along a dimension, with its position; or of two tensors, ..."""
    @overload
    def max(self, other: Tensor) -> Tensor:
        r"""The largest element of ``input``; along a dimension, with its position; or of two tensors, ..."""
    def maximum(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The larger of the two; NaN where either is NaN."""
    def mean(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype: _dtype
        | None = None, out: Any = None
    ) -> Tensor:
        r"""The sum of the elements over ``dim``, divided by their number."""
    @overload
    def median(self) -> Tensor:
        r"""The element in the middle of the order; of an even number of elements the lower of the two"""
    @overload
    def median(self, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.median:
        r"""The element in the middle of the order; of an even number of elements the lower of the two"""
    @overload
    def min(self) -> Tensor:
        r"""The smallest element of ``input``; along a dimension, with its position; or of two tensors, ..."""
    @overload
    def min(self, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.min:
        r"""The smallest element of ``input``; along a dimension, with its position; or of two tensors, ..."""
    @overload
    def min(self, other: Tensor) -> Tensor:
        r"""The smallest element of ``input``; along a dimension, with its position; or of two tensors, ..."""
    def minimum(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The smaller of the two; NaN where either is NaN."""
    def mish_(self) -> Tensor:
        r"""In-place form of :func:`mish`: ``input`` is overwritten with the result and given back."""
    def mm(self, mat2: Tensor, *, out: Any = None) -> Tensor:
        r"""The product of two matrices; see :func:`matmul` for batches and vectors."""
    def mode(self, dim: builtins.int = -1, keepdim: builtins.bool = False, *, out: Any = None) -> return_types.mode:
        r"""The most frequent value along ``dim``, the smallest of equally frequent ones, and where it is last."""
    def modified_bessel_i0_(self) -> Tensor:
        r"""In-place form of :func:`i0`: ``input`` is overwritten with the result and given back."""
    def moveaxis(self, source: Any, destination: Any) -> Tensor:
        r"""A view with dimensions ``source`` moved to ``destination``; the others stay in their order."""
    def movedim(self, source: Any, destination: Any) -> Tensor:
        r"""A view with dimensions ``source`` moved to ``destination``; the others stay in their order."""
    def msort(self) -> Tensor:
        r"""The elements in ascending order along dimension 0."""
    def mul(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input * other``; of bools, whether both are true."""
    def mul_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`mul`: ``input`` is overwritten with the result and given back."""
    def multinomial(
        self, num_samples: builtins.int, replacement: builtins.bool = False, *, generator: Any | None = None, out: Any =
        None
    ) -> Tensor:
        r"""Indices drawn with the weights in each row: index ``i`` with probability ``row[i] / sum(row)``."""
    def multiply(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input * other``; of bools, whether both are true."""
    def multiply_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`mul`: ``input`` is overwritten with the result and given back."""
    def mv(self, vec: Tensor, *, out: Any = None) -> Tensor:
        r"""The product of a matrix and a vector."""
    def mvlgamma(self, p: Any) -> Tensor:
        r"""The logarithm of the multivariate gamma function: ``p * (p - 1) / 4 * log(pi)`` plus the sum of ..."""
    def mvlgamma_(self, p: Any) -> Tensor:
        r"""In-place form of :func:`mvlgamma`: ``input`` is overwritten with the result and given back."""
    def nan_to_num(self, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Tensor:
        r"""``input`` with other numbers in place of NaN and the infinities."""
    def nan_to_num_(self, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Tensor:
        r"""In-place form of :func:`nan_to_num`: ``input`` is overwritten with the result and given back."""
    def nanmean(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype: _dtype
        | None = None
    ) -> Tensor:
        r"""The mean over ``dim`` of the elements that are not NaN."""
    @overload
    def nanmedian(self) -> Tensor:
        r""":func:`median` of the elements that are not NaN."""
    @overload
    def nanmedian(self, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.nanmedian:
        r""":func:`median` of the elements that are not NaN."""
    def nanquantile(
        self, q: Any, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *,
        interpolation: builtins.str = 'linear'
    ) -> Tensor:
        r""":func:`quantile` of the elements that are not NaN."""
    def nansum(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype: _dtype
        | None = None, out: Any = None
    ) -> Tensor:
        r"""The sum of the elements over ``dim``, NaN counted as 0."""
    def narrow(self, dim: builtins.int, start: Any, length: builtins.int) -> Tensor:
        r"""``length`` elements from ``start`` along ``dim``: ``input[start:start + length]`` for ``dim=0``."""
    def narrow_copy(self, dim: builtins.int, start: Any, length: Any) -> Tensor:
        r"""A copy of the result of :func:`narrow`, with its own memory."""
    def ne(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether the elements differ; NaN differs from everything."""
    def ne_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`ne`: ``input`` is overwritten with the result and given back."""
    def neg(self, *, out: Any = None) -> Tensor:
        r"""``-input``. For bools use ``~``."""
    def neg_(self) -> Tensor:
        r"""In-place form of :func:`neg`: ``input`` is overwritten with the result and given back."""
    def negative(self, *, out: Any = None) -> Tensor:
        r"""``-input``. For bools use ``~``."""
    def negative_(self) -> Tensor:
        r"""In-place form of :func:`neg`: ``input`` is overwritten with the result and given back."""
    def new_empty(
        self, *args: SupportsIndex | Sequence[SupportsIndex], size: Sequence[builtins.int] | builtins.int | None = None,
        dtype: _dtype | None = None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False,
        layout: Any = None, pin_memory: builtins.bool = False
    ) -> Tensor:
        r"""A tensor of the given sizes with the dtype and the device of ``input``, whose elements are not set."""
    def new_empty_strided(
        self, size: Sequence[builtins.int] | builtins.int, stride: Sequence[builtins.int] | builtins.int, dtype: _dtype
        | None = None, layout: Any = None, device: _device | builtins.str | None = None, pin_memory: builtins.bool =
        False, requires_grad: builtins.bool = False
    ) -> Tensor:
        r"""A tensor of the given sizes and strides with the dtype and the device of ``input``, whose ..."""
    def new_full(
        self, size: Sequence[builtins.int] | builtins.int, fill_value: Any, dtype: _dtype | None = None, device: _device
        | builtins.str | None = None, requires_grad: builtins.bool = False, layout: Any = None, pin_memory:
        builtins.bool = False
    ) -> Tensor:
        r"""A tensor of the given sizes with the dtype and the device of ``input``, filled with ``fill_value``."""
    def new_ones(
        self, *args: SupportsIndex | Sequence[SupportsIndex], size: Sequence[builtins.int] | builtins.int | None = None,
        dtype: _dtype | None = None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False,
        layout: Any = None, pin_memory: builtins.bool = False
    ) -> Tensor:
        r"""A tensor of ones of the given sizes with the dtype and the device of ``input``."""
    def new_tensor(
        self, data: Any, dtype: _dtype | None = None, device: _device | builtins.str | None = None, requires_grad:
        builtins.bool = False, layout: Any = None, pin_memory: builtins.bool = False
    ) -> Tensor:
        r"""A copy of ``data`` with the dtype and the device of ``input``."""
    def new_zeros(
        self, *args: SupportsIndex | Sequence[SupportsIndex], size: Sequence[builtins.int] | builtins.int | None = None,
        dtype: _dtype | None = None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False,
        layout: Any = None, pin_memory: builtins.bool = False
    ) -> Tensor:
        r"""A tensor of zeros of the given sizes with the dtype and the device of ``input``."""
    def nextafter(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The next floating-point number from ``input`` toward ``other``."""
    def nextafter_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`nextafter`: ``input`` is overwritten with the result and given back."""
    @overload
    def nonzero(self) -> Tensor:
        r"""The indices of the elements that are not zero."""
    @overload
    def nonzero(self, *, as_tuple: builtins.bool) -> Any:
        r"""The indices of the elements that are not zero."""
    def nonzero_static(self, *, size: Sequence[builtins.int] | builtins.int, fill_value: Number = -1) -> Tensor:
        r"""The first ``size`` rows of :func:`nonzero`, filled up where there are fewer: a result whose ..."""
    def norm(
        self, p: Any = 'fro', dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False,
        dtype: _dtype | None = None
    ) -> Tensor:
        r"""A norm over ``dim``: ``sum(|input| ** p) ** (1 / p)``"""
    def normal_(self, mean: Number = 0.0, std: Number = 1.0, *, generator: Any | None = None) -> Tensor:
        r"""Fills ``input`` with random normal numbers, in place: ``mean + std * z``"""
    def not_equal(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether the elements differ; NaN differs from everything."""
    def not_equal_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`ne`: ``input`` is overwritten with the result and given back."""
    def orgqr(self, tau: Any) -> Tensor:
        r""":func:`taeda.linalg.householder_product` under LAPACK's name."""
    def ormqr(
        self, tau: Any, other: Tensor | Number, left: builtins.bool = True, transpose: builtins.bool = False, *, out:
        Any = None
    ) -> Tensor:
        r"""``Q @ other`` for the product ``Q`` of Householder reflectors, without making ``Q``."""
    def outer(self, vec2: Tensor) -> Tensor:
        r"""The products of every pair: ``out[i, j] = input[i] * vec2[j]``."""
    def permute(self, *dims: SupportsIndex | Sequence[SupportsIndex]) -> Tensor:
        r"""A view with the dimensions in the order ``dims``: ``out.shape[i]`` is ``input.shape[dims[i]]``."""
    def pin_memory(self, device: _device | builtins.str | None = None) -> Tensor:
        r"""``input``, which is on the CPU, in memory from which the accelerator copies without waiting: a ..."""
    def pinverse(self, rcond: Number = 1e-15) -> Tensor:
        r"""The Moore-Penrose inverse, :func:`taeda.linalg.pinv`, with an older default of the tolerance."""
    def poisson(self, generator: Any | None = None, *, out: Any = None) -> Tensor:
        r"""Random numbers of Poisson's distribution, ``P(k) = rate ** k * exp(-rate) / k!``, with the rates ..."""
    def polygamma(self, n: builtins.int) -> Tensor:
        r"""The derivative of order ``n`` of :func:`digamma`; see :func:`polygamma`."""
    def polygamma_(self, n: builtins.int) -> Tensor:
        r"""In-place form of :func:`polygamma`."""
    def positive(self) -> Tensor:
        r"""``+input``: the tensor itself."""
    def pow(self, exponent: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input ** exponent``."""
    def pow_(self, exponent: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`pow`: ``input`` is overwritten with the result and given back."""
    def power_(self, exponent: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`power`: ``input`` is overwritten with the result and given back."""
    def power_of_half_(self) -> Tensor:
        r"""In-place form of :func:`power_of_half`: ``input`` is overwritten with the result and given back."""
    def power_of_minus_half_(self) -> Tensor:
        r"""In-place form of :func:`power_of_minus_half`: ``input`` is overwritten with the result and given ..."""
    def power_of_minus_one_(self) -> Tensor:
        r"""In-place form of :func:`power_of_minus_one`: ``input`` is overwritten with the result and given ..."""
    def prelu(self, weight: Any) -> Tensor:
        r"""``input`` where it is positive, ``weight * input`` elsewhere (He et al"""
    def prod(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype: _dtype
        | None = None, out: Any = None
    ) -> Tensor:
        r"""The product of the elements over ``dim``."""
    def psi_(self) -> Tensor:
        r"""In-place form of :func:`digamma`: ``input`` is overwritten with the result and given back."""
    def put(self, index: Tensor, source: Any, accumulate: builtins.bool = False, *, out: Any = None) -> Tensor:
        r"""A copy of ``input`` with ``source`` written, or added, at the positions ``index`` of ``input`` ..."""
    def put_(self, index: Tensor, source: Any, accumulate: builtins.bool = False) -> Tensor:
        r"""In-place form of :func:`put`: ``input`` is overwritten with the result and given back."""
    def qr(self, some: builtins.bool = True) -> return_types.qr:
        r"""``input = Q @ R``: :func:`taeda.linalg.qr`, which is preferred."""
    def quantile(
        self, q: Any, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *,
        interpolation: builtins.str = 'linear'
    ) -> Tensor:
        r"""The value below which the share ``q`` of the elements lies, along ``dim``."""
    def rad2deg(self, *, out: Any = None) -> Tensor:
        r"""Radians to degrees: ``input * 180 / pi``."""
    def rad2deg_(self) -> Tensor:
        r"""In-place form of :func:`rad2deg`: ``input`` is overwritten with the result and given back."""
    def random_(self, from_: Any = None, to: Any = ..., *, generator: Any | None = None) -> Tensor:
        r"""Fills ``input`` with random integers, uniform, in place: ``random_(to)`` in [0, to), ..."""
    def ravel(self) -> Tensor:
        r"""All elements in one dimension, in row-major order."""
    def reciprocal(self, *, out: Any = None) -> Tensor:
        r"""``1 / input``: infinite at 0."""
    def reciprocal_(self) -> Tensor:
        r"""In-place form of :func:`reciprocal`: ``input`` is overwritten with the result and given back."""
    def record_stream(self, s: Any) -> Tensor:
        r"""Keep the memory of ``input``, once it is freed, from reuse until the work that stream ``s`` has ..."""
    def relu(self, *, out: Any = None) -> Tensor:
        r"""``max(input, 0)``, the rectified linear unit."""
    def relu6_(self) -> Tensor:
        r"""In-place form of :func:`relu6`: ``input`` is overwritten with the result and given back."""
    def relu_(self) -> Tensor:
        r"""In-place form of :func:`relu`: ``input`` is overwritten with the result and given back."""
    def remainder(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input - other * floor(input / other)``: the remainder with the sign of ``other``, as Python's ..."""
    def remainder_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`remainder`: ``input`` is overwritten with the result and given back."""
    def renorm(self, p: Any, dim: builtins.int, maxnorm: Any) -> Tensor:
        r"""``input`` with each slice along ``dim`` scaled down, where its ``p``-norm is above ``maxnorm``, ..."""
    def renorm_(self, p: Any, dim: builtins.int, maxnorm: Any) -> Tensor:
        r"""In-place form of :func:`renorm`: ``input`` is overwritten with the result and given back."""
    def repeat(self, *repeats: SupportsIndex | Sequence[SupportsIndex]) -> Tensor:
        r"""The whole of ``input`` side by side, ``repeats[i]`` times along dimension ``i``, as a copy."""
    def repeat_interleave(
        self, repeats: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, *, output_size:
        Sequence[builtins.int | None] | builtins.int | None = None
    ) -> Tensor:
        r"""Each element, or slice along ``dim``, repeated where it stands."""
    def replace_nonfinite_(self, nan: Number, posinf: Number, neginf: Number) -> Tensor:
        r"""In-place form of :func:`replace_nonfinite`: ``input`` is overwritten with the result and given back."""
    def reshape(self, *shape: SupportsIndex | Sequence[SupportsIndex]) -> Tensor:
        r"""The elements in row-major order with the sizes ``shape``."""
    def reshape_as(self, other: Tensor | Number) -> Tensor:
        r""":func:`reshape` to the sizes of ``other``."""
    def resize(self, *sizes: SupportsIndex | Sequence[SupportsIndex]) -> Tensor:
        r""":meth:`resize_` out of place (deprecated): a view with the given sizes on the same memory, which ..."""
    def resize_(
        self, *args: SupportsIndex | Sequence[SupportsIndex], size: Sequence[builtins.int] | builtins.int | None = None,
        memory_format: Any = None
    ) -> Tensor:
        r"""Changes the sizes in place. Elements stay in their order in memory, new ones are not set."""
    def resize_as(self, tensor: Tensor) -> Tensor:
        r""":meth:`resize` to the sizes of ``tensor`` (deprecated)."""
    def resize_as_(self, the_template: Any, memory_format: Any = None) -> Tensor:
        r"""Changes the sizes of ``input``, in place, to those of another tensor. New elements are not set."""
    def resize_as_sparse_(self, the_template: Any) -> Tensor:
        r"""Gives the sparse tensor ``input`` the sizes of another, in place."""
    def resolve_conj(self) -> Tensor:
        r"""``input`` itself; of a conjugated view, a copy whose memory holds what the view shows."""
    def resolve_neg(self) -> Tensor:
        r"""``input`` itself; of the imaginary part of a conjugated view, a copy whose memory holds what the ..."""
    def roll(
        self, shifts: Sequence[builtins.int] | builtins.int, dims: Sequence[builtins.int] | builtins.int | None = None,
        *, out: Any = None
    ) -> Tensor:
        r"""The elements moved by ``shifts`` along ``dims``; those that fall off the end come back at the start."""
    def rot90(self, k: builtins.int = 1, dims: Sequence[builtins.int] | builtins.int = ...) -> Tensor:
        r"""A rotation by ``k`` quarter turns in the plane of two dimensions, from the first towards the second."""
    def round(self, *, decimals: builtins.int = 0, out: Any = None) -> Tensor:
        r"""The nearest whole number, or the nearest multiple of ``10 ** -decimals``; a half goes to the ..."""
    def round_(self, *, decimals: builtins.int = 0, out: Any = None) -> Tensor:
        r"""In-place form of :func:`round`: ``input`` is overwritten with the result and given back."""
    def round_half_even_(self) -> Tensor:
        r"""In-place form of :func:`round_half_even`: ``input`` is overwritten with the result and given back."""
    def rsqrt(self, *, out: Any = None) -> Tensor:
        r"""``1 / sqrt(input)``: infinite at 0, NaN of negative numbers."""
    def rsqrt_(self) -> Tensor:
        r"""In-place form of :func:`rsqrt`: ``input`` is overwritten with the result and given back."""
    def rsub(self, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
        r"""``other - alpha * input``: :func:`sub` with the operands in the other order."""
    def scatter(
        self, dim: builtins.int, index: Tensor, src: Tensor | Number | None = None, *, reduce: Any = None, value: Tensor
        | Number | None = None, out: Any = None
    ) -> Tensor:
        r"""A copy of ``input`` with ``src`` written at ``index`` along ``dim``; for ``dim=1``: ..."""
    def scatter_(
        self, dim: builtins.int, index: Tensor, src: Tensor | Number | None = None, *, reduce: Any = None, value: Tensor
        | Number | None = None
    ) -> Tensor:
        r"""In-place form of :func:`scatter`: ``input`` is overwritten with the result and given back."""
    def scatter_add(self, dim: builtins.int, index: Tensor, src: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""A copy of ``input`` with ``src`` added at ``index`` along ``dim``; for ``dim=0``: ..."""
    def scatter_add_(self, dim: builtins.int, index: Tensor, src: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`scatter_add`: ``input`` is overwritten with the result and given back."""
    def scatter_reduce(
        self, dim: builtins.int, index: Tensor, src: Tensor | Number, reduce: builtins.str, *, include_self:
        builtins.bool = True, out: Any = None
    ) -> Tensor:
        r"""A copy of ``input`` with ``src`` combined into it at ``index`` along ``dim``."""
    def scatter_reduce_(
        self, dim: builtins.int, index: Tensor, src: Tensor | Number, reduce: builtins.str, *, include_self:
        builtins.bool = True
    ) -> Tensor:
        r"""In-place form of :func:`scatter_reduce`: ``input`` is overwritten with the result and given back."""
    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        r"""The slice at ``index`` along ``dim``, without that dimension: ``input[index]`` for ``dim=0``."""
    def select_scatter(self, src: Tensor | Number, dim: builtins.int, index: builtins.int) -> Tensor:
        r"""A copy of ``input`` with ``src`` in the slice that :func:`select` would view."""
    def set_(
        self, source: Any = None, storage_offset: Number = 0, size: Sequence[builtins.int] | builtins.int | None = None,
        stride: Sequence[builtins.int] | builtins.int | None = None
    ) -> Tensor:
        r"""Makes ``input`` a window on the memory of ``source``, in place."""
    def sgn(self, *, out: Any = None) -> Tensor:
        r"""``input / |input|``, 0 at 0: the sign, of a complex number the point of the unit circle in its ..."""
    def sgn_(self) -> Tensor:
        r"""In-place form of :func:`sgn`: ``input`` is overwritten with the result and given back."""
    def share_memory_(self) -> Tensor:
        r"""Moves the memory of ``input`` (and of all views of it) to where other processes can see it."""
    def short(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as ``int16``: ``input.to(taeda.int16)``."""
    def sigmoid(self, *, out: Any = None) -> Tensor:
        r"""``1 / (1 + exp(-input))``: any number to a probability."""
    def sigmoid_(self) -> Tensor:
        r"""In-place form of :func:`sigmoid`: ``input`` is overwritten with the result and given back."""
    def sign(self, *, out: Any = None) -> Tensor:
        r"""-1, 0 or 1, as the number is negative, zero or positive. For complex numbers see :func:`sgn`."""
    def sign_(self) -> Tensor:
        r"""In-place form of :func:`sign`: ``input`` is overwritten with the result and given back."""
    def signbit(self, *, out: Any = None) -> Tensor:
        r"""Whether the sign bit is set: of negative numbers and of -0.0."""
    def silu_(self) -> Tensor:
        r"""In-place form of :func:`silu`: ``input`` is overwritten with the result and given back."""
    def sin(self, *, out: Any = None) -> Tensor:
        r"""The sine of an angle in radians."""
    def sin_(self) -> Tensor:
        r"""In-place form of :func:`sin`: ``input`` is overwritten with the result and given back."""
    def sinc(self, *, out: Any = None) -> Tensor:
        r"""``sin(pi * input) / (pi * input)``, 1 at 0."""
    def sinc_(self) -> Tensor:
        r"""In-place form of :func:`sinc`: ``input`` is overwritten with the result and given back."""
    def sinh(self, *, out: Any = None) -> Tensor:
        r"""The hyperbolic sine, ``(exp(input) - exp(-input)) / 2``."""
    def sinh_(self) -> Tensor:
        r"""In-place form of :func:`sinh`: ``input`` is overwritten with the result and given back."""
    def slice_inverse(
        self, src: Tensor | Number, dim: builtins.int = 0, start: Any = None, end: Any = None, step: Number = 1
    ) -> Any:
        r"""The whole from which the slice ``input`` was cut: a view with the sizes of ``src``."""
    def slice_scatter(
        self, src: Tensor | Number, dim: builtins.int = 0, start: Any = None, end: Any = None, step: Number = 1
    ) -> Tensor:
        r"""A copy of ``input`` with ``src`` in a slice along ``dim``: ``out[start:end:step] = src`` for ..."""
    def slogdet(self) -> return_types.slogdet:
        r"""The sign of the determinant and the logarithm of its absolute value: :func:`taeda.linalg.slogdet`."""
    def smm(self, mat: Tensor) -> Tensor:
        r"""``input @ mat`` of a sparse and a dense matrix, as a sparse tensor."""
    def softmax(self, dim: builtins.int, dtype: _dtype | None = None, *, out: Any = None) -> Tensor:
        r"""``exp(input) / sum(exp(input))`` along ``dim``, without overflow: scores become probabilities ..."""
    def solve(*args: Any, **kwargs: Any) -> Tensor:
        r"""Removed from PyTorch: use linalg.solve(A, B), whose arguments are in the other order, or ..."""
    def sort(
        self, dim: builtins.int = -1, descending: builtins.bool = False, stable: Any = None, *, out: Any = None
    ) -> return_types.sort:
        r"""The elements in order along ``dim``, and where each was"""
    def sparse_mask(self, mask: Tensor) -> Tensor:
        r"""The elements of ``input`` at the places that the sparse tensor ``mask`` has, as a sparse tensor."""
    def split(
        self, split_size_or_sections: Sequence[builtins.int] | builtins.int | None = None, dim: builtins.int = 0, *,
        split_size: Any = None
    ) -> tuple[Tensor, ...]:
        r"""Consecutive pieces along ``dim``: all of one size, or of the sizes in a list."""
    def sqrt(self, *, out: Any = None) -> Tensor:
        r"""The square root; NaN of negative numbers. The gradient at 0 is infinite."""
    def sqrt_(self) -> Tensor:
        r"""In-place form of :func:`sqrt`: ``input`` is overwritten with the result and given back."""
    def square(self, *, out: Any = None) -> Tensor:
        r"""``input * input``; bools count as whole numbers."""
    def square_(self, *, out: Any = None) -> Tensor:
        r"""In-place form of :func:`square`: ``input`` is overwritten with the result and given back."""
    def squeeze(self, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        r"""A view without the dimensions of size 1: all of them, or those in ``dim``."""
    def sspaddmm(self, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        r"""``beta * input + alpha * (mat1 @ mat2)`` of sparse ``input`` and ``mat1`` and a dense ``mat2``."""
    def std(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, unbiased: Any = None, keepdim: builtins.bool =
        False, *, correction: Any = None, out: Any = None
    ) -> Tensor:
        r"""The standard deviation over ``dim``: the square root of :func:`var`."""
    def stft(
        self, n_fft: Any, hop_length: Any = None, win_length: Any = None, window: Any = None, center: builtins.bool =
        True, pad_mode: builtins.str = 'reflect', normalized: builtins.bool = False, onesided: Any = None,
        return_complex: Any = None, align_to_window: Any = None
    ) -> Tensor:
        r"""The Fourier transforms of overlapping pieces of a signal: ``out[f, t]`` is the sum of ..."""
    def sub(self, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
        r"""``input - alpha * other``. For bools use ``^`` or :func:`logical_xor`."""
    def sub_(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        r"""In-place form of :func:`sub`: ``input`` is overwritten with the result and given back."""
    def subtract(self, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
        r"""``input - alpha * other``. For bools use ``^`` or :func:`logical_xor`."""
    def subtract_(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        r"""In-place form of :func:`sub`: ``input`` is overwritten with the result and given back."""
    def sum(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype: _dtype
        | None = None, out: Any = None
    ) -> Tensor:
        r"""The sum of the elements over ``dim``. It is computed in blocks, so that long sums stay accurate."""
    def sum_to_size(
        self, *args: SupportsIndex | Sequence[SupportsIndex], size: Sequence[builtins.int] | builtins.int | None = None
    ) -> Tensor:
        r"""Sums over dimensions so that the result has the given sizes: the adjoint of :meth:`Tensor.expand`."""
    def svd(self, some: builtins.bool = True, compute_uv: builtins.bool = True) -> return_types.svd:
        r"""``input = U @ diag(S) @ V.mH``: the older form of :func:`taeda.linalg.svd`, which gives ``V``."""
    def swapaxes(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        r"""A view with dimensions ``dim0`` and ``dim1`` swapped."""
    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        r"""A view with dimensions ``dim0`` and ``dim1`` swapped."""
    def symeig(*args: Any, **kwargs: Any) -> Tensor:
        r"""Removed from PyTorch: use linalg.eigh(A, UPLO='L' or 'U') or linalg.eigvalsh"""
    def t(self) -> Tensor:
        r"""The transpose of a matrix; a vector, or a tensor without dimensions, is given back."""
    def take(self, index: Tensor, *, out: Any = None) -> Tensor:
        r"""The elements of ``input``, taken as one dimension, at ``index``."""
    def take_along_dim(self, indices: Any, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        r""":func:`gather` with ``indices`` broadcast against ``input``: takes what :func:`argsort` or ..."""
    def tan(self, *, out: Any = None) -> Tensor:
        r"""The tangent of an angle in radians."""
    def tan_(self) -> Tensor:
        r"""In-place form of :func:`tan`: ``input`` is overwritten with the result and given back."""
    def tanh(self, *, out: Any = None) -> Tensor:
        r"""The hyperbolic tangent, ``(exp(input) - exp(-input)) / (exp(input) + exp(-input))``, in [-1, 1]."""
    def tanh_(self) -> Tensor:
        r"""In-place form of :func:`tanh`: ``input`` is overwritten with the result and given back."""
    def tensor_split(self, indices_or_sections: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        r"""Pieces along ``dim``: ``n`` of nearly equal size, or cut before the given positions"""
    def threshold_(self, threshold: Number, value: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`threshold`: ``input`` is overwritten with the result and given back."""
    def tile(
        self, *args: SupportsIndex | Sequence[SupportsIndex], dims: Sequence[builtins.int] | builtins.int | None = None
    ) -> Tensor:
        r"""``input`` repeated as a whole: :func:`Tensor.repeat`, where missing leading counts are 1."""
    def times_itself_(self) -> Tensor:
        r"""In-place form of :func:`times_itself`: ``input`` is overwritten with the result and given back."""
    @overload
    def to(
        self, dtype: _dtype, non_blocking: builtins.bool = False, copy: builtins.bool = False, *, memory_format: Any =
        None
    ) -> Tensor:
        r"""``input`` with another dtype, device or memory format; itself where nothing changes and ``copy`` ..."""
    @overload
    def to(
        self, device: _device | builtins.str | builtins.int | None = None, dtype: _dtype | None = None, non_blocking:
        builtins.bool = False, copy: builtins.bool = False, *, memory_format: Any = None
    ) -> Tensor:
        r"""``input`` with another dtype, device or memory format; itself where nothing changes and ``copy`` ..."""
    @overload
    def to(
        self, other: Tensor, non_blocking: builtins.bool = False, copy: builtins.bool = False, *, memory_format: Any =
        None
    ) -> Tensor:
        r"""``input`` with another dtype, device or memory format; itself where nothing changes and ``copy`` ..."""
    def to_dense(self, dtype: _dtype | None = None, *, masked_grad: Any = None) -> Any:
        r"""``input`` with all its elements, the zeros too; of a dense tensor itself."""
    def to_sparse(
        self, sparse_dim: Any = None, *, layout: Any = None, blocksize: Any = None, dense_dim: Any = None
    ) -> Tensor:
        r"""``input`` as a sparse tensor of its elements that are not 0."""
    def to_sparse_bsc(self, blocksize: Any, dense_dim: Any = None) -> Tensor:
        r"""Matrices compressed by columns of blocks, without blocks of zeros; see :func:`sparse_bsc_tensor`."""
    def to_sparse_bsr(self, blocksize: Any, dense_dim: Any = None) -> Tensor:
        r"""Matrices compressed by rows of blocks, without blocks of zeros; see :func:`sparse_bsr_tensor`."""
    def to_sparse_coo(self) -> Tensor:
        r"""``input`` as a sparse tensor in coordinate form; see :func:`sparse_coo_tensor`."""
    def to_sparse_csc(self, dense_dim: Any = None) -> Tensor:
        r"""Matrices compressed by columns, without their elements that are 0; see :func:`sparse_csc_tensor`."""
    def to_sparse_csr(self, dense_dim: Any = None) -> Tensor:
        r"""Matrices compressed by rows, without their elements that are 0; see :func:`sparse_csr_tensor`."""
    def topk(
        self, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True, *,
        out: Any = None
    ) -> return_types.topk:
        r"""The ``k`` largest (or smallest) elements along ``dim``, in order, and where they are; of equal ..."""
    def trace(self) -> Tensor:
        r"""The sum of the diagonal of a matrix."""
    def transpose(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        r"""A view with dimensions ``dim0`` and ``dim1`` swapped."""
    def triangular_solve(
        self, A: Tensor, upper: builtins.bool = True, transpose: builtins.bool = False, unitriangular: builtins.bool =
        False
    ) -> return_types.triangular_solve:
        r"""``X`` with ``A @ X = b`` for triangular ``A``: the older form of ..."""
    def tril(self, diagonal: builtins.int = 0, *, out: Any = None) -> Tensor:
        r"""The lower triangle of matrices, zero elsewhere."""
    def tril_(self, diagonal: builtins.int = 0) -> Tensor:
        r"""In-place form of :func:`tril`: ``input`` is overwritten with the result and given back."""
    def triu(self, diagonal: builtins.int = 0, *, out: Any = None) -> Tensor:
        r"""The upper triangle of matrices, zero elsewhere."""
    def triu_(self, diagonal: builtins.int = 0) -> Tensor:
        r"""In-place form of :func:`triu`: ``input`` is overwritten with the result and given back."""
    def true_divide(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input / other``; whole numbers give the default floating-point dtype."""
    def true_divide_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`true_divide`: ``input`` is overwritten with the result and given back."""
    def trunc(self, *, out: Any = None) -> Tensor:
        r"""The whole part: ``input`` rounded toward zero."""
    def trunc_(self) -> Tensor:
        r"""In-place form of :func:`trunc`: ``input`` is overwritten with the result and given back."""
    def trunc_divide(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``trunc(input / other)``: rounded toward zero, as C's ``/`` of whole numbers."""
    def trunc_divide_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`trunc_divide`: ``input`` is overwritten with the result and given back."""
    def type(self, dtype: _dtype | None = None, non_blocking: builtins.bool = False, **kwargs: Any) -> Any:
        r"""The type's name, or ``input`` converted to another dtype."""
    def type_as(self, other: Tensor | Number) -> Tensor:
        r"""``input`` in the dtype of ``other`` and on its device."""
    def unbind(self, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        r"""The slices along ``dim``, without that dimension: what :func:`stack` joined."""
    def unflatten(self, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
        r"""Dimension ``dim`` split into ``sizes``: the reverse of :func:`flatten`."""
    def unfold(
        self, dimension: builtins.int, size: Sequence[builtins.int] | builtins.int, step: builtins.int
    ) -> Tensor:
        r"""A view of windows along a dimension; the window is the last dimension of the result."""
    def uniform_(self, from_: Number = 0.0, to: Number = 1.0, *, generator: Any | None = None) -> Tensor:
        r"""Fills ``input`` with random numbers, uniform in [from, to), in place."""
    def unique(
        self, sorted: builtins.bool = True, return_inverse: builtins.bool = False, return_counts: builtins.bool = False,
        dim: builtins.int | Sequence[builtins.int] | None = None
    ) -> Any:
        r"""The distinct values, in ascending order."""
    def unique_consecutive(
        self, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, dim: builtins.int |
        Sequence[builtins.int] | None = None
    ) -> Any:
        r"""One element of each run of equal ones."""
    def unsafe_chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        r""":func:`chunk`, whose pieces the graph does not take for views: each may be written in place on ..."""
    def unsafe_split(self, split_size: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        r""":func:`split`, whose pieces the graph does not take for views: each may be written in place on ..."""
    def unsafe_split_with_sizes(self, split_sizes: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        r""":func:`split_with_sizes`, whose pieces the graph does not take for views: each may be written in ..."""
    def unsqueeze(self, dim: builtins.int) -> Tensor:
        r"""A view with a dimension of size 1 put in at ``dim``."""
    def var(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, unbiased: Any = None, keepdim: builtins.bool =
        False, *, correction: Any = None, out: Any = None
    ) -> Tensor:
        r"""The variance over ``dim``: ``sum((input - mean) ** 2) / (n - correction)``."""
    def vdot(self, other: Tensor | Number) -> Tensor:
        r"""The inner product of two vectors, the first conjugated: the sum of ``conj(input[i]) * other[i]``."""
    @overload
    def view(self, dtype: _dtype) -> Tensor:
        r"""A view of the same elements with other sizes, or of the same bytes as another dtype."""
    @overload
    def view(self, *size: SupportsIndex | Sequence[SupportsIndex]) -> Tensor:
        r"""A view of the same elements with other sizes, or of the same bytes as another dtype."""
    def view_as(self, other: Tensor | Number) -> Tensor:
        r"""A view with the sizes of ``other``."""
    def vsplit(self, indices_or_sections: Sequence[builtins.int] | builtins.int) -> tuple[Tensor, ...]:
        r"""Pieces along dimension 0: so many of equal size, or cut before given positions."""
    def xlogy(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input * log(other)``, 0 where ``input`` is 0 and ``other`` is not NaN: a term of an entropy."""
    def xlogy_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`xlogy`: ``input`` is overwritten with the result and given back."""
    def xpu(
        self, device: _device | builtins.str | None = None, non_blocking: builtins.bool = False, memory_format: Any =
        None
    ) -> Tensor:
        r"""``input`` on an XPU."""
    def zero_(self) -> Tensor:
        r"""In-place form of :func:`zero`: ``input`` is overwritten with the result and given back."""

def abs(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The absolute value, ``|input|``; of a complex number ``a + bi`` the real number ``sqrt(a ** 2 + ..."""
def abs_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`abs`: ``input`` is overwritten with the result and given back."""
def absolute(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The absolute value, ``|input|``; of a complex number ``a + bi`` the real number ``sqrt(a ** 2 + ..."""
def acos(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The arc cosine in radians, in [0, pi]; NaN outside of [-1, 1]."""
def acos_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`acos`: ``input`` is overwritten with the result and given back."""
def acosh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse hyperbolic cosine, ``log(input + sqrt(input ** 2 - 1))``; NaN below 1."""
def acosh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`acosh`: ``input`` is overwritten with the result and given back."""
def add(input: Tensor, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
    r"""``input + alpha * other``; of bools, whether either is true."""
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None
) -> Tensor:
    r"""``beta * input + alpha * sum_b(batch1[b] @ batch2[b])``: one product, with the batch folded into ..."""
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | Number = 1, out: Any = None) -> Tensor:
    r"""``input + value * tensor1 / tensor2``: the step of an optimizer that divides by a scale."""
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Tensor | Number = 1, out: Any = None) -> Tensor:
    r"""``input + value * tensor1 * tensor2``."""
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None) -> Tensor:
    r"""``beta * input + alpha * (mat1 @ mat2)``"""
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None) -> Tensor:
    r"""``beta * input + alpha * (mat @ vec)``. With ``beta`` 0 ``input`` is not read."""
def addmv_(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    r"""In-place form of :func:`addmv`: ``input`` is overwritten with the result and given back."""
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None) -> Tensor:
    r"""``beta * input + alpha * outer(vec1, vec2)``."""
def adjoint(input: Tensor) -> Tensor:
    r"""The conjugate transpose of the last two dimensions: ``out[..., i, j] = conj(input[..., j, i])``."""
def alias_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of ``input``, in memory of its own."""
def all(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""Whether all elements along ``dim`` are true, which every number but 0 is."""
def allclose(
    input: Tensor, other: Tensor | Number, rtol: Number = 1e-05, atol: Number = 1e-08, equal_nan: builtins.bool = False
) -> builtins.bool:
    r"""Whether all elements are close: ``|input - other| <= atol + rtol * |other|``."""
def alpha_dropout(input: Tensor, p: builtins.float, train: builtins.bool) -> Tensor:
    r"""Dropout that keeps the mean and the variance of selu's output (Klambauer et al"""
def alpha_dropout_(input: Tensor, p: builtins.float, train: builtins.bool) -> Tensor:
    r"""In-place form of :func:`alpha_dropout`: ``input`` is overwritten with the result and given back."""
def amax(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""The largest element over ``dim``; NaN where there is one"""
def amin(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""The smallest element over ``dim``; NaN where there is one"""
def aminmax(
    input: Tensor, *, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, out: Any
    = None
) -> return_types.aminmax:
    r"""The smallest and the largest element over ``dim``, found in one pass."""
def angle(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The argument of a complex number in radians, in [-pi, pi]; of a real one 0, or pi where it is ..."""
def any(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""Whether any element along ``dim`` is true, which every number but 0 is."""
def arange(
    *args: Tensor | Number, out: Any = None, dtype: _dtype | None = None, layout: Any = None, device: _device |
    builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory: builtins.bool = False, **bounds: Any
) -> Tensor:
    r"""Numbers from ``start`` to before ``end``, ``step`` apart: ``start + i * step``."""
def arccos(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The arc cosine in radians, in [0, pi]; NaN outside of [-1, 1]."""
def arccos_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`acos`: ``input`` is overwritten with the result and given back."""
def arccosh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse hyperbolic cosine, ``log(input + sqrt(input ** 2 - 1))``; NaN below 1."""
def arccosh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`acosh`: ``input`` is overwritten with the result and given back."""
def arcsin(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The arc sine in radians, in [-pi/2, pi/2]; NaN outside of [-1, 1]."""
def arcsin_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`asin`: ``input`` is overwritten with the result and given back."""
def arcsinh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse hyperbolic sine, ``log(input + sqrt(input ** 2 + 1))``."""
def arcsinh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`asinh`: ``input`` is overwritten with the result and given back."""
def arctan(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The arc tangent in radians, in [-pi/2, pi/2]."""
def arctan2(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The angle in radians, in [-pi, pi], of the point with abscissa ``other`` and ordinate ``input``, ..."""
def arctan_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`atan`: ``input`` is overwritten with the result and given back."""
def arctanh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse hyperbolic tangent, ``log((1 + input) / (1 - input)) / 2``; NaN outside of [-1, 1]."""
def arctanh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`atanh`: ``input`` is overwritten with the result and given back."""
def argmax(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""The position of the first largest element along ``dim``. NaN counts as the largest."""
def argmin(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""The position of the first smallest element along ``dim``. NaN counts as the smallest."""
def argsort(
    input: Tensor, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""The indices that bring ``dim`` into order: ``input[argsort(input)]`` is sorted. See :func:`sort`."""
def argwhere(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The coordinates of the elements that are not zero."""
def as_strided(
    input: Tensor, size: Sequence[builtins.int] | builtins.int, stride: Sequence[builtins.int] | builtins.int,
    storage_offset: builtins.int | None = None
) -> Tensor:
    r"""A view with any sizes and strides on the memory of ``input``: element ``(i, j)`` is at ..."""
def as_strided_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`as_strided` views, in memory of its own."""
def as_strided_scatter(
    input: Tensor, src: Tensor | Number, size: Sequence[builtins.int] | builtins.int, stride: Sequence[builtins.int] |
    builtins.int, storage_offset: Any = None, *, out: Any = None
) -> Tensor:
    r"""A copy of ``input`` with ``src`` where :func:`as_strided` with the same arguments would look."""
def asin(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The arc sine in radians, in [-pi/2, pi/2]; NaN outside of [-1, 1]."""
def asin_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`asin`: ``input`` is overwritten with the result and given back."""
def asinh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse hyperbolic sine, ``log(input + sqrt(input ** 2 + 1))``."""
def asinh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`asinh`: ``input`` is overwritten with the result and given back."""
def atan(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The arc tangent in radians, in [-pi/2, pi/2]."""
def atan2(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The angle in radians, in [-pi, pi], of the point with abscissa ``other`` and ordinate ``input``, ..."""
def atan_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`atan`: ``input`` is overwritten with the result and given back."""
def atanh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse hyperbolic tangent, ``log((1 + input) / (1 - input)) / 2``; NaN outside of [-1, 1]."""
def atanh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`atanh`: ``input`` is overwritten with the result and given back."""
def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    r"""Tensors without dimensions as vectors of one element; others as they are."""
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    r"""Tensors of fewer than two dimensions as matrices of one row; others as they are."""
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    r"""Tensors of fewer than three dimensions with dimensions of size 1 added; others as they are."""
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None
) -> Tensor:
    r"""``beta * input + alpha * (batch1 @ batch2)``, batch by batch. With ``beta`` 0 ``input`` is not read."""
def bartlett_window(
    window_length: builtins.int, periodic: builtins.bool = True, *, dtype: _dtype | None = None, layout: Any = None,
    device: _device | builtins.str | None = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool =
    False
) -> Tensor:
    r"""Bartlett's window, a triangle: ``w[k] = 1 - |2 k / N - 1|`` for ``k`` from 0 to ``window_length ..."""
def bernoulli(input: Tensor, p: Any = None, *, generator: Any | None = None, out: Any = None) -> Tensor:
    r"""Ones and zeros: a one with the probability that ``input`` holds at that place."""
def bilinear(input1: Any, input2: Any, weight: Any, bias: Tensor | None = None) -> Tensor:
    r"""A number for each pair of vectors: ``y[..., o] = input1[..., i] * weight[o, i, j] * input2[..., ..."""
def bincount(input: Tensor, weights: Any = None, minlength: builtins.int = 0) -> Tensor:
    r"""The count of each number from 0 on in a vector, or the sum of its weights."""
def binomial(count: Any, prob: Any, generator: Any | None = None, *, out: Any = None) -> Tensor:
    r"""Random numbers of successes in ``count`` trials that each succeed with probability ``prob``."""
def bitwise_and(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input & other``: the bits that both have."""
def bitwise_left_shift(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input << other``, which is ``input * 2 ** other``; 0 where ``other`` is negative or not below ..."""
def bitwise_not(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``~input``: every bit turned over, which is ``-input - 1`` for signed numbers; of bools the ..."""
def bitwise_or(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input | other``: the bits that either has."""
def bitwise_right_shift(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input >> other``, which is ``floor(input / 2 ** other)``; a shift beyond the width leaves only ..."""
def bitwise_xor(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input ^ other``: the bits that exactly one has."""
def blackman_window(
    window_length: builtins.int, periodic: builtins.bool = True, *, dtype: _dtype | None = None, layout: Any = None,
    device: _device | builtins.str | None = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool =
    False
) -> Tensor:
    r"""Blackman's window: ``w[k] = 0.42 - 0.5 * cos(2 pi k / N) + 0.08 * cos(4 pi k / N)`` for ``k`` ..."""
def block_diag(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    r"""A matrix with the given matrices along its diagonal and zeros elsewhere."""
def bmm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor:
    r"""The products of matrices, one per batch: ``out[b] = input[b] @ mat2[b]``"""
def broadcast_shapes(*shapes: SupportsIndex | Sequence[SupportsIndex]) -> Size:
    r"""The shape to which shapes broadcast: aligned at the last dimension, where sizes are equal or 1."""
def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    r"""Every tensor expanded to the shape to which all broadcast."""
def broadcast_to(input: Tensor, size: Sequence[builtins.int] | builtins.int) -> Tensor:
    r"""``input`` expanded to the sizes ``size``: dimensions of size 1 are repeated, without copying."""
def bucketize(
    input: Tensor, boundaries: Any, *, out_int32: builtins.bool = False, right: builtins.bool = False, out: Any = None
) -> Tensor:
    r"""The bucket of each value: :func:`searchsorted` in a vector of boundaries."""
def cartesian_prod(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    r"""All choices of one element of each vector, as rows."""
def cat(tensors: Sequence[Tensor], dim: builtins.int = 0, *, out: Any = None) -> Tensor:
    r"""The tensors one after the other along a dimension that they have."""
def cdist(
    x1: Tensor, x2: Tensor, p: Any = 2.0, compute_mode: builtins.str = 'use_mm_for_euclid_dist_if_necessary'
) -> Tensor:
    r"""The distances between every row of ``x1`` and every row of ``x2``: ``out[i, j] = sum(|x1[i] - ..."""
def ceil(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The smallest whole number that is not below ``input``."""
def ceil_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`ceil`: ``input`` is overwritten with the result and given back."""
def celu(input: Tensor, alpha: Number = 1.0) -> Tensor:
    r"""``max(input, 0) + min(alpha * (exp(input / alpha) - 1), 0)``, whose slope is continuous (Barron ..."""
def celu_(input: Tensor, alpha: Number = 1.0) -> Tensor:
    r"""In-place form of :func:`celu`: ``input`` is overwritten with the result and given back."""
def chain_matmul(*matrices: Tensor) -> Tensor:
    r"""The product of several matrices in the order that takes the fewest multiplications"""
def cholesky(input: Tensor, upper: builtins.bool = False, *, out: Any = None) -> Tensor:
    r"""The Cholesky factor of positive definite matrices: :func:`taeda.linalg.cholesky`, which is ..."""
def cholesky_inverse(L: Any, upper: builtins.bool = False, *, out: Any = None) -> Tensor:
    r"""The inverse of ``A = L @ L.mH``, given by its Cholesky factor ``L``."""
def cholesky_solve(B: Tensor, L: Any, upper: builtins.bool = False, *, out: Any = None) -> Tensor:
    r"""``X`` with ``A @ X = B``, for ``A = L @ L.mH`` given by its Cholesky factor ``L``."""
def chunk(input: Tensor, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    r"""At most ``chunks`` pieces of equal size along ``dim``; the last may be smaller"""
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
    r"""``min(max(input, min), max)``: ``input`` held between two bounds. The gradient is 0 outside."""
def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    r"""In-place form of :func:`clamp`: ``input`` is overwritten with the result and given back."""
def clamp_max(input: Tensor, max: Any, *, out: Any = None) -> Tensor:
    r"""``min(input, max)``: ``input``, at most ``max``."""
def clamp_max_(input: Tensor, max: Any) -> Tensor:
    r"""In-place form of :func:`clamp_max`: ``input`` is overwritten with the result and given back."""
def clamp_min(input: Tensor, min: Any, *, out: Any = None) -> Tensor:
    r"""``max(input, min)``: ``input``, at least ``min``."""
def clamp_min_(input: Tensor, min: Any) -> Tensor:
    r"""In-place form of :func:`clamp_min`: ``input`` is overwritten with the result and given back."""
def clip(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
    r"""``min(max(input, min), max)``: ``input`` held between two bounds. The gradient is 0 outside."""
def clip_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    r"""In-place form of :func:`clamp`: ``input`` is overwritten with the result and given back."""
def clone(input: Tensor, *, memory_format: Any = ...) -> Tensor:
    r"""A copy of ``input`` in memory of its own"""
def column_stack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    r"""The tensors side by side: joined along dimension 1, vectors as columns."""
def combinations(input: Tensor, r: builtins.int = 2, with_replacement: builtins.bool = False) -> Tensor:
    r"""All ways to choose ``r`` elements of a vector, in order of position, as rows."""
def complex(real: Any, imag: Any, *, out: Any = None) -> Tensor:
    r"""The complex numbers ``real + i * imag``."""
def concat(tensors: Sequence[Tensor], dim: builtins.int = 0, *, out: Any = None) -> Tensor:
    r"""The tensors one after the other along a dimension that they have."""
def concatenate(tensors: Sequence[Tensor], dim: builtins.int = 0, *, out: Any = None) -> Tensor:
    r"""The tensors one after the other along a dimension that they have."""
def conj(input: Tensor) -> Tensor:
    r"""The complex conjugate: ``a - bi`` for ``a + bi``"""
def conj_physical(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The complex conjugate, computed: ``a - bi`` for ``a + bi``"""
def conj_physical_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`conj_physical`: ``input`` is overwritten with the result and given back."""
def constant_pad_nd(
    input: Tensor, pad: Sequence[builtins.int] | builtins.int, value: Tensor | Number = 0, *, out: Any = None
) -> Tensor:
    r"""``input`` with ``value`` around it."""
def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sequence[builtins.int] | builtins.int = 1,
    padding: Any = 0, dilation: Sequence[builtins.int] | builtins.int = 1, groups: builtins.int = 1, *, out: Any = None
) -> Tensor:
    r"""Every output is a weighted sum of a window of the input: the cross-correlation with ``weight``."""
def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sequence[builtins.int] | builtins.int = 1,
    padding: Any = 0, dilation: Sequence[builtins.int] | builtins.int = 1, groups: builtins.int = 1, *, out: Any = None
) -> Tensor:
    r"""Every output is a weighted sum of a window of the input: the cross-correlation with ``weight``."""
def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sequence[builtins.int] | builtins.int = 1,
    padding: Any = 0, dilation: Sequence[builtins.int] | builtins.int = 1, groups: builtins.int = 1, *, out: Any = None
) -> Tensor:
    r"""Every output is a weighted sum of a window of the input: the cross-correlation with ``weight``."""
def conv_tbc(input: Tensor, weight: Any, bias: Tensor, pad: Sequence[builtins.int] | builtins.int = 0) -> Tensor:
    r"""A convolution in one dimension of a sequence whose time comes first: ``out[t, n, o]`` is the sum ..."""
def conv_transpose1d(
    input: Tensor, weight: Any, bias: Tensor | None = None, stride: Sequence[builtins.int] | builtins.int = 1, padding:
    Sequence[builtins.int] | builtins.int = 0, output_padding: Sequence[builtins.int] | builtins.int = 0, groups:
    builtins.int = 1, dilation: Sequence[builtins.int] | builtins.int = 1, *, out: Any = None
) -> Tensor:
    r"""Transposed convolution: every input spreads a weighted window over the output, a layer that ..."""
def conv_transpose2d(
    input: Tensor, weight: Any, bias: Tensor | None = None, stride: Sequence[builtins.int] | builtins.int = 1, padding:
    Sequence[builtins.int] | builtins.int = 0, output_padding: Sequence[builtins.int] | builtins.int = 0, groups:
    builtins.int = 1, dilation: Sequence[builtins.int] | builtins.int = 1, *, out: Any = None
) -> Tensor:
    r"""Transposed convolution: every input spreads a weighted window over the output, a layer that ..."""
def conv_transpose3d(
    input: Tensor, weight: Any, bias: Tensor | None = None, stride: Sequence[builtins.int] | builtins.int = 1, padding:
    Sequence[builtins.int] | builtins.int = 0, output_padding: Sequence[builtins.int] | builtins.int = 0, groups:
    builtins.int = 1, dilation: Sequence[builtins.int] | builtins.int = 1, *, out: Any = None
) -> Tensor:
    r"""Transposed convolution: every input spreads a weighted window over the output, a layer that ..."""
def copysign(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``|input|`` with the sign of ``other``, also that of -0.0 and NaN."""
def corrcoef(input: Tensor) -> Tensor:
    r"""Pearson's correlation coefficients: ``cov[i, j] / sqrt(cov[i, i] * cov[j, j])``, in [-1, 1]."""
def cos(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The cosine of an angle in radians."""
def cos_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`cos`: ``input`` is overwritten with the result and given back."""
def cosh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The hyperbolic cosine, ``(exp(input) + exp(-input)) / 2``."""
def cosh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`cosh`: ``input`` is overwritten with the result and given back."""
def count_nonzero(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    r"""The number of elements along ``dim`` that are not 0."""
def cov(input: Tensor, *, correction: builtins.int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    r"""The covariance matrix: ``out[i, j] = sum((x_i - mean_i) * (x_j - mean_j)) / (n - correction)``."""
def cross(
    input: Tensor, other: Tensor | Number, dim: builtins.int | Sequence[builtins.int] | None = None, *, out: Any = None
) -> Tensor:
    r"""The cross product of vectors of three elements, at right angles to both: ``(a2 b3 - a3 b2, a3 b1 ..."""
def cummax(input: Tensor, dim: builtins.int, *, out: Any = None) -> return_types.cummax:
    r"""The running maximum along ``dim`` and where it was found."""
def cummin(input: Tensor, dim: builtins.int, *, out: Any = None) -> return_types.cummin:
    r"""The running minimum along ``dim`` and where it was found."""
def cumprod(input: Tensor, dim: builtins.int, *, dtype: _dtype | None = None, out: Any = None) -> Tensor:
    r"""The running product along ``dim``: ``out[i] = input[0] * ... * input[i]``."""
def cumsum(input: Tensor, dim: builtins.int, *, dtype: _dtype | None = None, out: Any = None) -> Tensor:
    r"""The running sum along ``dim``: ``out[i] = input[0] + .."""
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Number = 1, dim: builtins.int = -1) -> Tensor:
    r"""The running integral of ``y`` along ``dim`` by the trapezoidal rule: sums of ``(y[i] + y[i + 1]) ..."""
def deg2rad(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Degrees to radians: ``input * pi / 180``."""
def deg2rad_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`deg2rad`: ``input`` is overwritten with the result and given back."""
def det(A: Tensor, *, out: Any = None) -> Tensor:
    r"""The determinant: how much a matrix scales volumes."""
def detach(input: Tensor) -> Tensor:
    r"""A view of the memory of ``input`` that is not part of the graph: no gradient flows through it."""
def detach_(input: Tensor) -> Tensor:
    r"""Takes ``input`` out of the graph, in place: it becomes a leaf that does not require grad."""
def detach_copy(input: Tensor) -> Tensor:
    r"""A copy of ``input``, in memory of its own, that is not part of the graph."""
def diag(input: Tensor, diagonal: builtins.int = 0, *, out: Any = None) -> Tensor:
    r"""A matrix with a vector on its diagonal, or the diagonal of a matrix."""
def diag_embed(input: Tensor, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1) -> Tensor:
    r"""Matrices with the last dimension of ``input`` on a diagonal and zeros elsewhere."""
def diagflat(input: Tensor, offset: builtins.int = 0) -> Tensor:
    r"""A matrix with all elements of ``input`` on its diagonal and zeros elsewhere."""
def diagonal(input: Tensor, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
    r"""The diagonal of dimensions ``dim1`` and ``dim2``, as the last dimension: ``out[..., i] = ..."""
def diagonal_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`diagonal` views, in memory of its own."""
def diagonal_scatter(
    input: Tensor, src: Tensor | Number, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1, *,
    out: Any = None
) -> Tensor:
    r"""A copy of ``input`` with ``src`` on the diagonal that :func:`diagonal` would view."""
def diff(
    input: Tensor, n: builtins.int = 1, dim: builtins.int = -1, prepend: Any = None, append: Any = None, *, out: Any =
    None
) -> Tensor:
    r"""The differences of neighbours along ``dim``, ``input[i + 1] - input[i]``, taken ``n`` times."""
def digamma(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The derivative of :func:`lgamma`: ``gamma'(input) / gamma(input)``."""
def dist(input: Tensor, other: Tensor | Number, p: Any = 2) -> Tensor:
    r"""The ``p``-norm of ``input - other``: their distance."""
def div(input: Tensor, other: Tensor | Number, *, rounding_mode: builtins.str | None = None, out: Any = None) -> Tensor:
    r"""``input / other``, also rounded."""
def divide(
    input: Tensor, other: Tensor | Number, *, rounding_mode: builtins.str | None = None, out: Any = None
) -> Tensor:
    r"""``input / other``, also rounded."""
def dot(input: Tensor, tensor: Tensor, *, out: Any = None) -> Tensor:
    r"""The inner product of two vectors: the sum of ``input[i] * tensor[i]``"""
def dropout(input: Tensor, p: builtins.float, train: builtins.bool) -> Tensor:
    r"""Zero each element with probability ``p``, divide the others by ``1 - p``."""
def dropout_(input: Tensor, p: builtins.float, train: builtins.bool) -> Tensor:
    r"""In-place form of :func:`dropout`: ``input`` is overwritten with the result and given back."""
def dsplit(input: Tensor, indices_or_sections: Sequence[builtins.int] | builtins.int) -> tuple[Tensor, ...]:
    r"""Pieces along dimension 2: so many of equal size, or cut before given positions."""
def dstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    r"""The tensors behind each other: joined along dimension 2, after :func:`atleast_3d`."""
def eig(*args: Any, **kwargs: Any) -> Tensor:
    r"""Removed from PyTorch: use linalg.eig or linalg.eigvals, which are complex"""
def einsum(*args: Any) -> Tensor:
    r"""Sums of products of elements, with one letter per dimension: letters that the result does not ..."""
def embedding(
    weight: Any, indices: Tensor, padding_idx: builtins.int = -1, scale_grad_by_freq: builtins.bool = False, sparse:
    builtins.bool = False, *, out: Any = None
) -> Tensor:
    r"""Rows of ``weight`` at ``indices``: ``weight[indices]``, a vector for each word."""
def embedding_renorm_(weight: Any, indices: Any, max_norm: Any, norm_type: Number = 2.0) -> Tensor:
    r"""Scales down, in place, the rows of ``weight`` at ``indices`` whose norm is above ``max_norm``, ..."""
def empty(
    *args: SupportsIndex | Sequence[SupportsIndex], size: Sequence[builtins.int] | builtins.int | None = None, out: Any
    = None, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, pin_memory: builtins.bool = False, memory_format: Any = None
) -> Tensor:
    r"""A tensor of the given sizes whose elements are not set: whatever the memory held before."""
def empty_like(
    input: Tensor, *, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, pin_memory: builtins.bool = False, memory_format: Any = ...
) -> Tensor:
    r"""A tensor with the sizes, dtype and device of ``input`` whose elements are not set."""
def empty_permuted(
    size: Sequence[builtins.int] | builtins.int, physical_layout: Any, *, dtype: _dtype | None = None, layout: Any =
    None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory: builtins.bool
    = False
) -> Tensor:
    r"""A tensor whose elements are not set and whose dimensions lie in memory in the order ..."""
def empty_strided(
    size: Sequence[builtins.int] | builtins.int, stride: Sequence[builtins.int] | builtins.int, *, dtype: _dtype | None
    = None, layout: Any = None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False,
    pin_memory: builtins.bool = False
) -> Tensor:
    r"""A tensor of the given sizes and strides whose elements are not set."""
def eq(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether the elements are equal; NaN equals nothing, not even NaN."""
def equal(input: Tensor, other: Tensor | Number) -> builtins.bool:
    r"""Whether the two have the same sizes and the same elements."""
def erf(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t * t)`` for ``t`` from 0 to ..."""
def erf_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`erf`: ``input`` is overwritten with the result and given back."""
def erfc(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``1 - erf(input)``, accurate also where it is small."""
def erfc_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`erfc`: ``input`` is overwritten with the result and given back."""
def erfinv(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse of :func:`erf`; infinite at -1 and 1, NaN beyond."""
def exp(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``e ** input``."""
def exp2(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``2 ** input``."""
def exp2_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`exp2`: ``input`` is overwritten with the result and given back."""
def exp_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`exp`: ``input`` is overwritten with the result and given back."""
def expand_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :meth:`Tensor.expand` views, in memory of its own: dimensions of size 1 are repeated."""
def expm1(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``e ** input - 1``, exact also for small ``input``, where the difference would cancel."""
def expm1_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`expm1`: ``input`` is overwritten with the result and given back."""
def eye(
    n: builtins.int, m: Any = None, *, out: Any = None, dtype: _dtype | None = None, layout: Any = None, device: _device
    | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory: builtins.bool = False
) -> Tensor:
    r"""The identity matrix: ones on the diagonal, zeros elsewhere."""
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: builtins.int, quant_min: builtins.int, quant_max:
    builtins.int
) -> Tensor:
    r""":func:`fake_quantize_per_tensor_affine` with a scale and a zero point for each index of ..."""
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: builtins.int, quant_max: builtins.int
) -> Tensor:
    r"""Round ``input`` to small integers and back: ``(clamp(round(input / scale) + zero_point, ..."""
def feature_alpha_dropout(input: Tensor, p: builtins.float, train: builtins.bool) -> Tensor:
    r"""As :func:`alpha_dropout`, for whole channels at a time."""
def feature_alpha_dropout_(input: Tensor, p: builtins.float, train: builtins.bool) -> Tensor:
    r"""In-place form of :func:`feature_alpha_dropout`: ``input`` is overwritten with the result and ..."""
def feature_dropout(input: Tensor, p: builtins.float, train: builtins.bool) -> Tensor:
    r"""Zero whole channels with probability ``p``, divide the others by ``1 - p``."""
def feature_dropout_(input: Tensor, p: builtins.float, train: builtins.bool) -> Tensor:
    r"""In-place form of :func:`feature_dropout`: ``input`` is overwritten with the result and given back."""
def fill(input: Tensor, value: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""A copy of ``input`` with ``value`` in every element. In place: ``input.fill_(value)``."""
def fill_(input: Tensor, value: Tensor | Number) -> Tensor:
    r"""In-place form of :func:`fill`: ``input`` is overwritten with the result and given back."""
def fix(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The whole part: ``input`` rounded toward zero."""
def fix_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`trunc`: ``input`` is overwritten with the result and given back."""
def flatten(input: Tensor, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
    r"""Dimensions ``start_dim`` to ``end_dim`` merged into one."""
def flip(input: Tensor, *dims: SupportsIndex | Sequence[SupportsIndex]) -> Tensor:
    r"""The elements in reverse order along ``dims``."""
def fliplr(input: Tensor) -> Tensor:
    r"""The columns in reverse order: :func:`flip` of dimension 1."""
def flipud(input: Tensor) -> Tensor:
    r"""The rows in reverse order: :func:`flip` of dimension 0."""
def float_power(input: Tensor, exponent: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input ** exponent``, computed in ``float64`` or ``complex128``."""
def floor(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The largest whole number that is not above ``input``."""
def floor_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`floor`: ``input`` is overwritten with the result and given back."""
def floor_divide(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``floor(input / other)``, rounded down as Python's ``//`` does."""
def fmax(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The larger of the two; a number wins over NaN."""
def fmin(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The smaller of the two; a number wins over NaN."""
def fmod(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input - other * trunc(input / other)``: the remainder with the sign of ``input``, as C's ..."""
def frac(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``input - trunc(input)``: what follows the point, with the sign of ``input``."""
def frac_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`frac`: ``input`` is overwritten with the result and given back."""
def frexp(input: Tensor, *, out: Any = None) -> return_types.frexp:
    r"""Mantissa and exponent: ``input = mantissa * 2 ** exponent`` with ``0.5 <= |mantissa| < 1``."""
def frobenius_norm(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""The square root of the sum of squared absolute values over one or two dimensions."""
def from_file(
    filename: builtins.str, shared: builtins.bool | None = None, size: Sequence[builtins.int] | builtins.int | None = 0,
    *, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None = None, pin_memory:
    builtins.bool = False, requires_grad: builtins.bool = False
) -> Tensor:
    r"""A tensor over a file, mapped into memory: nothing is read before it is used."""
def full(
    size: Sequence[builtins.int] | builtins.int, fill_value: Any, *, out: Any = None, dtype: _dtype | None = None,
    layout: Any = None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory:
    builtins.bool = False
) -> Tensor:
    r"""A tensor of the given sizes filled with ``fill_value``."""
def full_like(
    input: Tensor, fill_value: Any, *, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str |
    None = None, requires_grad: builtins.bool = False, pin_memory: builtins.bool = False, memory_format: Any = ...
) -> Tensor:
    r"""A tensor with the sizes, dtype and device of ``input``, filled with ``fill_value``."""
def gather(
    input: Tensor, dim: builtins.int, index: Tensor, *, sparse_grad: builtins.bool = False, out: Any = None
) -> Tensor:
    r"""The elements at ``index`` along ``dim``; for ``dim=1``: ``out[i][j] = input[i][index[i][j]]``."""
def gcd(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The greatest common divisor, not negative."""
def gcd_(input: Tensor, other: Tensor | Number) -> Tensor:
    r"""In-place form of :func:`gcd`: ``input`` is overwritten with the result and given back."""
def ge(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether ``input >= other``."""
def geqrf(input: Tensor, *, out: Any = None) -> return_types.geqrf:
    r"""The QR factorisation as LAPACK packs it: ``R`` and, below its diagonal, Householder vectors with ..."""
def ger(input: Tensor, vec2: Tensor, *, out: Any = None) -> Tensor:
    r"""The products of every pair: ``out[i, j] = input[i] * vec2[j]``."""
def get_device(input: Tensor) -> builtins.int:
    r"""The number of the device that ``input`` is on."""
def gradient(
    input: Tensor, *, spacing: Number = 1, dim: builtins.int | Sequence[builtins.int] | None = None, edge_order:
    builtins.int = 1
) -> tuple[Tensor, ...]:
    r"""Estimates of the derivative along each of ``dim``: ``(x[i + 1] - x[i - 1]) / 2`` inside, one- ..."""
def greater(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether ``input > other``."""
def greater_equal(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether ``input >= other``."""
def group_norm(
    input: Tensor, num_groups: builtins.int, weight: Any = None, bias: Tensor | None = None, eps: Number = 1e-05,
    cudnn_enabled: builtins.bool = True
) -> Tensor:
    r"""``(input - mean) / sqrt(var + eps) * weight + bias`` with the mean and the variance of each ..."""
def gt(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether ``input > other``."""
def hamming_window(
    window_length: builtins.int, periodic: builtins.bool = True, alpha: Number = 0.54, beta: Number = 0.46, *, dtype:
    _dtype | None = None, layout: Any = None, device: _device | builtins.str | None = None, pin_memory: builtins.bool =
    False, requires_grad: builtins.bool = False
) -> Tensor:
    r"""Hamming's window: ``w[k] = alpha - beta * cos(2 pi k / N)`` for ``k`` from 0 to ``window_length ..."""
def hann_window(
    window_length: builtins.int, periodic: builtins.bool = True, *, dtype: _dtype | None = None, layout: Any = None,
    device: _device | builtins.str | None = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool =
    False
) -> Tensor:
    r"""Hann's window: ``w[k] = 0.5 - 0.5 * cos(2 pi k / N)`` for ``k`` from 0 to ``window_length - 1``."""
def hardshrink(input: Tensor, lambd: Number = 0.5, *, out: Any = None) -> Tensor:
    r"""``input`` where ``|input| > lambd``, 0 elsewhere."""
def hash_tensor(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, *, keepdim: builtins.bool = False, mode:
    Number = 0, out: Any = None
) -> Tensor:
    r"""A number that depends on the bits of the elements, as ``float64`` or integers of 64 bits, joined ..."""
def heaviside(input: Tensor, values: Any, *, out: Any = None) -> Tensor:
    r"""0 below 0, 1 above it, and ``values`` at 0."""
def histc(input: Tensor, bins: builtins.int = 100, min: Number = 0, max: Number = 0, *, out: Any = None) -> Tensor:
    r"""The number of elements in each of ``bins`` equal intervals between ``min`` and ``max``."""
def histogram(
    input: Tensor, bins: Number = 100, *, range: Any = None, weight: Any = None, density: builtins.bool = False, out:
    Any = None
) -> return_types.histogram:
    r"""The number of elements in each bin, or the sum of their weights."""
def histogramdd(
    input: Tensor, bins: Any, range: Any = None, weight: Any = None, density: builtins.bool = False
) -> return_types.histogramdd:
    r"""The number of points in each bin of several dimensions, or the sum of their weights."""
def hsplit(input: Tensor, indices_or_sections: Sequence[builtins.int] | builtins.int) -> tuple[Tensor, ...]:
    r"""Pieces along dimension 1 (0 for vectors): so many of equal size, or cut before given positions."""
def hstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    r"""The tensors side by side: joined along dimension 1, vectors along dimension 0."""
def hypot(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``sqrt(input ** 2 + other ** 2)``, the length of the hypotenuse, without overflow on the way."""
def i0(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The modified Bessel function of the first kind of order 0, ``I_0``: the sum of ``(input ** 2 / ..."""
def i0_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`i0`: ``input`` is overwritten with the result and given back."""
def igamma(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The regularised lower incomplete gamma function: the integral of ``t ** (input - 1) * exp(-t)`` ..."""
def igammac(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The regularised upper incomplete gamma function: ``1 - igamma(input, other)``, accurate also ..."""
def imag(input: Tensor) -> Tensor:
    r"""The imaginary part of a complex tensor."""
def index_add(
    input: Tensor, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Number = 1, out: Any = None
) -> Tensor:
    r"""A copy of ``input`` with ``alpha`` times the slices of ``source`` added at ``index`` along ..."""
def index_copy(input: Tensor, dim: builtins.int, index: Tensor, source: Any, *, out: Any = None) -> Tensor:
    r"""A copy of ``input`` with the slices of ``source`` written at ``index`` along ``dim``."""
def index_fill(input: Tensor, dim: builtins.int, index: Tensor, value: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""A copy of ``input`` with ``value`` in the slices at ``index`` along ``dim``."""
def index_put(
    input: Tensor, indices: Any, values: Tensor, accumulate: builtins.bool = False, *, out: Any = None
) -> Tensor:
    r"""A copy of ``input`` with ``values`` written at ``indices``, or added there: ``input[indices] = ..."""
def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: builtins.bool = False) -> Tensor:
    r"""In-place form of :func:`index_put`: ``input`` is overwritten with the result and given back."""
def index_reduce(
    input: Tensor, dim: builtins.int, index: Tensor, source: Any, reduce: builtins.str, *, include_self: builtins.bool =
    True, out: Any = None
) -> Tensor:
    r"""A copy of ``input`` with the slices of ``source`` combined into it at ``index`` along ``dim``."""
def index_select(input: Tensor, dim: builtins.int, index: Tensor, *, out: Any = None) -> Tensor:
    r"""The slices of ``input`` at ``index`` along ``dim``: ``input[index]`` for ``dim=0``."""
def inner(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The sums of products along the last dimensions: ``out[..., ---]`` is the sum of ``input[..., k] ..."""
def inverse(A: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse: ``A @ inv(A)`` is the identity"""
def is_complex(input: Tensor) -> builtins.bool:
    r"""Whether the dtype is a complex one."""
def is_conj(input: Tensor) -> builtins.bool:
    r"""Whether ``input`` is a view that shows the conjugates of what its memory holds, as :func:`conj` ..."""
def is_floating_point(input: Tensor) -> builtins.bool:
    r"""Whether the dtype is a floating-point one."""
def is_inference(input: Tensor) -> builtins.bool:
    r"""Whether the tensor was made in :class:`inference_mode`."""
def is_neg(input: Tensor) -> builtins.bool:
    r"""Whether ``input`` is a view that shows the negatives of what its memory holds, as the imaginary ..."""
def is_nonzero(input: Tensor) -> builtins.bool:
    r"""Whether the one element of ``input`` is not zero, as a Python bool: what ``if x:`` asks."""
def is_same_size(input: Tensor, other: Tensor | Number) -> builtins.bool:
    r"""Whether two tensors have the same sizes."""
def is_signed(input: Tensor) -> builtins.bool:
    r"""Whether the dtype has negative numbers."""
def isclose(
    input: Tensor, other: Tensor | Number, rtol: Number = 1e-05, atol: Number = 1e-08, equal_nan: builtins.bool = False
) -> Tensor:
    r"""Whether ``|input - other| <= atol + rtol * |other|``, element by element."""
def isfinite(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Whether an element is neither infinite nor NaN."""
def isin(
    elements: Any, test_elements: Any, *, assume_unique: builtins.bool = False, invert: builtins.bool = False, out: Any
    = None
) -> Tensor:
    r"""Whether each element is one of ``test_elements``."""
def isinf(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Whether an element is infinite (either part of a complex one)."""
def isnan(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Whether an element is NaN (either part of a complex one)."""
def isneginf(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Whether an element is negative infinity."""
def isposinf(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Whether an element is positive infinity."""
def isreal(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Whether an element has no imaginary part."""
def istft(
    input: Tensor, n_fft: Any, hop_length: Any = None, win_length: Any = None, window: Any = None, center: builtins.bool
    = True, normalized: builtins.bool = False, onesided: Any = None, length: Any = None, return_complex: builtins.bool =
    False
) -> Tensor:
    r"""The signal whose :func:`stft` is nearest to ``input``: inverse transforms times the window, ..."""
def kaiser_window(
    window_length: builtins.int, periodic: builtins.bool = True, beta: Number = 12.0, *, dtype: _dtype | None = None,
    layout: Any = None, device: _device | builtins.str | None = None, pin_memory: builtins.bool = False, requires_grad:
    builtins.bool = False
) -> Tensor:
    r"""Kaiser's window: ``w[k] = I0(beta * sqrt(1 - (2 k / N - 1) ** 2)) / I0(beta)`` for ``k`` from 0 ..."""
def kron(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The Kronecker product: every element of ``input`` times the whole of ``other``."""
def kthvalue(
    input: Tensor, k: builtins.int, dim: builtins.int = -1, keepdim: builtins.bool = False, *, out: Any = None
) -> return_types.kthvalue:
    r"""The ``k``-th smallest element along ``dim``, and where it is."""
def layer_norm(
    input: Tensor, normalized_shape: Sequence[builtins.int] | builtins.int, weight: Any = None, bias: Tensor | None =
    None, eps: Number = 1e-05, cudnn_enable: builtins.bool = True
) -> Tensor:
    r"""``(input - mean) / sqrt(var + eps) * weight + bias`` over the last dimensions (Ba, Kiros and ..."""
def lcm(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The least common multiple, not negative."""
def lcm_(input: Tensor, other: Tensor | Number) -> Tensor:
    r"""In-place form of :func:`lcm`: ``input`` is overwritten with the result and given back."""
def ldexp(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input * 2 ** other``: the inverse of :func:`frexp`."""
def ldexp_(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""In-place form of :func:`ldexp`: ``input`` is overwritten with the result and given back."""
def le(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether ``input <= other``."""
def lerp(input: Tensor, end: Any, weight: Any, *, out: Any = None) -> Tensor:
    r"""``input + weight * (end - input)``: between ``input`` (weight 0) and ``end`` (weight 1), exact ..."""
def less(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether ``input < other``."""
def less_equal(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether ``input <= other``."""
def lgamma(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The logarithm of ``|gamma(input)|``; at ``n + 1`` it is the logarithm of the factorial of ``n``."""
def linspace(
    start: Any, end: Any, steps: Any, *, out: Any = None, dtype: _dtype | None = None, layout: Any = None, device:
    _device | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory: builtins.bool = False
) -> Tensor:
    r"""``steps`` evenly spaced numbers from ``start`` to ``end``, both included: ``start + i * (end - ..."""
def lobpcg(
    A: Tensor, k: builtins.int | None = None, B: Any = None, X: Any = None, n: builtins.int | None = None, iK: Any =
    None, niter: builtins.int | None = None, tol: Any = None, largest: builtins.bool | None = None, method: Any = None,
    tracker: Any = None, ortho_iparams: Any = None, ortho_fparams: Any = None, ortho_bparams: Any = None
) -> Any:
    r"""The ``k`` largest (or smallest) eigenvalues of ``A x = E B x`` for symmetric ``A`` and positive ..."""
def log(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The natural logarithm: -inf of 0, NaN of negative numbers."""
def log10(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The logarithm to base 10: -inf of 0, NaN of negative numbers."""
def log10_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`log10`: ``input`` is overwritten with the result and given back."""
def log1p(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``log(1 + input)``, exact also for small ``input``, where the sum would be 1."""
def log1p_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`log1p`: ``input`` is overwritten with the result and given back."""
def log2(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The logarithm to base 2: -inf of 0, NaN of negative numbers."""
def log2_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`log2`: ``input`` is overwritten with the result and given back."""
def log_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`log`: ``input`` is overwritten with the result and given back."""
def log_softmax(input: Tensor, dim: builtins.int, dtype: _dtype | None = None, *, out: Any = None) -> Tensor:
    r"""``input - log(sum(exp(input)))`` along ``dim``: the logarithm of :func:`softmax`, without its ..."""
def logaddexp(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``log(exp(input) + exp(other))`` without overflow: the sum of two probabilities that are given ..."""
def logaddexp2(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``log2(2 ** input + 2 ** other)`` without overflow."""
def logcumsumexp(input: Tensor, dim: builtins.int, *, out: Any = None) -> Tensor:
    r"""``log(cumsum(exp(input)))`` along ``dim``, without overflow."""
def logdet(input: Tensor) -> Tensor:
    r"""The logarithm of the determinant: NaN where that is negative, ``-inf`` where it is 0."""
def logical_and(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether both are true; any number but 0 is."""
def logical_not(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Whether the element is false, which only 0 is."""
def logical_or(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether either is true; any number but 0 is."""
def logical_xor(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether exactly one is true; any number but 0 is."""
def logit(input: Tensor, eps: Any = None, *, out: Any = None) -> Tensor:
    r"""``log(input / (1 - input))``: the inverse of :func:`sigmoid`."""
def logit_(input: Tensor, eps: Any = None) -> Tensor:
    r"""In-place form of :func:`logit`: ``input`` is overwritten with the result and given back."""
def logspace(
    start: Any, end: Any, steps: Any, base: Number = 10.0, *, out: Any = None, dtype: _dtype | None = None, layout: Any
    = None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory:
    builtins.bool = False
) -> Tensor:
    r"""``base ** x`` for ``steps`` evenly spaced ``x`` from ``start`` to ``end``, both included."""
def logsumexp(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Any = None) -> Tensor:
    r"""``log(sum(exp(input)))`` over ``dim``, without overflow: a smooth maximum."""
def lstsq(*args: Any, **kwargs: Any) -> Tensor:
    r"""Removed from PyTorch: use linalg.lstsq(A, B), whose arguments are in the other order and whose ..."""
def lt(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether ``input < other``."""
def lu(A: Tensor, pivot: builtins.bool = True, get_infos: builtins.bool = False, *, out: Any = None) -> Any:
    r"""The older form of :func:`taeda.linalg.lu_factor`."""
def lu_solve(b: Any, LU_data: Any, LU_pivots: Any, *, out: Any = None) -> Tensor:
    r"""``X`` with ``A @ X = b``: :func:`taeda.linalg.lu_solve` with its arguments in an older order."""
def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: builtins.bool = True, unpack_pivots: builtins.bool = True, *, out: Any =
    None
) -> return_types.lu_unpack:
    r"""``P``, ``L`` and ``U`` of a packed LU factorisation."""
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``value`` where ``mask`` is true, ``input`` elsewhere."""
def masked_scatter(input: Tensor, mask: Tensor, source: Any) -> Tensor:
    r"""``input`` with the elements of ``source``, in order, where ``mask`` is true."""
def masked_select(input: Tensor, mask: Tensor, *, out: Any = None) -> Tensor:
    r"""The elements of ``input`` where ``mask`` is true, in row-major order: ``input[mask]``."""
def matmul(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The matrix product ``input @ other``: ``out[..., i, j]`` is the sum of ``input[..., i, k] * ..."""
def matrix_exp(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The exponential of matrices, ``sum(input^k / k!)``: the solution at time 1 of ``x' = input @ x``"""
def matrix_power(input: Tensor, n: builtins.int, *, out: Any = None) -> Tensor:
    r"""``input @ input @ ...``, ``n`` times, by repeated squaring."""
def matrix_rank(*args: Any, **kwargs: Any) -> Tensor:
    r"""Removed from PyTorch: use linalg.matrix_rank(A, tol, hermitian=...). Calling it is a RuntimeError."""
@overload
def max(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The largest element of ``input``; along a dimension, with its position; or of two tensors, ..."""
@overload
def max(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Any = None) -> return_types.max:
    r"""The largest element of ``input``; along a dimension, with its position; or of two tensors, ..."""
@overload
def max(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    r"""The largest element of ``input``; along a dimension, with its position; or of two tensors, ..."""
def maximum(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The larger of the two; NaN where either is NaN."""
def mean(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype:
    _dtype | None = None, out: Any = None
) -> Tensor:
    r"""The sum of the elements over ``dim``, divided by their number."""
@overload
def median(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The element in the middle of the order; of an even number of elements the lower of the two"""
@overload
def median(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Any = None) -> return_types.median:
    r"""The element in the middle of the order; of an even number of elements the lower of the two"""
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: Any = None) -> tuple[Tensor, ...]:
    r"""The coordinates of a grid: for each vector a tensor that has its element at every point."""
@overload
def min(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The smallest element of ``input``; along a dimension, with its position; or of two tensors, ..."""
@overload
def min(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Any = None) -> return_types.min:
    r"""The smallest element of ``input``; along a dimension, with its position; or of two tensors, ..."""
@overload
def min(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    r"""The smallest element of ``input``; along a dimension, with its position; or of two tensors, ..."""
def minimum(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The smaller of the two; NaN where either is NaN."""
def mm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor:
    r"""The product of two matrices; see :func:`matmul` for batches and vectors."""
def mode(
    input: Tensor, dim: builtins.int = -1, keepdim: builtins.bool = False, *, out: Any = None
) -> return_types.mode:
    r"""The most frequent value along ``dim``, the smallest of equally frequent ones, and where it is last."""
def moveaxis(input: Tensor, source: Any, destination: Any) -> Tensor:
    r"""A view with dimensions ``source`` moved to ``destination``; the others stay in their order."""
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    r"""A view with dimensions ``source`` moved to ``destination``; the others stay in their order."""
def msort(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The elements in ascending order along dimension 0."""
def mul(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input * other``; of bools, whether both are true."""
def multinomial(
    input: Tensor, num_samples: builtins.int, replacement: builtins.bool = False, *, generator: Any | None = None, out:
    Any = None
) -> Tensor:
    r"""Indices drawn with the weights in each row: index ``i`` with probability ``row[i] / sum(row)``."""
def multiply(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input * other``; of bools, whether both are true."""
def mv(input: Tensor, vec: Tensor, *, out: Any = None) -> Tensor:
    r"""The product of a matrix and a vector."""
def mvlgamma(input: Tensor, p: Any, *, out: Any = None) -> Tensor:
    r"""The logarithm of the multivariate gamma function: ``p * (p - 1) / 4 * log(pi)`` plus the sum of ..."""
def nan_to_num(input: Tensor, nan: Any = None, posinf: Any = None, neginf: Any = None, *, out: Any = None) -> Tensor:
    r"""``input`` with other numbers in place of NaN and the infinities."""
def nan_to_num_(input: Tensor, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Tensor:
    r"""In-place form of :func:`nan_to_num`: ``input`` is overwritten with the result and given back."""
def nanmean(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype:
    _dtype | None = None, out: Any = None
) -> Tensor:
    r"""The mean over ``dim`` of the elements that are not NaN."""
@overload
def nanmedian(input: Tensor, *, out: Any = None) -> Tensor:
    r""":func:`median` of the elements that are not NaN."""
@overload
def nanmedian(
    input: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Any = None
) -> return_types.nanmedian:
    r""":func:`median` of the elements that are not NaN."""
def nanquantile(
    input: Tensor, q: Any, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *,
    interpolation: builtins.str = 'linear', out: Any = None
) -> Tensor:
    r""":func:`quantile` of the elements that are not NaN."""
def nansum(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype:
    _dtype | None = None, out: Any = None
) -> Tensor:
    r"""The sum of the elements over ``dim``, NaN counted as 0."""
def narrow(input: Tensor, dim: builtins.int, start: Any, length: builtins.int) -> Tensor:
    r"""``length`` elements from ``start`` along ``dim``: ``input[start:start + length]`` for ``dim=0``."""
def narrow_copy(input: Tensor, dim: builtins.int, start: Any, length: Any, *, out: Any = None) -> Tensor:
    r"""A copy of the result of :func:`narrow`, with its own memory."""
def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[builtins.int] | builtins.int, weight: Any, bias: Tensor, eps: Any
) -> tuple[Tensor, Tensor, Tensor]:
    r""":func:`layer_norm`, with the mean and the inverse deviation of each row."""
def ne(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether the elements differ; NaN differs from everything."""
def neg(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``-input``. For bools use ``~``."""
def neg_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`neg`: ``input`` is overwritten with the result and given back."""
def negative(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``-input``. For bools use ``~``."""
def negative_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`neg`: ``input`` is overwritten with the result and given back."""
def nextafter(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The next floating-point number from ``input`` toward ``other``."""
@overload
def nonzero(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The indices of the elements that are not zero."""
@overload
def nonzero(input: Tensor, *, as_tuple: builtins.bool, out: Any = None) -> Any:
    r"""The indices of the elements that are not zero."""
def nonzero_static(
    input: Tensor, *, size: Sequence[builtins.int] | builtins.int, fill_value: Number = -1, out: Any = None
) -> Tensor:
    r"""The first ``size`` rows of :func:`nonzero`, filled up where there are fewer: a result whose ..."""
def norm(
    input: Tensor, p: Any = 'fro', dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool =
    False, dtype: _dtype | None = None, *, out: Any = None
) -> Tensor:
    r"""A norm over ``dim``: ``sum(|input| ** p) ** (1 / p)``"""
def norm_except_dim(v: Any, pow: Number = 2, dim: builtins.int = 0) -> Tensor:
    r"""The norms over all dimensions but one, as weight normalisation needs them."""
def normal(
    mean: Any, std: Any = None, size: Sequence[builtins.int] | builtins.int | None = None, *, generator: Any | None =
    None, out: Any = None, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None =
    None, requires_grad: builtins.bool = False, pin_memory: builtins.bool = False, **kw: Any
) -> Tensor:
    r"""Random numbers, normal with the means and standard deviations given: ``mean + std * z``."""
def not_equal(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether the elements differ; NaN differs from everything."""
def nuclear_norm(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""The sum of the singular values of matrices: ``taeda.linalg.matrix_norm(input, "nuc")``, which is ..."""
def numel(input: Tensor) -> builtins.int:
    r"""The number of elements: the product of the sizes."""
def ones(
    *args: SupportsIndex | Sequence[SupportsIndex], size: Sequence[builtins.int] | builtins.int | None = None, out: Any
    = None, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, pin_memory: builtins.bool = False
) -> Tensor:
    r"""A tensor of the given sizes filled with ones."""
def ones_like(
    input: Tensor, *, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, pin_memory: builtins.bool = False, memory_format: Any = ...
) -> Tensor:
    r"""A tensor of ones with the sizes, dtype and device of ``input``."""
def orgqr(input: Tensor, tau: Any, *, out: Any = None) -> Tensor:
    r""":func:`taeda.linalg.householder_product` under LAPACK's name."""
def ormqr(
    input: Tensor, tau: Any, other: Tensor | Number, left: builtins.bool = True, transpose: builtins.bool = False, *,
    out: Any = None
) -> Tensor:
    r"""``Q @ other`` for the product ``Q`` of Householder reflectors, without making ``Q``."""
def outer(input: Tensor, vec2: Tensor, *, out: Any = None) -> Tensor:
    r"""The products of every pair: ``out[i, j] = input[i] * vec2[j]``."""
def pca_lowrank(
    A: Tensor, q: Any = None, center: builtins.bool = True, niter: builtins.int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Principal components: :func:`svd_lowrank` of ``A`` less the mean of its columns."""
def pdist(input: Tensor, p: Any = 2.0) -> Tensor:
    r"""The distances between every pair of rows: the part of :func:`cdist` above the diagonal."""
def permute(input: Tensor, *dims: SupportsIndex | Sequence[SupportsIndex]) -> Tensor:
    r"""A view with the dimensions in the order ``dims``: ``out.shape[i]`` is ``input.shape[dims[i]]``."""
def permute_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`permute` views, in memory of its own."""
def pinverse(input: Tensor, rcond: Number = 1e-15) -> Tensor:
    r"""The Moore-Penrose inverse, :func:`taeda.linalg.pinv`, with an older default of the tolerance."""
def poisson(input: Tensor, generator: Any | None = None, *, out: Any = None) -> Tensor:
    r"""Random numbers of Poisson's distribution, ``P(k) = rate ** k * exp(-rate) / k!``, with the rates ..."""
def polar(abs: Any, angle: Any, *, out: Any = None) -> Tensor:
    r"""The complex numbers ``abs * (cos(angle) + i * sin(angle))``."""
def polygamma(n: builtins.int, input: Tensor, *, out: Any = None) -> Tensor:
    r"""The derivative of order ``n`` of :func:`digamma`: ``(-1) ** (n + 1) * n! * zeta(n + 1, input)`` ..."""
def positive(input: Tensor) -> Tensor:
    r"""``+input``: the tensor itself."""
def pow(input: Tensor, exponent: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input ** exponent``."""
def prelu(input: Tensor, weight: Any) -> Tensor:
    r"""``input`` where it is positive, ``weight * input`` elsewhere (He et al"""
def prod(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype:
    _dtype | None = None, out: Any = None
) -> Tensor:
    r"""The product of the elements over ``dim``."""
def put(input: Tensor, index: Tensor, source: Any, accumulate: builtins.bool = False, *, out: Any = None) -> Tensor:
    r"""A copy of ``input`` with ``source`` written, or added, at the positions ``index`` of ``input`` ..."""
def qr(input: Tensor, some: builtins.bool = True, *, out: Any = None) -> return_types.qr:
    r"""``input = Q @ R``: :func:`taeda.linalg.qr`, which is preferred."""
def quantile(
    input: Tensor, q: Any, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *,
    interpolation: builtins.str = 'linear', out: Any = None
) -> Tensor:
    r"""The value below which the share ``q`` of the elements lies, along ``dim``."""
def rad2deg(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Radians to degrees: ``input * 180 / pi``."""
def rad2deg_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`rad2deg`: ``input`` is overwritten with the result and given back."""
def rand(
    *size: SupportsIndex | Sequence[SupportsIndex], generator: Any | None = None, out: Any = None, dtype: _dtype | None
    = None, layout: Any = None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False,
    pin_memory: builtins.bool = False, **kw: Any
) -> Tensor:
    r"""Random numbers, uniform in [0, 1)."""
def rand_like(
    input: Tensor, *, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, memory_format: Any = None, generator: Any | None = None, pin_memory:
    builtins.bool = False
) -> Tensor:
    r"""Random numbers, uniform in [0, 1), in the sizes of ``input``."""
def randint(
    *args: SupportsIndex | Sequence[SupportsIndex], generator: Any | None = None, out: Any = None, dtype: _dtype | None
    = None, layout: Any = None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False,
    pin_memory: builtins.bool = False, **kw: Any
) -> Tensor:
    r"""Random integers, uniform: ``randint(high, size)`` in [0, high), ``randint(low, high, size)`` in ..."""
def randint_like(
    input: Tensor, low: Number = 0, high: Any = None, *, dtype: _dtype | None = None, layout: Any = None, device:
    _device | builtins.str | None = None, requires_grad: builtins.bool = False, memory_format: Any = None, generator:
    Any | None = None, pin_memory: builtins.bool = False
) -> Tensor:
    r"""Random integers, uniform in [low, high), in the sizes of ``input``."""
def randn(
    *size: SupportsIndex | Sequence[SupportsIndex], generator: Any | None = None, out: Any = None, dtype: _dtype | None
    = None, layout: Any = None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False,
    pin_memory: builtins.bool = False, **kw: Any
) -> Tensor:
    r"""Random numbers, normal with mean 0 and variance 1."""
def randn_like(
    input: Tensor, *, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, memory_format: Any = None, generator: Any | None = None, pin_memory:
    builtins.bool = False
) -> Tensor:
    r"""Random numbers, normal with mean 0 and variance 1, in the sizes of ``input``."""
def randperm(
    n: builtins.int, *, generator: Any | None = None, out: Any = None, dtype: _dtype | None = None, layout: Any = None,
    device: _device | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory: builtins.bool =
    False
) -> Tensor:
    r"""A random order of the numbers 0 to ``n - 1``."""
def range(
    start: Number = 0, end: Any = None, step: Number = 1, *, out: Any = None, dtype: _dtype | None = None, layout: Any =
    None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False
) -> Tensor:
    r"""Numbers from ``start`` to ``end``, which is included, ``step`` apart"""
def ravel(input: Tensor) -> Tensor:
    r"""All elements in one dimension, in row-major order."""
def real(input: Tensor) -> Tensor:
    r"""The real part; a real tensor is given back."""
def reciprocal(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``1 / input``: infinite at 0."""
def reciprocal_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`reciprocal`: ``input`` is overwritten with the result and given back."""
def relu(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``max(input, 0)``, the rectified linear unit."""
def relu_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`relu`: ``input`` is overwritten with the result and given back."""
def remainder(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input - other * floor(input / other)``: the remainder with the sign of ``other``, as Python's ..."""
def renorm(input: Tensor, p: Any, dim: builtins.int, maxnorm: Any, *, out: Any = None) -> Tensor:
    r"""``input`` with each slice along ``dim`` scaled down, where its ``p``-norm is above ``maxnorm``, ..."""
def repeat_interleave(
    input: Tensor | None = None, repeats: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, *,
    output_size: Sequence[builtins.int | None] | builtins.int | None = None
) -> Tensor:
    r"""Each element, or slice along ``dim``, repeated where it stands."""
def reshape(input: Tensor, *shape: SupportsIndex | Sequence[SupportsIndex]) -> Tensor:
    r"""The elements in row-major order with the sizes ``shape``."""
def resize_as_(input: Tensor, the_template: Any, memory_format: Any = None) -> Tensor:
    r"""Changes the sizes of ``input``, in place, to those of another tensor. New elements are not set."""
def resolve_conj(input: Tensor) -> Tensor:
    r"""``input`` itself; of a conjugated view, a copy whose memory holds what the view shows."""
def resolve_neg(input: Tensor) -> Tensor:
    r"""``input`` itself; of the imaginary part of a conjugated view, a copy whose memory holds what the ..."""
def rms_norm(
    input: Tensor, normalized_shape: Sequence[builtins.int] | builtins.int, weight: Any = None, eps: Any = None
) -> Tensor:
    r"""``input / sqrt(mean(input ** 2) + eps) * weight`` over the last dimensions (Zhang and Sennrich ..."""
def roll(
    input: Tensor, shifts: Sequence[builtins.int] | builtins.int, dims: Sequence[builtins.int] | builtins.int | None =
    None, *, out: Any = None
) -> Tensor:
    r"""The elements moved by ``shifts`` along ``dims``; those that fall off the end come back at the start."""
def rot90(input: Tensor, k: builtins.int = 1, dims: Sequence[builtins.int] | builtins.int = ...) -> Tensor:
    r"""A rotation by ``k`` quarter turns in the plane of two dimensions, from the first towards the second."""
def round(input: Tensor, *, decimals: builtins.int = 0, out: Any = None) -> Tensor:
    r"""The nearest whole number, or the nearest multiple of ``10 ** -decimals``; a half goes to the ..."""
def round_(input: Tensor, *, decimals: builtins.int = 0, out: Any = None) -> Tensor:
    r"""In-place form of :func:`round`: ``input`` is overwritten with the result and given back."""
def row_stack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    r"""The tensors below each other: joined along dimension 0, vectors as rows."""
def rrelu(
    input: Tensor, lower: Number = 0.125, upper: Number = 0.3333333333333333, training: builtins.bool = False,
    generator: Any | None = None
) -> Tensor:
    r"""``input`` where it is positive, ``slope * input`` elsewhere, with a random slope in training (Xu ..."""
def rrelu_(
    input: Tensor, lower: Number = 0.125, upper: Number = 0.3333333333333333, training: builtins.bool = False,
    generator: Any | None = None
) -> Tensor:
    r"""In-place form of :func:`rrelu`: ``input`` is overwritten with the result and given back."""
def rsqrt(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``1 / sqrt(input)``: infinite at 0, NaN of negative numbers."""
def rsqrt_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`rsqrt`: ``input`` is overwritten with the result and given back."""
def rsub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
    r"""``other - alpha * input``: :func:`sub` with the operands in the other order."""
def scalar_tensor(
    s: Any, *, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, pin_memory: builtins.bool = False
) -> Tensor:
    r"""The number ``s`` as a tensor without dimensions."""
def scatter(
    input: Tensor, dim: builtins.int, index: Tensor, src: Tensor | Number | None = None, *, reduce: Any = None, value:
    Tensor | Number | None = None, out: Any = None
) -> Tensor:
    r"""A copy of ``input`` with ``src`` written at ``index`` along ``dim``; for ``dim=1``: ..."""
def scatter_add(input: Tensor, dim: builtins.int, index: Tensor, src: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""A copy of ``input`` with ``src`` added at ``index`` along ``dim``; for ``dim=0``: ..."""
def scatter_reduce(
    input: Tensor, dim: builtins.int, index: Tensor, src: Tensor | Number, reduce: builtins.str, *, include_self:
    builtins.bool = True, out: Any = None
) -> Tensor:
    r"""A copy of ``input`` with ``src`` combined into it at ``index`` along ``dim``."""
def searchsorted(
    sorted_sequence: Any, input: Tensor, *, out_int32: builtins.bool = False, right: builtins.bool = False, side: Any =
    None, sorter: Any = None, out: Any = None
) -> Tensor:
    r"""The places of values in a sorted sequence: the number of items that come before."""
def segment_reduce(
    data: Any, reduce: builtins.str, *, lengths: Any = None, indices: Any = None, offsets: Any = None, axis: Number = 0,
    unsafe: builtins.bool = False, initial: Any = None
) -> Tensor:
    r"""Reduces consecutive segments of ``data`` along ``axis``, which is the last dimension of ..."""
def select(input: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
    r"""The slice at ``index`` along ``dim``, without that dimension: ``input[index]`` for ``dim=0``."""
def select_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`select` views, in memory of its own."""
def select_scatter(
    input: Tensor, src: Tensor | Number, dim: builtins.int, index: builtins.int, *, out: Any = None
) -> Tensor:
    r"""A copy of ``input`` with ``src`` in the slice that :func:`select` would view."""
def selu(input: Tensor) -> Tensor:
    r"""``scale * (max(input, 0) + min(alpha * (exp(input) - 1), 0))`` with ``scale = 1.0507`` and ..."""
def selu_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`selu`: ``input`` is overwritten with the result and given back."""
def sgn(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``input / |input|``, 0 at 0: the sign, of a complex number the point of the unit circle in its ..."""
def sigmoid(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``1 / (1 + exp(-input))``: any number to a probability."""
def sigmoid_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`sigmoid`: ``input`` is overwritten with the result and given back."""
def sign(input: Tensor, *, out: Any = None) -> Tensor:
    r"""-1, 0 or 1, as the number is negative, zero or positive. For complex numbers see :func:`sgn`."""
def signbit(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Whether the sign bit is set: of negative numbers and of -0.0."""
def sin(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The sine of an angle in radians."""
def sin_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`sin`: ``input`` is overwritten with the result and given back."""
def sinc(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``sin(pi * input) / (pi * input)``, 1 at 0."""
def sinc_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`sinc`: ``input`` is overwritten with the result and given back."""
def sinh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The hyperbolic sine, ``(exp(input) - exp(-input)) / 2``."""
def sinh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`sinh`: ``input`` is overwritten with the result and given back."""
def slice_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of a slice, ``input[start:end:step]`` along ``dim``, in memory of its own."""
def slice_inverse(
    input: Tensor, src: Tensor | Number, dim: builtins.int = 0, start: Any = None, end: Any = None, step: Number = 1
) -> Any:
    r"""The whole from which the slice ``input`` was cut: a view with the sizes of ``src``."""
def slice_scatter(
    input: Tensor, src: Tensor | Number, dim: builtins.int = 0, start: Any = None, end: Any = None, step: Number = 1, *,
    out: Any = None
) -> Tensor:
    r"""A copy of ``input`` with ``src`` in a slice along ``dim``: ``out[start:end:step] = src`` for ..."""
def slogdet(input: Tensor, *, out: Any = None) -> return_types.slogdet:
    r"""The sign of the determinant and the logarithm of its absolute value: :func:`taeda.linalg.slogdet`."""
def softmax(input: Tensor, dim: builtins.int, dtype: _dtype | None = None, *, out: Any = None) -> Tensor:
    r"""``exp(input) / sum(exp(input))`` along ``dim``, without overflow: scores become probabilities ..."""
def solve(*args: Any, **kwargs: Any) -> Tensor:
    r"""Removed from PyTorch: use linalg.solve(A, B), whose arguments are in the other order, or ..."""
def sort(
    input: Tensor, dim: builtins.int = -1, descending: builtins.bool = False, stable: Any = None, *, out: Any = None
) -> return_types.sort:
    r"""The elements in order along ``dim``, and where each was"""
def sparse_bsc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Sequence[builtins.int] | builtins.int | None = None, *,
    dtype: _dtype | None = None, device: _device | builtins.str | None = None, pin_memory: builtins.bool = False,
    requires_grad: builtins.bool = False, check_invariants: Any = None, layout: Any = None
) -> Tensor:
    r"""Sparse matrices of blocks, compressed by columns: as :func:`sparse_csc_tensor`, with indices ..."""
def sparse_bsr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Sequence[builtins.int] | builtins.int | None = None, *,
    dtype: _dtype | None = None, device: _device | builtins.str | None = None, pin_memory: builtins.bool = False,
    requires_grad: builtins.bool = False, check_invariants: Any = None, layout: Any = None
) -> Tensor:
    r"""Sparse matrices of blocks, compressed by rows: as :func:`sparse_csr_tensor`, with indices that ..."""
def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Sequence[builtins.int] | builtins.int | None = None,
    *, layout: Any = None, **kwargs: Any
) -> Tensor:
    r"""Sparse matrices in one of the compressed layouts: :func:`sparse_csr_tensor`, ..."""
def sparse_coo_tensor(
    indices: Any = None, values: Any = None, size: Sequence[builtins.int] | builtins.int | None = None, *, dtype: _dtype
    | None = None, device: _device | builtins.str | None = None, pin_memory: builtins.bool = False, requires_grad:
    builtins.bool = False, check_invariants: Any = None, is_coalesced: Any = None, layout: Any = None
) -> Tensor:
    r"""A sparse tensor in coordinate form: element ``indices[:, i]`` is ``values[i]``, all others are 0."""
def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Sequence[builtins.int] | builtins.int | None = None, *,
    dtype: _dtype | None = None, device: _device | builtins.str | None = None, pin_memory: builtins.bool = False,
    requires_grad: builtins.bool = False, check_invariants: Any = None, layout: Any = None
) -> Tensor:
    r"""Sparse matrices compressed by columns: :func:`sparse_csr_tensor` with rows and columns in each ..."""
def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Sequence[builtins.int] | builtins.int | None = None, *,
    dtype: _dtype | None = None, device: _device | builtins.str | None = None, pin_memory: builtins.bool = False,
    requires_grad: builtins.bool = False, check_invariants: Any = None, layout: Any = None
) -> Tensor:
    r"""Sparse matrices compressed by rows: the entries of row ``i`` are those from ``crow_indices[i]`` ..."""
def split(
    tensor: Tensor, split_size_or_sections: Sequence[builtins.int] | builtins.int | None = None, dim: builtins.int = 0,
    *, split_size: Any = None
) -> tuple[Tensor, ...]:
    r"""Consecutive pieces along ``dim``: all of one size, or of the sizes in a list."""
def split_copy(input: Tensor, *args: Any, out: Any = None) -> tuple[Tensor, ...]:
    r"""A copy of the pieces that :func:`split` views, each in memory of its own."""
def split_with_sizes(input: Tensor, split_sizes: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    r"""Consecutive pieces of sizes ``split_sizes`` along ``dim``."""
def split_with_sizes_copy(input: Tensor, *args: Any, out: Any = None) -> tuple[Tensor, ...]:
    r"""A copy of what :func:`split_with_sizes` views, in memory of its own."""
def sqrt(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The square root; NaN of negative numbers. The gradient at 0 is infinite."""
def sqrt_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`sqrt`: ``input`` is overwritten with the result and given back."""
def square(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``input * input``; bools count as whole numbers."""
def square_(input: Tensor, *, out: Any = None) -> Tensor:
    r"""In-place form of :func:`square`: ``input`` is overwritten with the result and given back."""
def squeeze(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    r"""A view without the dimensions of size 1: all of them, or those in ``dim``."""
def squeeze_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`squeeze` views, in memory of its own."""
def stack(tensors: Sequence[Tensor], dim: builtins.int = 0, *, out: Any = None) -> Tensor:
    r"""The tensors side by side along a new dimension: ``stack(tensors)[i]`` is ``tensors[i]``."""
def std(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, unbiased: Any = None, keepdim:
    builtins.bool = False, *, correction: Any = None, out: Any = None
) -> Tensor:
    r"""The standard deviation over ``dim``: the square root of :func:`var`."""
def std_mean(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, unbiased: Any = None, keepdim:
    builtins.bool = False, *, correction: Any = None
) -> tuple[Tensor, Tensor]:
    r""":func:`std` and :func:`mean` in one pass."""
def stft(
    input: Tensor, n_fft: Any, hop_length: Any = None, win_length: Any = None, window: Any = None, center: builtins.bool
    = True, pad_mode: builtins.str = 'reflect', normalized: builtins.bool = False, onesided: Any = None, return_complex:
    Any = None, align_to_window: Any = None
) -> Tensor:
    r"""The Fourier transforms of overlapping pieces of a signal: ``out[f, t]`` is the sum of ..."""
def sub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
    r"""``input - alpha * other``. For bools use ``^`` or :func:`logical_xor`."""
def subtract(input: Tensor, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
    r"""``input - alpha * other``. For bools use ``^`` or :func:`logical_xor`."""
def sum(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype:
    _dtype | None = None, out: Any = None
) -> Tensor:
    r"""The sum of the elements over ``dim``. It is computed in blocks, so that long sums stay accurate."""
def svd(
    input: Tensor, some: builtins.bool = True, compute_uv: builtins.bool = True, *, out: Any = None
) -> return_types.svd:
    r"""``input = U @ diag(S) @ V.mH``: the older form of :func:`taeda.linalg.svd`, which gives ``V``."""
def svd_lowrank(A: Tensor, q: Number = 6, niter: builtins.int = 2, M: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    r"""``A - M ~= U @ diag(S) @ V.mH`` of rank ``q``, by a random projection and ``niter`` power ..."""
def swapaxes(input: Tensor, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    r"""A view with dimensions ``dim0`` and ``dim1`` swapped."""
def swapdims(input: Tensor, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    r"""A view with dimensions ``dim0`` and ``dim1`` swapped."""
def symeig(*args: Any, **kwargs: Any) -> Tensor:
    r"""Removed from PyTorch: use linalg.eigh(A, UPLO='L' or 'U') or linalg.eigvalsh"""
def t(input: Tensor) -> Tensor:
    r"""The transpose of a matrix; a vector, or a tensor without dimensions, is given back."""
def t_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`t` views, in memory of its own."""
def take(input: Tensor, index: Tensor, *, out: Any = None) -> Tensor:
    r"""The elements of ``input``, taken as one dimension, at ``index``."""
def take_along_dim(
    input: Tensor, indices: Any, dim: builtins.int | Sequence[builtins.int] | None = None, *, out: Any = None
) -> Tensor:
    r""":func:`gather` with ``indices`` broadcast against ``input``: takes what :func:`argsort` or ..."""
def tan(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The tangent of an angle in radians."""
def tan_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`tan`: ``input`` is overwritten with the result and given back."""
def tanh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The hyperbolic tangent, ``(exp(input) - exp(-input)) / (exp(input) + exp(-input))``, in [-1, 1]."""
def tanh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`tanh`: ``input`` is overwritten with the result and given back."""
def tensor_split(input: Tensor, indices_or_sections: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    r"""Pieces along ``dim``: ``n`` of nearly equal size, or cut before the given positions"""
def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Tensor:
    r"""Sums of products over several dimensions of ``a`` and ``b``."""
def threshold(input: Tensor, threshold: Number, value: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input`` where it is above ``threshold`` (or NaN), ``value`` elsewhere."""
def threshold_(input: Tensor, threshold: Number, value: Tensor | Number) -> Tensor:
    r"""In-place form of :func:`threshold`: ``input`` is overwritten with the result and given back."""
def tile(
    input: Tensor, *args: SupportsIndex | Sequence[SupportsIndex], dims: Sequence[builtins.int] | builtins.int | None =
    None
) -> Tensor:
    r"""``input`` repeated as a whole: :func:`Tensor.repeat`, where missing leading counts are 1."""
def topk(
    input: Tensor, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True,
    *, out: Any = None
) -> return_types.topk:
    r"""The ``k`` largest (or smallest) elements along ``dim``, in order, and where they are; of equal ..."""
def trace(input: Tensor) -> Tensor:
    r"""The sum of the diagonal of a matrix."""
def transpose(input: Tensor, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    r"""A view with dimensions ``dim0`` and ``dim1`` swapped."""
def transpose_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`transpose` views, in memory of its own."""
def trapezoid(y: Any, x: Any = None, *, dx: Number = 1, dim: builtins.int = -1) -> Tensor:
    r"""The integral of ``y`` along ``dim`` by the trapezoidal rule: the sum of ``(y[i] + y[i + 1]) / 2 ..."""
def trapz(y: Any, x: Any = None, *, dx: Number = 1, dim: builtins.int = -1) -> Tensor:
    r"""The integral of ``y`` along ``dim`` by the trapezoidal rule: the sum of ``(y[i] + y[i + 1]) / 2 ..."""
def triangular_solve(
    b: Any, A: Tensor, upper: builtins.bool = True, transpose: builtins.bool = False, unitriangular: builtins.bool =
    False, *, out: Any = None
) -> return_types.triangular_solve:
    r"""``X`` with ``A @ X = b`` for triangular ``A``: the older form of ..."""
def tril(input: Tensor, diagonal: builtins.int = 0, *, out: Any = None) -> Tensor:
    r"""The lower triangle of matrices, zero elsewhere."""
def tril_indices(
    row: builtins.int, col: builtins.int, offset: builtins.int = 0, *, dtype: _dtype | None = None, device: _device |
    builtins.str | None = None, layout: Any = None, pin_memory: builtins.bool = False
) -> Tensor:
    r"""The coordinates of the elements in the lower triangle of a matrix, row by row."""
def triu(input: Tensor, diagonal: builtins.int = 0, *, out: Any = None) -> Tensor:
    r"""The upper triangle of matrices, zero elsewhere."""
def triu_indices(
    row: builtins.int, col: builtins.int, offset: builtins.int = 0, *, dtype: _dtype | None = None, device: _device |
    builtins.str | None = None, layout: Any = None, pin_memory: builtins.bool = False
) -> Tensor:
    r"""The coordinates of the elements in the upper triangle of a matrix, row by row."""
def true_divide(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input / other``; whole numbers give the default floating-point dtype."""
def trunc(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The whole part: ``input`` rounded toward zero."""
def trunc_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`trunc`: ``input`` is overwritten with the result and given back."""
def unbind(input: Tensor, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    r"""The slices along ``dim``, without that dimension: what :func:`stack` joined."""
def unbind_copy(input: Tensor, *args: Any, out: Any = None) -> tuple[Tensor, ...]:
    r"""A copy of what :func:`unbind` views, in memory of its own."""
def unflatten(input: Tensor, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
    r"""Dimension ``dim`` split into ``sizes``: the reverse of :func:`flatten`."""
def unfold_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :meth:`Tensor.unfold` views, in memory of its own: windows along a dimension."""
def unique(
    input: Tensor, sorted: builtins.bool = True, return_inverse: builtins.bool = False, return_counts: builtins.bool =
    False, dim: builtins.int | Sequence[builtins.int] | None = None
) -> Any:
    r"""The distinct values, in ascending order."""
def unique_consecutive(
    input: Tensor, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, dim: builtins.int |
    Sequence[builtins.int] | None = None
) -> Any:
    r"""One element of each run of equal ones."""
def unravel_index(indices: Any, shape: Sequence[builtins.int]) -> tuple[Tensor, ...]:
    r"""Positions in row-major order as one index per dimension: ``x.reshape(-1)[i]`` is ..."""
def unsafe_chunk(input: Tensor, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    r""":func:`chunk`, whose pieces the graph does not take for views: each may be written in place on ..."""
def unsafe_split(tensor: Tensor, split_size: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    r""":func:`split`, whose pieces the graph does not take for views: each may be written in place on ..."""
def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    r""":func:`split_with_sizes`, whose pieces the graph does not take for views: each may be written in ..."""
def unsqueeze(input: Tensor, dim: builtins.int) -> Tensor:
    r"""A view with a dimension of size 1 put in at ``dim``."""
def unsqueeze_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`unsqueeze` views, in memory of its own."""
def vander(x: Any, N: builtins.int | None = None, increasing: builtins.bool = False) -> Tensor:
    r"""The Vandermonde matrix: powers of the elements, as columns."""
def var(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, unbiased: Any = None, keepdim:
    builtins.bool = False, *, correction: Any = None, out: Any = None
) -> Tensor:
    r"""The variance over ``dim``: ``sum((input - mean) ** 2) / (n - correction)``."""
def var_mean(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, unbiased: Any = None, keepdim:
    builtins.bool = False, *, correction: Any = None
) -> tuple[Tensor, Tensor]:
    r""":func:`var` and :func:`mean` in one pass."""
def vdot(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The inner product of two vectors, the first conjugated: the sum of ``conj(input[i]) * other[i]``."""
def view_as_complex(input: Tensor) -> Tensor:
    r"""A real tensor whose last dimension is ``(real, imaginary)`` as a complex one."""
def view_as_complex_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`view_as_complex` views, in memory of its own."""
def view_as_real(input: Tensor) -> Tensor:
    r"""A complex tensor as a real one with a last dimension ``(real, imaginary)``."""
def view_as_real_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`view_as_real` views, in memory of its own."""
def view_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :meth:`Tensor.view` views, in memory of its own. It may have sizes that no view has."""
def vsplit(input: Tensor, indices_or_sections: Sequence[builtins.int] | builtins.int) -> tuple[Tensor, ...]:
    r"""Pieces along dimension 0: so many of equal size, or cut before given positions."""
def vstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    r"""The tensors below each other: joined along dimension 0, vectors as rows."""
@overload
def where(condition: Tensor, *, out: Any = None) -> tuple[Tensor, ...]:
    r"""``input`` where ``condition`` is true, ``other`` elsewhere; of a condition alone, the places ..."""
@overload
def where(condition: Tensor, input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input`` where ``condition`` is true, ``other`` elsewhere; of a condition alone, the places ..."""
def xlogy(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input * log(other)``, 0 where ``input`` is 0 and ``other`` is not NaN: a term of an entropy."""
def xlogy_(input: Tensor, other: Tensor | Number) -> Tensor:
    r"""In-place form of :func:`xlogy`: ``input`` is overwritten with the result and given back."""
def zero_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`zero`: ``input`` is overwritten with the result and given back."""
def zeros(
    *args: SupportsIndex | Sequence[SupportsIndex], size: Sequence[builtins.int] | builtins.int | None = None, out: Any
    = None, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, pin_memory: builtins.bool = False
) -> Tensor:
    r"""A tensor of the given sizes filled with zeros."""
def zeros_like(
    input: Tensor, *, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, pin_memory: builtins.bool = False, memory_format: Any = ...
) -> Tensor:
    r"""A tensor of zeros with the sizes, dtype and device of ``input``."""
