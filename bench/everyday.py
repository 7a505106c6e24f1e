"""Everyday calls on small inputs, at most half of PyTorch's time each: ``python bench/run.py --only everyday``."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any


def inputs(T: Any) -> dict[str, Any]:
    """What the expressions name."""
    T.manual_seed(0)
    a, b = T.randn(8, 8), T.randn(8, 8)
    return {
        **trained(T),
        "T": T,
        "copy": copy,
        "pickle": pickle,
        "F": T.nn.functional,
        "a": a,
        "b": b,
        "c": a.abs() + 1,
        "m": a > 0,
        "w": T.randn(8, 8),
        "v": T.randn(100),
        "n": T.arange(100) % 8,
        "idx": T.tensor([3, 1, 7, 0]),
        "array": a.numpy().copy(),
        "images": T.randn(2, 3, 8, 8),
        "filters": T.randn(4, 3, 3, 3),
        "one": T.tensor(1.5),
        "g": T.randn(8, 8, requires_grad=True),
    }


def trained(T: Any) -> dict[str, Any]:
    """What modules, losses and optimisers are called with; ``x``, ``im``, ``vol`` and ``seq`` require grad."""
    nn, data = T.nn, T.utils.data
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
    for p in net.parameters():
        p.grad = T.zeros_like(p)
    xs, ys = T.randn(64, 8), T.arange(64) % 8
    lstm, gru = nn.LSTM(8, 16, batch_first=True), nn.GRU(8, 16, batch_first=True)
    return {
        "nn": nn,
        "L": data.DataLoader(data.TensorDataset(xs, ys), batch_size=16),
        "S": data.DataLoader(data.TensorDataset(xs, ys), batch_size=16, shuffle=True),
        "net": net,
        "state": net.state_dict(),
        "sgd": T.optim.SGD(net.parameters(), lr=1e-6, momentum=0.9),
        "adam": T.optim.Adam(net.parameters(), lr=1e-9),
        "adamw": T.optim.AdamW(net.parameters(), lr=1e-9),
        "x": T.randn(8, 8, requires_grad=True),
        "im": T.randn(2, 4, 8, 8, requires_grad=True),
        "vol": T.randn(1, 2, 4, 8, 8, requires_grad=True),
        "seq": T.randn(2, 6, 8, requires_grad=True),
        "volume": T.randn(1, 2, 4, 8, 8),
        "big": T.randn(64, 64),
        "words": T.arange(12).view(2, 6) % 8,
        "target": T.arange(8) % 4,
        "half": T.rand(8, 8),
        "linear": nn.Linear(8, 8),
        "conv": nn.Conv2d(4, 8, 3, padding=1),
        "conv1": nn.Conv1d(6, 8, 3),
        "conv3": nn.Conv3d(2, 4, 3),
        "up": nn.ConvTranspose2d(4, 4, 2, 2),
        "bn": nn.BatchNorm2d(4),
        "bn1": nn.BatchNorm1d(8),
        "ln": nn.LayerNorm(8),
        "gn": nn.GroupNorm(2, 4),
        "inorm": nn.InstanceNorm2d(4),
        "rms": nn.RMSNorm(8),
        "emb": nn.Embedding(10, 8),
        "mha": nn.MultiheadAttention(8, 2, batch_first=True),
        "lstm": lstm,
        "gru": gru,
        "rnn": nn.RNN(8, 16, batch_first=True),
        "cell": nn.GRUCell(8, 8),
        "layer": nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        "drop": nn.Dropout(0.5),
        "drop2": nn.Dropout2d(0.5),
        "ce": nn.CrossEntropyLoss(),
        "bce": nn.BCEWithLogitsLoss(),
    }


CALLS = """
T.tensor([1.0, 2.0, 3.0]) | T.zeros(8, 8) | T.ones(8, 8) | T.full((8, 8), 2.0) | T.empty(8, 8) | T.arange(100)
T.linspace(0, 1, 100) | T.eye(8) | T.rand(8, 8) | T.randn(8, 8) | T.randint(0, 10, (8, 8)) | T.randperm(100)
T.zeros_like(a) | T.rand_like(a) | T.from_numpy(array) | T.as_tensor(array)
a.view(64) | a.reshape(4, 16) | a.T | a.permute(1, 0) | a.unsqueeze(0) | a.flatten() | a.expand(2, 8, 8)
a.t().contiguous() | a.clone() | a.detach() | a.double() | a.to(T.int64) | a[0] | a[:, 1:3] | a[m] | a[idx]
w.__setitem__(0, 1.0) | T.cat([a, b]) | T.stack([a, b]) | a.chunk(2) | a.split(2) | a.unbind() | a.repeat(2, 2)
a.roll(1, 0) | a.flip(0) | a.tril() | a.diag() | a.masked_fill(m, 0.0) | T.where(m, a, b) | v.gather(0, n)
a.index_select(0, idx)
a + b | a * 2.0 | a.exp() | a.clip(-1, 1) | a.clamp(min=0) | a.abs() | a.pow(2) | a.add(b, alpha=0.5)
w.add_(b, alpha=-1e-9) | w.addcmul_(a, b, value=1e-9) | w.addcdiv_(a, c, value=1e-9) | T.lerp(a, b, 0.1) | a.isnan()
a @ b | T.einsum("ij,jk->ik", a, b) | T.outer(v, v) | v.norm() | T.cosine_similarity(a, b) | T.cdist(a, b)
a.sum() | a.mean(1) | a.std() | a.max(1) | a.argmax(1) | a.cumsum(0) | m.any() | a.topk(2) | v.sort() | n.unique()
n.bincount() | T.allclose(a, b) | T.equal(a, b)
F.one_hot(n, 8) | F.relu(a) | F.gelu(a) | F.softmax(a, -1) | F.cross_entropy(a, n[:8]) | F.mse_loss(a, b)
F.dropout(a, 0.5) | F.linear(a, b) | F.layer_norm(a, (8,)) | F.embedding(n, a) | F.normalize(a) | F.pad(a, (1, 1))
F.conv2d(images, filters) | F.max_pool2d(images, 2) | F.interpolate(images, scale_factor=2)
one.item() | a.tolist() | a.numpy() | a.shape | float(one) | (g * a).sum().backward()
"""

WIDER = """
F.avg_pool2d(im.detach(), 2) | F.avg_pool3d(volume, 2) | F.max_pool3d(volume, 2) | F.adaptive_avg_pool2d(images, 1)
F.adaptive_max_pool2d(images, 2) | F.max_pool1d(a, 2) | F.avg_pool1d(a, 2) | F.lp_pool2d(images, 2, 2)
F.avg_pool2d(im, 2).sum().backward() | F.max_pool2d(im, 2).sum().backward() | F.avg_pool3d(vol, 2).sum().backward()
F.adaptive_avg_pool2d(im, 1).sum().backward() | F.max_pool1d(x, 2).sum().backward() | F.pixel_shuffle(im.detach(), 2)
F.pixel_unshuffle(im.detach(), 2) | F.pixel_shuffle(im, 2).sum().backward() | list(net.parameters())
net.state_dict() | net.load_state_dict(state) | sgd.zero_grad(set_to_none=False) | net.zero_grad(set_to_none=False)
list(net.named_parameters()) | list(net.modules()) | list(net.children()) | net.train() | net.eval()
net.requires_grad_(True) | net.to(T.float32) | net.float() | net.apply(lambda m: None) | sgd.step() | adam.step()
adamw.step() | nn.utils.clip_grad_norm_(net.parameters(), 1e9) | list(L) | list(S) | nn.Linear(8, 8)
nn.Conv2d(3, 8, 3) | nn.Sequential(nn.ReLU()) | nn.Parameter(a) | nn.init.xavier_uniform_(w) | nn.init.normal_(w)
nn.init.zeros_(w) | nn.init.kaiming_normal_(w) | linear(a) | linear(x) | conv(images[:, [0, 1, 2, 0]]) | conv(im)
conv1(seq) | conv3(volume) | up(im) | bn(im) | bn1(x) | ln(x) | gn(im) | inorm(im) | rms(x) | emb(words) | lstm(seq)
gru(seq) | rnn(seq) | cell(x, x) | mha(seq, seq, seq) | layer(seq) | drop(x) | drop2(im) | net(x) | ce(x, target)
bce(x, half) | F.one_hot(target) | F.unfold(images, 3) | linear(x).sum().backward() | conv(im).sum().backward()
conv1(seq).sum().backward() | conv3(vol).sum().backward() | up(im).sum().backward() | bn(im).sum().backward()
bn1(x).sum().backward() | ln(x).sum().backward() | gn(im).sum().backward() | inorm(im).sum().backward()
rms(x).sum().backward() | emb(words).sum().backward() | lstm(seq)[0].sum().backward() | gru(seq)[0].sum().backward()
rnn(seq)[0].sum().backward() | cell(x, x).sum().backward() | mha(seq, seq, seq)[0].sum().backward()
layer(seq).sum().backward() | drop(x).sum().backward() | drop2(im).sum().backward() | net(x).sum().backward()
ce(x, target).backward() | bce(x, half).backward() | F.mse_loss(x, a).backward() | F.l1_loss(x, a).backward()
F.smooth_l1_loss(x, a).backward() | F.nll_loss(x, target).backward()
F.kl_div(x, half, reduction="batchmean").backward() | F.huber_loss(x, a).backward()
F.binary_cross_entropy(x.sigmoid(), half).backward() | F.cosine_embedding_loss(x, a, T.ones(8)).backward()
F.triplet_margin_loss(x, a, b).backward() | F.softmax(x, -1).sum().backward() | F.gelu(x).sum().backward()
F.relu(x).sum().backward() | F.silu(x).sum().backward() | F.leaky_relu(x).sum().backward()
x.sigmoid().sum().backward() | F.pad(x, (1, 1)).sum().backward() | F.interpolate(im, scale_factor=2).sum().backward()
F.interpolate(im, scale_factor=2, mode="bilinear").sum().backward() | F.normalize(x).sum().backward()
F.scaled_dot_product_attention(im, im, im) | F.scaled_dot_product_attention(im, im, im).sum().backward()
F.grid_sample(images, T.zeros(2, 4, 4, 2)) | F.unfold(im, 3).sum().backward() | F.log_softmax(x, -1).sum().backward()
F.softplus(x).sum().backward() | F.cosine_similarity(x, a).sum().backward() | F.embedding(n, x).sum().backward()
(x + a).sum().backward() | (x @ a).sum().backward() | x.mean().backward() | x.max().backward()
x.max(1)[0].sum().backward() | x.exp().sum().backward() | x.std().backward() | x.norm().backward()
(x**2).mean().backward() | x[0].sum().backward() | x[:, 1:3].sum().backward() | x[idx].sum().backward()
x[m].sum().backward() | T.cat([x, a]).sum().backward() | T.stack([x, a]).sum().backward()
x.view(64).sum().backward() | x.t().sum().backward() | x.permute(1, 0).sum().backward()
x.gather(1, words[:, :1].expand(2, 8)).sum().backward() | x.cumsum(0).sum().backward()
x.chunk(2)[0].sum().backward() | T.where(m, x, b).sum().backward() | T.einsum("ij,jk->ik", x, a).sum().backward()
T.bmm(seq, seq.mT).sum().backward() | x.clamp(-1, 1).sum().backward() | x.masked_fill(m, 0.0).sum().backward()
T.autograd.grad((x * a).sum(), x) | x.detach() | x.grad_fn | x.requires_grad | a.dtype | a.device | a.ndim | a.size()
a.size(0) | a.dim() | a.numel() | len(a) | a.stride() | a.is_contiguous() | a.element_size() | a.data_ptr()
a.shape[0] | a.data | a.is_cuda | list(a) | a.cpu() | a.float() | a.to("cpu") | a.type(T.float64) | a.contiguous()
a.half() | a.bool() | a.long() | a.new_zeros(8) | repr(one) | repr(a) | a[0, 0] | a[0, 0].item() | a[-1] | a[..., 0]
a[None] | a[:, None] | a[::2] | a[1:3, 2:4] | a[idx, idx] | a[:, idx] | a[idx[:, None], idx] | a[a > 0] | a[[0, 2]]
w.__setitem__((slice(None), 0), 1.0) | w.__setitem__(m, 0.0) | w.__setitem__(idx, 1.0) | w.__setitem__(0, v[:8])
a.squeeze() | a.squeeze(0) | a.transpose(0, 1) | a.movedim(0, 1) | a.view(-1) | a.reshape(-1) | a.view(2, 4, 8)
a.expand_as(b) | a.view_as(b) | a.unfold(0, 2, 2) | a.narrow(0, 0, 2) | a.select(0, 1) | a.diagonal() | a.mT
a.ravel() | T.flatten(images, 1) | images.flatten(1) | images.mean((2, 3)) | T.broadcast_to(v[:8], (8, 8))
T.meshgrid(v[:8], v[:8], indexing="ij") | T.tensor(1.0) | T.tensor([[1, 2], [3, 4]]) | T.tensor(array)
T.empty_like(a) | T.full_like(a, 2.0) | T.randn_like(a) | T.ones_like(a) | T.bernoulli(half) | T.multinomial(half, 2)
T.normal(0.0, 1.0, (8, 8)) | T.arange(0, 1, 0.01) | T.logspace(0, 1, 10) | T.zeros(8, dtype=T.int64)
T.manual_seed(0) | T.is_tensor(a) | a.requires_grad_(False) | T.triu(a) | T.kron(a, b) | -a | a - b | a / c | a // 2
a % 2 | 1 - a | 1 / c | a == b | a > 0 | a != 0 | ~m | m & m | a**2 | a**0.5 | c.sqrt() | c.rsqrt() | c.log()
a.sin() | a.tanh() | a.sigmoid() | a.floor() | a.round() | a.sign() | a.square() | a.reciprocal() | a.erf() | a.neg()
T.maximum(a, b) | T.minimum(a, b) | a.clamp(-1, 1) | a.clamp_(-9, 9) | w.mul_(1.0) | w.zero_() | w.fill_(1.0)
w.copy_(a) | w.normal_() | w.uniform_() | w.sub_(b) | w.div_(c) | w.clone() | T.addmm(a, a, b) | T.bmm(seq, seq.mT)
T.mv(a, v[:8]) | T.dot(v, v) | T.matmul(seq, a) | T.baddbmm(seq, seq, a.expand(2, 8, 8)) | a.prod() | a.min()
a.max() | a.sum(1) | a.mean() | a.var(1) | a.sum(0, keepdim=True) | a.amax(1) | a.min(1) | a.argmin() | m.all()
m.sum() | a.norm(dim=1) | a.median() | a.quantile(0.5) | a.logsumexp(1) | a.cumprod(0) | a.sort(1) | a.argsort(1)
a.nonzero() | m.nonzero() | v.topk(5) | v.unique() | T.isin(n, idx) | T.isnan(a).any()
T.searchsorted(v.sort()[0], v) | v.histc(10) | T.count_nonzero(a) | T.isfinite(a) | T.logical_and(m, m)
T.bucketize(v, v[:4].sort()[0]) | w.scatter_(1, words[:, :4], 1.0) | w.index_add_(0, idx, b[:4])
w.masked_fill_(m, 0.0) | T.nan_to_num(a) | T.atleast_2d(a) | T.hstack([a, b]) | T.vstack([a, b]) | T.tril(a)
T.tile(a, (2, 2)) | a.repeat_interleave(2) | T.split(a, [3, 5]) | T.unbind(a, 1) | T.linalg.norm(a) | T.linalg.inv(a)
T.linalg.det(a) | T.linalg.solve(a, b) | T.linalg.svd(a) | T.linalg.qr(a) | T.linalg.cholesky(a @ a.T + 9 * T.eye(8))
T.linalg.eigh(a) | T.fft.fft(v) | T.fft.rfft(v) | T.stft(v, 16, return_complex=True, window=c[0].repeat(2))
big + big | big @ big | big.sum() | big.softmax(-1) | big.relu() | big.exp() | big.t().contiguous() | big.sum(0)
big.max(1) | big[big > 0] | big.sort() | big.topk(5) | big.std() | big.mean(1) | big.cumsum(0) | big.argmax(1)
big.flatten() | big.tolist() | T.equal(big, big) | bool(one > 0) | int(idx[0]) | idx.tolist() | a.numpy().sum()
T.from_numpy(array).sum() | copy.copy(a) | copy.deepcopy(a) | copy.deepcopy(net) | hash(a) | iter(a) | pickle.dumps(a)
T.stack([T.tensor(i) for i in range(4)]) | sum(a) | max(v) | 1 in n | a.sum().item() | T.get_default_dtype()
T.is_grad_enabled()
"""

EXPRESSIONS = [call.strip() for line in (CALLS + WIDER).splitlines() for call in line.split("|") if call.strip()]


def maker(expression: str) -> Callable[[Any], Callable[[], Any]]:
    """What makes the function that runs ``expression``."""

    def make(T: Any) -> Callable[[], Any]:
        return eval(f"lambda: {expression}", inputs(T))

    return make
