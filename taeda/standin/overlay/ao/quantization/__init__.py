"""``torch.ao.quantization``: quantisation, which is refused."""

from __future__ import annotations

from taeda._refuse import refused_class, refused_function

_WHY = "there are no quantised tensors. Use bfloat16, or compute in float32"

DeQuantStub = QuantStub = refused_class("torch.ao.quantization.QuantStub", _WHY)
FakeQuantize = FakeQuantizeBase = ObserverBase = refused_class("torch.ao.quantization.FakeQuantize", _WHY)
QConfig = refused_class("torch.ao.quantization.QConfig", _WHY)
convert, fuse_modules, get_default_qconfig, prepare, prepare_qat, quantize, quantize_dynamic = (
    refused_function(f"torch.ao.quantization.{name}", _WHY)
    for name in "convert fuse_modules get_default_qconfig prepare prepare_qat quantize quantize_dynamic".split()
)
