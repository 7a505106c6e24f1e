"""``torch._C._fft``: the functions of ``torch.fft`` as the code of graphs names them."""

from . import functions_of

__getattr__ = functions_of("fft")
