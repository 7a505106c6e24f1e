"""Every form of a call that PyTorch takes, taeda takes, with the same result: some functions by default, all with ``-m sweep``."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")

from .checks import MEANT, compare
from .forms import SPACES, paths

ALL = paths()

#: Functions whose forms went wrong once, or whose parameters are of many kinds.
SOME = """add amax argsort batch_norm bernoulli bucketize count_nonzero cross ctc_loss detach hash_tensor histogram
histogramdd hsplit isin kl_div logit lstm native_dropout normal nuclear_norm ormqr repeat_interleave result_type squeeze std
tensor_split tile tril_indices adaptive_max_pool1d hann_window embedding_bag Tensor.random_ Tensor.uniform_ Tensor.copy_
Tensor.sub_ Tensor.view Tensor.sum_to_size Tensor.dsplit linalg.vector_norm linalg.lstsq linalg.norm linalg.tensorsolve
fft.fftshift nn.functional.elu_ nn.functional.adaptive_avg_pool2d nn.functional.rrelu_ nn.functional.kl_div nn.functional.poisson_nll_loss
nn.functional.avg_pool1d""".split()


@pytest.mark.parametrize("path", SOME)
def test_some(path):
    check(path, 1)


@pytest.mark.sweep
@pytest.mark.parametrize("path", ALL)
def test_all(path):
    check(path, 1)


def check(path, limit):
    found, count = compare(path, limit)
    found = [line for line in found if not any(line.startswith(form) for form in MEANT.get(path, {}))]
    assert not found, f"{len(found)} of {count} calls:\n" + "\n".join(found[:20])


def test_there_are_calls_of_everything():
    assert len(ALL) > 1000 and all(any(p.startswith(space) for p in ALL) for space in SPACES)
    assert set(SOME) <= set(ALL) and set(MEANT) <= set(ALL)
