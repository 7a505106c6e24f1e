"""``torch._C._linalg``: the functions of ``torch.linalg`` as the code of graphs names them."""

from . import functions_of

__getattr__ = functions_of("linalg")
