"""``torch._C._special``: the functions of ``torch.special`` as the code of graphs names them."""

from . import functions_of

__getattr__ = functions_of("special")
