"""Names of taeda.nn.utils. Written by tools/stubs.py: do not edit."""

# ruff: noqa
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from ... import Number, Size, Tensor, _device, _dtype
from ...nn.utils.clip_grad import clip_grad_norm as clip_grad_norm
from ...nn.utils.clip_grad import clip_grad_norm_ as clip_grad_norm_
from ...nn.utils.clip_grad import clip_grad_value_ as clip_grad_value_
from ...nn.utils.clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
from ...nn.utils.memory_format import convert_conv2d_weight_memory_format as convert_conv2d_weight_memory_format
from ...nn.utils.memory_format import convert_conv3d_weight_memory_format as convert_conv3d_weight_memory_format
from ...nn.utils.fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
from ...nn.utils.fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
from ...nn.utils.fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
from ...nn.utils.fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
from ...nn.utils.clip_grad import get_total_norm as get_total_norm
from ...nn.utils.convert_parameters import parameters_to_vector as parameters_to_vector
from . import parametrizations as parametrizations
from . import parametrize as parametrize
from . import prune as prune
from ...nn.utils.spectral_norm import remove_spectral_norm as remove_spectral_norm
from ...nn.utils.weight_norm import remove_weight_norm as remove_weight_norm
from . import rnn as rnn
from ...nn.utils.init import skip_init as skip_init
from ...nn.utils.spectral_norm import spectral_norm as spectral_norm
from . import stateless as stateless
from ...nn.utils.convert_parameters import vector_to_parameters as vector_to_parameters
from ...nn.utils.weight_norm import weight_norm as weight_norm

