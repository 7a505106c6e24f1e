"""``torch._C._nn``: what packages take from it."""

from taeda.nn.functional import avg_pool2d, gelu, linear, one_hot, scaled_dot_product_attention
from taeda.nn.modules.module import _parse_to

__all__ = ["_parse_to", "avg_pool2d", "gelu", "linear", "one_hot", "scaled_dot_product_attention"]
