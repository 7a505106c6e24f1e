"""Settings of PyTorch's compiler: any may be set, and none has an effect."""

from types import SimpleNamespace

coordinate_descent_tuning = False
fx_graph_cache = False
epilogue_fusion = True
max_autotune = False
triton = SimpleNamespace(unique_kernel_names=False, cudagraphs=False)
cpp = SimpleNamespace(threads=-1)
