"""The exceptions of ``torch._dynamo``."""

from taeda.export.dynamic_shapes import UserError
from taeda.graph.backends import BackendCompilerFailed, InvalidBackend, TorchDynamoException, Unsupported

__all__ = ["BackendCompilerFailed", "InvalidBackend", "TorchDynamoException", "Unsupported", "UserError"]
