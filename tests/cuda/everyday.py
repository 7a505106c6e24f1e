"""Programs as users write them, on the CUDA device and on the CPU. ``test_cuda.py`` runs these in a process of their own."""

import io

import pytest

import taeda
from taeda import nn
from taeda.nn import functional as F

pytestmark = pytest.mark.skipif(not taeda.cuda.is_available(), reason="there is no CUDA device")


def near(program):
    """What ``program(device)`` gives: tensors, which must be close on both, and on the device."""
    results = []
    for device in ("cpu", "cuda"):
        taeda.manual_seed(0)
        results.append([t.detach() for t in program(device)])
    assert all(t.is_cuda for t in results[1])
    taeda.testing.assert_close([t.cpu() for t in results[1]], results[0], equal_nan=True)


A = taeda.randn(4, 4, generator=taeda.Generator().manual_seed(0))


def test_tensors_are_made_within_modes():
    """Autocast and other modes see calls that name the device."""
    from taeda.overrides import TorchFunctionMode
    from taeda.utils._python_dispatch import TorchDispatchMode

    class Function(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    for mode in (taeda.autocast("cuda"), taeda.cuda.amp.autocast(), Function(), Dispatch()):
        with mode:
            x = taeda.ones(2, 2, device="cuda")
            made = [
                taeda.zeros(2, device="cuda"), taeda.full((2,), 2.0, device=taeda.device("cuda")),
                taeda.arange(3, device="cuda:0"), taeda.tensor([1.0], device="cuda"), taeda.eye(2, device="cuda"),
                taeda.ones(2).to("cuda"), x.new_zeros(2), taeda.zeros_like(A, device="cuda"), taeda.randn(2, device="cuda"),
            ]  # fmt: skip
            assert all(t.is_cuda for t in made) and x.new_zeros(2, device="cpu").is_cpu
            assert taeda.ones(1, device="cpu").is_cpu and taeda.ones(1, device="meta").is_meta


def test_masks_and_indices_of_the_cpu():
    def program(device):
        x, i, m = A.to(device), taeda.tensor([2, 0]), taeda.tensor([True, False, True, False])
        made = [x.clone() for _ in range(5)]
        made[0][i] = 0
        made[1][m] = 1
        made[2][m, 1] = taeda.tensor(4.0)
        made[3][m] = taeda.tensor(4.0)
        made[4][i, i] += 1
        return [*made, x[i], x[m], x[:, i], x[i, i.to(device)]]

    near(program)


class Made(nn.Module):
    """A module that makes tensors beside its input."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        y = self.linear(x) + taeda.ones(3, device=x.device) + taeda.arange(3, device=x.device)
        return y + taeda.zeros_like(y)


def test_programs_are_saved_and_loaded():
    model, x = Made().cuda(), A.cuda()
    want, file = model(x), io.BytesIO()
    taeda.jit.save(taeda.jit.trace(model, x), file)
    for device in ("cuda", "cpu"):
        file.seek(0)
        loaded = taeda.jit.load(file, map_location=device)
        assert {p.device.type for p in loaded.parameters()} == {device}
    file.seek(0)
    taeda.testing.assert_close(taeda.jit.load(file)(x), want)


def test_exported_programs_are_saved_and_loaded():
    model, x = Made().cuda(), A.cuda()
    file = io.BytesIO()
    taeda.export.save(taeda.export.export(model, (x,)), file)
    file.seek(0)
    taeda.testing.assert_close(taeda.export.load(file).module()(A), model(x).cpu())  # such files are for the CPU


def test_models_are_written_as_onnx():
    pytest.importorskip("onnx.checker")
    files = [io.BytesIO(), io.BytesIO()]
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval()
    for device, file in zip(("cpu", "cuda"), files, strict=True):
        taeda.onnx.export(model.to(device), (A.to(device),), file)
    assert files[0].getvalue() == files[1].getvalue()


def test_lengths_may_be_on_the_cpu():
    def program(device):
        x = taeda.randn(5, 2, 4).to(device).requires_grad_()
        labels, steps = taeda.tensor([[1, 2], [1, 3]]), taeda.tensor([5, 4])
        loss = F.ctc_loss(x.log_softmax(-1), labels, steps, taeda.tensor([2, 1]))
        loss.backward()
        packed = nn.utils.rnn.pack_padded_sequence(x, steps)
        padded, lengths = nn.utils.rnn.pad_packed_sequence(packed)
        assert lengths.is_cpu
        return [loss, x.grad, padded]

    near(program)


def test_sparse_gradients_stay_sparse():
    def program(device):
        table = nn.Embedding(5, 3, sparse=True).to(device)
        optimizer = taeda.optim.SparseAdam(table.parameters(), 0.1)
        for _ in range(2):
            table(taeda.tensor([[1, 2], [1, 3]]).to(device)).sum().backward()
        assert table.weight.grad.is_sparse
        optimizer.step()
        return [table.weight, table.weight.grad.to_dense()]

    near(program)


def test_sparse_tensors():
    def program(device):
        i, v, a = taeda.tensor([[0, 1, 1], [2, 0, 2]]), taeda.tensor([3.0, 4.0, 5.0]), A[:3].to(device)
        s = taeda.sparse_coo_tensor(i, v, (2, 3), device=device)
        rows = taeda.sparse_csr_tensor(taeda.tensor([0, 1, 3]), taeda.tensor([2, 0, 2]), v, (2, 3), device=device)
        forms = [s.to_sparse_csr(), s.to_sparse_csc(), (a.relu()[:2]).to_sparse_bsr((1, 2))]
        chosen = s.index_select(0, taeda.tensor([1, 0], device=device))
        return [s @ a, rows @ a, *(f.to_dense() for f in (s, rows, *forms, chosen, s * a[:2, :3]))]

    near(program)


@pytest.mark.parametrize("n", [1, 3, 5, 33])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "float16"])
def test_short_rows_of_small_numbers_are_sorted(n, dtype):
    x = (taeda.arange(2 * n).reshape(2, n) * 7 % 11 - 5).to(getattr(taeda, dtype))
    for f in (lambda x: x.sort(stable=True), lambda x: x.argsort(descending=True, stable=True).unbind(0)):
        for here, there in zip(f(x), f(x.cuda()), strict=True):
            assert there.is_cuda and there.cpu().equal(here)


def test_distributions_draw_on_the_device():
    from taeda import distributions as D

    loc, one = taeda.zeros(3, device="cuda"), taeda.ones(3, device="cuda")
    made = [
        D.Normal(loc, 1.0), D.Uniform(loc, one), D.Gumbel(loc, one), D.StudentT(one * 3), D.VonMises(loc, one),
        D.Cauchy(loc, one), D.Laplace(loc, one), D.LogNormal(loc, one), D.ContinuousBernoulli(one / 3),
        D.MultivariateNormal(loc, taeda.eye(3, device="cuda")), D.LKJCholesky(3, taeda.tensor(1.0, device="cuda")),
        D.MultivariateNormal(loc, precision_matrix=taeda.eye(3, device="cuda")),
        D.LowRankMultivariateNormal(loc, one[:, None], one), D.Wishart(one[0] * 4, taeda.eye(3, device="cuda")),
        D.RelaxedBernoulli(taeda.tensor(0.5, device="cuda"), one / 3), D.Dirichlet(one), D.Beta(one, one),
        D.RelaxedOneHotCategorical(taeda.tensor(0.5, device="cuda"), one / 3), D.Categorical(one / 3), D.Kumaraswamy(one, one),
        D.OneHotCategorical(one / 3), D.Bernoulli(one / 3), D.Geometric(one / 3), D.Weibull(one, one), D.Exponential(one),
    ]  # fmt: skip
    for d in made:
        x = d.sample((2,))
        assert x.is_cuda and d.log_prob(x).is_cuda, d
        if d.has_enumerate_support:
            assert d.enumerate_support().is_cuda, d
    assert D.Cauchy(loc, one).variance.is_cuda and D.Categorical(one).mean.is_cuda


def test_attention_by_functions_and_ragged_batches():
    from taeda.nn.attention.flex_attention import create_block_mask, flex_attention

    def program(device):
        q, k, v = (taeda.randn(1, 2, 6, 8).to(device).requires_grad_() for _ in range(3))
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 6, 6, device=device, BLOCK_SIZE=4)
        y = flex_attention(q, k, v, block_mask=mask)
        y.sum().backward()
        ragged = taeda.nested.nested_tensor([A[:1], A[1:]], layout=taeda.jagged, device=device)
        return [y, q.grad, k.grad, v.grad, ragged.values(), ragged.offsets(), ragged.to_padded_tensor(0.0)]

    near(program)


def test_streams_say_their_priorities():
    last, first = taeda.cuda.Stream.priority_range()
    assert first < last and taeda.cuda.Stream(priority=-100).priority == first
