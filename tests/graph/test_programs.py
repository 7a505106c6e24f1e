"""Training loops of many kinds, compiled against eager: the same losses and parameters, bit for bit."""

import copy
import itertools
import math

import pytest

import taeda
from taeda import nn
from taeda.nn import functional as F

B, D = 64, 96  # results of 6,144 elements and more are deferred
PROGRAMS = {}


def program(make):
    """``make()`` gives a step and what it trains."""
    PROGRAMS[make.__name__] = make
    return make


def mlp(*sizes, act=nn.Tanh):
    layers = [layer for n, m in itertools.pairwise(sizes) for layer in (nn.Linear(n, m), act())]
    return nn.Sequential(*layers[:-1])


def trained(net, loss_of, optimizer=None, after=lambda: None, before=lambda: None):
    optimizer = optimizer or taeda.optim.Adam(net.parameters(), lr=1e-2)

    def step(x):
        optimizer.zero_grad()
        loss = loss_of(x)
        loss.backward()
        before()
        optimizer.step()
        after()
        return loss.detach()

    return step, net


@program
def gan():
    g, d = mlp(16, D, D), mlp(D, D, 1, act=nn.SiLU)
    og, od = (taeda.optim.Adam(m.parameters(), lr=1e-3, betas=(0.5, 0.9)) for m in (g, d))

    def step(x):
        z = taeda.randn(B, 16)
        loss_d = F.softplus(-d(x)).mean() + F.softplus(d(g(z).detach())).mean()
        od.zero_grad()
        loss_d.backward()
        od.step()
        loss_g = F.softplus(-d(g(z))).mean()
        og.zero_grad()
        loss_g.backward()
        og.step()
        return loss_d.detach(), loss_g.detach()

    return step, nn.ModuleList([g, d])


@program
def gradient_penalty():
    d = mlp(D, D, 1)

    def loss(x):
        mixed = (0.3 * x + 0.7 * taeda.randn_like(x)).requires_grad_()
        (grad,) = taeda.autograd.grad(d(mixed).sum(), mixed, create_graph=True)
        return d(x).mean() + 10 * ((grad.norm(2, dim=1) - 1) ** 2).mean()

    return trained(d, loss)


@program
def vae():
    net = nn.ModuleDict({"e": mlp(D, D, 2 * D), "d": mlp(D, D, D)})

    def loss(x):
        mu, logvar = net["e"](x).chunk(2, -1)
        z = mu + (0.5 * logvar).exp() * taeda.randn_like(mu)
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(-1).mean()
        return F.binary_cross_entropy_with_logits(net["d"](z), x.sigmoid()) + 1e-3 * kl

    return trained(net, loss)


@program
def policy_gradient():
    net = mlp(D, D, 5)

    def loss(x):
        policy = taeda.distributions.Categorical(logits=net(x))
        action = policy.sample()
        reward = (action == 2).float() - 0.2
        return -(policy.log_prob(action) * (reward - reward.mean())).mean() - 0.01 * policy.entropy().mean()

    return trained(net, loss)


@program
def diffusion():
    net = mlp(D + 16, 2 * D, D, act=nn.GELU)
    keep = taeda.cumprod(1 - taeda.linspace(1e-4, 0.02, 50), 0)
    waves = taeda.exp(-math.log(1e4) * taeda.arange(8) / 8)

    def loss(x):
        t, noise = taeda.randint(0, 50, (B,)), taeda.randn_like(x)
        a = keep[t][:, None]
        angle = t[:, None] * waves
        given = taeda.cat([a.sqrt() * x + (1 - a).sqrt() * noise, angle.sin(), angle.cos()], -1)
        return F.mse_loss(net(given), noise)

    return trained(net, loss)


@program
def teacher_forcing():
    net = nn.ModuleDict({"e": nn.GRU(D, D), "d": nn.GRUCell(D, D), "o": nn.Linear(D, D)})

    def loss(x):
        _, h = net["e"](x[None].expand(4, B, D))
        h, given, total = h[0], taeda.zeros(B, D), 0.0
        for t in range(4):
            h = net["d"](given, h)
            out = net["o"](h)
            total = total + F.smooth_l1_loss(out, x * (t + 1))
            given = x * (t + 1) if t % 2 else out.detach()
        return total

    return trained(net, loss)


@program
def contrastive():
    net = mlp(D, D, D, act=nn.ELU)

    def loss(x):
        a = F.normalize(net(x + 0.1 * taeda.randn_like(x)), dim=-1)
        b = F.normalize(net(x + 0.1 * taeda.randn_like(x)), dim=-1)
        return F.cross_entropy(a @ b.t() / 0.1, taeda.arange(B)) + F.triplet_margin_loss(a, b, b.flip(0))

    return trained(net, loss)


@program
def moving_average():
    net = mlp(D, D, D)
    slow = copy.deepcopy(net).requires_grad_(False)

    def after():
        with taeda.no_grad():
            for p, q in zip(net.parameters(), slow.parameters(), strict=True):
                q.lerp_(p, 0.1)

    step, _ = trained(net, lambda x: F.mse_loss(net(x), slow(x) + 1), after=after)
    return step, nn.ModuleList([net, slow])


@program
def custom_function():
    class Straight(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sign() * x.abs().sqrt()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (x.abs() < 1) + 0.1 * g

    net = mlp(D, D, D)
    return trained(net, lambda x: (Straight.apply(net(x)) - x).square().mean())


@program
def checkpointed():
    net = nn.ModuleList([mlp(D, D, D) for _ in range(3)])

    def loss(x):
        for block in net:
            x = taeda.utils.checkpoint.checkpoint(lambda h, f=block: F.dropout(f(h), 0.2) + h, x, use_reentrant=False)
        return x.square().mean()

    return trained(net, loss)


@program
def mixed_precision():
    net = mlp(D, D, D, act=nn.ReLU)

    def loss(x):
        with taeda.autocast("cpu", dtype=taeda.bfloat16):
            return F.mse_loss(net(x).float(), x)

    return trained(net, loss)


@program
def scaled_gradients():
    net, scaler = mlp(D, D, D), taeda.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    optimizer = taeda.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)

    def step(x):
        optimizer.zero_grad(set_to_none=False)
        loss = (net(x) - x).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return step, net


@program
def lbfgs():
    net = mlp(D, 48, D)
    optimizer = taeda.optim.LBFGS(net.parameters(), lr=0.5, max_iter=4, line_search_fn="strong_wolfe")

    def step(x):
        def closure():
            optimizer.zero_grad()
            loss = (net(x) - x).abs().mean()
            loss.backward()
            return loss

        return optimizer.step(closure).detach()

    return step, net


@program
def scheduled():
    net = mlp(D, D, D)
    optimizer = taeda.optim.RMSprop([{"params": net[0].parameters()}, {"params": net[2].parameters(), "lr": 1e-3}])
    schedule = taeda.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=20)
    return trained(net, lambda x: F.huber_loss(net(x), x), optimizer, after=schedule.step)


@program
def accumulated():
    net = mlp(D, D, D)
    optimizer = taeda.optim.AdamW(net.parameters(), lr=1e-2)

    def step(x):
        optimizer.zero_grad()
        losses = [(net(part) - part).square().mean() / 2 for part in taeda.cat([x, x * 2]).split(B)]
        for loss in losses:
            loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), 0.01)
        optimizer.step()
        return sum(losses).detach()

    return step, net


@program
def normed_weights():
    net = mlp(D, D, D)
    net[0] = nn.utils.parametrizations.weight_norm(net[0])
    net[2] = nn.utils.parametrizations.spectral_norm(net[2])
    return trained(net, lambda x: F.kl_div(net(x).log_softmax(-1), x.softmax(-1), reduction="batchmean"))


@program
def hooked():
    net, seen = mlp(D, D, D), []
    net[0].register_forward_hook(lambda m, args, out: out * 1.5)
    net[2].register_full_backward_hook(lambda m, gi, go: (gi[0].clamp(-0.01, 0.01),))
    net[2].weight.register_hook(lambda g: g + 0.1 * g.mean())
    net[0].weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.abs().max().item()))
    step, _ = trained(net, lambda x: (net(x) - x).square().mean())
    return lambda x: (step(x), seen[-1]), net


@program
def written_views():
    net = mlp(D, D, D)

    def loss(x):
        y = net(x).clone()
        y[:, ::2] *= 2
        y[3:7].clamp_(min=0).add_(x[3:7])
        y.masked_fill_(x > 1.5, 0.0)
        mask = y.detach() > 0
        return y[mask].square().sum() / max(int(mask.sum()), 1) + (y.t() * x.t()).mean()

    return trained(net, loss)


@program
def decided_by_data():
    net = mlp(D, D, D)

    def loss(x):
        y = net(x)
        for _ in range(3):
            if y.abs().max() > 0.7:
                y = y * 0.5 + x * 0.1
        return (y - x).square().mean() if y.mean() > 0 else (y - x).abs().mean()

    return trained(net, loss)


@program
def per_sample_gradients():
    net = mlp(D, 48, 1)
    names = [name for name, _ in net.named_parameters()]

    def loss_of(params, x):
        return taeda.func.functional_call(net, dict(zip(names, params, strict=True)), (x,)).square().sum()

    def step(x):
        grads = taeda.func.vmap(taeda.func.grad(loss_of), (None, 0))(tuple(net.parameters()), x)
        norm = sum(g.flatten(1).square().sum(1) for g in grads).sqrt()
        with taeda.no_grad():
            for p, g in zip(net.parameters(), grads, strict=True):
                scale = (1 / norm).clamp(max=1).view(-1, *[1] * p.dim())
                p -= 0.1 * ((g * scale).mean(0) + 0.01 * taeda.randn_like(p))
        return norm

    return step, net


def values(make, compiled, steps=7):
    taeda.manual_seed(0)
    step, net = make()
    step = compiled(step)
    found = [step(taeda.randn(B, D)) for _ in range(steps)]
    return taeda.utils._pytree.tree_leaves([found, list(net.state_dict().values())])


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_trains_as_eagerly(name, mode):
    expected = values(PROGRAMS[name], lambda step: step)
    found = values(PROGRAMS[name], lambda step: taeda.compile(step, mode=mode))
    assert len(expected) == len(found) > 7
    for x, y in zip(expected, found, strict=True):
        assert taeda.equal(x, y) if isinstance(x, taeda.Tensor) else x == y


def test_they_learn():
    first, *_, last = values(moving_average, taeda.compile, 20)[:20]
    assert last < first
