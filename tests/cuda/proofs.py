"""Programs whose results on the CUDA device are those of the CPU's kernels with one lane, bit for bit.

TAEDA_TARGET=lane TAEDA_CUDA=... python -m pytest tests/cuda/proofs.py. The CPU draws random numbers as the device does.
"""

import os

import pytest

import taeda
from taeda import func, nn
from taeda._core.random import draw_as_on
from taeda.nn import functional as F
from taeda.utils.checkpoint import checkpoint
from taeda.utils.data import DataLoader, TensorDataset

pytestmark = [
    pytest.mark.skipif(not taeda.cuda.is_available(), reason="there is no CUDA device"),
    pytest.mark.skipif(os.environ.get("TAEDA_TARGET") != "lane", reason="kernels of the CPU have several lanes"),
]


@pytest.fixture(autouse=True)
def drawn_as_there():
    draw_as_on(taeda.cuda.default_generators[0])
    yield
    draw_as_on(None)


def same(program):
    """What ``program(device)`` gives: tensors, which must have the same bits on both."""
    results = []
    for device in ("cpu", "cuda"):
        taeda.manual_seed(0)
        results.append([t.detach() for t in program(device)])
    here, there = results
    assert here and all(t.is_cuda for t in there)
    for i, (a, b) in enumerate(zip(here, there, strict=True)):
        assert a.dtype == b.dtype and a.equal(b.cpu()), f"{i}: {(a.double() - b.cpu().double()).abs().max()}"


def test_a_variational_autoencoder_trains_from_pinned_batches():
    def program(device):
        encoder = nn.Sequential(nn.Linear(12, 16), nn.SiLU(), nn.Linear(16, 8)).to(device)
        decoder = nn.Sequential(nn.Linear(4, 16), nn.SiLU(), nn.Linear(16, 12)).to(device)
        optimizer = taeda.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3)
        loader = DataLoader(TensorDataset(taeda.rand(24, 12)), batch_size=8, pin_memory=device != "cpu")
        losses = []
        for (x,) in loader:
            x = x.to(device, non_blocking=True)
            mean, log_variance = encoder(x).chunk(2, dim=1)
            z = mean + (0.5 * log_variance).exp() * taeda.randn_like(mean)
            loss = F.binary_cross_entropy_with_logits(decoder(z), x, reduction="sum")
            loss = loss - 0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss)
        return [*losses, *encoder.parameters(), *decoder.parameters()]

    same(program)


def test_two_networks_train_against_each_other():
    def program(device):
        maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 6), nn.Tanh()).to(device)
        judge = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(16, 1)).to(device)
        steps = [taeda.optim.Adam(m.parameters(), lr=2e-3, betas=(0.5, 0.999)) for m in (maker, judge)]
        losses = []
        for _ in range(2):
            real = taeda.randn(8, 6).to(device) * 0.3
            fake = maker(taeda.randn(8, 4, device=device))
            scores = judge(real), judge(fake.detach())
            of_judge = sum(
                F.binary_cross_entropy_with_logits(s, taeda.full_like(s, float(i == 0))) for i, s in enumerate(scores)
            )
            steps[1].zero_grad()
            of_judge.backward()
            steps[1].step()
            of_maker = F.softplus(-judge(fake)).mean()
            steps[0].zero_grad()
            of_maker.backward()
            steps[0].step()
            losses += [of_judge, of_maker]
        return [*losses, *maker.parameters(), *judge.parameters(), *maker.buffers()]

    same(program)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointed_gradients(reentrant):
    def program(device):
        block = nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.Dropout(0.4)).to(device)
        x = taeda.randn(5, 6).to(device).requires_grad_()
        with taeda.autocast(device, dtype=taeda.bfloat16):
            y = checkpoint(block, checkpoint(block, x, use_reentrant=reentrant), use_reentrant=reentrant)
        y.float().square().sum().backward()
        return [y, x.grad, *(p.grad for p in block.parameters())]

    same(program)


def test_transformations_of_functions():
    def program(device):
        w, x, v = (taeda.randn(*sizes).to(device) for sizes in ((4, 3), (5, 4), (5, 4)))

        def loss(w, row):
            return ((row @ w).tanh() ** 2).sum()

        y, tangent = func.jvp(lambda x: (x @ w).sin(), (x,), (v,))
        return [
            func.vmap(func.grad(loss), (None, 0))(w, x),
            func.jacrev(lambda r: (r @ w).exp())(x[0]),
            func.hessian(lambda r: loss(w, r))(x[0]),
            y,
            tangent,
        ]

    same(program)


def test_hooks_see_the_device():
    seen = []

    def program(device):
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).to(device)
        model[0].register_forward_hook(lambda m, args, out: out * 2)
        model[2].register_full_backward_hook(lambda m, gi, go: (gi[0] * 0.5,))
        model[0].weight.register_hook(lambda g: g + 1)
        model[0].weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.device.type))
        x = taeda.randn(6, 3).to(device).requires_grad_()
        packed = []
        with taeda.autograd.graph.saved_tensors_hooks(
            lambda t: packed.append(t.device) or t.cpu(), lambda t: t.to(device)
        ):
            y = model(x)
        assert {d.type for d in packed} == {device}
        y.sum().backward()
        return [y, x.grad, *(p.grad for p in model.parameters())]

    same(program)
    assert seen == ["cpu", "cuda"]


def test_scaled_training_skips_what_is_not_finite():
    def program(device):
        model = nn.Linear(4, 2).to(device)
        optimizer, scaler = taeda.optim.SGD(model.parameters(), 0.1), taeda.amp.GradScaler(device, init_scale=2.0**10)
        scales = []
        for factor in (1.0, float("inf"), 1.0):
            with taeda.autocast(device, dtype=taeda.bfloat16):
                loss = (model(taeda.randn(8, 4).to(device)).float() * factor).square().mean()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        assert scales == [1024.0, 512.0, 512.0]
        return [*model.parameters()]

    same(program)


def test_a_program_goes_on_after_it_ran_out_of_memory():
    model, x = nn.Linear(64, 64).cuda(), taeda.randn(8, 64).cuda()
    before = taeda.cuda.memory_allocated()
    taeda.cuda.empty_cache()
    taeda.cuda.set_per_process_memory_fraction(
        (taeda.cuda.memory_reserved() + (8 << 20)) / taeda.cuda.mem_get_info()[1]
    )
    try:
        with pytest.raises(taeda.cuda.OutOfMemoryError):
            model(x[:, None].expand(8, 1 << 14, 64))
        loss = model(x).sum()
        loss.backward()
        assert model.weight.grad.equal(x.sum(0).expand(64, 64))
    finally:
        taeda.cuda.set_per_process_memory_fraction(1.0)
    del loss
    model.zero_grad()
    assert taeda.cuda.memory_allocated() == before
