"""Averages of parameters now and then, in place of averages of gradients at each step."""

from . import averagers, hierarchical_model_averager, utils

__all__ = ["averagers", "hierarchical_model_averager", "utils"]
