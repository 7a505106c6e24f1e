"""``torch._subclasses``: fake tensors, which are refused."""

from __future__ import annotations

from taeda._refuse import refused_class, refused_function

_WHY = "there are no fake tensors: run the function on small inputs"

FakeTensor = refused_class("FakeTensor", _WHY)
FakeTensorMode = refused_class("FakeTensorMode", _WHY)
