"""Every entry of the operator database repeated from its plan gives what it gave, bit for bit, or says why there is no plan."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from .opdb.checks import entries
from .opdb.plans import check

#: The entries without a plan, by the reason. Any other entry that loses its plan is an error, as is a plan gained.
REASONS = {
    "the body does something else on device meta": """
        stft istft linspace.tensor_overload logspace.tensor_overload lu_unpack lu_solve matrix_exp quantile
        nanquantile nn.functional.multilabel_margin_loss nn.functional.max_unpool1d
        nn.functional.max_unpool1d.grad nn.functional.max_unpool2d nn.functional.max_unpool2d.grad
        nn.functional.max_unpool3d nn.functional.max_unpool3d.grad to nn.functional.binary_cross_entropy
        unravel_index pinverse norm.nuc nn.functional.embedding_bag nn.functional.ctc_loss
        nn.functional.gaussian_nll_loss fft.fft fft.fft2 fft.fftn fft.hfft fft.hfft2
        fft.hfftn fft.rfft fft.rfft2 fft.rfftn fft.ifft fft.ifft2 fft.ifftn fft.ihfft fft.ihfft2 fft.ihfftn
        fft.irfft fft.irfft2 fft.irfftn linalg.cond linalg.eig linalg.eigvals linalg.eigh linalg.eigvalsh
        linalg.ldl_solve linalg.lu_solve linalg.matrix_rank linalg.matrix_rank.hermitian linalg.pinv
        linalg.pinv.singular linalg.pinv.hermitian linalg.svdvals masked.median
    """.split(),
    "the state of a generator is read or set": """
        cauchy exponential geometric log_normal normal.in_place uniform
        nn.functional.linear_cross_entropy.chunked nn.functional.linear_cross_entropy.chunked_none
        nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d nn.functional.rrelu
        nn.functional.scaled_dot_product_attention svd_lowrank pca_lowrank randn randn_like rand_like randint
        randint_like empty_strided multinomial normal normal.number_mean bernoulli nn.functional.dropout
        nn.functional.dropout2d nn.functional.dropout3d nn.functional.alpha_dropout
        nn.functional.feature_alpha_dropout.with_train nn.functional.feature_alpha_dropout.without_train
        nn.functional.multi_head_attention_forward
    """.split(),
    "LAPACK is called": """
        cholesky cholesky_inverse cholesky_solve geqrf lu ormqr qr triangular_solve logdet linalg.det
        linalg.cholesky linalg.cholesky_ex linalg.householder_product linalg.ldl_factor linalg.ldl_factor_ex
        linalg.lstsq linalg.lstsq.grad_oriented linalg.qr linalg.slogdet linalg.lu_factor linalg.lu_factor_ex
        linalg.lu linalg.inv linalg.inv_ex linalg.solve linalg.solve_ex linalg.solve_triangular linalg.tensorinv
        linalg.tensorsolve
    """.split(),
    "values are read": """
        item histogram histogramdd nn.functional.one_hot allclose broadcast_shapes equal masked_scatter
        masked_select tensor_split unique unique_consecutive bincount nonzero argwhere
    """.split(),
}  # fmt: skip
WITHOUT = frozenset(name for names in REASONS.values() for name in names)
#: What is in their results is not said.
UNSPECIFIED = frozenset("empty empty_like empty_strided empty_permuted new_empty new_empty_strided".split())


@pytest.mark.parametrize("name", sorted(entries()))
def test_entry(name):
    for found in check(entries()[name], 1):
        if name not in UNSPECIFIED:
            assert found == "" or (name in WITHOUT and found.startswith("- ")), found
            assert found != "" or name not in WITHOUT, "there is a plan now: the list above is shorter by one"


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", sorted(entries()))
def test_all_samples(name):
    for found in check(entries()[name], None):
        assert not found or name in UNSPECIFIED or found.startswith("- "), found
