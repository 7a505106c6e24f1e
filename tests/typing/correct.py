"""Correct programs, a function each, as people write them: a type checker has nothing to say about them."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import taeda
import taeda.distributed as dist
import taeda.nn as nn
import taeda.nn.functional as F
import taeda.optim as optim
from taeda import Tensor
from taeda.autograd import Function
from taeda.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from taeda.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, OneCycleLR, ReduceLROnPlateau, StepLR
from taeda.utils.checkpoint import checkpoint
from taeda.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, random_split


def creation() -> Tensor:
    a = taeda.zeros(2, 3) + taeda.ones((2, 3)) + taeda.full((2, 3), 1.5) + taeda.rand(2, 3, dtype=taeda.float64)
    b = taeda.arange(0, 6, 2).float() + taeda.linspace(0, 1, 3) + taeda.eye(3).sum(0) + taeda.tensor([1.0, 2.0, 3.0])
    return a + b + taeda.zeros_like(a) + taeda.randint(0, 5, (2, 3)) + taeda.empty(3, device="cpu").fill_(0.0)


def arithmetic(x: Tensor, y: Tensor) -> Tensor:
    z = 2 * x + y / 3 - x**2 + (-y) % 2 + x @ y.T
    z += 1
    z.mul_(2).add_(x, alpha=0.1).clamp_(min=0)
    return 1 - z.abs().sqrt().exp().log1p() + x.pow(2) * y.sigmoid()


def shapes(x: Tensor) -> tuple[int, int]:
    batch, channels = x.shape[0], x.size(1)
    y = x.view(batch, -1).reshape(-1, 4).unsqueeze(0).squeeze(0).transpose(0, 1).permute(1, 0).contiguous()
    z = y.flatten(0).expand(2, -1).repeat(1, 2)
    assert len(x.shape) == x.dim() == x.ndim
    return z.numel() // channels, x.stride(0)


def parts(x: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=1)
    first, *others = x.split(1)
    total = taeda.cat([a, b], dim=1) + taeda.stack(list(others)).sum()
    for row in x.unbind(0):
        total = total + row.sum()
    return total + first


def indexing(x: Tensor, mask: Tensor) -> Tensor:
    x[0] = 1.0
    x[:, 1:] = x[:, :-1]
    x[mask] = 0
    return x[0, ..., None] + x[x > 0].sum() + x[[0, 1]].mean() + x.gather(0, mask.long()) + x.masked_fill(mask, -1e9)


def reductions(x: Tensor) -> float:
    values, indices = x.max(dim=1)
    best = x.max()
    top = x.topk(2, dim=-1)
    spread = x.std(dim=0, unbiased=False).mean() + x.var() + x.median() + x.sum(dim=(0, 1)) + x.amax((0, 1))
    order = x.sort(descending=True).indices
    return float(values.sum() + best + top.values[0, 0] + spread + order.argmax() + indices.float().norm())


def conversions(x: Tensor) -> np.ndarray:
    y = x.to(taeda.float16).to("cpu").to(x.dtype).double().int().bool().to(taeda.device("cpu"), taeda.float32)
    number: float = y.sum().item()
    n = y.detach().cpu().numpy()
    back = taeda.from_numpy(n) + taeda.as_tensor([number]) + taeda.tensor(n)
    return np.asarray(back.tolist())


def comparison(x: Tensor, y: Tensor) -> bool:
    both = (x == y) & (x > 0) | ~(x < y)
    return bool(both.all()) and taeda.allclose(x, y, atol=1e-3) and not taeda.equal(x, y) and taeda.is_tensor(x)


def where_and_clamp(x: Tensor) -> Tensor:
    return taeda.where(x > 0, x, 0.0) + taeda.clamp(x, 0, 1) + taeda.minimum(x, x) + taeda.nan_to_num(x)


def gradients(x: Tensor) -> Tensor:
    x.requires_grad_(True)
    loss = (x**2).sum()
    loss.backward(retain_graph=True)
    (g,) = taeda.autograd.grad(loss, x, create_graph=True)
    x.grad = None
    return g.detach() + taeda.autograd.grad(g.sum(), [x])[0]


def without_gradients(model: nn.Module, x: Tensor) -> Tensor:
    with taeda.no_grad():
        y = model(x)
    with taeda.inference_mode(), taeda.set_grad_enabled(False):
        y = y + model(x)
    return y


@taeda.no_grad()
def decorated(x: Tensor) -> Tensor:
    return x * 2


@taeda.inference_mode()
def inferred(x: Tensor) -> Tensor:
    return x * 2


def calls_decorated(x: Tensor) -> Tensor:
    return decorated(x).relu() + inferred(x).tanh()


def linear_algebra(x: Tensor) -> Tensor:
    q, r = taeda.linalg.qr(x)
    u, s, vh = taeda.linalg.svd(x, full_matrices=False)
    values = taeda.linalg.eigvalsh(x @ x.mT)
    return q @ r + u @ taeda.diag(s) @ vh + taeda.linalg.solve(x, x) + taeda.linalg.norm(values) + x.det() + x.inverse()


def spectra(x: Tensor) -> Tensor:
    f = taeda.fft.rfft(x, dim=-1)
    return taeda.fft.irfft(f, n=x.shape[-1]) + f.abs().sum() + taeda.special.erf(x)


def contraction(x: Tensor, y: Tensor) -> Tensor:
    return taeda.einsum("ij,jk->ik", x, y) + taeda.matmul(x, y) + taeda.tensordot(x, y, dims=1) + taeda.bmm(x, y)[0]


def randomness() -> Tensor:
    taeda.manual_seed(0)
    generator = taeda.Generator().manual_seed(1)
    return (
        taeda.randn(3, generator=generator)
        + taeda.randperm(3)
        + taeda.bernoulli(taeda.rand(3))
        + taeda.normal(0.0, 1.0, (3,))
    )


class Net(nn.Module):
    def __init__(self, hidden: int = 64, classes: int = 10) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, hidden, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(hidden)
        self.head = nn.Linear(hidden, classes)
        self.dropout = nn.Dropout(0.1)
        self.scale = nn.Parameter(taeda.ones(1))
        self.register_buffer("steps", taeda.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.conv(x)))
        x = F.max_pool2d(x, 2)
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.head(self.dropout(x)) * self.scale


def training(loader: DataLoader) -> float:
    model = Net()
    optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1, betas=(0.9, 0.95))
    scheduler = CosineAnnealingLR(optimizer, T_max=10)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    total = 0.0
    for epoch in range(2):
        model.train()
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            total += loss.item()
        scheduler.step()
        print(f"epoch {epoch}: {total / len(loader):.3f}, rate {scheduler.get_last_lr()[0]:.2e}")
    return total


def evaluation(model: Net, loader: DataLoader) -> float:
    model.eval()
    right = count = 0
    with taeda.no_grad():
        for x, y in loader:
            right += int((model(x).argmax(dim=1) == y).sum().item())
            count += len(y)
    return right / count


class Squares(Dataset):
    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return taeda.tensor(float(index)), index**2


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[Tensor]:
        yield from taeda.randn(10, 3)


def data() -> DataLoader:
    train, test = random_split(Squares(100), [80, 20])
    pairs = TensorDataset(taeda.randn(8, 2), taeda.arange(8))
    print(len(train), len(test), pairs[0], next(iter(DataLoader(Stream(), batch_size=2))))
    return DataLoader(train, batch_size=16, shuffle=True, num_workers=2, drop_last=True, pin_memory=False)


def saving(model: nn.Module, optimizer: optim.Optimizer) -> None:
    taeda.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, "checkpoint.pt")
    state = taeda.load("checkpoint.pt", map_location="cpu", weights_only=True)
    model.load_state_dict(state["model"], strict=True)
    optimizer.load_state_dict(state["optimizer"])


def device_of_choice(model: nn.Module) -> nn.Module:
    device = taeda.device("cuda" if taeda.cuda.is_available() else "cpu")
    with taeda.device("meta"):
        nn.Linear(1000, 1000)
    return model.to(device).to(dtype=taeda.float32).float()


def sequential() -> Tensor:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 1), nn.Flatten(0))
    for name, parameter in model.named_parameters():
        print(name, parameter.shape, parameter.requires_grad, parameter.grad is None)
    print(sum(p.numel() for p in model.parameters()), model[0], len(model))
    return model(taeda.randn(2, 4))


def containers() -> Tensor:
    layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
    named = nn.ModuleDict({"a": nn.Linear(4, 4)})
    x = taeda.randn(2, 4)
    for layer in layers:
        x = layer(x)
    return named["a"](x)


def initialisation(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, gain=nn.init.calculate_gain("relu"))
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def recurrent(x: Tensor, lengths: Tensor) -> Tensor:
    lstm = nn.LSTM(4, 8, num_layers=2, batch_first=True, bidirectional=True, dropout=0.1)
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    out, (h, c) = lstm(packed)
    padded, sizes = pad_packed_sequence(out, batch_first=True)
    gru = nn.GRUCell(4, 8)
    return padded.sum() + h.sum() + c.sum() + sizes.sum() + gru(x[:, 0]).sum()


def attention(x: Tensor) -> Tensor:
    mha = nn.MultiheadAttention(8, num_heads=2, batch_first=True)
    out, weights = mha(x, x, x, need_weights=True)
    y = F.scaled_dot_product_attention(x, x, x, attn_mask=None, dropout_p=0.0, is_causal=True)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, batch_first=True), num_layers=2)
    return out + y + encoder(x) + weights.sum()


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.RMSNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        h = self.norm1(x)
        x = x + self.attention(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


def transformer() -> Tensor:
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    return Block(16, 4)(taeda.randn(2, 5, 16), mask=mask)


def losses(x: Tensor, y: Tensor, classes: Tensor) -> Tensor:
    total = F.mse_loss(x, y) + F.l1_loss(x, y, reduction="sum") + F.smooth_l1_loss(x, y, beta=0.5)
    total = total + F.cross_entropy(x, classes, ignore_index=-100) + F.nll_loss(F.log_softmax(x, dim=-1), classes)
    total = (
        total
        + F.binary_cross_entropy_with_logits(x, y, pos_weight=taeda.ones(3))
        + F.kl_div(x, y, reduction="batchmean")
    )
    return total + nn.BCELoss()(x, y) + nn.HuberLoss(delta=2.0)(x, y) + F.cosine_similarity(x, y, dim=1).mean()


def images(x: Tensor) -> Tensor:
    x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
    x = F.pad(x, (1, 1, 1, 1), mode="reflect")
    x = F.conv2d(x, taeda.randn(8, 3, 3, 3), stride=2, padding=1)
    x = F.avg_pool2d(F.leaky_relu(x, 0.2), kernel_size=2)
    x = F.conv2d(x, taeda.randn(8, 8, 3, 3), None, (2, 1), padding="valid", dilation=[1, 1], groups=1)
    x = F.conv_transpose2d(x, taeda.randn(8, 8, 3, 3), stride=(2, 1), padding=(1, 1), output_padding=(1, 0))
    x = F.max_pool2d(x, (3, 3), stride=(2, 2), padding=(1, 1), ceil_mode=True)
    x = F.adaptive_avg_pool2d(x, (None, 7)) + F.adaptive_avg_pool2d(x, 7)
    x = F.fold(F.unfold(x, (1, 1), stride=(1, 1)), output_size=(7, 7), kernel_size=(1, 1))
    x = x.roll((1, 2), dims=(2, 3)).repeat(1, 1, 2, 2).permute(0, 2, 3, 1).permute((0, 3, 1, 2))
    x = F.layer_norm(x, x.shape[1:]) + F.group_norm(x, 4, eps=1e-6)
    return F.softmax(F.dropout(x, p=0.5, training=True), dim=1)


def embedding(tokens: Tensor) -> Tensor:
    table = nn.Embedding(100, 16, padding_idx=0)
    return table(tokens) + F.one_hot(tokens, num_classes=16).float() + F.embedding(tokens, table.weight)


class Exp(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return g * y


def custom(x: Tensor) -> Tensor:
    return Exp.apply(x)


def transforms(x: Tensor) -> Any:
    from taeda.func import functional_call, grad, hessian, jacrev, vmap

    model = nn.Linear(3, 1)

    def call(p: dict[str, Tensor], v: Tensor) -> Tensor:
        return functional_call(model, p, (v,)).sum()

    per_sample = vmap(grad(call), in_dims=(None, 0))(dict(model.named_parameters()), x)
    return per_sample, hessian(lambda v: (v**3).sum())(x), jacrev(taeda.sin)(x), taeda.vmap(taeda.sum)(x)


def compiled(model: nn.Module, x: Tensor) -> Tensor:
    fast = taeda.compile(model, mode="reduce-overhead")

    @taeda.compile
    def step(v: Tensor) -> Tensor:
        return v * 2 + 1

    return fast(x) + step(x)


def mixed_precision(model: nn.Module, optimizer: optim.Optimizer, x: Tensor) -> None:
    scaler = taeda.amp.GradScaler(enabled=False)
    with taeda.autocast("cpu", dtype=taeda.bfloat16):
        loss = model(x).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


def schedules(optimizer: optim.Optimizer) -> None:
    warm = LambdaLR(optimizer, lambda step: min(1.0, step / 100))
    steps = StepLR(optimizer, step_size=10, gamma=0.5)
    plateau = ReduceLROnPlateau(optimizer, factor=0.5, patience=3)
    cycle = OneCycleLR(optimizer, max_lr=0.1, total_steps=100)
    warm.step()
    steps.step()
    cycle.step()
    plateau.step(0.5)
    for group in optimizer.param_groups:
        group["lr"] *= 0.5


def optimisers(model: nn.Module) -> list[optim.Optimizer]:
    return [
        optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True),
        optim.Adam([{"params": [p], "lr": 1e-3} for p in model.parameters()]),
        optim.RMSprop(model.parameters(), lr=1e-2, alpha=0.9),
        optim.LBFGS(model.parameters(), lr=1, max_iter=5),
    ]


def closure(model: nn.Module, x: Tensor) -> None:
    optimizer = optim.LBFGS(model.parameters())

    def evaluate() -> Tensor:
        optimizer.zero_grad()
        loss = model(x).pow(2).sum()
        loss.backward()
        return loss

    optimizer.step(evaluate)


def hooks(model: nn.Module) -> list[Tensor]:
    kept: list[Tensor] = []
    handle = model.register_forward_hook(lambda module, args, output: kept.append(output))
    model(taeda.randn(1, 4))
    handle.remove()
    x = taeda.ones(2, requires_grad=True)
    x.register_hook(lambda g: g * 2)
    return kept


def distributions(x: Tensor) -> Tensor:
    from taeda.distributions import Categorical, Normal, kl_divergence

    policy = Categorical(logits=x)
    action = policy.sample()
    prior, posterior = Normal(0.0, 1.0), Normal(x, 1.0)
    return (
        policy.log_prob(action) + policy.entropy() + kl_divergence(posterior, prior).sum() + posterior.rsample().sum()
    )


def exported(model: nn.Module, x: Tensor) -> Tensor:
    program = taeda.export.export(model, (x,))
    taeda.export.save(program, "model.pt2")
    traced = taeda.jit.trace(model, x)
    taeda.onnx.export(model, (x,), "model.onnx")
    return program.module()(x) + traced(x)


def distributed() -> None:
    dist.init_process_group("gloo")
    x = taeda.ones(2)
    dist.all_reduce(x, op=dist.ReduceOp.SUM)
    dist.barrier()
    if dist.get_rank() == 0:
        print(x, dist.get_world_size())
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
    print(model.module)
    dist.destroy_process_group()


def checkpointed(block: nn.Module, x: Tensor) -> Tensor:
    return checkpoint(block, x, use_reentrant=False)


def profiled(model: nn.Module, x: Tensor) -> None:
    with taeda.profiler.profile(record_shapes=True) as prof:
        model(x)
    print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=5))


def anomalies(x: Tensor) -> None:
    with taeda.autograd.detect_anomaly():
        x.log().sum().backward()
    taeda.autograd.gradcheck(lambda v: v**2, (x.double().requires_grad_(),))


def complex_numbers(x: Tensor) -> Tensor:
    z = taeda.complex(x, x)
    return z.real + z.imag + z.abs() + taeda.view_as_real(z).sum() + z.conj().angle()


def sparse(x: Tensor) -> Tensor:
    indices = taeda.tensor([[0, 1], [1, 0]])
    s = taeda.sparse_coo_tensor(indices, taeda.ones(2), (2, 2))
    return taeda.sparse.mm(s, x) + s.to_dense()


def grids() -> Tensor:
    a, b = taeda.meshgrid(taeda.arange(3), taeda.arange(4), indexing="ij")
    grid = F.grid_sample(taeda.randn(1, 1, 4, 4), taeda.zeros(1, 2, 2, 2), align_corners=True)
    return a + b + taeda.tril(taeda.ones(3, 3)).sum() + taeda.cumsum(a, dim=0).sum() + grid.sum()


def generation(model: nn.Module, tokens: Tensor, n: int, temperature: float = 1.0) -> Tensor:
    for _ in range(n):
        logits = model(tokens)[:, -1] / temperature
        chosen = taeda.multinomial(F.softmax(logits, dim=-1), num_samples=1)
        tokens = taeda.cat((tokens, chosen), dim=1)
    return tokens


class VAE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(8, 4)
        self.decoder = nn.Linear(2, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_variance = self.encoder(x).chunk(2, -1)
        z = mean + taeda.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decoder(z), mean, log_variance


def vae(x: Tensor) -> Tensor:
    out, mean, log_variance = VAE()(x)
    return F.mse_loss(out, x) - 0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()


def average(model: nn.Module) -> nn.Module:
    ema = optim.swa_utils.AveragedModel(model, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.999))
    ema.update_parameters(model)
    return ema


def freeze(model: Net) -> list[nn.Parameter]:
    for p in model.conv.parameters():
        p.requires_grad = False
    model.head = nn.Linear(model.head.in_features, 5)
    return [p for p in model.parameters() if p.requires_grad]


def precision() -> None:
    print(taeda.finfo(taeda.float32).eps, taeda.iinfo(taeda.int64).max, taeda.get_default_dtype(), taeda.__version__)
    taeda.set_default_dtype(taeda.float64)
    taeda.set_num_threads(2)
    taeda.use_deterministic_algorithms(True)
    taeda.set_printoptions(precision=3)


def clusters(points: Tensor, k: int) -> Tensor:
    centres = points[taeda.randperm(len(points))[:k]].clone()
    nearest = taeda.zeros(len(points), dtype=taeda.int64)
    for _ in range(10):
        nearest = taeda.cdist(points, centres).argmin(dim=1)
        for i in range(k):
            if (nearest == i).any():
                centres[i] = points[nearest == i].mean(dim=0)
    counts = taeda.bincount(nearest, minlength=k)
    values = taeda.unique(nearest)
    return centres[counts > 0][: len(values)]


@taeda.compile(fullgraph=True, dynamic=True)
def scaled(x: Tensor, y: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    return (x if y is None else x + y) * scale


@taeda.library.custom_op("typed::twice", mutates_args=())
def twice(x: Tensor) -> Tensor:
    return x * 2


@twice.register_fake
def twice_without_values(x: Tensor) -> Tensor:
    return taeda.empty_like(x)


def decorated_by_arguments(x: Tensor) -> Tensor:
    return twice(scaled(x, scale=2.0)) + scaled(x, x).relu()


def parts_of_sizes(x: Tensor) -> taeda.Size:
    first, *others = x.shape
    batch: taeda.Size = x.shape[:-1]
    more: taeda.Size = batch + x.shape[-1:] + tuple(others)
    y = x.view(*more, 1, -1).view(taeda.int32).reshape((first, -1)).expand(first, -1).permute((1, 0)).flip(0, 1)
    y = taeda.zeros(more) + taeda.rand(*batch, 3) + taeda.ones(np.int64(3)) + taeda.arange(0.0, taeda.tensor(3), 1)
    y = y.to(x).to(x.dtype).to("cpu", taeda.float32).to(dtype=taeda.float16, copy=True).movedim(0, 1).tile(2, 3)
    return (y.shape * 2)[: more.numel() + len(others)]


def shared_out(pairs: Squares) -> Iterator[tuple[Tensor, int]]:
    from taeda.utils.data import ConcatDataset, DistributedSampler, StackDataset

    sampler: DistributedSampler[int] = DistributedSampler(pairs, num_replicas=2, rank=0)
    both = ConcatDataset([pairs, pairs])
    beside: StackDataset[dict[str, Any]] = StackDataset(left=pairs, right=both)
    print(beside[0]["left"], [i + 1 for i in sampler])
    yield from (both[i] for i in sampler)


def children(model: nn.Sequential, table: nn.ModuleDict, weights: nn.ParameterDict) -> Tensor:
    head: nn.Sequential = model[:-1]
    total = head(taeda.ones(2, 2)) + sum(p.sum() for p in weights.values())
    for name, layer in table.items():
        print(name.upper(), layer.training, len(weights.keys()), len(table.values()))
    return total


def several_devices(model: Net) -> Tensor:
    parallel = nn.DataParallel(model)
    return parallel.module.head(parallel(taeda.randn(1, 3, 8, 8)))
