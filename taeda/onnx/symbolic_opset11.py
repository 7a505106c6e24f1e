"""``taeda.onnx.symbolic_opset11``: no op is written as ONNX."""
