"""Differences from PyTorch that are meant: entry (``name`` or ``name.variant``) and kind of check, with the reason."""

_POLES = {
    "value": "infinite at the poles and right near them, where PyTorch's reflection of the trigamma function loses 1e-5",
    "out": "the same",
    "inplace": "the same",
    "method": "the same",
}

MEANT: dict[str, dict[str, str]] = {
    **{f"polygamma.polygamma_n_{n}": _POLES for n in range(5)},
    "special.polygamma.special_polygamma_n_0": _POLES,
    "special.bessel_j0": {"value": "within 1e-15 of the truth, where PyTorch is within 1e-6"},
    "special.bessel_y1": {"value": "the same"},
    "linalg.norm.subgradients_at_zero": {
        "second": "0, the second derivative of the subgradient taken; PyTorch gives NaN"
    },
    "nn.functional.soft_margin_loss": {"gradient": "finite in float16, where PyTorch divides two infinities"},
    "as_strided_scatter": {"gradient": "0 where src has replaced the input; PyTorch passes the gradient on as well"},
    "masked.logaddexp": {"second": "0 where both are masked out, where PyTorch gives NaN"},
    "nn.functional.scaled_dot_product_attention": {
        "gradient": "float16: from the output as it was rounded, as PyTorch's four-dimensional kernel does; "
        "PyTorch's other ways keep all probabilities"
    },
    "renorm": {"gradient": "finite for complex input and p=inf, where PyTorch gives NaN"},
    "matrix_exp": {
        "value": "computed in float32 for half precision, where PyTorch overflows to NaN",
        "gradient": "the same",
    },
    "linalg.eig": {
        "gradient": "one sample of near eigenvalues, on some processors: float32's rounding over the square of their distance"
    },
}

_LAST_BITS = "half precision, two elements of one sample: sums rounded in another order"

#: The same for differences that only the sweep over all samples shows.
RARE: dict[str, dict[str, str]] = {
    "cov": dict.fromkeys(
        ("value", "gradient", "second"),
        "with a correction of 2 the divisor is a difference of equal numbers: the last bits of sums of float32 weights",
    ),
    "nn.functional.multi_head_attention_forward": {
        "value": "float16 and scores of hundreds: roundings of the projections decide between keys"
    },
    "nn.functional.linear_cross_entropy.chunked": {"gradient": _LAST_BITS},
    "nn.functional.linear_cross_entropy.chunked_none": {"gradient": _LAST_BITS},
}

#: Entries whose forms on device meta are not PyTorch's, and why.
META: dict[str, str] = {
    "max_pool2d_with_indices_backward": "the database requests the gradient of an input that the result does not depend on",
    "linalg.householder_product": "gradients of empty matrices are empty, where PyTorch has none",
    "linalg.matrix_power": "the power 0 depends on no input: no gradient",
    **dict.fromkeys(
        ("linalg.norm", "linalg.norm.subgradients_at_zero", "linalg.vector_norm", "masked.norm", "norm"),
        "gradients of the norm of order 0 are zero, where PyTorch has none",
    ),
    "istft": "the window has a gradient, as PyTorch's on the CPU",
    "native_batch_norm": "in evaluation the statistics have no elements, as PyTorch's on the CPU",
    "ormqr": "gradients of empty matrices are empty, where PyTorch has none",
    "as_strided.partial_views": "out of bounds, as PyTorch says on the CPU",
}

#: Strides of results differ for some layouts of inputs (docs/differences.md).
LAYOUTS = frozenset(
    """
    __getitem__ atleast_3d cat complex deg2rad dstack fft.fftshift fft.ifftshift hstack ldexp lerp linalg.lu_solve
    linalg.solve_triangular lu_solve nanquantile native_batch_norm nn.functional.adaptive_max_pool3d
    nn.functional.avg_pool2d nn.functional.batch_norm nn.functional.binary_cross_entropy nn.functional.conv3d
    nn.functional.conv_transpose3d nn.functional.hardtanh nn.functional.hinge_embedding_loss nn.functional.huber_loss
    nn.functional.pad.circular nn.functional.pad.replicate_negative nn.functional.pixel_shuffle
    nn.functional.scaled_dot_product_attention polar polygamma.polygamma_n_0 polygamma.polygamma_n_1
    polygamma.polygamma_n_2 polygamma.polygamma_n_3 polygamma.polygamma_n_4 quantile rad2deg
    special.polygamma.special_polygamma_n_0 stack triangular_solve vstack
    """.split()
)

#: Entries that differ between device far and the CPU, and why.
FAR = {
    "linalg.solve": "LAPACK solves copies, which lie in memory in another order",
    "linalg.solve_ex": "as linalg.solve",
    "linalg.tensorsolve": "as linalg.solve",
}
