"""``torch.fx.experimental.proxy_tensor``: tracing of functions, which is refused."""

from __future__ import annotations

from taeda._refuse import refused_function

make_fx = refused_function("torch.fx.experimental.proxy_tensor.make_fx", "there is no symbolic tracing")


def get_proxy_mode() -> None:
    """None: nothing is being traced."""
