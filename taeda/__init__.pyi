"""Types of taeda's functions and of its Tensor. Written by tools/stubs.py: do not edit."""

# ruff: noqa
import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, overload

import numpy

Number: TypeAlias = builtins.bool | builtins.int | builtins.float | builtins.complex

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
    def is_complex(self) -> Any: ...
    @property
    def is_floating_point(self) -> Any: ...
    @property
    def is_signed(self) -> Any: ...
    @property
    def itemsize(self) -> Any: ...
    @property
    def name(self) -> Any: ...
    def to_complex(self, *args: Any, **kwargs: Any) -> Any: ...
    def to_real(self, *args: Any, **kwargs: Any) -> Any: ...

class device:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def index(self) -> Any: ...
    @property
    def type(self) -> Any: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *exc: object) -> None: ...

class Size(builtins.tuple[builtins.int, ...]):
    def numel(self, *args: Any, **kwargs: Any) -> Any: ...

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
    def clone_state(self, *args: Any, **kwargs: Any) -> Any: ...
    @property
    def device(self) -> Any: ...
    def get_state(self, *args: Any, **kwargs: Any) -> Any: ...
    def initial_seed(self, *args: Any, **kwargs: Any) -> Any: ...
    def manual_seed(self, *args: Any, **kwargs: Any) -> Any: ...
    def random(self, *args: Any, **kwargs: Any) -> Any: ...
    def random64(self, *args: Any, **kwargs: Any) -> Any: ...
    def seed(self, *args: Any, **kwargs: Any) -> Any: ...
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
    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: Any = False) -> Any: ...
    def __bool__(self) -> builtins.bool: ...
    def __complex__(self) -> builtins.complex: ...
    def __contains__(self, element: Any) -> builtins.bool: ...
    def __deepcopy__(self, memo: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __float__(self) -> builtins.float: ...
    def __floordiv__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __format__(self, spec: Any) -> builtins.str: ...
    def __ge__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __getitem__(self, index: Any) -> Tensor: ...
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
    def __pow__(self, other: Any, modulo: Any = None) -> Tensor: ...
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
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def __str__(self) -> builtins.str: ...
    def __sub__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __truediv__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def __xor__(self, other: Tensor | Number | numpy.ndarray[Any, Any]) -> Tensor: ...
    def backward(
        self, gradient: Any = None, retain_graph: Any = None, create_graph: Any = False, inputs: Any = None
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
    def register_hook(self, hook: Any) -> Any: ...
    def register_post_accumulate_grad_hook(self, hook: Any) -> Any: ...
    @property
    def requires_grad(self) -> builtins.bool: ...
    @requires_grad.setter
    def requires_grad(self, value: Any) -> None: ...
    def requires_grad_(self, requires_grad: Any = True) -> Tensor: ...
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
    def view(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def where(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def _draw_(self, chance: Any, value: Tensor | Number, *, generator: Any | None = None) -> Tensor:
        r"""Fill with ``value`` with probability ``chance``, else with 0."""
    def _is_all_true(self) -> Tensor:
        r"""Whether all elements of a bool tensor are true, as a tensor."""
    def _is_any_true(self) -> Tensor:
        r"""Whether any element of a bool tensor is true, as a tensor."""
    def _old_slogdet(self) -> Tensor:
        r""":func:`linalg_slogdet`."""
    def _pinverse(self, rcond: Number = 1e-15) -> Tensor:
        r""":func:`linalg_pinv` with the older default of the tolerance."""
    def abs(self, *, out: Any = None) -> Tensor:
        r"""The absolute value; of a complex number, a real one."""
    def abs_(self) -> Tensor:
        r"""In-place form of :func:`abs`."""
    def absolute(self, *, out: Any = None) -> Tensor:
        r"""The absolute value; of a complex number, a real one."""
    def absolute_(self) -> Tensor:
        r"""In-place form of :func:`abs`."""
    def acos(self, *, out: Any = None) -> Tensor:
        r"""The arc cosine in radians; NaN outside [-1, 1]."""
    def acos_(self) -> Tensor:
        r"""In-place form of :func:`acos`."""
    def acosh(self, *, out: Any = None) -> Tensor:
        r"""The inverse hyperbolic cosine; NaN below 1."""
    def acosh_(self) -> Tensor:
        r"""In-place form of :func:`acosh`."""
    def add(self, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
        r"""``input + alpha * other``; of bools, whether either holds."""
    def add_(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        r"""In-place form of :func:`add`."""
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        r"""``beta * input + alpha * sum_b(batch1[b] @ batch2[b])``: one product with the batch folded into the sum."""
    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        r"""``addbmm`` into ``input``; where that is broadcast it becomes the result, of the result's size, as in
        PyTorch."""
    def addcdiv(self, tensor1: Any, tensor2: Any, *, value: Tensor | Number = 1, out: Any = None) -> Tensor:
        r"""``input + value * tensor1 / tensor2``, of floating-point tensors."""
    def addcdiv_(self, tensor1: Any, tensor2: Any, *, value: Tensor | Number = 1) -> Tensor:
        r"""In-place form of :func:`addcdiv`."""
    def addcmul(self, tensor1: Any, tensor2: Any, *, value: Tensor | Number = 1, out: Any = None) -> Tensor:
        r"""``input + value * tensor1 * tensor2``."""
    def addcmul_(self, tensor1: Any, tensor2: Any, *, value: Tensor | Number = 1) -> Tensor:
        r"""In-place form of :func:`addcmul`."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None) -> Tensor:
        r"""``beta * input + alpha * (mat1 @ mat2)``; ``input`` broadcasts to ``[m, n]``."""
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        r"""In-place form of :func:`addmm`."""
    def addmv(self, mat: Any, vec: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None) -> Tensor:
        r"""``beta * input + alpha * (mat @ vec)``; ``input`` broadcasts to ``[m]``."""
    def addmv_(self, mat: Any, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        r"""In-place form of :func:`addmv`."""
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        r"""``beta * input + alpha * outer(vec1, vec2)``."""
    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        r"""In-place form of :func:`addr`."""
    def adjoint(self) -> Tensor:
        r"""The conjugate transpose of the last two dimensions."""
    def all(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any =
        None
    ) -> Tensor:
        r"""Whether all elements along ``dim`` are true (not 0). The result is bool, or uint8 for uint8."""
    def allclose(
        self, other: Tensor | Number, rtol: Number = 1e-05, atol: Number = 1e-08, equal_nan: builtins.bool = False
    ) -> builtins.bool:
        r"""Whether all elements are close; see :func:`isclose`. Gives a Python bool."""
    def amax(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any =
        None
    ) -> Tensor:
        r"""The largest element over ``dim`` (all dimensions by default); NaN where there is one."""
    def amin(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any =
        None
    ) -> Tensor:
        r"""The smallest element over ``dim`` (all dimensions by default); NaN where there is one."""
    def aminmax(
        self, *, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, out: Any =
        None
    ) -> return_types.aminmax:
        r"""The smallest and the largest element over ``dim`` (an int; all of the tensor by default), as ``(min,
        max)``."""
    def angle(self, *, out: Any = None) -> Tensor:
        r"""The argument of a complex number in radians; of a real one 0, or pi where it is negative."""
    def any(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any =
        None
    ) -> Tensor:
        r"""Whether any element along ``dim`` is true (not 0). The result is bool, or uint8 for uint8."""
    def apply_(self, callable: Any) -> Any:
        r"""Every element becomes ``callable(element)``, in place. Slow: for what no op does, on the CPU."""
    def arccos(self, *, out: Any = None) -> Tensor:
        r"""The arc cosine in radians; NaN outside [-1, 1]."""
    def arccos_(self) -> Tensor:
        r"""In-place form of :func:`acos`."""
    def arccosh(self, *, out: Any = None) -> Tensor:
        r"""The inverse hyperbolic cosine; NaN below 1."""
    def arccosh_(self) -> Tensor:
        r"""In-place form of :func:`acosh`."""
    def arcsin(self, *, out: Any = None) -> Tensor:
        r"""The arc sine in radians; NaN outside [-1, 1]."""
    def arcsin_(self) -> Tensor:
        r"""In-place form of :func:`asin`."""
    def arcsinh(self, *, out: Any = None) -> Tensor:
        r"""The inverse hyperbolic sine."""
    def arcsinh_(self) -> Tensor:
        r"""In-place form of :func:`asinh`."""
    def arctan(self, *, out: Any = None) -> Tensor:
        r"""The arc tangent in radians."""
    def arctan2(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The angle in radians of the point with ordinate ``input`` and abscissa ``other``, in [-pi, pi]."""
    def arctan2_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`atan2`."""
    def arctan_(self) -> Tensor:
        r"""In-place form of :func:`atan`."""
    def arctanh(self, *, out: Any = None) -> Tensor:
        r"""The inverse hyperbolic tangent; NaN outside [-1, 1]."""
    def arctanh_(self) -> Tensor:
        r"""In-place form of :func:`atanh`."""
    def argmax(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any =
        None
    ) -> Tensor:
        r"""Position of the first largest element along ``dim``; in the flattened tensor by default. NaN is the
        largest."""
    def argmin(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any =
        None
    ) -> Tensor:
        r"""Position of the first smallest element along ``dim``; in the flattened tensor by default. NaN is the
        smallest."""
    def argsort(
        self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False
    ) -> Tensor:
        r"""The indices that sort a dimension; see :func:`sort`."""
    def as_strided(
        self, size: Sequence[builtins.int] | builtins.int, stride: Any, storage_offset: Any = None
    ) -> Tensor:
        r"""A view with any sizes and strides (in elements, none of them negative) on the storage of ``input``."""
    def as_strided_scatter(
        self, src: Tensor | Number, size: Sequence[builtins.int] | builtins.int, stride: Any, storage_offset: Any = None
    ) -> Tensor:
        r"""A copy of ``input`` with ``src`` where :func:`as_strided` with the same arguments would look."""
    def as_subclass(self, cls: Any) -> Any:
        r"""``input`` as an object of class ``cls``: a view of it."""
    def asin(self, *, out: Any = None) -> Tensor:
        r"""The arc sine in radians; NaN outside [-1, 1]."""
    def asin_(self) -> Tensor:
        r"""In-place form of :func:`asin`."""
    def asinh(self, *, out: Any = None) -> Tensor:
        r"""The inverse hyperbolic sine."""
    def asinh_(self) -> Tensor:
        r"""In-place form of :func:`asinh`."""
    def at_least_(self, bound: Any) -> Tensor:
        r"""In-place form of :func:`at_least`."""
    def at_most_(self, bound: Any) -> Tensor:
        r"""In-place form of :func:`at_most`."""
    def atan(self, *, out: Any = None) -> Tensor:
        r"""The arc tangent in radians."""
    def atan2(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The angle in radians of the point with ordinate ``input`` and abscissa ``other``, in [-pi, pi]."""
    def atan2_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`atan2`."""
    def atan_(self) -> Tensor:
        r"""In-place form of :func:`atan`."""
    def atanh(self, *, out: Any = None) -> Tensor:
        r"""The inverse hyperbolic tangent; NaN outside [-1, 1]."""
    def atanh_(self) -> Tensor:
        r"""In-place form of :func:`atanh`."""
    def baddbmm(
        self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None
    ) -> Tensor:
        r"""``beta * input + alpha * (batch1 @ batch2)``, batch by batch; ``input`` broadcasts to ``[b, m, n]``."""
    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        r"""In-place form of :func:`baddbmm`."""
    def bernoulli(self, p: Any = None, *, generator: Any | None = None, out: Any = None) -> Tensor:
        r"""Ones and zeros: a one with the probability in ``input`` at that place (or everywhere with ``p``)."""
    def bernoulli_(self, p: Any = 0.5, *, generator: Any | None = None) -> Tensor:
        r"""Fill with ones, with probability ``p`` (a number, or a tensor that broadcasts to the input), and zeros."""
    def bfloat16(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as bfloat16."""
    def bincount(self, weights: Any = None, minlength: Number = 0) -> Tensor:
        r"""How often each non-negative integer occurs in a vector, or the sum of its ``weights``."""
    def bitwise_and(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input & other``."""
    def bitwise_and_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`bitwise_and`."""
    def bitwise_left_shift(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input << other``; 0 where ``other`` is negative or not below the width."""
    def bitwise_left_shift_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`bitwise_left_shift`."""
    def bitwise_not(self, *, out: Any = None) -> Tensor:
        r"""``~input``: the complement of each bit, of bools the opposite."""
    def bitwise_not_(self) -> Tensor:
        r"""In-place form of :func:`bitwise_not`."""
    def bitwise_or(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input | other``."""
    def bitwise_or_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`bitwise_or`."""
    def bitwise_right_shift(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input >> other``, arithmetic for signed dtypes; a shift beyond the width leaves only the sign."""
    def bitwise_right_shift_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`bitwise_right_shift`."""
    def bitwise_xor(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input ^ other``."""
    def bitwise_xor_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`bitwise_xor`."""
    def bmm(self, mat2: Tensor, *, out: Any = None) -> Tensor:
        r"""Products of matrices, one per batch: ``[b, m, k] @ [b, k, n]``."""
    def bool(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as bool."""
    def byte(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as uint8."""
    def cauchy_(self, median: Number = 0.0, sigma: Number = 1.0, *, generator: Any | None = None) -> Tensor:
        r"""Fill with numbers of the Cauchy distribution."""
    def cdouble(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as complex128."""
    def ceil(self, *, out: Any = None) -> Tensor:
        r"""The smallest integer not below."""
    def ceil_(self) -> Tensor:
        r"""In-place form of :func:`ceil`."""
    def cfloat(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as complex64."""
    def chalf(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as complex32."""
    def char(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as int8."""
    def cholesky(self, upper: builtins.bool = False) -> Tensor:
        r"""The Cholesky factor of positive definite matrices."""
    def cholesky_inverse(self, upper: builtins.bool = False) -> Tensor:
        r"""The inverse ``(..., n, n)`` of the matrix of which ``L`` is the Cholesky factor."""
    def cholesky_solve(self, L: Any, upper: builtins.bool = False, *, out: Any = None) -> Tensor:
        r"""``X`` with ``A X = B`` for the matrix ``A`` of which ``L`` is the Cholesky factor."""
    def chunk(self, chunks: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        r"""At most ``chunks`` views of equal size along ``dim`` (the last may be smaller)."""
    def clamp(self, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
        r"""``input`` held between ``min`` and ``max``: numbers, tensors that broadcast, or None for no bound."""
    def clamp_(self, min: Any = None, max: Any = None) -> Tensor:
        r"""In-place form of :func:`clamp`."""
    def clamp_between_(self, min: Any = None, max: Any = None) -> Tensor:
        r"""In-place form of :func:`clamp_between`."""
    def clamp_max(self, max: Any, *, out: Any = None) -> Tensor:
        r"""``input``, at most ``max``."""
    def clamp_max_(self, max: Any) -> Tensor:
        r"""In-place form of :func:`clamp_max`."""
    def clamp_min(self, min: Any, *, out: Any = None) -> Tensor:
        r"""``input``, at least ``min``."""
    def clamp_min_(self, min: Any) -> Tensor:
        r"""In-place form of :func:`clamp_min`."""
    def clip(self, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
        r"""``input`` held between ``min`` and ``max``: numbers, tensors that broadcast, or None for no bound."""
    def clip_(self, min: Any = None, max: Any = None) -> Tensor:
        r"""In-place form of :func:`clamp`."""
    def clone(self, *, memory_format: Any = ...) -> Tensor:
        r"""A copy in memory of its own."""
    def combinations(self, r: Number = 2, with_replacement: builtins.bool = False) -> Tensor:
        r"""All ways to choose ``r`` elements of a vector, in order of position, as rows."""
    def conj(self) -> Tensor:
        r"""The complex conjugate, as a view of the same memory; a real tensor is given back as it is."""
    def conj_physical(self, *, out: Any = None) -> Tensor:
        r"""The complex conjugate, computed; a real tensor is given back as it is."""
    def conj_physical_(self) -> Tensor:
        r"""In-place form of :func:`conj_physical`."""
    def conjugated_(self) -> Tensor:
        r"""In-place form of :func:`conjugated`."""
    def contiguous(self, memory_format: Any = ...) -> Tensor:
        r"""``input`` itself if its elements lie in memory in the given order, else a copy that does."""
    def copy_(self, src: Tensor | Number, non_blocking: builtins.bool = False) -> Tensor:
        r"""In-place form of :func:`copy`."""
    def copysign(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The size of ``input`` with the sign of ``other``, -0.0 and NaN included."""
    def copysign_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`copysign`."""
    def corrcoef(self) -> Tensor:
        r"""The matrix of Pearson's correlation coefficients of variables (rows)."""
    def cos(self, *, out: Any = None) -> Tensor:
        r"""The cosine of an angle in radians."""
    def cos_(self) -> Tensor:
        r"""In-place form of :func:`cos`."""
    def cosh(self, *, out: Any = None) -> Tensor:
        r"""The hyperbolic cosine."""
    def cosh_(self) -> Tensor:
        r"""In-place form of :func:`cosh`."""
    def count_nonzero(self, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        r"""The number of elements along ``dim`` that are not 0, as int64."""
    def cov(self, *, correction: Number = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
        r"""The covariance matrix of variables (rows) observed in columns."""
    def cpu(self, memory_format: Any = None) -> Tensor:
        r"""``input`` on the CPU."""
    def cross(self, other: Tensor | Number, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        r"""The cross product of vectors of three elements along ``dim``: by default the first dimension of that
        size."""
    def cube_(self) -> Tensor:
        r"""In-place form of :func:`cube`."""
    def cuda(
        self, device: _device | builtins.str | None = None, non_blocking: builtins.bool = False, memory_format: Any =
        None
    ) -> Tensor:
        r"""``input`` on a CUDA device: a copy, or itself where it is there."""
    def cummax(self, dim: builtins.int, *, out: Any = None) -> return_types.cummax:
        r"""Running maximum along ``dim`` and the position of its latest occurrence; NaN once there was one."""
    def cummin(self, dim: builtins.int, *, out: Any = None) -> return_types.cummin:
        r"""Running minimum along ``dim`` and the position of its latest occurrence; NaN once there was one."""
    def cumprod(self, dim: builtins.int, *, dtype: _dtype | None = None, out: Any = None) -> Tensor:
        r"""Running product along ``dim``. Integers and bools are multiplied as int64."""
    def cumprod_(self, dim: builtins.int, *, dtype: _dtype | None = None) -> Tensor:
        r"""In-place form of :func:`cumprod`."""
    def cumsum(self, dim: builtins.int, *, dtype: _dtype | None = None, out: Any = None) -> Tensor:
        r"""Running sum along ``dim``. Integers and bools are summed as int64, float32 with the exactness of float64."""
    def cumsum_(self, dim: builtins.int, *, dtype: _dtype | None = None) -> Tensor:
        r"""In-place form of :func:`cumsum`."""
    def deg2rad(self, *, out: Any = None) -> Tensor:
        r"""Degrees to radians."""
    def deg2rad_(self) -> Tensor:
        r"""In-place form of :func:`deg2rad`."""
    def det(self, *, out: Any = None) -> Tensor:
        r"""The determinant ``(...)`` of square matrices ``(..., n, n)``."""
    def detach_copy(self) -> Tensor:
        r"""A copy outside the graph."""
    def diag(self, diagonal: Number = 0) -> Tensor:
        r"""A matrix with a vector on its diagonal, or the diagonal of a matrix."""
    def diag_embed(self, offset: Number = 0, dim1: builtins.int = -2, dim2: Number = -1) -> Tensor:
        r"""Matrices, in dimensions ``dim1`` and ``dim2``, with the last dimension of ``input`` on a diagonal."""
    def diagflat(self, offset: Number = 0) -> Tensor:
        r"""A matrix with the elements of ``input`` on its diagonal."""
    def diagonal(self, offset: Number = 0, dim1: builtins.int = 0, dim2: Number = 1) -> Tensor:
        r"""A view of the diagonal of dimensions ``dim1`` and ``dim2``, as the last dimension."""
    def diagonal_scatter(
        self, src: Tensor | Number, offset: Number = 0, dim1: builtins.int = 0, dim2: Number = 1
    ) -> Tensor:
        r"""A copy of ``input`` with ``src`` on a diagonal."""
    def diff(self, n: Number = 1, dim: builtins.int = -1, prepend: Any = None, append: Any = None) -> Tensor:
        r"""The ``n``-th difference along ``dim``: ``input[i + 1] - input[i]``, ``n`` times."""
    def digamma(self, *, out: Any = None) -> Tensor:
        r"""The derivative of :func:`lgamma`."""
    def digamma_(self) -> Tensor:
        r"""In-place form of :func:`digamma`."""
    def dim_order(self, *, ambiguity_check: builtins.bool = False) -> Any:
        r"""The dimensions from outermost to innermost in memory."""
    def dist(self, other: Tensor | Number, p: Any = 2) -> Tensor:
        r"""The ``p``-norm of ``input - other``."""
    def div(self, other: Tensor | Number, *, rounding_mode: Any = None, out: Any = None) -> Tensor:
        r"""``input / other``."""
    def div_(self, other: Tensor | Number, *, rounding_mode: Any = None) -> Tensor:
        r"""In-place form of :func:`div`."""
    def divide(self, other: Tensor | Number, *, rounding_mode: Any = None, out: Any = None) -> Tensor:
        r"""``input / other``."""
    def divide_(self, other: Tensor | Number, *, rounding_mode: Any = None) -> Tensor:
        r"""In-place form of :func:`div`."""
    def dot(self, tensor: Tensor, *, out: Any = None) -> Tensor:
        r"""Inner product of two vectors (no conjugate)."""
    def double(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as float64."""
    def dsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        r"""Views of pieces along dimension 2; see :func:`tensor_split`."""
    def eig(*args: Any, **kwargs: Any) -> Tensor:
        r"""Removed from PyTorch: use linalg.eig or linalg.eigvals, which are complex. Calling it is a RuntimeError."""
    def elu_kernel_(self, alpha: Any, scale: Any, input_scale: Any, *, unit: builtins.bool = False) -> Tensor:
        r"""In-place form of :func:`elu_kernel`."""
    def eq(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether the elements are equal; NaN equals nothing."""
    def eq_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`eq`."""
    def equal(self, other: Tensor | Number) -> builtins.bool:
        r"""Whether the tensors have the same shape and elements. Gives a Python bool."""
    def erf(self, *, out: Any = None) -> Tensor:
        r"""The error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t * t)`` from 0 to ``input``."""
    def erf_(self) -> Tensor:
        r"""In-place form of :func:`erf`."""
    def erfc(self, *, out: Any = None) -> Tensor:
        r"""``1 - erf(input)``, accurate in the tail."""
    def erfc_(self) -> Tensor:
        r"""In-place form of :func:`erfc`."""
    def erfinv(self, *, out: Any = None) -> Tensor:
        r"""The inverse of :func:`erf`; infinite at -1 and 1."""
    def erfinv_(self) -> Tensor:
        r"""In-place form of :func:`erfinv`."""
    def exp(self, *, out: Any = None) -> Tensor:
        r"""``e ** input``."""
    def exp2(self, *, out: Any = None) -> Tensor:
        r"""``2 ** input``."""
    def exp2_(self) -> Tensor:
        r"""In-place form of :func:`exp2`."""
    def exp_(self) -> Tensor:
        r"""In-place form of :func:`exp`."""
    def expand(self, *size: Any, implicit: builtins.bool = False) -> Tensor:
        r"""A view in which dimensions of size 1 are repeated, without copying, up to ``size`` (-1 keeps a size)."""
    def expand_as(self, other: Tensor | Number) -> Tensor:
        r"""``input`` expanded to the sizes of ``other``."""
    def expit_(self) -> Tensor:
        r"""In-place form of :func:`sigmoid`."""
    def expm1(self, *, out: Any = None) -> Tensor:
        r"""``e ** input - 1``, exact for small ``input``."""
    def expm1_(self) -> Tensor:
        r"""In-place form of :func:`expm1`."""
    def exponential_(self, lambd: Number = 1.0, *, generator: Any | None = None) -> Tensor:
        r"""Fill with exponentially distributed numbers of rate ``lambd``."""
    def fill(self, value: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``value``, a number or a tensor of no dimensions, in every element."""
    def fill_(self, value: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`fill`."""
    def fill_diagonal_(self, fill_value: Any, wrap: builtins.bool = False) -> Tensor:
        r"""Write ``fill_value`` on the main diagonal, in place; ``wrap`` starts again below it in a tall matrix."""
    def fix(self, *, out: Any = None) -> Tensor:
        r"""Rounded toward zero."""
    def fix_(self) -> Tensor:
        r"""In-place form of :func:`trunc`."""
    def flatten(self, start_dim: Number = 0, end_dim: Number = -1) -> Tensor:
        r"""Dimensions ``start_dim`` to ``end_dim`` merged into one."""
    def flip(self, *dims: Any) -> Tensor:
        r"""The elements in reverse order along ``dims``, as a copy."""
    def fliplr(self) -> Tensor:
        r""":func:`flip` of dimension 1."""
    def flipud(self) -> Tensor:
        r""":func:`flip` of dimension 0."""
    def float(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as float32."""
    def float_power(self, exponent: Tensor | Number) -> Tensor:
        r"""``input ** exponent`` in float64 or complex128."""
    def float_power_(self, exponent: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`float_power`."""
    def floor(self, *, out: Any = None) -> Tensor:
        r"""The largest integer not above."""
    def floor_(self) -> Tensor:
        r"""In-place form of :func:`floor`."""
    def floor_divide(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``floor(input / other)``, Python's ``//``."""
    def floor_divide_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`floor_divide`."""
    def floor_quotient_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`floor_quotient`."""
    def fmax(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The larger of the two; a number wins over NaN."""
    def fmin(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The smaller of the two; a number wins over NaN."""
    def fmod(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input - other * trunc(input / other)``, with the sign of ``input``: C's ``fmod``."""
    def fmod_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`fmod`."""
    def frac(self, *, out: Any = None) -> Tensor:
        r"""``input - trunc(input)``, with the sign of ``input``."""
    def frac_(self) -> Tensor:
        r"""In-place form of :func:`frac`."""
    def frexp(self, *, out: Any = None) -> return_types.frexp:
        r"""Mantissa in [0.5, 1) and integer exponent, ``input = mantissa * 2 ** exponent``."""
    def gammainc_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`igamma`."""
    def gammaincc_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`igammac`."""
    def gammaln_(self) -> Tensor:
        r"""In-place form of :func:`lgamma`."""
    def gather(self, dim: builtins.int, index: Any, *, sparse_grad: builtins.bool = False, out: Any = None) -> Tensor:
        r"""The elements at ``index`` along ``dim``: ``out[i][j] = input[index[i][j]][j]`` for ``dim=0``."""
    def gcd(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The greatest common divisor, not negative."""
    def gcd_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`gcd`."""
    def ge(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether ``input >= other``."""
    def ge_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`ge`."""
    def geometric_(self, p: Any, *, generator: Any | None = None) -> Tensor:
        r"""Fill with the number of trials up to the first success, of probability ``p`` each."""
    def geqrf(self, *, out: Any = None) -> return_types.geqrf:
        r"""The QR factorisation as LAPACK packs it: ``R`` and, below its diagonal, Householder reflectors with
        scales"""
    def ger(self, vec2: Tensor) -> Tensor:
        r"""``out[i, j] = input[i] * vec2[j]``."""
    def greater(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether ``input > other``."""
    def greater_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`gt`."""
    def greater_equal(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether ``input >= other``."""
    def greater_equal_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`ge`."""
    def gt(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether ``input > other``."""
    def gt_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`gt`."""
    def half(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as float16."""
    def hardshrink(self, lambd: Number = 0.5, *, out: Any = None) -> Tensor:
        r"""``input`` where its size exceeds ``lambd``, else 0."""
    def hardsigmoid_(self) -> Tensor:
        r"""In-place form of :func:`hardsigmoid`."""
    def hardswish_(self) -> Tensor:
        r"""In-place form of :func:`hardswish`."""
    def hardtanh_(self, min_val: Number = -1.0, max_val: Number = 1.0) -> Tensor:
        r"""In-place form of :func:`hardtanh`."""
    def hash_tensor(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, *, keepdim: builtins.bool = False, mode: Number
        = 0
    ) -> Tensor:
        r"""The bits of the elements, as float64 or as integers of 64 bits, joined by exclusive or over ``dim``: a
        uint64."""
    def heaviside(self, values: Any, *, out: Any = None) -> Tensor:
        r"""0 below 0, 1 above it, ``values`` at 0."""
    def heaviside_(self, values: Any) -> Tensor:
        r"""In-place form of :func:`heaviside`."""
    def histc(self, bins: Number = 100, min: Number = 0, max: Number = 0, *, out: Any = None) -> Tensor:
        r"""Counts of elements in ``bins`` equal bins between ``min`` and ``max`` (those of the data where both are
        equal)."""
    def histogram(
        self, bins: Number = 100, *, range: Any = None, weight: Any = None, density: builtins.bool = False, out: Any =
        None
    ) -> return_types.histogram:
        r"""How many elements (or how much weight) lie in each bin."""
    def hsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        r"""Views of pieces along dimension 1 (0 for vectors); see :func:`tensor_split`."""
    def hypot(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``sqrt(input ** 2 + other ** 2)`` without overflow on the way."""
    def hypot_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`hypot`."""
    def i0(self, *, out: Any = None) -> Tensor:
        r"""The modified Bessel function of the first kind of order 0."""
    def i0_(self) -> Tensor:
        r"""In-place form of :func:`i0`."""
    def igamma(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The regularised lower incomplete gamma function: the integral of ``t^(input - 1) exp(-t)`` from 0 to
        ``other``,"""
    def igamma_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`igamma`."""
    def igammac(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The regularised upper incomplete gamma function, ``1 - igamma(input, other)``, accurate where it is
        small."""
    def igammac_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`igammac`."""
    def index_add(self, dim: builtins.int, index: Any, source: Any, *, alpha: Number = 1, out: Any = None) -> Tensor:
        r"""Add ``alpha`` times the slices of ``source`` at ``index`` along ``dim``, in the order of the index."""
    def index_add_(self, dim: builtins.int, index: Any, source: Any, *, alpha: Number = 1) -> Tensor:
        r"""In-place form of :func:`index_add`."""
    def index_copy(self, dim: builtins.int, index: Any, source: Any, *, out: Any = None) -> Tensor:
        r"""Write the slices of ``source`` at ``index`` along ``dim``."""
    def index_copy_(self, dim: builtins.int, index: Any, source: Any) -> Tensor:
        r"""In-place form of :func:`index_copy`."""
    def index_fill(self, dim: builtins.int, index: Any, value: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Write ``value``, a number or a tensor of no dimensions, at ``index`` along ``dim``; negative indices count
        from"""
    def index_fill_(self, dim: builtins.int, index: Any, value: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`index_fill`."""
    def index_put(self, indices: Any, values: Any, accumulate: builtins.bool = False, *, out: Any = None) -> Tensor:
        r"""Write ``values`` at ``indices``, or add them there."""
    def index_put_(self, indices: Any, values: Any, accumulate: builtins.bool = False) -> Tensor:
        r"""In-place form of :func:`index_put`."""
    def index_reduce(
        self, dim: builtins.int, index: Any, source: Any, reduce: Any, *, include_self: builtins.bool = True, out: Any =
        None
    ) -> Tensor:
        r"""Combine slices of ``source`` into ``input``: ``reduce`` is ``"prod"``, ``"mean"``, ``"amax"`` or
        ``"amin"``."""
    def index_reduce_(
        self, dim: builtins.int, index: Any, source: Any, reduce: Any, *, include_self: builtins.bool = True
    ) -> Tensor:
        r"""In-place form of :func:`index_reduce`."""
    def index_select(self, dim: builtins.int, index: Any, *, out: Any = None) -> Tensor:
        r"""The slices at ``index``, a vector, along ``dim``."""
    def inner(self, other: Tensor | Number) -> Tensor:
        r"""Sums of products along the last dimensions: ``[..., k]`` and ``[---, k]`` give ``[..., ---]``."""
    def int(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as int32."""
    def inverse(self, *, out: Any = None) -> Tensor:
        r"""The inverse of square matrices ``(..., n, n)``."""
    def is_nonzero(self) -> builtins.bool:
        r"""Whether the one element of ``input`` is not zero."""
    def is_pinned(self, device: _device | builtins.str | None = None) -> builtins.bool:
        r"""Whether the memory is pinned for the accelerator."""
    def is_same_size(self, other: Tensor | Number) -> builtins.bool:
        r"""Whether the sizes are equal."""
    def is_set_to(self, tensor: Tensor) -> builtins.bool:
        r"""Whether both are the same window on the same storage."""
    def is_shared(self) -> builtins.bool:
        r"""Whether the memory of ``input`` can be seen by other processes: see :meth:`share_memory_`."""
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
        r"""The signal whose :func:`stft` is nearest to ``input``: inverse transforms, overlapped, over the windows'
        squares."""
    def kron(self, other: Tensor | Number) -> Tensor:
        r"""Kronecker product: every element of ``input`` times the whole of ``other``, dimension by dimension."""
    def kthvalue(
        self, k: Any, dim: builtins.int = -1, keepdim: builtins.bool = False, *, out: Any = None
    ) -> return_types.kthvalue:
        r"""The ``k``-th smallest element (from 1) along a dimension, and its index."""
    def lcm(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The least common multiple, not negative."""
    def lcm_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`lcm`."""
    def ldexp(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input * 2 ** other``."""
    def ldexp_(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""In-place form of :func:`ldexp`."""
    def le(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether ``input <= other``."""
    def le_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`le`."""
    def leaky_relu_(self, negative_slope: Number = 0.01) -> Tensor:
        r"""In-place form of :func:`leaky_relu`."""
    def lerp(self, end: Any, weight: Any, *, out: Any = None) -> Tensor:
        r"""``input + weight * (end - input)``, exact at both ends; ``weight`` is a number or a tensor."""
    def lerp_(self, end: Any, weight: Any) -> Tensor:
        r"""In-place form of :func:`lerp`."""
    def less(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether ``input < other``."""
    def less_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`lt`."""
    def less_equal(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether ``input <= other``."""
    def less_equal_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`le`."""
    def lgamma(self, *, out: Any = None) -> Tensor:
        r"""The logarithm of ``|gamma(input)|``."""
    def lgamma_(self) -> Tensor:
        r"""In-place form of :func:`lgamma`."""
    def log(self, *, out: Any = None) -> Tensor:
        r"""The natural logarithm: -inf of 0, NaN of negative numbers."""
    def log10(self, *, out: Any = None) -> Tensor:
        r"""The logarithm to base 10."""
    def log10_(self) -> Tensor:
        r"""In-place form of :func:`log10`."""
    def log1p(self, *, out: Any = None) -> Tensor:
        r"""``log(1 + input)``, exact for small ``input``."""
    def log1p_(self) -> Tensor:
        r"""In-place form of :func:`log1p`."""
    def log2(self, *, out: Any = None) -> Tensor:
        r"""The logarithm to base 2."""
    def log2_(self) -> Tensor:
        r"""In-place form of :func:`log2`."""
    def log_(self) -> Tensor:
        r"""In-place form of :func:`log`."""
    def log_normal_(self, mean: Number = 1.0, std: Number = 2.0, *, generator: Any | None = None) -> Tensor:
        r"""Fill with numbers whose logarithm is normal with the given mean and standard deviation."""
    def log_softmax(self, dim: builtins.int, dtype: _dtype | None = None, *, out: Any = None) -> Tensor:
        r"""``input - log(sum(exp(input)))`` along ``dim``: the logarithm of :func:`softmax`, without its loss of
        precision."""
    def logaddexp(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``log(exp(input) + exp(other))`` with no overflow."""
    def logaddexp2(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``log2(2 ** input + 2 ** other)`` with no overflow."""
    def logcumsumexp(self, dim: builtins.int) -> Tensor:
        r"""``log(cumsum(exp(input)))`` along ``dim``, without overflow. Integers are taken as the default float."""
    def logdet(self) -> Tensor:
        r"""The logarithm of the determinant: NaN where that is negative."""
    def logical_and(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether both are true; any number but 0 is."""
    def logical_and_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`logical_and`."""
    def logical_not(self, *, out: Any = None) -> Tensor:
        r"""Whether the element is 0."""
    def logical_not_(self) -> Tensor:
        r"""In-place form of :func:`logical_not`."""
    def logical_or(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether either is true; any number but 0 is."""
    def logical_or_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`logical_or`."""
    def logical_xor(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether exactly one is true; any number but 0 is."""
    def logical_xor_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`logical_xor`."""
    def logit(self, eps: Any = None, *, out: Any = None) -> Tensor:
        r"""``log(input / (1 - input))``; with ``eps``, of ``input`` held between ``eps`` and ``1 - eps``."""
    def logit_(self, eps: Any = None) -> Tensor:
        r"""In-place form of :func:`logit`."""
    def logsumexp(self, dim: builtins.int, keepdim: builtins.bool = False) -> Tensor:
        r"""``log(sum(exp(input)))`` over ``dim``, without overflow. Integers are taken as the default float."""
    def long(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as int64."""
    def lstsq(*args: Any, **kwargs: Any) -> Tensor:
        r"""Removed from PyTorch: use linalg.lstsq(A, B), whose arguments are in the other order and whose residuals are
        sums. Calling it is a RuntimeError."""
    def lt(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether ``input < other``."""
    def lt_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`lt`."""
    def lu(self, pivot: builtins.bool = True, get_infos: builtins.bool = False) -> Any:
        r"""The older form of :func:`linalg_lu_factor`: ``(LU, pivots)``, with ``info`` where ``get_infos``."""
    def lu_solve(self, LU_data: Any, LU_pivots: Any) -> Tensor:
        r"""The older argument order of :func:`linalg_lu_solve`."""
    def map2_(self, x: Any, y: Any, callable: Any) -> Any:
        r"""Every element becomes ``callable(element, element of x, element of y)``, in place; ``x`` and ``y``
        broadcast."""
    def map_(self, tensor: Tensor, callable: Any) -> Any:
        r"""Every element becomes ``callable(element, element of tensor)``, in place; ``tensor`` broadcasts to
        ``input``."""
    def masked_fill(self, mask: Tensor, value: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``value`` where ``mask`` is true, ``input`` elsewhere."""
    def masked_fill_(self, mask: Tensor, value: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`masked_fill`."""
    def masked_scatter(self, mask: Tensor, source: Any) -> Tensor:
        r"""``input``, broadcast with ``mask``, with the elements of ``source``, in order, where ``mask`` is true."""
    def masked_scatter_(self, mask: Tensor, source: Any) -> Tensor:
        r"""In-place form of :func:`masked_scatter`."""
    def masked_select(self, mask: Tensor, *, out: Any = None) -> Tensor:
        r"""The elements of ``input`` where ``mask`` is true, in row-major order, as one dimension; the two
        broadcast."""
    def matmul(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Matrix product by the rank of the operands."""
    def matrix_exp(self, *, out: Any = None) -> Tensor:
        r"""The exponential ``(..., n, n)`` of square matrices, by Pade approximants, scaling and squaring (Higham
        2005)."""
    def matrix_power(self, n: Any) -> Tensor:
        r"""``input @ input @ ...``, ``n`` times, by squaring; ``n`` may not be negative."""
    @overload
    def max(self) -> Tensor:
        r"""The largest element of ``input``; along ``dim``, ``(values, indices)``; with a tensor, the elementwise
        maximum."""
    @overload
    def max(self, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.max:
        r"""The largest element of ``input``; along ``dim``, ``(values, indices)``; with a tensor, the elementwise
        maximum."""
    @overload
    def max(self, other: Tensor) -> Tensor:
        r"""The largest element of ``input``; along ``dim``, ``(values, indices)``; with a tensor, the elementwise
        maximum."""
    def maximum(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The larger of the two, NaN where either is NaN."""
    def mean(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype: _dtype
        | None = None, out: Any = None
    ) -> Tensor:
        r"""Mean over ``dim`` (all dimensions by default) of a floating-point or complex tensor."""
    @overload
    def median(self) -> Tensor:
        r"""The median: of an even number of elements the lower of the two in the middle; NaN where there is one."""
    @overload
    def median(self, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.median:
        r"""The median: of an even number of elements the lower of the two in the middle; NaN where there is one."""
    @overload
    def min(self) -> Tensor:
        r"""The smallest element of ``input``; along ``dim``, ``(values, indices)``; with a tensor, the elementwise
        minimum."""
    @overload
    def min(self, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.min:
        r"""The smallest element of ``input``; along ``dim``, ``(values, indices)``; with a tensor, the elementwise
        minimum."""
    @overload
    def min(self, other: Tensor) -> Tensor:
        r"""The smallest element of ``input``; along ``dim``, ``(values, indices)``; with a tensor, the elementwise
        minimum."""
    def minimum(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The smaller of the two, NaN where either is NaN."""
    def mish_(self) -> Tensor:
        r"""In-place form of :func:`mish`."""
    def mm(self, mat2: Tensor, *, out: Any = None) -> Tensor:
        r"""Product of two matrices: ``[m, k] @ [k, n]``."""
    def mode(self, dim: builtins.int = -1, keepdim: builtins.bool = False, *, out: Any = None) -> return_types.mode:
        r"""The most frequent value along a dimension, the smallest of equally frequent ones, and where it is last."""
    def modified_bessel_i0_(self) -> Tensor:
        r"""In-place form of :func:`i0`."""
    def moveaxis(self, source: Any, destination: Any) -> Tensor:
        r"""A view with dimensions ``source`` moved to ``destination``, the others in their order."""
    def movedim(self, source: Any, destination: Any) -> Tensor:
        r"""A view with dimensions ``source`` moved to ``destination``, the others in their order."""
    def msort(self) -> Tensor:
        r"""The values sorted along dimension 0."""
    def mul(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input * other``; of bools, whether both hold."""
    def mul_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`mul`."""
    def multinomial(
        self, num_samples: Any, replacement: builtins.bool = False, *, generator: Any | None = None, out: Any = None
    ) -> Tensor:
        r"""Indices drawn with the probabilities (up to a factor) in each row."""
    def multiply(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input * other``; of bools, whether both hold."""
    def multiply_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`mul`."""
    def mv(self, vec: Tensor, *, out: Any = None) -> Tensor:
        r"""Product of a matrix and a vector: ``[m, k] @ [k]``."""
    def mvlgamma(self, p: Any) -> Tensor:
        r"""The logarithm of the multivariate gamma function of dimension ``p``."""
    def mvlgamma_(self, p: Any) -> Tensor:
        r"""In-place form of :func:`mvlgamma`."""
    def nan_to_num(self, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Tensor:
        r"""``input`` with ``nan`` (0) for NaN, and the largest finite numbers, or those given, for the infinities."""
    def nan_to_num_(self, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Tensor:
        r"""In-place form of :func:`nan_to_num`."""
    def nanmean(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype: _dtype
        | None = None
    ) -> Tensor:
        r"""Mean over ``dim`` of the elements that are not NaN."""
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
        r""":func:`quantile` of the elements that are numbers."""
    def nansum(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype: _dtype
        | None = None, out: Any = None
    ) -> Tensor:
        r"""Sum over ``dim`` with NaN counted as 0."""
    def narrow(self, dim: builtins.int, start: Any, length: Any) -> Tensor:
        r"""A view of ``length`` elements from ``start`` along ``dim``."""
    def narrow_copy(self, dim: builtins.int, start: Any, length: Any) -> Tensor:
        r"""A copy of :func:`narrow`."""
    def ne(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether the elements differ; NaN differs from all."""
    def ne_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`ne`."""
    def neg(self, *, out: Any = None) -> Tensor:
        r"""``-input``. For bools use ``~``."""
    def neg_(self) -> Tensor:
        r"""In-place form of :func:`neg`."""
    def negative(self, *, out: Any = None) -> Tensor:
        r"""``-input``. For bools use ``~``."""
    def negative_(self) -> Tensor:
        r"""In-place form of :func:`neg`."""
    def new_empty(
        self, *args: Any, size: Sequence[builtins.int] | builtins.int | None = None, dtype: _dtype | None = None,
        device: _device | builtins.str | None = None, requires_grad: builtins.bool = False, layout: Any = None,
        pin_memory: builtins.bool = False
    ) -> Tensor:
        r"""An uninitialised tensor with the dtype of ``input``."""
    def new_empty_strided(
        self, size: Sequence[builtins.int] | builtins.int, stride: Any, dtype: _dtype | None = None, layout: Any = None,
        device: _device | builtins.str | None = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool =
        False
    ) -> Tensor:
        r"""An uninitialised tensor of given sizes and strides with the dtype of ``input``."""
    def new_full(
        self, size: Sequence[builtins.int] | builtins.int, fill_value: Any, dtype: _dtype | None = None, device: _device
        | builtins.str | None = None, requires_grad: builtins.bool = False, layout: Any = None, pin_memory:
        builtins.bool = False
    ) -> Tensor:
        r"""``fill_value`` everywhere, with the dtype of ``input``."""
    def new_ones(
        self, *args: Any, size: Sequence[builtins.int] | builtins.int | None = None, dtype: _dtype | None = None,
        device: _device | builtins.str | None = None, requires_grad: builtins.bool = False, layout: Any = None,
        pin_memory: builtins.bool = False
    ) -> Tensor:
        r"""Ones with the dtype of ``input``."""
    def new_tensor(
        self, data: Any, dtype: _dtype | None = None, device: _device | builtins.str | None = None, requires_grad:
        builtins.bool = False, layout: Any = None, pin_memory: builtins.bool = False
    ) -> Tensor:
        r"""A copy of ``data`` with the dtype of ``input``."""
    def new_zeros(
        self, *args: Any, size: Sequence[builtins.int] | builtins.int | None = None, dtype: _dtype | None = None,
        device: _device | builtins.str | None = None, requires_grad: builtins.bool = False, layout: Any = None,
        pin_memory: builtins.bool = False
    ) -> Tensor:
        r"""Zeros with the dtype of ``input``."""
    def nextafter(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""The next floating-point number from ``input`` toward ``other``."""
    def nextafter_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`nextafter`."""
    @overload
    def nonzero(self) -> Tensor:
        r"""Where ``input`` is not zero."""
    @overload
    def nonzero(self, *, as_tuple: builtins.bool) -> Any:
        r"""Where ``input`` is not zero."""
    def nonzero_static(self, *, size: Sequence[builtins.int] | builtins.int, fill_value: Number = -1) -> Tensor:
        r"""The first ``size`` rows of :func:`nonzero`, filled up with ``fill_value`` where there are fewer."""
    def norm(
        self, p: Any = 'fro', dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False,
        dtype: _dtype | None = None
    ) -> Tensor:
        r"""Vector norm over ``dim``; the nuclear norm of matrices with ``p="nuc"``."""
    def normal_(self, mean: Number = 0.0, std: Number = 1.0, *, generator: Any | None = None) -> Tensor:
        r"""Fill with normal numbers of the given mean and standard deviation. Half of the variance of a complex number
        is in"""
    def not_equal(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Whether the elements differ; NaN differs from all."""
    def not_equal_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`ne`."""
    def orgqr(self, tau: Any) -> Tensor:
        r""":func:`linalg_householder_product`."""
    def ormqr(
        self, tau: Any, other: Tensor | Number, left: builtins.bool = True, transpose: builtins.bool = False, *, out:
        Any = None
    ) -> Tensor:
        r"""``Q other`` (``other Q`` where ``left`` is false) for the product ``Q`` of Householder reflectors, ``Q^H``
        where"""
    def outer(self, vec2: Tensor) -> Tensor:
        r"""``out[i, j] = input[i] * vec2[j]``."""
    def permute(self, *dims: Any) -> Tensor:
        r"""A view with dimensions in the order ``dims``."""
    def pin_memory(self, device: _device | builtins.str | None = None) -> Tensor:
        r"""``input``, which is on the CPU, in memory from which the accelerator copies without waiting: a copy, or
        itself"""
    def pinverse(self, rcond: Number = 1e-15) -> Tensor:
        r""":func:`linalg_pinv` with the older default of the tolerance."""
    def poisson(self, generator: Any | None = None, *, out: Any = None) -> Tensor:
        r"""Poisson numbers with the rates in ``input``, in its dtype."""
    def polygamma(self, n: Any) -> Tensor:
        r"""The derivative of order ``n`` of :func:`digamma`; see :func:`polygamma`."""
    def polygamma_(self, n: Any) -> Tensor:
        r"""In-place form of :func:`polygamma`."""
    def positive(self) -> Tensor:
        r"""``+input``: the tensor itself."""
    def pow(self, exponent: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input ** exponent``; either may be a number."""
    def pow_(self, exponent: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`pow`."""
    def power_(self, exponent: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`power`."""
    def power_of_half_(self) -> Tensor:
        r"""In-place form of :func:`power_of_half`."""
    def power_of_minus_half_(self) -> Tensor:
        r"""In-place form of :func:`power_of_minus_half`."""
    def power_of_minus_one_(self) -> Tensor:
        r"""In-place form of :func:`power_of_minus_one`."""
    def prelu(self, weight: Any) -> Tensor:
        r"""``input`` where positive, else ``weight * input``; ``weight`` is one number, or one per channel (dim 1)."""
    def prod(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype: _dtype
        | None = None, out: Any = None
    ) -> Tensor:
        r"""Product over ``dim`` (all dimensions by default)."""
    def psi_(self) -> Tensor:
        r"""In-place form of :func:`digamma`."""
    def put(self, index: Any, source: Any, accumulate: builtins.bool = False, *, out: Any = None) -> Tensor:
        r"""Write ``source`` at the positions ``index`` of ``input`` taken as one dimension, or add it there."""
    def put_(self, index: Any, source: Any, accumulate: builtins.bool = False) -> Tensor:
        r"""In-place form of :func:`put`."""
    def qr(self, some: builtins.bool = True) -> return_types.qr:
        r"""``input = Q R``, reduced unless ``some`` is false."""
    def quantile(
        self, q: Any, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *,
        interpolation: builtins.str = 'linear'
    ) -> Tensor:
        r"""The ``q``-th quantiles along ``dim`` (of all elements where None); several ``q`` lead the result's sizes."""
    def rad2deg(self, *, out: Any = None) -> Tensor:
        r"""Radians to degrees."""
    def rad2deg_(self) -> Tensor:
        r"""In-place form of :func:`rad2deg`."""
    def random_(self, from_: Any = None, to: Any = ..., *, generator: Any | None = None) -> Tensor:
        r"""Fill with uniform integers: ``random_()`` over the values of the dtype (of a float dtype, the integers it
        holds"""
    def ravel(self) -> Tensor:
        r"""All elements in one dimension."""
    def reciprocal(self, *, out: Any = None) -> Tensor:
        r"""``1 / input``."""
    def reciprocal_(self) -> Tensor:
        r"""In-place form of :func:`reciprocal`."""
    def record_stream(self, s: Any) -> Tensor:
        r"""Keep the memory of ``input``, once it is given back, from others until stream ``s`` has done what it has
        then."""
    def relu(self, *, out: Any = None) -> Tensor:
        r"""``max(input, 0)``."""
    def relu6_(self) -> Tensor:
        r"""In-place form of :func:`relu6`."""
    def relu_(self) -> Tensor:
        r"""In-place form of :func:`relu`."""
    def remainder(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input - other * floor(input / other)``, with the sign of ``other``: Python's ``%``."""
    def remainder_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`remainder`."""
    def renorm(self, p: Any, dim: builtins.int, maxnorm: Any) -> Tensor:
        r"""``input`` with each slice along ``dim`` scaled down, where its ``p``-norm is above ``maxnorm``, to that
        norm."""
    def renorm_(self, p: Any, dim: builtins.int, maxnorm: Any) -> Tensor:
        r"""In-place form of :func:`renorm`."""
    def repeat(self, *repeats: Any) -> Tensor:
        r"""The whole of ``input`` side by side ``repeats[i]`` times along dimension ``i``."""
    def repeat_interleave(
        self, repeats: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, *, output_size: Any = None
    ) -> Tensor:
        r"""Each element, or slice along ``dim``, repeated in place."""
    def replace_nonfinite_(self, nan: Any, posinf: Any, neginf: Any) -> Tensor:
        r"""In-place form of :func:`replace_nonfinite`."""
    def reshape(self, *shape: Any) -> Tensor:
        r"""The elements in row-major order with sizes ``shape`` (one may be -1): a view where strides allow, else a
        copy."""
    def reshape_as(self, other: Tensor | Number) -> Tensor:
        r""":func:`reshape` to the sizes of ``other``."""
    def resize(self, *sizes: Any) -> Tensor:
        r""":func:`resize_` out of place: a view with the given sizes on the same memory, which may not grow
        (deprecated)."""
    def resize_(
        self, *args: Any, size: Sequence[builtins.int] | builtins.int | None = None, memory_format: Any = None
    ) -> Tensor:
        r"""Change the sizes in place; elements are kept in memory order, new ones are uninitialised."""
    def resize_as(self, tensor: Tensor) -> Tensor:
        r""":func:`resize` to the sizes of ``tensor`` (deprecated)."""
    def resize_as_(self, the_template: Any, memory_format: Any = None) -> Tensor:
        r""":func:`resize_` to the sizes of ``the_template``, in its order of dimensions with ``preserve_format``."""
    def resize_as_sparse_(self, the_template: Any) -> Tensor:
        r"""Give the sparse tensor ``input`` the sizes of ``the_template``, which has the same layout."""
    def resolve_conj(self) -> Tensor:
        r"""``input``; of a conjugated view, a copy that holds what the view shows."""
    def resolve_neg(self) -> Tensor:
        r"""``input``; of the imaginary part of a conjugated view, a copy that holds what it shows."""
    def roll(
        self, shifts: Any, dims: Sequence[builtins.int] | builtins.int | None = None, *, out: Any = None
    ) -> Tensor:
        r"""The elements moved by ``shifts`` along ``dims``, those that fall off the end coming back at the start."""
    def rot90(self, k: Number = 1, dims: Sequence[builtins.int] | builtins.int = ...) -> Tensor:
        r"""A rotation by ``k`` quarter turns in the plane of two dimensions, from the first towards the second."""
    def round(self, *, decimals: Number = 0, out: Any = None) -> Tensor:
        r"""To the nearest integer, or the nearest multiple of ``10 ** -decimals``; halves to the even one."""
    def round_(self, *, decimals: Number = 0, out: Any = None) -> Tensor:
        r"""In-place form of :func:`round`."""
    def round_half_even_(self) -> Tensor:
        r"""In-place form of :func:`round_half_even`."""
    def rsqrt(self, *, out: Any = None) -> Tensor:
        r"""``1 / sqrt(input)``."""
    def rsqrt_(self) -> Tensor:
        r"""In-place form of :func:`rsqrt`."""
    def rsub(self, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
        r"""``other - alpha * input``."""
    def scatter(
        self, dim: builtins.int, index: Any, src: Tensor | Number | None = None, *, reduce: Any = None, value: Tensor |
        Number | None = None, out: Any = None
    ) -> Tensor:
        r"""Write ``src`` at ``index`` along ``dim``: ``input[index[i][j]][j] = src[i][j]`` for ``dim=0``."""
    def scatter_(
        self, dim: builtins.int, index: Any, src: Tensor | Number | None = None, *, reduce: Any = None, value: Tensor |
        Number | None = None
    ) -> Tensor:
        r"""In-place form of :func:`scatter`."""
    def scatter_add(self, dim: builtins.int, index: Any, src: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""Add ``src`` at ``index`` along ``dim``, in the order of ``src``, whatever the number of threads."""
    def scatter_add_(self, dim: builtins.int, index: Any, src: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`scatter_add`."""
    def scatter_reduce(
        self, dim: builtins.int, index: Any, src: Tensor | Number, reduce: Any, *, include_self: builtins.bool = True,
        out: Any = None
    ) -> Tensor:
        r"""Combine ``src`` into ``input`` at ``index`` along ``dim``."""
    def scatter_reduce_(
        self, dim: builtins.int, index: Any, src: Tensor | Number, reduce: Any, *, include_self: builtins.bool = True
    ) -> Tensor:
        r"""In-place form of :func:`scatter_reduce`."""
    def select(self, dim: builtins.int, index: Any) -> Tensor:
        r"""A view of the elements at ``index`` along ``dim``, without that dimension."""
    def select_scatter(self, src: Tensor | Number, dim: builtins.int, index: Any) -> Tensor:
        r"""A copy of ``input`` with ``src`` at ``index`` along ``dim``."""
    def set_(
        self, source: Any = None, storage_offset: Number = 0, size: Sequence[builtins.int] | builtins.int | None = None,
        stride: Any = None
    ) -> Tensor:
        r"""Make ``input`` a window on the memory of ``source``."""
    def sgn(self, *, out: Any = None) -> Tensor:
        r"""``input / |input|``, 0 at 0."""
    def sgn_(self) -> Tensor:
        r"""In-place form of :func:`sgn`."""
    def share_memory_(self) -> Tensor:
        r"""Move the memory of ``input`` (and of all views of it) to where other processes can see it; gives
        ``input``."""
    def short(self, memory_format: Any = None) -> Tensor:
        r"""``input`` as int16."""
    def sigmoid(self, *, out: Any = None) -> Tensor:
        r"""``1 / (1 + exp(-input))``."""
    def sigmoid_(self) -> Tensor:
        r"""In-place form of :func:`sigmoid`."""
    def sign(self, *, out: Any = None) -> Tensor:
        r"""-1, 0 or 1. For complex numbers see :func:`sgn`."""
    def sign_(self) -> Tensor:
        r"""In-place form of :func:`sign`."""
    def signbit(self, *, out: Any = None) -> Tensor:
        r"""Whether the sign bit is set: of negative numbers and of -0.0."""
    def silu_(self) -> Tensor:
        r"""In-place form of :func:`silu`."""
    def sin(self, *, out: Any = None) -> Tensor:
        r"""The sine of an angle in radians."""
    def sin_(self) -> Tensor:
        r"""In-place form of :func:`sin`."""
    def sinc(self, *, out: Any = None) -> Tensor:
        r"""``sin(pi x) / (pi x)``, 1 at 0."""
    def sinc_(self) -> Tensor:
        r"""In-place form of :func:`sinc`."""
    def sinh(self, *, out: Any = None) -> Tensor:
        r"""The hyperbolic sine."""
    def sinh_(self) -> Tensor:
        r"""In-place form of :func:`sinh`."""
    def slice_inverse(
        self, src: Tensor | Number, dim: builtins.int = 0, start: Any = None, end: Any = None, step: Number = 1
    ) -> Any:
        r"""What ``input``, a slice of a tensor laid out as ``src``, was cut out of: a view with the sizes of
        ``src``."""
    def slice_scatter(
        self, src: Tensor | Number, dim: builtins.int = 0, start: Any = None, end: Any = None, step: Number = 1
    ) -> Tensor:
        r"""A copy of ``input`` with ``src`` in a slice along ``dim``."""
    def slogdet(self) -> return_types.slogdet:
        r""":func:`linalg_slogdet`."""
    def smm(self, mat: Any) -> Tensor:
        r"""``input @ mat`` as a sparse tensor."""
    def softmax(self, dim: builtins.int, dtype: _dtype | None = None, *, out: Any = None) -> Tensor:
        r"""``exp(input) / sum(exp(input))`` along ``dim``, without overflow."""
    def solve(*args: Any, **kwargs: Any) -> Tensor:
        r"""Removed from PyTorch: use linalg.solve(A, B), whose arguments are in the other order, or linalg.lu_factor
        for the factors. Calling it is a RuntimeError."""
    def sort(
        self, dim: builtins.int = -1, descending: builtins.bool = False, stable: Any = None, *, out: Any = None
    ) -> return_types.sort:
        r"""Sort along a dimension. Always stable; NaN counts as larger than everything."""
    def sparse_mask(self, mask: Tensor) -> Tensor:
        r"""The elements of ``input`` at the places that the sparse tensor ``mask`` has, as a sparse tensor."""
    def split(
        self, split_size_or_sections: Any = None, dim: builtins.int = 0, *, split_size: Any = None
    ) -> tuple[Tensor, ...]:
        r"""Views of consecutive pieces along ``dim``: of one size (the last may be smaller), or of the sizes in a
        list."""
    def sqrt(self, *, out: Any = None) -> Tensor:
        r"""The square root; NaN of negative numbers."""
    def sqrt_(self) -> Tensor:
        r"""In-place form of :func:`sqrt`."""
    def square(self, *, out: Any = None) -> Tensor:
        r"""``input * input``; of bools, as whole numbers."""
    def square_(self, *, out: Any = None) -> Tensor:
        r"""In-place form of :func:`square`."""
    def squeeze(self, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        r"""A view without the dimensions of size 1 (all of them, or those in ``dim``)."""
    def sspaddmm(self, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        r"""``beta * input + alpha * (mat1 @ mat2)`` of sparse ``input`` and ``mat1`` and a dense ``mat2``, as a
        sparse"""
    def std(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, unbiased: Any = None, keepdim: builtins.bool =
        False, *, correction: Any = None, out: Any = None
    ) -> Tensor:
        r"""Standard deviation: the square root of :func:`var`."""
    def stft(
        self, n_fft: Any, hop_length: Any = None, win_length: Any = None, window: Any = None, center: builtins.bool =
        True, pad_mode: builtins.str = 'reflect', normalized: builtins.bool = False, onesided: Any = None,
        return_complex: Any = None, align_to_window: Any = None
    ) -> Tensor:
        r"""Fourier transforms of overlapping pieces of a signal."""
    def sub(self, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
        r"""``input - alpha * other``. For bools use ``^`` or :func:`logical_xor`."""
    def sub_(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        r"""In-place form of :func:`sub`."""
    def subtract(self, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
        r"""``input - alpha * other``. For bools use ``^`` or :func:`logical_xor`."""
    def subtract_(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        r"""In-place form of :func:`sub`."""
    def sum(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype: _dtype
        | None = None, out: Any = None
    ) -> Tensor:
        r"""Sum over ``dim`` (all dimensions by default), in blocks, so that long sums stay accurate."""
    def sum_to_size(self, *args: Any, size: Sequence[builtins.int] | builtins.int | None = None) -> Tensor:
        r"""Sum over dimensions so that the result has sizes ``size``: the adjoint of :func:`expand`."""
    def svd(self, some: builtins.bool = True, compute_uv: builtins.bool = True) -> return_types.svd:
        r"""``input = U diag(S) V^H``; the older form, which gives ``V``. Zeros for both where ``compute_uv`` is
        false."""
    def swapaxes(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        r"""A view with dimensions ``dim0`` and ``dim1`` swapped."""
    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        r"""A view with dimensions ``dim0`` and ``dim1`` swapped."""
    def symeig(*args: Any, **kwargs: Any) -> Tensor:
        r"""Removed from PyTorch: use linalg.eigh(A, UPLO='L' or 'U') or linalg.eigvalsh. Calling it is a
        RuntimeError."""
    def t(self) -> Tensor:
        r"""The transpose of a matrix; a vector or a scalar is given back."""
    def take(self, index: Any, *, out: Any = None) -> Tensor:
        r"""The elements of ``input``, taken as one dimension, at ``index``; the result has the shape of ``index``."""
    def take_along_dim(self, indices: Any, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        r""":func:`gather` with ``indices`` broadcast against ``input``; without ``dim`` both are taken as one
        dimension."""
    def tan(self, *, out: Any = None) -> Tensor:
        r"""The tangent of an angle in radians."""
    def tan_(self) -> Tensor:
        r"""In-place form of :func:`tan`."""
    def tanh(self, *, out: Any = None) -> Tensor:
        r"""The hyperbolic tangent."""
    def tanh_(self) -> Tensor:
        r"""In-place form of :func:`tanh`."""
    def tensor_split(self, indices_or_sections: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        r"""Views of pieces along ``dim``: a number of near-equal ones, or cut before the given positions."""
    def threshold_(self, threshold: Any, value: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`threshold`."""
    def tile(self, *args: Any, dims: Sequence[builtins.int] | builtins.int | None = None) -> Tensor:
        r""":func:`repeat`, with missing leading counts taken as one."""
    def times_itself_(self) -> Tensor:
        r"""In-place form of :func:`times_itself`."""
    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        r"""``input`` with another dtype, device or memory format; itself where nothing changes and ``copy`` is
        false."""
    def to_dense(self, dtype: _dtype | None = None, *, masked_grad: Any = None) -> Any:
        r"""``input``, which is dense already (or in another dtype)."""
    def to_sparse(
        self, sparse_dim: Any = None, *, layout: Any = None, blocksize: Any = None, dense_dim: Any = None
    ) -> Tensor:
        r"""``input`` as a sparse tensor of its elements that are not 0."""
    def to_sparse_bsc(self, blocksize: Any, dense_dim: Any = None) -> Tensor:
        r"""Matrices compressed by columns of blocks, of the sizes ``blocksize``, without blocks of zeros."""
    def to_sparse_bsr(self, blocksize: Any, dense_dim: Any = None) -> Tensor:
        r"""Matrices compressed by rows of blocks, of the sizes ``blocksize``, without blocks of zeros."""
    def to_sparse_coo(self) -> Tensor:
        r"""``input`` as a sparse tensor in coordinate form."""
    def to_sparse_csc(self, dense_dim: Any = None) -> Tensor:
        r"""Matrices compressed by columns, without their elements that are 0."""
    def to_sparse_csr(self, dense_dim: Any = None) -> Tensor:
        r"""Matrices compressed by rows, without their elements that are 0."""
    def topk(
        self, k: Any, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True, *, out: Any =
        None
    ) -> return_types.topk:
        r"""The ``k`` largest (or smallest) elements along a dimension, in sorted order; of equal ones the first come
        first."""
    def trace(self) -> Tensor:
        r"""The sum of the diagonal of a matrix."""
    def transpose(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        r"""A view with dimensions ``dim0`` and ``dim1`` swapped."""
    def triangular_solve(
        self, A: Any, upper: builtins.bool = True, transpose: builtins.bool = False, unitriangular: builtins.bool =
        False
    ) -> return_types.triangular_solve:
        r"""The older spelling of :func:`linalg_solve_triangular`, which gives a copy of ``A`` as well."""
    def tril(self, diagonal: Number = 0, *, out: Any = None) -> Tensor:
        r"""The lower triangle of a matrix or batch of matrices, zero elsewhere; ``diagonal`` moves its edge up."""
    def tril_(self, diagonal: Number = 0) -> Tensor:
        r"""In-place form of :func:`tril`."""
    def triu(self, diagonal: Number = 0, *, out: Any = None) -> Tensor:
        r"""The upper triangle of a matrix or batch of matrices, zero elsewhere; ``diagonal`` moves its edge up."""
    def triu_(self, diagonal: Number = 0) -> Tensor:
        r"""In-place form of :func:`triu`."""
    def true_divide(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input / other``; whole numbers give the default floating-point dtype."""
    def true_divide_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`true_divide`."""
    def trunc(self, *, out: Any = None) -> Tensor:
        r"""Rounded toward zero."""
    def trunc_(self) -> Tensor:
        r"""In-place form of :func:`trunc`."""
    def trunc_divide(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``trunc(input / other)``: rounded toward zero, C's ``/`` of whole numbers."""
    def trunc_divide_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`trunc_divide`."""
    def type(self, dtype: _dtype | None = None, non_blocking: builtins.bool = False, **kwargs: Any) -> Any:
        r"""The type's name (``"torch.FloatTensor"``), or ``input`` converted to ``dtype``."""
    def type_as(self, other: Tensor | Number) -> Tensor:
        r"""``input`` in the dtype of ``other``, and on its device."""
    def unbind(self, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        r"""The slices along ``dim``, as a tuple of views without that dimension."""
    def unflatten(self, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
        r"""Dimension ``dim`` split into ``sizes`` (one may be -1)."""
    def unfold(self, dimension: Any, size: Sequence[builtins.int] | builtins.int, step: Any) -> Tensor:
        r"""A view of windows of ``size`` elements every ``step`` along ``dimension``; the window is the last
        dimension."""
    def uniform_(self, from_: Number = 0.0, to: Number = 1.0, *, generator: Any | None = None) -> Tensor:
        r"""Fill with uniform numbers in [``from``, ``to``)."""
    def unique(
        self, sorted: builtins.bool = True, return_inverse: builtins.bool = False, return_counts: builtins.bool = False,
        dim: builtins.int | Sequence[builtins.int] | None = None
    ) -> Any:
        r"""The distinct values in ascending order."""
    def unique_consecutive(
        self, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, dim: builtins.int |
        Sequence[builtins.int] | None = None
    ) -> Any:
        r"""One element of each run of equal ones; arguments as for :func:`unique`."""
    def unsafe_chunk(self, chunks: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        r""":func:`chunk`, whose pieces are no views to the graph: they may be written in place independently."""
    def unsafe_split(self, split_size: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        r""":func:`split`, whose pieces are no views to the graph: they may be written in place independently."""
    def unsafe_split_with_sizes(self, split_sizes: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        r""":func:`split_with_sizes`, whose pieces are no views to the graph: they may be written in place
        independently."""
    def unsqueeze(self, dim: builtins.int) -> Tensor:
        r"""A view with a dimension of size 1 inserted at ``dim``."""
    def var(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, unbiased: Any = None, keepdim: builtins.bool =
        False, *, correction: Any = None, out: Any = None
    ) -> Tensor:
        r"""Variance over ``dim`` (all dimensions by default): squared deviations over ``n - correction``."""
    def vdot(self, other: Tensor | Number) -> Tensor:
        r"""Inner product of two vectors, the first conjugated."""
    def view_(self, size: Sequence[builtins.int] | builtins.int | None = None, dtype: _dtype | None = None) -> Tensor:
        r"""A view with other sizes (one may be -1), or of another dtype."""
    def view_as(self, other: Tensor | Number) -> Tensor:
        r"""A view with the sizes of ``other``."""
    def vsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        r"""Views of pieces along dimension 0; see :func:`tensor_split`."""
    def xlogy(self, other: Tensor | Number, *, out: Any = None) -> Tensor:
        r"""``input * log(other)``, 0 where ``input`` is 0 and ``other`` is not NaN."""
    def xlogy_(self, other: Tensor | Number) -> Tensor:
        r"""In-place form of :func:`xlogy`."""
    def xpu(
        self, device: _device | builtins.str | None = None, non_blocking: builtins.bool = False, memory_format: Any =
        None
    ) -> Tensor:
        r"""``input`` on an XPU."""
    def zero_(self) -> Tensor:
        r"""In-place form of :func:`zero`."""

def abs(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The absolute value; of a complex number, a real one."""
def abs_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`abs`."""
def absolute(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The absolute value; of a complex number, a real one."""
def acos(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The arc cosine in radians; NaN outside [-1, 1]."""
def acos_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`acos`."""
def acosh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse hyperbolic cosine; NaN below 1."""
def acosh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`acosh`."""
def add(input: Tensor, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
    r"""``input + alpha * other``; of bools, whether either holds."""
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None
) -> Tensor:
    r"""``beta * input + alpha * sum_b(batch1[b] @ batch2[b])``: one product with the batch folded into the sum."""
def addcdiv(input: Tensor, tensor1: Any, tensor2: Any, *, value: Tensor | Number = 1, out: Any = None) -> Tensor:
    r"""``input + value * tensor1 / tensor2``, of floating-point tensors."""
def addcmul(input: Tensor, tensor1: Any, tensor2: Any, *, value: Tensor | Number = 1, out: Any = None) -> Tensor:
    r"""``input + value * tensor1 * tensor2``."""
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None) -> Tensor:
    r"""``beta * input + alpha * (mat1 @ mat2)``; ``input`` broadcasts to ``[m, n]``."""
def addmv(input: Tensor, mat: Any, vec: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None) -> Tensor:
    r"""``beta * input + alpha * (mat @ vec)``; ``input`` broadcasts to ``[m]``."""
def addmv_(input: Tensor, mat: Any, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    r"""In-place form of :func:`addmv`."""
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None) -> Tensor:
    r"""``beta * input + alpha * outer(vec1, vec2)``."""
def adjoint(input: Tensor) -> Tensor:
    r"""The conjugate transpose of the last two dimensions."""
def alias_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`alias` views."""
def all(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""Whether all elements along ``dim`` are true (not 0). The result is bool, or uint8 for uint8."""
def allclose(
    input: Tensor, other: Tensor | Number, rtol: Number = 1e-05, atol: Number = 1e-08, equal_nan: builtins.bool = False
) -> builtins.bool:
    r"""Whether all elements are close; see :func:`isclose`. Gives a Python bool."""
def alpha_dropout(input: Tensor, p: Any, train: Any) -> Tensor:
    r"""If ``train``, dropout that keeps mean and variance of selu's output."""
def alpha_dropout_(input: Tensor, p: Any, train: Any) -> Tensor:
    r"""In-place form of :func:`alpha_dropout`."""
def amax(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""The largest element over ``dim`` (all dimensions by default); NaN where there is one."""
def amin(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""The smallest element over ``dim`` (all dimensions by default); NaN where there is one."""
def aminmax(
    input: Tensor, *, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, out: Any
    = None
) -> return_types.aminmax:
    r"""The smallest and the largest element over ``dim`` (an int; all of the tensor by default), as ``(min, max)``."""
def angle(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The argument of a complex number in radians; of a real one 0, or pi where it is negative."""
def any(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""Whether any element along ``dim`` is true (not 0). The result is bool, or uint8 for uint8."""
def arange(
    *args: Any, out: Any = None, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None
    = None, requires_grad: builtins.bool = False, pin_memory: builtins.bool = False, **bounds: Any
) -> Tensor:
    r"""Numbers from ``start`` (0) to before ``end``, ``step`` (1) apart: ``arange(end)``, ``arange(start, end,
    step)``."""
def arccos(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The arc cosine in radians; NaN outside [-1, 1]."""
def arccos_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`acos`."""
def arccosh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse hyperbolic cosine; NaN below 1."""
def arccosh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`acosh`."""
def arcsin(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The arc sine in radians; NaN outside [-1, 1]."""
def arcsin_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`asin`."""
def arcsinh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse hyperbolic sine."""
def arcsinh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`asinh`."""
def arctan(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The arc tangent in radians."""
def arctan2(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The angle in radians of the point with ordinate ``input`` and abscissa ``other``, in [-pi, pi]."""
def arctan_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`atan`."""
def arctanh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse hyperbolic tangent; NaN outside [-1, 1]."""
def arctanh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`atanh`."""
def argmax(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""Position of the first largest element along ``dim``; in the flattened tensor by default. NaN is the largest."""
def argmin(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""Position of the first smallest element along ``dim``; in the flattened tensor by default. NaN is the
    smallest."""
def argsort(
    input: Tensor, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""The indices that sort a dimension; see :func:`sort`."""
def argwhere(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Coordinates of the elements that are not zero, one row each, in row-major order."""
def as_strided(
    input: Tensor, size: Sequence[builtins.int] | builtins.int, stride: Any, storage_offset: Any = None
) -> Tensor:
    r"""A view with any sizes and strides (in elements, none of them negative) on the storage of ``input``."""
def as_strided_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`as_strided` views."""
def as_strided_scatter(
    input: Tensor, src: Tensor | Number, size: Sequence[builtins.int] | builtins.int, stride: Any, storage_offset: Any =
    None, *, out: Any = None
) -> Tensor:
    r"""A copy of ``input`` with ``src`` where :func:`as_strided` with the same arguments would look."""
def asin(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The arc sine in radians; NaN outside [-1, 1]."""
def asin_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`asin`."""
def asinh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse hyperbolic sine."""
def asinh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`asinh`."""
def atan(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The arc tangent in radians."""
def atan2(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The angle in radians of the point with ordinate ``input`` and abscissa ``other``, in [-pi, pi]."""
def atan_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`atan`."""
def atanh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse hyperbolic tangent; NaN outside [-1, 1]."""
def atanh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`atanh`."""
def atleast_1d(*tensors: Any) -> Any:
    r"""Scalars as tensors of one dimension; others as they are."""
def atleast_2d(*tensors: Any) -> Any:
    r"""Tensors of fewer than two dimensions as rows; others as they are."""
def atleast_3d(*tensors: Any) -> Any:
    r"""Tensors of fewer than three dimensions with dimensions of size 1 added; others as they are."""
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Any = None
) -> Tensor:
    r"""``beta * input + alpha * (batch1 @ batch2)``, batch by batch; ``input`` broadcasts to ``[b, m, n]``."""
def bartlett_window(
    window_length: Any, periodic: builtins.bool = True, *extra: Any, dtype: _dtype | None = None, layout: Any = None,
    device: _device | builtins.str | None = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool =
    False, **options: Any
) -> Tensor:
    r"""Bartlett's triangular window. Periodic by default: its period is its length, rather than one point less."""
def bernoulli(input: Tensor, p: Any = None, *, generator: Any | None = None, out: Any = None) -> Tensor:
    r"""Ones and zeros: a one with the probability in ``input`` at that place (or everywhere with ``p``)."""
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    r"""``y[..., o] = input1[..., i] weight[o, i, j] input2[..., j] + bias[o]``."""
def bincount(input: Tensor, weights: Any = None, minlength: Number = 0) -> Tensor:
    r"""How often each non-negative integer occurs in a vector, or the sum of its ``weights``."""
def binomial(count: Any, prob: Any, generator: Any | None = None, *, out: Any = None) -> Tensor:
    r"""Numbers of successes in ``count`` trials, of probability ``prob`` each."""
def bitwise_and(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input & other``."""
def bitwise_left_shift(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input << other``; 0 where ``other`` is negative or not below the width."""
def bitwise_not(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``~input``: the complement of each bit, of bools the opposite."""
def bitwise_or(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input | other``."""
def bitwise_right_shift(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input >> other``, arithmetic for signed dtypes; a shift beyond the width leaves only the sign."""
def bitwise_xor(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input ^ other``."""
def blackman_window(
    window_length: Any, periodic: builtins.bool = True, *extra: Any, dtype: _dtype | None = None, layout: Any = None,
    device: _device | builtins.str | None = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool =
    False, **options: Any
) -> Tensor:
    r"""Blackman's window. Periodic by default: its period is its length, rather than one point less."""
def block_diag(*tensors: Any) -> Tensor:
    r"""A matrix with the given matrices along its diagonal and zeros elsewhere; vectors are rows."""
def bmm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor:
    r"""Products of matrices, one per batch: ``[b, m, k] @ [b, k, n]``."""
def broadcast_shapes(*shapes: Any) -> Size:
    r"""The shape to which ``shapes`` broadcast."""
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    r"""Every tensor expanded to their common shape."""
def broadcast_to(input: Tensor, size: Sequence[builtins.int] | builtins.int) -> Tensor:
    r"""``input`` expanded to ``size``."""
def bucketize(
    input: Tensor, boundaries: Any, *, out_int32: builtins.bool = False, right: builtins.bool = False, out: Any = None
) -> Tensor:
    r"""The bucket of each value: :func:`searchsorted` in a vector of boundaries."""
def cartesian_prod(*tensors: Any) -> Tensor:
    r"""All choices of one element of each vector, as rows."""
def cat(tensors: Sequence[Tensor], dim: builtins.int = 0, *, out: Any = None) -> Tensor:
    r"""Join tensors along a dimension that they have."""
def cdist(x1: Any, x2: Any, p: Any = 2.0, compute_mode: builtins.str = 'use_mm_for_euclid_dist_if_necessary') -> Tensor:
    r"""Distances in the p-norm between the rows of ``x1`` ``(..., P, M)`` and ``x2`` ``(..., R, M)``: ``(..., P,
    R)``."""
def ceil(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The smallest integer not below."""
def ceil_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`ceil`."""
def celu(input: Tensor, alpha: Number = 1.0) -> Tensor:
    r"""Continuously differentiable :func:`elu` (Barron 2017): below 0, ``alpha * (exp(input / alpha) - 1)``."""
def celu_(input: Tensor, alpha: Number = 1.0) -> Tensor:
    r"""In-place form of :func:`celu`."""
def chain_matmul(*matrices: Any) -> Tensor:
    r"""Product of matrices in the order that takes the fewest multiplications."""
def cholesky(input: Tensor, upper: builtins.bool = False, *, out: Any = None) -> Tensor:
    r"""The Cholesky factor of positive definite matrices."""
def cholesky_inverse(L: Any, upper: builtins.bool = False, *, out: Any = None) -> Tensor:
    r"""The inverse ``(..., n, n)`` of the matrix of which ``L`` is the Cholesky factor."""
def cholesky_solve(B: Any, L: Any, upper: builtins.bool = False, *, out: Any = None) -> Tensor:
    r"""``X`` with ``A X = B`` for the matrix ``A`` of which ``L`` is the Cholesky factor."""
def chunk(input: Tensor, chunks: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    r"""At most ``chunks`` views of equal size along ``dim`` (the last may be smaller)."""
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
    r"""``input`` held between ``min`` and ``max``: numbers, tensors that broadcast, or None for no bound."""
def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    r"""In-place form of :func:`clamp`."""
def clamp_max(input: Tensor, max: Any, *, out: Any = None) -> Tensor:
    r"""``input``, at most ``max``."""
def clamp_max_(input: Tensor, max: Any) -> Tensor:
    r"""In-place form of :func:`clamp_max`."""
def clamp_min(input: Tensor, min: Any, *, out: Any = None) -> Tensor:
    r"""``input``, at least ``min``."""
def clamp_min_(input: Tensor, min: Any) -> Tensor:
    r"""In-place form of :func:`clamp_min`."""
def clip(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
    r"""``input`` held between ``min`` and ``max``: numbers, tensors that broadcast, or None for no bound."""
def clip_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    r"""In-place form of :func:`clamp`."""
def clone(input: Tensor, *, memory_format: Any = ...) -> Tensor:
    r"""A copy in memory of its own."""
def column_stack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    r"""Join along dimension 1; vectors and scalars are columns."""
def combinations(input: Tensor, r: Number = 2, with_replacement: builtins.bool = False) -> Tensor:
    r"""All ways to choose ``r`` elements of a vector, in order of position, as rows."""
def complex(real: Any, imag: Any, *, out: Any = None) -> Tensor:
    r"""The complex tensor of two floating-point tensors of one dtype."""
def concat(tensors: Sequence[Tensor], dim: builtins.int = 0, *, out: Any = None) -> Tensor:
    r"""Join tensors along a dimension that they have."""
def concatenate(tensors: Sequence[Tensor], dim: builtins.int = 0, *, out: Any = None) -> Tensor:
    r"""Join tensors along a dimension that they have."""
def conj(input: Tensor) -> Tensor:
    r"""The complex conjugate, as a view of the same memory; a real tensor is given back as it is."""
def conj_physical(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The complex conjugate, computed; a real tensor is given back as it is."""
def conj_physical_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`conj_physical`."""
def constant_pad_nd(input: Tensor, pad: Any, value: Tensor | Number = 0, *, out: Any = None) -> Tensor:
    r"""``input`` with ``value`` around it: ``pad`` is what goes before and after the last dimension, then the one"""
def conv1d(
    input: Tensor, weight: Any, bias: Any = None, stride: Number = 1, padding: Number = 0, dilation: Number = 1, groups:
    Number = 1, *, out: Any = None
) -> Tensor:
    r"""Cross-correlation: every output is a weighted sum of a window of the input."""
def conv2d(
    input: Tensor, weight: Any, bias: Any = None, stride: Number = 1, padding: Number = 0, dilation: Number = 1, groups:
    Number = 1, *, out: Any = None
) -> Tensor:
    r"""Cross-correlation: every output is a weighted sum of a window of the input."""
def conv3d(
    input: Tensor, weight: Any, bias: Any = None, stride: Number = 1, padding: Number = 0, dilation: Number = 1, groups:
    Number = 1, *, out: Any = None
) -> Tensor:
    r"""Cross-correlation: every output is a weighted sum of a window of the input."""
def conv_tbc(input: Tensor, weight: Any, bias: Any, pad: Number = 0) -> Tensor:
    r"""One-dimensional convolution of ``[time, batch, channels]`` with ``weight [taps, in, out]``."""
def conv_transpose1d(
    input: Tensor, weight: Any, bias: Any = None, stride: Number = 1, padding: Number = 0, output_padding: Number = 0,
    groups: Number = 1, dilation: Number = 1, *, out: Any = None
) -> Tensor:
    r"""Transposed convolution: the gradient of a convolution with respect to its input, as a layer that enlarges."""
def conv_transpose2d(
    input: Tensor, weight: Any, bias: Any = None, stride: Number = 1, padding: Number = 0, output_padding: Number = 0,
    groups: Number = 1, dilation: Number = 1, *, out: Any = None
) -> Tensor:
    r"""Transposed convolution: the gradient of a convolution with respect to its input, as a layer that enlarges."""
def conv_transpose3d(
    input: Tensor, weight: Any, bias: Any = None, stride: Number = 1, padding: Number = 0, output_padding: Number = 0,
    groups: Number = 1, dilation: Number = 1, *, out: Any = None
) -> Tensor:
    r"""Transposed convolution: the gradient of a convolution with respect to its input, as a layer that enlarges."""
def copysign(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The size of ``input`` with the sign of ``other``, -0.0 and NaN included."""
def corrcoef(input: Tensor) -> Tensor:
    r"""The matrix of Pearson's correlation coefficients of variables (rows)."""
def cos(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The cosine of an angle in radians."""
def cos_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`cos`."""
def cosh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The hyperbolic cosine."""
def cosh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`cosh`."""
def count_nonzero(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    r"""The number of elements along ``dim`` that are not 0, as int64."""
def cov(input: Tensor, *, correction: Number = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    r"""The covariance matrix of variables (rows) observed in columns."""
def cross(
    input: Tensor, other: Tensor | Number, dim: builtins.int | Sequence[builtins.int] | None = None, *, out: Any = None
) -> Tensor:
    r"""The cross product of vectors of three elements along ``dim``: by default the first dimension of that size."""
def cummax(input: Tensor, dim: builtins.int, *, out: Any = None) -> return_types.cummax:
    r"""Running maximum along ``dim`` and the position of its latest occurrence; NaN once there was one."""
def cummin(input: Tensor, dim: builtins.int, *, out: Any = None) -> return_types.cummin:
    r"""Running minimum along ``dim`` and the position of its latest occurrence; NaN once there was one."""
def cumprod(input: Tensor, dim: builtins.int, *, dtype: _dtype | None = None, out: Any = None) -> Tensor:
    r"""Running product along ``dim``. Integers and bools are multiplied as int64."""
def cumsum(input: Tensor, dim: builtins.int, *, dtype: _dtype | None = None, out: Any = None) -> Tensor:
    r"""Running sum along ``dim``. Integers and bools are summed as int64, float32 with the exactness of float64."""
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Number = 1, dim: builtins.int = -1) -> Tensor:
    r"""Running integral of ``y`` along ``dim`` by the trapezoidal rule, at points ``x`` or ``dx`` apart."""
def deg2rad(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Degrees to radians."""
def deg2rad_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`deg2rad`."""
def det(A: Any, *, out: Any = None) -> Tensor:
    r"""The determinant ``(...)`` of square matrices ``(..., n, n)``."""
def detach(input: Tensor) -> Tensor:
    r"""A view of the memory of ``input`` that is not part of the graph."""
def detach_(input: Tensor) -> Tensor:
    r"""Take ``input`` out of the graph."""
def detach_copy(input: Tensor) -> Tensor:
    r"""A copy outside the graph."""
def diag(input: Tensor, diagonal: Number = 0, *, out: Any = None) -> Tensor:
    r"""A matrix with a vector on its diagonal, or the diagonal of a matrix."""
def diag_embed(input: Tensor, offset: Number = 0, dim1: builtins.int = -2, dim2: Number = -1) -> Tensor:
    r"""Matrices, in dimensions ``dim1`` and ``dim2``, with the last dimension of ``input`` on a diagonal."""
def diagflat(input: Tensor, offset: Number = 0) -> Tensor:
    r"""A matrix with the elements of ``input`` on its diagonal."""
def diagonal(input: Tensor, offset: Number = 0, dim1: builtins.int = 0, dim2: Number = 1) -> Tensor:
    r"""A view of the diagonal of dimensions ``dim1`` and ``dim2``, as the last dimension."""
def diagonal_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`diagonal` views."""
def diagonal_scatter(
    input: Tensor, src: Tensor | Number, offset: Number = 0, dim1: builtins.int = 0, dim2: Number = 1, *, out: Any =
    None
) -> Tensor:
    r"""A copy of ``input`` with ``src`` on a diagonal."""
def diff(
    input: Tensor, n: Number = 1, dim: builtins.int = -1, prepend: Any = None, append: Any = None, *, out: Any = None
) -> Tensor:
    r"""The ``n``-th difference along ``dim``: ``input[i + 1] - input[i]``, ``n`` times."""
def digamma(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The derivative of :func:`lgamma`."""
def dist(input: Tensor, other: Tensor | Number, p: Any = 2) -> Tensor:
    r"""The ``p``-norm of ``input - other``."""
def div(input: Tensor, other: Tensor | Number, *, rounding_mode: Any = None, out: Any = None) -> Tensor:
    r"""``input / other``."""
def divide(input: Tensor, other: Tensor | Number, *, rounding_mode: Any = None, out: Any = None) -> Tensor:
    r"""``input / other``."""
def dot(input: Tensor, tensor: Tensor, *, out: Any = None) -> Tensor:
    r"""Inner product of two vectors (no conjugate)."""
def dropout(input: Tensor, p: Any, train: Any) -> Tensor:
    r"""Zero each element with probability ``p`` and divide the others by ``1 - p``, if ``train``."""
def dropout_(input: Tensor, p: Any, train: Any) -> Tensor:
    r"""In-place form of :func:`dropout`."""
def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    r"""Views of pieces along dimension 2; see :func:`tensor_split`."""
def dstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    r"""Join along dimension 2; see :func:`atleast_3d`."""
def eig(*args: Any, **kwargs: Any) -> Tensor:
    r"""Removed from PyTorch: use linalg.eig or linalg.eigvals, which are complex. Calling it is a RuntimeError."""
def einsum(*args: Any) -> Tensor:
    r"""Sum of products of elements by the Einstein convention."""
def embedding(
    weight: Any, indices: Any, padding_idx: Number = -1, scale_grad_by_freq: builtins.bool = False, sparse:
    builtins.bool = False, *, out: Any = None
) -> Tensor:
    r"""Rows of ``weight`` at ``indices``."""
def embedding_renorm_(weight: Any, indices: Any, max_norm: Any, norm_type: Number = 2.0) -> Tensor:
    r"""Scale down, in place, the rows at ``indices`` whose norm is above ``max_norm``."""
def empty(
    *args: Any, size: Sequence[builtins.int] | builtins.int | None = None, out: Any = None, dtype: _dtype | None = None,
    layout: Any = None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory:
    builtins.bool = False, memory_format: Any = None
) -> Tensor:
    r"""A tensor of the given sizes with undefined elements."""
def empty_like(
    input: Tensor, *, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, pin_memory: builtins.bool = False, memory_format: Any = ...
) -> Tensor:
    r"""Undefined elements, in the sizes and dtype of ``input``."""
def empty_permuted(
    size: Sequence[builtins.int] | builtins.int, physical_layout: Any, *, dtype: _dtype | None = None, layout: Any =
    None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory: builtins.bool
    = False
) -> Tensor:
    r"""A tensor with undefined elements whose dimensions lie in memory in the order ``physical_layout``."""
def empty_strided(
    size: Sequence[builtins.int] | builtins.int, stride: Any, *, dtype: _dtype | None = None, layout: Any = None,
    device: _device | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory: builtins.bool =
    False
) -> Tensor:
    r"""A tensor of the given sizes and strides (in elements) with undefined elements."""
def eq(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether the elements are equal; NaN equals nothing."""
def equal(input: Tensor, other: Tensor | Number) -> builtins.bool:
    r"""Whether the tensors have the same shape and elements. Gives a Python bool."""
def erf(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t * t)`` from 0 to ``input``."""
def erf_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`erf`."""
def erfc(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``1 - erf(input)``, accurate in the tail."""
def erfc_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`erfc`."""
def erfinv(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse of :func:`erf`; infinite at -1 and 1."""
def exp(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``e ** input``."""
def exp2(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``2 ** input``."""
def exp2_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`exp2`."""
def exp_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`exp`."""
def expand_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`expand` views."""
def expm1(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``e ** input - 1``, exact for small ``input``."""
def expm1_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`expm1`."""
def eye(
    n: Any, m: Any = None, *, out: Any = None, dtype: _dtype | None = None, layout: Any = None, device: _device |
    builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory: builtins.bool = False
) -> Tensor:
    r"""The identity matrix of ``n`` rows and ``m`` (default ``n``) columns."""
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Any, zero_point: Any, axis: Any, quant_min: Any, quant_max: Any
) -> Tensor:
    r""":func:`fake_quantize_per_tensor_affine` with a scale and a zero point for each index of dimension ``axis``."""
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any
) -> Tensor:
    r"""``(clamp(round(input / scale) + zero_point, quant_min, quant_max) - zero_point) * scale``."""
def feature_alpha_dropout(input: Tensor, p: Any, train: Any) -> Tensor:
    r"""Like ``alpha_dropout`` for whole channels."""
def feature_alpha_dropout_(input: Tensor, p: Any, train: Any) -> Tensor:
    r"""In-place form of :func:`feature_alpha_dropout`."""
def feature_dropout(input: Tensor, p: Any, train: Any) -> Tensor:
    r"""Like ``dropout`` for whole channels (dimensions 0 and 1)."""
def feature_dropout_(input: Tensor, p: Any, train: Any) -> Tensor:
    r"""In-place form of :func:`feature_dropout`."""
def fill(input: Tensor, value: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``value``, a number or a tensor of no dimensions, in every element."""
def fill_(input: Tensor, value: Tensor | Number) -> Tensor:
    r"""In-place form of :func:`fill`."""
def fix(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Rounded toward zero."""
def fix_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`trunc`."""
def flatten(input: Tensor, start_dim: Number = 0, end_dim: Number = -1) -> Tensor:
    r"""Dimensions ``start_dim`` to ``end_dim`` merged into one."""
def flip(input: Tensor, *dims: Any) -> Tensor:
    r"""The elements in reverse order along ``dims``, as a copy."""
def fliplr(input: Tensor) -> Tensor:
    r""":func:`flip` of dimension 1."""
def flipud(input: Tensor) -> Tensor:
    r""":func:`flip` of dimension 0."""
def float_power(input: Tensor, exponent: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input ** exponent`` in float64 or complex128."""
def floor(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The largest integer not above."""
def floor_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`floor`."""
def floor_divide(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``floor(input / other)``, Python's ``//``."""
def fmax(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The larger of the two; a number wins over NaN."""
def fmin(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The smaller of the two; a number wins over NaN."""
def fmod(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input - other * trunc(input / other)``, with the sign of ``input``: C's ``fmod``."""
def frac(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``input - trunc(input)``, with the sign of ``input``."""
def frac_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`frac`."""
def frexp(input: Tensor, *, out: Any = None) -> return_types.frexp:
    r"""Mantissa in [0.5, 1) and integer exponent, ``input = mantissa * 2 ** exponent``."""
def frobenius_norm(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""The square root of the sum of squared absolute values over one or two dimensions."""
def from_file(
    filename: Any, shared: Any = None, size: Sequence[builtins.int] | builtins.int | builtins.int = 0, *, dtype: _dtype
    | None = None, layout: Any = None, device: _device | builtins.str | None = None, pin_memory: builtins.bool = False,
    requires_grad: builtins.bool = False
) -> Tensor:
    r"""A tensor over a file, mapped into memory."""
def full(
    size: Sequence[builtins.int] | builtins.int, fill_value: Any, *, out: Any = None, dtype: _dtype | None = None,
    layout: Any = None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory:
    builtins.bool = False
) -> Tensor:
    r"""A tensor of the given sizes filled with ``fill_value``, of its type where no ``dtype`` is given."""
def full_like(
    input: Tensor, fill_value: Any, *, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str |
    None = None, requires_grad: builtins.bool = False, pin_memory: builtins.bool = False, memory_format: Any = ...
) -> Tensor:
    r"""``fill_value``, in the sizes and dtype of ``input``."""
def gather(
    input: Tensor, dim: builtins.int, index: Any, *, sparse_grad: builtins.bool = False, out: Any = None
) -> Tensor:
    r"""The elements at ``index`` along ``dim``: ``out[i][j] = input[index[i][j]][j]`` for ``dim=0``."""
def gcd(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The greatest common divisor, not negative."""
def gcd_(input: Tensor, other: Tensor | Number) -> Tensor:
    r"""In-place form of :func:`gcd`."""
def ge(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether ``input >= other``."""
def geqrf(input: Tensor, *, out: Any = None) -> return_types.geqrf:
    r"""The QR factorisation as LAPACK packs it: ``R`` and, below its diagonal, Householder reflectors with scales"""
def ger(input: Tensor, vec2: Tensor, *, out: Any = None) -> Tensor:
    r"""``out[i, j] = input[i] * vec2[j]``."""
def get_device(input: Tensor) -> builtins.int:
    r"""The number of the device that ``input`` is on; -1 for the CPU."""
def gradient(
    input: Tensor, *, spacing: Number = 1, dim: builtins.int | Sequence[builtins.int] | None = None, edge_order: Number
    = 1
) -> tuple[Tensor, ...]:
    r"""Estimates of the derivative along each of ``dim`` by central differences, one-sided at the edges."""
def greater(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether ``input > other``."""
def greater_equal(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether ``input >= other``."""
def group_norm(
    input: Tensor, num_groups: Any, weight: Any = None, bias: Any = None, eps: Number = 1e-05, cudnn_enabled:
    builtins.bool = True
) -> Tensor:
    r"""Normalise over each group of channels and all positions (Wu and He 2018)."""
def gt(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether ``input > other``."""
def hamming_window(
    window_length: Any, periodic: builtins.bool = True, *extra: Any, dtype: _dtype | None = None, layout: Any = None,
    device: _device | builtins.str | None = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool =
    False, **options: Any
) -> Tensor:
    r"""Hamming's window, ``alpha - beta cos``. Periodic by default: its period is its length, rather than one point
    less."""
def hann_window(
    window_length: Any, periodic: builtins.bool = True, *extra: Any, dtype: _dtype | None = None, layout: Any = None,
    device: _device | builtins.str | None = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool =
    False, **options: Any
) -> Tensor:
    r"""Hann's window. Periodic by default: its period is its length, rather than one point less."""
def hardshrink(input: Tensor, lambd: Number = 0.5, *, out: Any = None) -> Tensor:
    r"""``input`` where its size exceeds ``lambd``, else 0."""
def hash_tensor(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, *, keepdim: builtins.bool = False, mode:
    Number = 0, out: Any = None
) -> Tensor:
    r"""The bits of the elements, as float64 or as integers of 64 bits, joined by exclusive or over ``dim``: a
    uint64."""
def heaviside(input: Tensor, values: Any, *, out: Any = None) -> Tensor:
    r"""0 below 0, 1 above it, ``values`` at 0."""
def histc(input: Tensor, bins: Number = 100, min: Number = 0, max: Number = 0, *, out: Any = None) -> Tensor:
    r"""Counts of elements in ``bins`` equal bins between ``min`` and ``max`` (those of the data where both are
    equal)."""
def histogram(
    input: Tensor, bins: Number = 100, *, range: Any = None, weight: Any = None, density: builtins.bool = False, out:
    Any = None
) -> return_types.histogram:
    r"""How many elements (or how much weight) lie in each bin."""
def histogramdd(
    input: Tensor, bins: Any, range: Any = None, weight: Any = None, density: builtins.bool = False
) -> return_types.histogramdd:
    r"""How many points (or how much weight) lie in each bin of several dimensions."""
def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    r"""Views of pieces along dimension 1 (0 for vectors); see :func:`tensor_split`."""
def hstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    r"""Join along the columns: dimension 1, or 0 for vectors."""
def hypot(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``sqrt(input ** 2 + other ** 2)`` without overflow on the way."""
def i0(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The modified Bessel function of the first kind of order 0."""
def i0_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`i0`."""
def igamma(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The regularised lower incomplete gamma function: the integral of ``t^(input - 1) exp(-t)`` from 0 to
    ``other``,"""
def igammac(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The regularised upper incomplete gamma function, ``1 - igamma(input, other)``, accurate where it is small."""
def imag(input: Tensor) -> Tensor:
    r"""The imaginary part of a complex tensor, as a view."""
def index_add(
    input: Tensor, dim: builtins.int, index: Any, source: Any, *, alpha: Number = 1, out: Any = None
) -> Tensor:
    r"""Add ``alpha`` times the slices of ``source`` at ``index`` along ``dim``, in the order of the index."""
def index_copy(input: Tensor, dim: builtins.int, index: Any, source: Any, *, out: Any = None) -> Tensor:
    r"""Write the slices of ``source`` at ``index`` along ``dim``."""
def index_fill(input: Tensor, dim: builtins.int, index: Any, value: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Write ``value``, a number or a tensor of no dimensions, at ``index`` along ``dim``; negative indices count
    from"""
def index_put(
    input: Tensor, indices: Any, values: Any, accumulate: builtins.bool = False, *, out: Any = None
) -> Tensor:
    r"""Write ``values`` at ``indices``, or add them there."""
def index_put_(input: Tensor, indices: Any, values: Any, accumulate: builtins.bool = False) -> Tensor:
    r"""In-place form of :func:`index_put`."""
def index_reduce(
    input: Tensor, dim: builtins.int, index: Any, source: Any, reduce: Any, *, include_self: builtins.bool = True, out:
    Any = None
) -> Tensor:
    r"""Combine slices of ``source`` into ``input``: ``reduce`` is ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``."""
def index_select(input: Tensor, dim: builtins.int, index: Any, *, out: Any = None) -> Tensor:
    r"""The slices at ``index``, a vector, along ``dim``."""
def inner(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Sums of products along the last dimensions: ``[..., k]`` and ``[---, k]`` give ``[..., ---]``."""
def inverse(A: Any, *, out: Any = None) -> Tensor:
    r"""The inverse of square matrices ``(..., n, n)``."""
def is_complex(input: Tensor) -> builtins.bool:
    r"""Whether the dtype is a complex one."""
def is_conj(input: Tensor) -> builtins.bool:
    r"""Whether ``input`` is a view that shows the conjugates of what its memory holds, as :func:`conj` makes them."""
def is_floating_point(input: Tensor) -> builtins.bool:
    r"""Whether the dtype is a floating-point one."""
def is_inference(input: Tensor) -> builtins.bool:
    r"""Whether the tensor was made in inference mode."""
def is_neg(input: Tensor) -> builtins.bool:
    r"""False: negation is never lazy here."""
def is_nonzero(input: Tensor) -> builtins.bool:
    r"""Whether the one element of ``input`` is not zero."""
def is_same_size(input: Tensor, other: Tensor | Number) -> builtins.bool:
    r"""Whether the sizes are equal."""
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
    r"""Whether each element is one of ``test_elements``; either may be a number."""
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
    r"""The signal whose :func:`stft` is nearest to ``input``: inverse transforms, overlapped, over the windows'
    squares."""
def kaiser_window(
    window_length: Any, periodic: builtins.bool = True, *extra: Any, dtype: _dtype | None = None, layout: Any = None,
    device: _device | builtins.str | None = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool =
    False, **options: Any
) -> Tensor:
    r"""Kaiser's window of shape ``beta``. Periodic by default: its period is its length, rather than one point less."""
def kron(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Kronecker product: every element of ``input`` times the whole of ``other``, dimension by dimension."""
def kthvalue(
    input: Tensor, k: Any, dim: builtins.int = -1, keepdim: builtins.bool = False, *, out: Any = None
) -> return_types.kthvalue:
    r"""The ``k``-th smallest element (from 1) along a dimension, and its index."""
def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: Number = 1e-05, cudnn_enable:
    builtins.bool = True
) -> Tensor:
    r"""``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dimensions (Ba, Kiros and Hinton 2016)."""
def lcm(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The least common multiple, not negative."""
def lcm_(input: Tensor, other: Tensor | Number) -> Tensor:
    r"""In-place form of :func:`lcm`."""
def ldexp(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input * 2 ** other``."""
def ldexp_(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""In-place form of :func:`ldexp`."""
def le(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether ``input <= other``."""
def lerp(input: Tensor, end: Any, weight: Any, *, out: Any = None) -> Tensor:
    r"""``input + weight * (end - input)``, exact at both ends; ``weight`` is a number or a tensor."""
def less(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether ``input < other``."""
def less_equal(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether ``input <= other``."""
def lgamma(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The logarithm of ``|gamma(input)|``."""
def linspace(
    start: Any, end: Any, steps: Any, *, out: Any = None, dtype: _dtype | None = None, layout: Any = None, device:
    _device | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory: builtins.bool = False
) -> Tensor:
    r"""``steps`` evenly spaced numbers from ``start`` to ``end``, both included."""
def lobpcg(
    A: Any, k: Any = None, B: Any = None, X: Any = None, n: Any = None, iK: Any = None, niter: Any = None, tol: Any =
    None, largest: Any = None, method: Any = None, tracker: Any = None, ortho_iparams: Any = None, ortho_fparams: Any =
    None, ortho_bparams: Any = None
) -> Any:
    r"""The ``k`` largest (smallest) eigenvalues of ``A x = E B x`` for symmetric ``A`` and positive definite ``B``."""
def log(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The natural logarithm: -inf of 0, NaN of negative numbers."""
def log10(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The logarithm to base 10."""
def log10_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`log10`."""
def log1p(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``log(1 + input)``, exact for small ``input``."""
def log1p_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`log1p`."""
def log2(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The logarithm to base 2."""
def log2_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`log2`."""
def log_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`log`."""
def log_softmax(input: Tensor, dim: builtins.int, dtype: _dtype | None = None, *, out: Any = None) -> Tensor:
    r"""``input - log(sum(exp(input)))`` along ``dim``: the logarithm of :func:`softmax`, without its loss of
    precision."""
def logaddexp(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``log(exp(input) + exp(other))`` with no overflow."""
def logaddexp2(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``log2(2 ** input + 2 ** other)`` with no overflow."""
def logcumsumexp(input: Tensor, dim: builtins.int, *, out: Any = None) -> Tensor:
    r"""``log(cumsum(exp(input)))`` along ``dim``, without overflow. Integers are taken as the default float."""
def logdet(input: Tensor) -> Tensor:
    r"""The logarithm of the determinant: NaN where that is negative."""
def logical_and(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether both are true; any number but 0 is."""
def logical_not(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Whether the element is 0."""
def logical_or(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether either is true; any number but 0 is."""
def logical_xor(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether exactly one is true; any number but 0 is."""
def logit(input: Tensor, eps: Any = None, *, out: Any = None) -> Tensor:
    r"""``log(input / (1 - input))``; with ``eps``, of ``input`` held between ``eps`` and ``1 - eps``."""
def logit_(input: Tensor, eps: Any = None) -> Tensor:
    r"""In-place form of :func:`logit`."""
def logspace(
    start: Any, end: Any, steps: Any, base: Number = 10.0, *, out: Any = None, dtype: _dtype | None = None, layout: Any
    = None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory:
    builtins.bool = False
) -> Tensor:
    r"""``base ** x`` for ``steps`` evenly spaced ``x`` from ``start`` to ``end``."""
def logsumexp(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Any = None) -> Tensor:
    r"""``log(sum(exp(input)))`` over ``dim``, without overflow. Integers are taken as the default float."""
def lstsq(*args: Any, **kwargs: Any) -> Tensor:
    r"""Removed from PyTorch: use linalg.lstsq(A, B), whose arguments are in the other order and whose residuals are
    sums. Calling it is a RuntimeError."""
def lt(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether ``input < other``."""
def lu(A: Any, pivot: builtins.bool = True, get_infos: builtins.bool = False, *, out: Any = None) -> Any:
    r"""The older form of :func:`linalg_lu_factor`: ``(LU, pivots)``, with ``info`` where ``get_infos``."""
def lu_solve(b: Any, LU_data: Any, LU_pivots: Any, *, out: Any = None) -> Tensor:
    r"""The older argument order of :func:`linalg_lu_solve`."""
def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: builtins.bool = True, unpack_pivots: builtins.bool = True, *, out: Any =
    None
) -> return_types.lu_unpack:
    r"""``P``, ``L`` and ``U`` of a packed LU; an empty tensor for what is not asked for."""
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``value`` where ``mask`` is true, ``input`` elsewhere."""
def masked_scatter(input: Tensor, mask: Tensor, source: Any) -> Tensor:
    r"""``input``, broadcast with ``mask``, with the elements of ``source``, in order, where ``mask`` is true."""
def masked_select(input: Tensor, mask: Tensor, *, out: Any = None) -> Tensor:
    r"""The elements of ``input`` where ``mask`` is true, in row-major order, as one dimension; the two broadcast."""
def matmul(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Matrix product by the rank of the operands."""
def matrix_exp(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The exponential ``(..., n, n)`` of square matrices, by Pade approximants, scaling and squaring (Higham 2005)."""
def matrix_power(input: Tensor, n: Any, *, out: Any = None) -> Tensor:
    r"""``input @ input @ ...``, ``n`` times, by squaring; ``n`` may not be negative."""
def matrix_rank(*args: Any, **kwargs: Any) -> Tensor:
    r"""Removed from PyTorch: use linalg.matrix_rank(A, tol, hermitian=...). Calling it is a RuntimeError."""
@overload
def max(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The largest element of ``input``; along ``dim``, ``(values, indices)``; with a tensor, the elementwise
    maximum."""
@overload
def max(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Any = None) -> return_types.max:
    r"""The largest element of ``input``; along ``dim``, ``(values, indices)``; with a tensor, the elementwise
    maximum."""
@overload
def max(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    r"""The largest element of ``input``; along ``dim``, ``(values, indices)``; with a tensor, the elementwise
    maximum."""
def maximum(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The larger of the two, NaN where either is NaN."""
def mean(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype:
    _dtype | None = None, out: Any = None
) -> Tensor:
    r"""Mean over ``dim`` (all dimensions by default) of a floating-point or complex tensor."""
@overload
def median(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The median: of an even number of elements the lower of the two in the middle; NaN where there is one."""
@overload
def median(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Any = None) -> return_types.median:
    r"""The median: of an even number of elements the lower of the two in the middle; NaN where there is one."""
def meshgrid(*tensors: Any, indexing: Any = None) -> tuple[Tensor, ...]:
    r"""Coordinates of a grid: each vector expanded to the grid's shape, as views."""
@overload
def min(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The smallest element of ``input``; along ``dim``, ``(values, indices)``; with a tensor, the elementwise
    minimum."""
@overload
def min(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Any = None) -> return_types.min:
    r"""The smallest element of ``input``; along ``dim``, ``(values, indices)``; with a tensor, the elementwise
    minimum."""
@overload
def min(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    r"""The smallest element of ``input``; along ``dim``, ``(values, indices)``; with a tensor, the elementwise
    minimum."""
def minimum(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The smaller of the two, NaN where either is NaN."""
def mm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor:
    r"""Product of two matrices: ``[m, k] @ [k, n]``."""
def mode(
    input: Tensor, dim: builtins.int = -1, keepdim: builtins.bool = False, *, out: Any = None
) -> return_types.mode:
    r"""The most frequent value along a dimension, the smallest of equally frequent ones, and where it is last."""
def moveaxis(input: Tensor, source: Any, destination: Any) -> Tensor:
    r"""A view with dimensions ``source`` moved to ``destination``, the others in their order."""
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    r"""A view with dimensions ``source`` moved to ``destination``, the others in their order."""
def msort(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The values sorted along dimension 0."""
def mul(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input * other``; of bools, whether both hold."""
def multinomial(
    input: Tensor, num_samples: Any, replacement: builtins.bool = False, *, generator: Any | None = None, out: Any =
    None
) -> Tensor:
    r"""Indices drawn with the probabilities (up to a factor) in each row."""
def multiply(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input * other``; of bools, whether both hold."""
def mv(input: Tensor, vec: Tensor, *, out: Any = None) -> Tensor:
    r"""Product of a matrix and a vector: ``[m, k] @ [k]``."""
def mvlgamma(input: Tensor, p: Any, *, out: Any = None) -> Tensor:
    r"""The logarithm of the multivariate gamma function of dimension ``p``."""
def nan_to_num(input: Tensor, nan: Any = None, posinf: Any = None, neginf: Any = None, *, out: Any = None) -> Tensor:
    r"""``input`` with ``nan`` (0) for NaN, and the largest finite numbers, or those given, for the infinities."""
def nan_to_num_(input: Tensor, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Tensor:
    r"""In-place form of :func:`nan_to_num`."""
def nanmean(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype:
    _dtype | None = None, out: Any = None
) -> Tensor:
    r"""Mean over ``dim`` of the elements that are not NaN."""
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
    r""":func:`quantile` of the elements that are numbers."""
def nansum(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype:
    _dtype | None = None, out: Any = None
) -> Tensor:
    r"""Sum over ``dim`` with NaN counted as 0."""
def narrow(input: Tensor, dim: builtins.int, start: Any, length: Any) -> Tensor:
    r"""A view of ``length`` elements from ``start`` along ``dim``."""
def narrow_copy(input: Tensor, dim: builtins.int, start: Any, length: Any, *, out: Any = None) -> Tensor:
    r"""A copy of :func:`narrow`."""
def native_layer_norm(
    input: Tensor, normalized_shape: Any, weight: Any, bias: Any, eps: Any
) -> tuple[Tensor, Tensor, Tensor]:
    r""":func:`layer_norm`, with the mean and the inverse deviation of each row."""
def ne(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether the elements differ; NaN differs from all."""
def neg(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``-input``. For bools use ``~``."""
def neg_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`neg`."""
def negative(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``-input``. For bools use ``~``."""
def negative_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`neg`."""
def nextafter(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The next floating-point number from ``input`` toward ``other``."""
@overload
def nonzero(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Where ``input`` is not zero."""
@overload
def nonzero(input: Tensor, *, as_tuple: builtins.bool, out: Any = None) -> Any:
    r"""Where ``input`` is not zero."""
def nonzero_static(
    input: Tensor, *, size: Sequence[builtins.int] | builtins.int, fill_value: Number = -1, out: Any = None
) -> Tensor:
    r"""The first ``size`` rows of :func:`nonzero`, filled up with ``fill_value`` where there are fewer."""
def norm(
    input: Tensor, p: Any = 'fro', dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool =
    False, dtype: _dtype | None = None, *, out: Any = None
) -> Tensor:
    r"""Vector norm over ``dim``; the nuclear norm of matrices with ``p="nuc"``."""
def norm_except_dim(v: Any, pow: Number = 2, dim: builtins.int = 0) -> Tensor:
    r"""Norms over all dimensions but ``dim``, which are kept as size 1; over all where ``dim`` is -1."""
def normal(
    mean: Any, std: Any = None, size: Sequence[builtins.int] | builtins.int | None = None, *, generator: Any | None =
    None, out: Any = None, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None =
    None, requires_grad: builtins.bool = False, pin_memory: builtins.bool = False, **kw: Any
) -> Tensor:
    r"""Normal numbers with means and standard deviations given as tensors or numbers."""
def not_equal(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Whether the elements differ; NaN differs from all."""
def nuclear_norm(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool = False, *, out: Any
    = None
) -> Tensor:
    r"""The sum of the singular values of the matrices in ``dim``, which may be left out:"""
def numel(input: Tensor) -> builtins.int:
    r"""The number of elements."""
def ones(
    *args: Any, size: Sequence[builtins.int] | builtins.int | None = None, out: Any = None, dtype: _dtype | None = None,
    layout: Any = None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory:
    builtins.bool = False
) -> Tensor:
    r"""A tensor of the given sizes filled with ones."""
def ones_like(
    input: Tensor, *, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, pin_memory: builtins.bool = False, memory_format: Any = ...
) -> Tensor:
    r"""Ones, in the sizes and dtype of ``input``."""
def orgqr(input: Tensor, tau: Any, *, out: Any = None) -> Tensor:
    r""":func:`linalg_householder_product`."""
def ormqr(
    input: Tensor, tau: Any, other: Tensor | Number, left: builtins.bool = True, transpose: builtins.bool = False, *,
    out: Any = None
) -> Tensor:
    r"""``Q other`` (``other Q`` where ``left`` is false) for the product ``Q`` of Householder reflectors, ``Q^H``
    where"""
def outer(input: Tensor, vec2: Tensor, *, out: Any = None) -> Tensor:
    r"""``out[i, j] = input[i] * vec2[j]``."""
def pca_lowrank(
    A: Any, q: Any = None, center: builtins.bool = True, niter: Number = 2
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Principal components: :func:`svd_lowrank` of ``A``, with columns centred unless ``center`` is false."""
def pdist(input: Tensor, p: Any = 2.0) -> Tensor:
    r"""Distances between every pair of rows, as a vector."""
def permute(input: Tensor, *dims: Any) -> Tensor:
    r"""A view with dimensions in the order ``dims``."""
def permute_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`permute` views."""
def pinverse(input: Tensor, rcond: Number = 1e-15) -> Tensor:
    r""":func:`linalg_pinv` with the older default of the tolerance."""
def poisson(input: Tensor, generator: Any | None = None, *, out: Any = None) -> Tensor:
    r"""Poisson numbers with the rates in ``input``, in its dtype."""
def polar(abs: Any, angle: Any, *, out: Any = None) -> Tensor:
    r"""The complex tensor with these absolute values and arguments (radians)."""
def polygamma(n: Any, input: Tensor, *, out: Any = None) -> Tensor:
    r"""The derivative of order ``n`` of :func:`digamma`, for ``n >= 0``: ``(-1)^(n+1) n! zeta(n + 1, input)``."""
def positive(input: Tensor) -> Tensor:
    r"""``+input``: the tensor itself."""
def pow(input: Tensor, exponent: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input ** exponent``; either may be a number."""
def prelu(input: Tensor, weight: Any) -> Tensor:
    r"""``input`` where positive, else ``weight * input``; ``weight`` is one number, or one per channel (dim 1)."""
def prod(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype:
    _dtype | None = None, out: Any = None
) -> Tensor:
    r"""Product over ``dim`` (all dimensions by default)."""
def put(input: Tensor, index: Any, source: Any, accumulate: builtins.bool = False, *, out: Any = None) -> Tensor:
    r"""Write ``source`` at the positions ``index`` of ``input`` taken as one dimension, or add it there."""
def qr(input: Tensor, some: builtins.bool = True, *, out: Any = None) -> return_types.qr:
    r"""``input = Q R``, reduced unless ``some`` is false."""
def quantile(
    input: Tensor, q: Any, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *,
    interpolation: builtins.str = 'linear', out: Any = None
) -> Tensor:
    r"""The ``q``-th quantiles along ``dim`` (of all elements where None); several ``q`` lead the result's sizes."""
def rad2deg(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Radians to degrees."""
def rad2deg_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`rad2deg`."""
def rand(
    *size: Any, generator: Any | None = None, out: Any = None, dtype: _dtype | None = None, layout: Any = None, device:
    _device | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory: builtins.bool = False, **kw:
    Any
) -> Tensor:
    r"""Uniform numbers in [0, 1)."""
def rand_like(
    input: Tensor, *, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, memory_format: Any = None, generator: Any | None = None, pin_memory:
    builtins.bool = False
) -> Tensor:
    r"""Uniform numbers in [0, 1), in a tensor like ``input``."""
def randint(
    *args: Any, generator: Any | None = None, out: Any = None, dtype: _dtype | None = None, layout: Any = None, device:
    _device | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory: builtins.bool = False, **kw:
    Any
) -> Tensor:
    r"""Uniform integers: ``randint(high, size)`` in [0, high), ``randint(low, high, size)`` in [low, high)."""
def randint_like(
    input: Tensor, low: Number = 0, high: Any = None, *, dtype: _dtype | None = None, layout: Any = None, device:
    _device | builtins.str | None = None, requires_grad: builtins.bool = False, memory_format: Any = None, generator:
    Any | None = None, pin_memory: builtins.bool = False
) -> Tensor:
    r"""Uniform integers in [``low``, ``high``) (or in [0, ``low``) if that is all), in a tensor like ``input``."""
def randn(
    *size: Any, generator: Any | None = None, out: Any = None, dtype: _dtype | None = None, layout: Any = None, device:
    _device | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory: builtins.bool = False, **kw:
    Any
) -> Tensor:
    r"""Normal numbers of mean 0 and variance 1. Arguments as of :func:`rand`."""
def randn_like(
    input: Tensor, *, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, memory_format: Any = None, generator: Any | None = None, pin_memory:
    builtins.bool = False
) -> Tensor:
    r"""Normal numbers of mean 0 and variance 1, in a tensor like ``input``."""
def randperm(
    n: Any, *, generator: Any | None = None, out: Any = None, dtype: _dtype | None = None, layout: Any = None, device:
    _device | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory: builtins.bool = False
) -> Tensor:
    r"""A random permutation of 0 to ``n - 1``."""
def range(
    start: Number = 0, end: Any = None, step: Number = 1, *, out: Any = None, dtype: _dtype | None = None, layout: Any =
    None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False
) -> Tensor:
    r"""Numbers from ``start`` to ``end``, which is included. Prefer :func:`arange`."""
def ravel(input: Tensor) -> Tensor:
    r"""All elements in one dimension."""
def real(input: Tensor) -> Tensor:
    r"""The real part, as a view; a real tensor is given back."""
def reciprocal(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``1 / input``."""
def reciprocal_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`reciprocal`."""
def relu(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``max(input, 0)``."""
def relu_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`relu`."""
def remainder(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input - other * floor(input / other)``, with the sign of ``other``: Python's ``%``."""
def renorm(input: Tensor, p: Any, dim: builtins.int, maxnorm: Any, *, out: Any = None) -> Tensor:
    r"""``input`` with each slice along ``dim`` scaled down, where its ``p``-norm is above ``maxnorm``, to that norm."""
def repeat_interleave(
    input: Tensor | None = None, repeats: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, *,
    output_size: Any = None
) -> Tensor:
    r"""Each element, or slice along ``dim``, repeated in place."""
def reshape(input: Tensor, *shape: Any) -> Tensor:
    r"""The elements in row-major order with sizes ``shape`` (one may be -1): a view where strides allow, else a
    copy."""
def resize_as_(input: Tensor, the_template: Any, memory_format: Any = None) -> Tensor:
    r""":func:`resize_` to the sizes of ``the_template``, in its order of dimensions with ``preserve_format``."""
def resolve_conj(input: Tensor) -> Tensor:
    r"""``input``; of a conjugated view, a copy that holds what the view shows."""
def resolve_neg(input: Tensor) -> Tensor:
    r"""``input``; of the imaginary part of a conjugated view, a copy that holds what it shows."""
def rms_norm(input: Tensor, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Tensor:
    r"""``x / sqrt(mean(x ** 2) + eps) * weight`` over the last dimensions (Zhang and Sennrich 2019)."""
def roll(
    input: Tensor, shifts: Any, dims: Sequence[builtins.int] | builtins.int | None = None, *, out: Any = None
) -> Tensor:
    r"""The elements moved by ``shifts`` along ``dims``, those that fall off the end coming back at the start."""
def rot90(input: Tensor, k: Number = 1, dims: Sequence[builtins.int] | builtins.int = ...) -> Tensor:
    r"""A rotation by ``k`` quarter turns in the plane of two dimensions, from the first towards the second."""
def round(input: Tensor, *, decimals: Number = 0, out: Any = None) -> Tensor:
    r"""To the nearest integer, or the nearest multiple of ``10 ** -decimals``; halves to the even one."""
def round_(input: Tensor, *, decimals: Number = 0, out: Any = None) -> Tensor:
    r"""In-place form of :func:`round`."""
def row_stack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    r"""Join along the rows, dimension 0; vectors are rows."""
def rrelu(
    input: Tensor, lower: Number = 0.125, upper: Number = 0.3333333333333333, training: builtins.bool = False,
    generator: Any | None = None
) -> Tensor:
    r""":func:`leaky_relu` whose slope is drawn for each negative element in training (Xu et al. 2015), else the
    mean."""
def rrelu_(
    input: Tensor, lower: Number = 0.125, upper: Number = 0.3333333333333333, training: builtins.bool = False,
    generator: Any | None = None
) -> Tensor:
    r"""In-place form of :func:`rrelu`."""
def rsqrt(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``1 / sqrt(input)``."""
def rsqrt_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`rsqrt`."""
def rsub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
    r"""``other - alpha * input``."""
def scalar_tensor(
    s: Any, *, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, pin_memory: builtins.bool = False
) -> Tensor:
    r"""The number ``s`` as a tensor of no dimensions."""
def scatter(
    input: Tensor, dim: builtins.int, index: Any, src: Tensor | Number | None = None, *, reduce: Any = None, value:
    Tensor | Number | None = None, out: Any = None
) -> Tensor:
    r"""Write ``src`` at ``index`` along ``dim``: ``input[index[i][j]][j] = src[i][j]`` for ``dim=0``."""
def scatter_add(input: Tensor, dim: builtins.int, index: Any, src: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Add ``src`` at ``index`` along ``dim``, in the order of ``src``, whatever the number of threads."""
def scatter_reduce(
    input: Tensor, dim: builtins.int, index: Any, src: Tensor | Number, reduce: Any, *, include_self: builtins.bool =
    True, out: Any = None
) -> Tensor:
    r"""Combine ``src`` into ``input`` at ``index`` along ``dim``."""
def searchsorted(
    sorted_sequence: Any, input: Tensor, *, out_int32: builtins.bool = False, right: builtins.bool = False, side: Any =
    None, sorter: Any = None, out: Any = None
) -> Tensor:
    r"""Where values would go into sorted rows."""
def segment_reduce(
    data: Any, reduce: Any, *, lengths: Any = None, indices: Any = None, offsets: Any = None, axis: Number = 0, unsafe:
    builtins.bool = False, initial: Any = None
) -> Tensor:
    r"""Reduce consecutive segments along ``axis``, which is the last dimension of ``lengths`` or ``offsets``."""
def select(input: Tensor, dim: builtins.int, index: Any) -> Tensor:
    r"""A view of the elements at ``index`` along ``dim``, without that dimension."""
def select_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`select` views."""
def select_scatter(input: Tensor, src: Tensor | Number, dim: builtins.int, index: Any, *, out: Any = None) -> Tensor:
    r"""A copy of ``input`` with ``src`` at ``index`` along ``dim``."""
def selu(input: Tensor) -> Tensor:
    r"""Self-normalising :func:`elu` (Klambauer et al. 2017), with its two constants."""
def selu_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`selu`."""
def sgn(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``input / |input|``, 0 at 0."""
def sigmoid(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``1 / (1 + exp(-input))``."""
def sigmoid_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`sigmoid`."""
def sign(input: Tensor, *, out: Any = None) -> Tensor:
    r"""-1, 0 or 1. For complex numbers see :func:`sgn`."""
def signbit(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Whether the sign bit is set: of negative numbers and of -0.0."""
def sin(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The sine of an angle in radians."""
def sin_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`sin`."""
def sinc(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``sin(pi x) / (pi x)``, 1 at 0."""
def sinc_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`sinc`."""
def sinh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The hyperbolic sine."""
def sinh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`sinh`."""
def slice_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`slice` views."""
def slice_inverse(
    input: Tensor, src: Tensor | Number, dim: builtins.int = 0, start: Any = None, end: Any = None, step: Number = 1
) -> Any:
    r"""What ``input``, a slice of a tensor laid out as ``src``, was cut out of: a view with the sizes of ``src``."""
def slice_scatter(
    input: Tensor, src: Tensor | Number, dim: builtins.int = 0, start: Any = None, end: Any = None, step: Number = 1, *,
    out: Any = None
) -> Tensor:
    r"""A copy of ``input`` with ``src`` in a slice along ``dim``."""
def slogdet(input: Tensor, *, out: Any = None) -> return_types.slogdet:
    r""":func:`linalg_slogdet`."""
def softmax(input: Tensor, dim: builtins.int, dtype: _dtype | None = None, *, out: Any = None) -> Tensor:
    r"""``exp(input) / sum(exp(input))`` along ``dim``, without overflow."""
def solve(*args: Any, **kwargs: Any) -> Tensor:
    r"""Removed from PyTorch: use linalg.solve(A, B), whose arguments are in the other order, or linalg.lu_factor for
    the factors. Calling it is a RuntimeError."""
def sort(
    input: Tensor, dim: builtins.int = -1, descending: builtins.bool = False, stable: Any = None, *, out: Any = None
) -> return_types.sort:
    r"""Sort along a dimension. Always stable; NaN counts as larger than everything."""
def sparse_bsc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Sequence[builtins.int] | builtins.int | None = None, *,
    dtype: _dtype | None = None, device: _device | builtins.str | None = None, pin_memory: builtins.bool = False,
    requires_grad: builtins.bool = False, check_invariants: Any = None, layout: Any = None
) -> Tensor:
    r"""Sparse matrices of blocks, compressed by columns: :func:`sparse_csc_tensor` with values of sizes"""
def sparse_bsr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Sequence[builtins.int] | builtins.int | None = None, *,
    dtype: _dtype | None = None, device: _device | builtins.str | None = None, pin_memory: builtins.bool = False,
    requires_grad: builtins.bool = False, check_invariants: Any = None, layout: Any = None
) -> Tensor:
    r"""Sparse matrices of blocks, compressed by rows: :func:`sparse_csr_tensor` with values of sizes"""
def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Sequence[builtins.int] | builtins.int | None = None,
    *, layout: Any = None, **kwargs: Any
) -> Tensor:
    r""":func:`sparse_csr_tensor`, or of another layout, as ``layout`` says."""
def sparse_coo_tensor(
    indices: Any = None, values: Any = None, size: Sequence[builtins.int] | builtins.int | None = None, *, dtype: _dtype
    | None = None, device: _device | builtins.str | None = None, pin_memory: builtins.bool = False, requires_grad:
    builtins.bool = False, check_invariants: Any = None, is_coalesced: Any = None, layout: Any = None
) -> Tensor:
    r"""A sparse tensor in coordinate form."""
def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Sequence[builtins.int] | builtins.int | None = None, *,
    dtype: _dtype | None = None, device: _device | builtins.str | None = None, pin_memory: builtins.bool = False,
    requires_grad: builtins.bool = False, check_invariants: Any = None, layout: Any = None
) -> Tensor:
    r"""Sparse matrices compressed by columns: :func:`sparse_csr_tensor` with rows and columns in each other's place."""
def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Sequence[builtins.int] | builtins.int | None = None, *,
    dtype: _dtype | None = None, device: _device | builtins.str | None = None, pin_memory: builtins.bool = False,
    requires_grad: builtins.bool = False, check_invariants: Any = None, layout: Any = None
) -> Tensor:
    r"""Sparse matrices compressed by rows."""
def split(
    tensor: Tensor, split_size_or_sections: Any = None, dim: builtins.int = 0, *, split_size: Any = None
) -> tuple[Tensor, ...]:
    r"""Views of consecutive pieces along ``dim``: of one size (the last may be smaller), or of the sizes in a list."""
def split_copy(input: Tensor, *args: Any, out: Any = None) -> tuple[Tensor, ...]:
    r"""A copy of what :func:`split` views."""
def split_with_sizes(input: Tensor, split_sizes: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    r"""Views of consecutive pieces of sizes ``split_sizes`` along ``dim``."""
def split_with_sizes_copy(input: Tensor, *args: Any, out: Any = None) -> tuple[Tensor, ...]:
    r"""A copy of what :func:`split_with_sizes` views."""
def sqrt(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The square root; NaN of negative numbers."""
def sqrt_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`sqrt`."""
def square(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``input * input``; of bools, as whole numbers."""
def square_(input: Tensor, *, out: Any = None) -> Tensor:
    r"""In-place form of :func:`square`."""
def squeeze(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    r"""A view without the dimensions of size 1 (all of them, or those in ``dim``)."""
def squeeze_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`squeeze` views."""
def stack(tensors: Sequence[Tensor], dim: builtins.int = 0, *, out: Any = None) -> Tensor:
    r"""Join tensors of one shape along a new dimension."""
def std(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, unbiased: Any = None, keepdim:
    builtins.bool = False, *, correction: Any = None, out: Any = None
) -> Tensor:
    r"""Standard deviation: the square root of :func:`var`."""
def std_mean(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, unbiased: Any = None, keepdim:
    builtins.bool = False, *, correction: Any = None
) -> tuple[Tensor, Tensor]:
    r""":func:`std` and :func:`mean` in one pass, as ``(std, mean)``."""
def stft(
    input: Tensor, n_fft: Any, hop_length: Any = None, win_length: Any = None, window: Any = None, center: builtins.bool
    = True, pad_mode: builtins.str = 'reflect', normalized: builtins.bool = False, onesided: Any = None, return_complex:
    Any = None, align_to_window: Any = None
) -> Tensor:
    r"""Fourier transforms of overlapping pieces of a signal."""
def sub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
    r"""``input - alpha * other``. For bools use ``^`` or :func:`logical_xor`."""
def subtract(input: Tensor, other: Tensor | Number, *, alpha: Number = 1, out: Any = None) -> Tensor:
    r"""``input - alpha * other``. For bools use ``^`` or :func:`logical_xor`."""
def sum(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, *, dtype:
    _dtype | None = None, out: Any = None
) -> Tensor:
    r"""Sum over ``dim`` (all dimensions by default), in blocks, so that long sums stay accurate."""
def svd(
    input: Tensor, some: builtins.bool = True, compute_uv: builtins.bool = True, *, out: Any = None
) -> return_types.svd:
    r"""``input = U diag(S) V^H``; the older form, which gives ``V``. Zeros for both where ``compute_uv`` is false."""
def svd_lowrank(A: Any, q: Number = 6, niter: Number = 2, M: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    r"""``A - M ~= U diag(S) V^H`` of rank ``q``, by a random projection and ``niter`` power iterations."""
def swapaxes(input: Tensor, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    r"""A view with dimensions ``dim0`` and ``dim1`` swapped."""
def swapdims(input: Tensor, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    r"""A view with dimensions ``dim0`` and ``dim1`` swapped."""
def symeig(*args: Any, **kwargs: Any) -> Tensor:
    r"""Removed from PyTorch: use linalg.eigh(A, UPLO='L' or 'U') or linalg.eigvalsh. Calling it is a RuntimeError."""
def t(input: Tensor) -> Tensor:
    r"""The transpose of a matrix; a vector or a scalar is given back."""
def t_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`t` views."""
def take(input: Tensor, index: Any, *, out: Any = None) -> Tensor:
    r"""The elements of ``input``, taken as one dimension, at ``index``; the result has the shape of ``index``."""
def take_along_dim(
    input: Tensor, indices: Any, dim: builtins.int | Sequence[builtins.int] | None = None, *, out: Any = None
) -> Tensor:
    r""":func:`gather` with ``indices`` broadcast against ``input``; without ``dim`` both are taken as one dimension."""
def tan(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The tangent of an angle in radians."""
def tan_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`tan`."""
def tanh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The hyperbolic tangent."""
def tanh_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`tanh`."""
def tensor_split(input: Tensor, indices_or_sections: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    r"""Views of pieces along ``dim``: a number of near-equal ones, or cut before the given positions."""
def tensordot(
    a: Any, b: Any, dims: Sequence[builtins.int] | builtins.int | builtins.int = 2, out: Any = None
) -> Tensor:
    r"""Contract ``a`` and ``b`` over several dimensions."""
def threshold(input: Tensor, threshold: Any, value: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input`` where above ``threshold`` or NaN, else ``value``."""
def threshold_(input: Tensor, threshold: Any, value: Tensor | Number) -> Tensor:
    r"""In-place form of :func:`threshold`."""
def tile(input: Tensor, *args: Any, dims: Sequence[builtins.int] | builtins.int | None = None) -> Tensor:
    r""":func:`repeat`, with missing leading counts taken as one."""
def topk(
    input: Tensor, k: Any, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True, *, out:
    Any = None
) -> return_types.topk:
    r"""The ``k`` largest (or smallest) elements along a dimension, in sorted order; of equal ones the first come
    first."""
def trace(input: Tensor) -> Tensor:
    r"""The sum of the diagonal of a matrix."""
def transpose(input: Tensor, dim0: builtins.int, dim1: builtins.int) -> Tensor:
    r"""A view with dimensions ``dim0`` and ``dim1`` swapped."""
def transpose_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`transpose` views."""
def trapezoid(y: Any, x: Any = None, *, dx: Number = 1, dim: builtins.int = -1) -> Tensor:
    r"""Integral of ``y`` along ``dim`` by the trapezoidal rule, at points ``x`` or ``dx`` apart."""
def trapz(y: Any, x: Any = None, *, dx: Number = 1, dim: builtins.int = -1) -> Tensor:
    r"""Integral of ``y`` along ``dim`` by the trapezoidal rule, at points ``x`` or ``dx`` apart."""
def triangular_solve(
    b: Any, A: Any, upper: builtins.bool = True, transpose: builtins.bool = False, unitriangular: builtins.bool = False,
    *, out: Any = None
) -> return_types.triangular_solve:
    r"""The older spelling of :func:`linalg_solve_triangular`, which gives a copy of ``A`` as well."""
def tril(input: Tensor, diagonal: Number = 0, *, out: Any = None) -> Tensor:
    r"""The lower triangle of a matrix or batch of matrices, zero elsewhere; ``diagonal`` moves its edge up."""
def tril_indices(
    row: Any, col: Any, offset: Number = 0, *, dtype: _dtype | None = None, device: _device | builtins.str | None =
    None, layout: Any = None, pin_memory: builtins.bool = False
) -> Tensor:
    r"""Coordinates of the lower triangle, as two rows."""
def triu(input: Tensor, diagonal: Number = 0, *, out: Any = None) -> Tensor:
    r"""The upper triangle of a matrix or batch of matrices, zero elsewhere; ``diagonal`` moves its edge up."""
def triu_indices(
    row: Any, col: Any, offset: Number = 0, *, dtype: _dtype | None = None, device: _device | builtins.str | None =
    None, layout: Any = None, pin_memory: builtins.bool = False
) -> Tensor:
    r"""Coordinates of the upper triangle, as two rows."""
def true_divide(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input / other``; whole numbers give the default floating-point dtype."""
def trunc(input: Tensor, *, out: Any = None) -> Tensor:
    r"""Rounded toward zero."""
def trunc_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`trunc`."""
def unbind(input: Tensor, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    r"""The slices along ``dim``, as a tuple of views without that dimension."""
def unbind_copy(input: Tensor, *args: Any, out: Any = None) -> tuple[Tensor, ...]:
    r"""A copy of what :func:`unbind` views."""
def unflatten(input: Tensor, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
    r"""Dimension ``dim`` split into ``sizes`` (one may be -1)."""
def unfold_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`unfold` views."""
def unique(
    input: Tensor, sorted: builtins.bool = True, return_inverse: builtins.bool = False, return_counts: builtins.bool =
    False, dim: builtins.int | Sequence[builtins.int] | None = None
) -> Any:
    r"""The distinct values in ascending order."""
def unique_consecutive(
    input: Tensor, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, dim: builtins.int |
    Sequence[builtins.int] | None = None
) -> Any:
    r"""One element of each run of equal ones; arguments as for :func:`unique`."""
def unravel_index(indices: Any, shape: Sequence[builtins.int]) -> tuple[Tensor, ...]:
    r"""Flat indices into an array of ``shape`` as one index tensor per dimension."""
def unsafe_chunk(input: Tensor, chunks: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    r""":func:`chunk`, whose pieces are no views to the graph: they may be written in place independently."""
def unsafe_split(tensor: Tensor, split_size: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    r""":func:`split`, whose pieces are no views to the graph: they may be written in place independently."""
def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    r""":func:`split_with_sizes`, whose pieces are no views to the graph: they may be written in place independently."""
def unsqueeze(input: Tensor, dim: builtins.int) -> Tensor:
    r"""A view with a dimension of size 1 inserted at ``dim``."""
def unsqueeze_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`unsqueeze` views."""
def vander(x: Any, N: Any = None, increasing: builtins.bool = False) -> Tensor:
    r"""The Vandermonde matrix: powers of a vector's elements, as columns."""
def var(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, unbiased: Any = None, keepdim:
    builtins.bool = False, *, correction: Any = None, out: Any = None
) -> Tensor:
    r"""Variance over ``dim`` (all dimensions by default): squared deviations over ``n - correction``."""
def var_mean(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, unbiased: Any = None, keepdim:
    builtins.bool = False, *, correction: Any = None
) -> tuple[Tensor, Tensor]:
    r""":func:`var` and :func:`mean` in one pass, as ``(var, mean)``."""
def vdot(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Inner product of two vectors, the first conjugated."""
def view_as_complex(input: Tensor) -> Tensor:
    r"""A real tensor whose last dimension is (real, imaginary) as a complex one."""
def view_as_complex_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`view_as_complex` views."""
def view_as_real(input: Tensor) -> Tensor:
    r"""A complex tensor as a real one with a last dimension (real, imaginary)."""
def view_as_real_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`view_as_real` views."""
def view_copy(input: Tensor, *args: Any, out: Any = None) -> Tensor:
    r"""A copy of what :func:`view` views."""
def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    r"""Views of pieces along dimension 0; see :func:`tensor_split`."""
def vstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    r"""Join along the rows, dimension 0; vectors are rows."""
@overload
def where(condition: Tensor, *, out: Any = None) -> tuple[Tensor, ...]:
    r"""``input`` where ``condition`` is true, ``other`` elsewhere; or, of a condition alone, where it is true."""
@overload
def where(condition: Tensor, input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input`` where ``condition`` is true, ``other`` elsewhere; or, of a condition alone, where it is true."""
def xlogy(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input * log(other)``, 0 where ``input`` is 0 and ``other`` is not NaN."""
def xlogy_(input: Tensor, other: Tensor | Number) -> Tensor:
    r"""In-place form of :func:`xlogy`."""
def zero_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`zero`."""
def zeros(
    *args: Any, size: Sequence[builtins.int] | builtins.int | None = None, out: Any = None, dtype: _dtype | None = None,
    layout: Any = None, device: _device | builtins.str | None = None, requires_grad: builtins.bool = False, pin_memory:
    builtins.bool = False
) -> Tensor:
    r"""A tensor of the given sizes filled with zeros."""
def zeros_like(
    input: Tensor, *, dtype: _dtype | None = None, layout: Any = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, pin_memory: builtins.bool = False, memory_format: Any = ...
) -> Tensor:
    r"""Zeros, in the sizes and dtype of ``input``."""
