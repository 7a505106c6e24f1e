"""PyTorch's operator database, run on taeda.

The database (``torch.testing._internal.common_methods_invocations.op_db``) holds about 700 entries: for each operator its dtypes,
sample inputs, forms (``out=``, in-place, method) and inputs that must fail. ``translate`` gives each entry's callable
a meaning in taeda, ``checks`` compares, ``runner`` isolates crashes and hangs in worker processes, ``exceptions`` lists the
differences that are meant.

    python -m tests.conformance.opdb [--match REGEX] [--samples N] [--table FILE] [-v]
"""
