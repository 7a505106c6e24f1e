"""taeda: a define-by-run deep-learning framework with PyTorch's API, written in Python down to its kernels.

Re-exports and nothing else: a name's home is the module it is imported from, or its stanza says ``public="taeda"``.
"""

# ruff: noqa: I001 - the order is that of the layers

from ._version import __version__
from ._namespaces import lazy as __getattr__, listing as __dir__
from ._core import (
    bfloat16, bool_ as bool, channels_last, channels_last_3d, complex128, complex128 as cdouble, complex32,
    complex32 as chalf, complex64, complex64 as cfloat, contiguous_format, device, dtype, float16, float16 as half,
    float32, float32 as float, float4_e2m1fn_x2, float64, float64 as double, float8_e4m3fn, float8_e4m3fnuz,
    float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, get_default_dtype, get_num_threads, int16, int16 as short, int32,
    int32 as int, int64, int64 as long, int8, layout, memory_format, OutOfMemoryError, preserve_format, promote_types,
    result_type, set_default_dtype, set_num_threads, Size, strided, Tensor, uint16, uint32, uint64, uint8,
)  # fmt: skip
from .types import (
    BFloat16Tensor, BoolTensor, ByteTensor, CharTensor, DoubleTensor, finfo, FloatTensor, get_device, HalfTensor, iinfo,
    IntTensor, is_complex, is_conj, is_floating_point, is_inference, is_neg, is_signed, is_storage, is_tensor,
    LongTensor, numel, ShortTensor, typename, jagged, sparse_coo,
)  # fmt: skip
from .ops.activation import celu, celu_, hardshrink, prelu, relu, rrelu, rrelu_, selu, selu_, threshold
from .ops.bessel import i0
from .ops.callables import detach, detach_
from .ops.comparison import (
    allclose, bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor, eq, equal,
    gcd, ge, greater_equal, gt, greater, isclose, isfinite, isinf, isnan, isneginf, isposinf, isreal, lcm,
    le, less_equal, logical_and, logical_not, logical_or, logical_xor, lt, less, ne, not_equal,
    signbit,
)  # fmt: skip
from .ops.conv import conv1d, conv2d, conv3d, conv_tbc, conv_transpose1d, conv_transpose2d, conv_transpose3d
from .ops.conjugation import conj, resolve_conj, resolve_neg
from .ops.conversion import is_same_size, resize_as_
from .ops.creation import (
    _fill as fill_, arange, empty, empty_like, empty_permuted, empty_strided, eye, fill, full, full_like, linspace,
    logspace, ones, ones_like, range, scalar_tensor, zeros, zeros_like,
)  # fmt: skip
from .ops.einsum import einsum, kron, tensordot
from .ops.elementary import (
    acos, arccos, acosh, arccosh, angle, asin, arcsin, asinh, arcsinh, atan,
    arctan, atan2, arctan2, atanh, arctanh, complex, copysign, cos, cosh, deg2rad, exp, exp2,
    expm1, frexp, heaviside, ldexp, log, log10, log1p, log2, logaddexp, logaddexp2, logit, nan_to_num, nan_to_num_,
    nextafter, polar, rad2deg, sigmoid, sin, sinc, sinh, tan, tanh, xlogy,
)  # fmt: skip
from .ops.embedding import embedding, embedding_renorm_
from .ops.exchange import as_tensor, asarray, from_dlpack, from_file, from_numpy, frombuffer, tensor
from .ops.indexing import (
    argwhere, index_put, index_put_, masked_fill, masked_scatter, masked_select, nonzero, nonzero_static, put, take,
    where,
)  # fmt: skip
from .ops.joining import (
    atleast_1d, atleast_2d, atleast_3d, block_diag, cat, concat, concatenate, chunk, column_stack, dsplit,
    dstack, hsplit, hstack, split, split_with_sizes, stack, tensor_split, unbind, unsafe_chunk, unsafe_split,
    unsafe_split_with_sizes, vsplit, vstack, row_stack,
)  # fmt: skip
from .ops.histogram import histogram, histogramdd
from .ops.linalg import (
    old_cholesky as cholesky, old_lu as lu, slogdet, pinverse,
    old_svd as svd, cholesky_inverse, cholesky_solve, cross, frobenius_norm, geqrf, lobpcg, det,
    inverse, logdet, lu_solve, lu_unpack, matrix_exp, norm_except_dim, nuclear_norm, orgqr, ormqr,
    pca_lowrank, qr, removed_eig as eig, removed_lstsq as lstsq, removed_matrix_rank as matrix_rank,
    removed_solve as solve, removed_symeig as symeig, svd_lowrank, triangular_solve,
)  # fmt: skip
from .ops.matmul import (
    _int_mm, addbmm, addmm, addmv, addr, baddbmm, bilinear, bmm, chain_matmul, dot, inner, matmul, matrix_power, mm, mv,
    outer, ger, vdot,
)  # fmt: skip
from .ops.matrices import (
    cartesian_prod, combinations, diag, diag_embed, diagflat, meshgrid, tril, tril_indices, triu, triu_indices, vander,
)  # fmt: skip
from .ops.normalization import group_norm, layer_norm, native_layer_norm, rms_norm
from .ops.pointwise import (
    abs, absolute, add, addcdiv, addcmul, ceil, conj_physical, div, divide, floor, floor_divide, fmod,
    frac, lerp, mul, multiply, neg, negative, positive, remainder, round, rsub, sgn, sign, sub,
    subtract, true_divide, trunc, fix,
)  # fmt: skip
from .ops.quantization import fake_quantize_per_channel_affine, fake_quantize_per_tensor_affine
from .ops.powers import float_power, hypot, pow, reciprocal, rsqrt, sqrt, square
from .ops.extrema import (
    clamp, clip, clamp_, clip_, clamp_max, clamp_max_, clamp_min, clamp_min_, fmax, fmin, maximum,
    minimum,
)  # fmt: skip
from .ops.random import (
    bernoulli, multinomial, normal, poisson, rand, rand_like, randint, randint_like, randn, randn_like, randperm,
)  # fmt: skip
from .ops.dropout import (
    alpha_dropout, alpha_dropout_, dropout, dropout_, feature_alpha_dropout, feature_alpha_dropout_, feature_dropout,
    feature_dropout_,
)  # fmt: skip
from .ops.reduction import (
    all, amax, amin, aminmax, any, argmax, argmin, count_nonzero, dist, logsumexp, max, mean, min, nanmean, nansum,
    norm, prod, renorm, std, std_mean, sum, var, var_mean,
)  # fmt: skip
from .ops.scan import (
    cummax, cummin, cumprod, cumsum, cumulative_trapezoid, diff, logcumsumexp, trapezoid, trapz,
)  # fmt: skip
from .ops.scatter import (
    gather, index_add, index_copy, index_fill, index_reduce, index_select, scatter, scatter_add, scatter_reduce,
    take_along_dim,
)  # fmt: skip
from .ops.shape import constant_pad_nd, flip, fliplr, flipud, repeat_interleave, roll, rot90, tile
from .ops.softmax import log_softmax, softmax
from .ops.segments import (
    _chunk_cat, _unsafe_masked_index, _unsafe_masked_index_put_accumulate, hash_tensor, segment_reduce, slice_inverse,
)  # fmt: skip
from .ops.sorting import (
    argsort, bincount, bucketize, histc, kthvalue, median, mode, msort, nanmedian, searchsorted, sort, topk, unique,
    unique_consecutive,
)  # fmt: skip
from .ops.special import digamma, erf, erfc, erfinv, igamma, igammac, lgamma, mvlgamma, polygamma
from .ops.statistics import cdist, corrcoef, cov, gradient, isin, nanquantile, pdist, quantile, trace, unravel_index
from .ops.view_scatters import as_strided_scatter, diagonal_scatter, select_scatter, slice_scatter
from .ops.view_copies import (
    alias_copy, as_strided_copy, detach_copy, diagonal_copy, expand_copy, narrow_copy, permute_copy, select_copy,
    slice_copy, split_copy, split_with_sizes_copy, squeeze_copy, t_copy, transpose_copy, unbind_copy, unfold_copy,
    unsqueeze_copy, view_as_complex_copy, view_as_real_copy, view_copy,
)  # fmt: skip
from .ops.copies import clone
from .ops.views import (
    adjoint, as_strided, broadcast_shapes, broadcast_tensors, broadcast_to, diagonal, flatten, imag, is_nonzero,
    movedim, moveaxis, narrow, permute, ravel, real, reshape, select, squeeze, t, transpose,
    swapaxes, swapdims, unflatten, unsqueeze, view_as_complex, view_as_real,
)  # fmt: skip
from .ops.spectrogram import istft, stft
from .ops.inplace import (
    abs_, acos_, acosh_, addmv_, arccos_, arccosh_, arcsin_, arcsinh_, arctan_, arctanh_, as_strided_, asin_, asinh_,
    atan_, atanh_, ceil_, conj_physical_, cos_, cosh_, deg2rad_, erf_, erfc_, exp2_, exp_, expm1_, fix_, floor_, frac_,
    gcd_, i0_, lcm_, ldexp_, log10_, log1p_, log2_, log_, logit_, neg_, negative_, rad2deg_, reciprocal_, relu_, round_,
    rsqrt_, sigmoid_, sin_, sinc_, sinh_, sqrt_, square_, tan_, tanh_, threshold_, trunc_, xlogy_, zero_,
)  # fmt: skip
from .ops.out import can_cast
from .ops.variates import _dirichlet_grad, _sample_dirichlet, _standard_gamma, _standard_gamma_grad, binomial
from ._scalars import (
    _check, _check_index, _check_is_size, _check_not_implemented, _check_type, _check_value, _constrain_as_size,
    sym_constrain_range, sym_constrain_range_for_size, sym_float, sym_int, sym_ite, sym_max, sym_min, sym_not, sym_sqrt,
    sym_sum,
)  # fmt: skip
from ._settings import (
    are_deterministic_algorithms_enabled, get_default_device, get_deterministic_debug_mode, get_device_module,
    get_float32_matmul_precision, get_num_interop_threads, is_deterministic_algorithms_warn_only_enabled,
    is_warn_always_enabled, set_default_device, set_default_tensor_type, set_deterministic_debug_mode,
    set_float32_matmul_precision, set_flush_denormal, set_num_interop_threads, set_warn_always,
    use_deterministic_algorithms,
)  # fmt: skip
from math import e, inf, nan, pi
from .ops.windows import bartlett_window, blackman_window, hamming_window, hann_window, kaiser_window
from ._print import get_printoptions, printoptions, set_printoptions
from . import overrides  # before the first subclass of Tensor
from .ops import meta as _meta
from .ops.sparse import sparse_coo_tensor
from .ops.compressed import (
    _convert_indices_from_coo_to_csr, _convert_indices_from_csr_to_coo, sparse_bsc, sparse_bsc_tensor, sparse_bsr,
    sparse_bsr_tensor, sparse_compressed_tensor, sparse_csc, sparse_csc_tensor, sparse_csr, sparse_csr_tensor,
)  # fmt: skip
from .ops import sparse_factories as _sparse_factories
from . import autograd, functional, linalg, random, special
from .autograd import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled
from .random import (
    Generator, default_generator, fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state,
)  # fmt: skip
from . import return_types, storage, version
from .storage import (
    BFloat16Storage, BoolStorage, ByteStorage, CharStorage, ComplexDoubleStorage, ComplexFloatStorage, DoubleStorage,
    FloatStorage, FloatStorage as Storage, HalfStorage, IntStorage, LongStorage, ShortStorage, TypedStorage,
    UntypedStorage,
)  # fmt: skip

from .ops.registry import PUBLIC as _PUBLIC

globals().update(_PUBLIC["taeda"])  # ops whose stanza says so

newaxis = None
