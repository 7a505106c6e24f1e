"""Images with channels last in memory: ops keep that format and give the same values, forward and backward."""

import pytest

import taeda
from taeda import nn
from taeda.nn import functional as F

C3, C2 = taeda.channels_last_3d, taeda.channels_last


def weight(*shape):
    return taeda.linspace(-1, 1, taeda.Size(shape).numel()).reshape(shape)


def large(x):
    """More elements, and channels that fill no register."""
    return F.conv2d(F.interpolate(x, size=(25, 35)), weight(85, 32, 1, 1))


OPS = {
    "conv 3x3": lambda x: F.conv2d(x, weight(40, 32, 3, 3), padding=1),
    "conv 3x3, stride 2": lambda x: F.conv2d(x, weight(40, 32, 3, 3), stride=2, padding=1),
    "conv 4x5, stride (3, 2)": lambda x: F.conv2d(x, weight(40, 32, 4, 5), stride=(3, 2), padding=(2, 0)),
    "conv 3x3, bfloat16, stride 2": lambda x: F.conv2d(
        x.bfloat16(), weight(40, 32, 3, 3).bfloat16(), stride=2, padding=1
    ),
    "conv 5x5": lambda x: F.conv2d(x, weight(20, 32, 5, 5), padding=2),
    "conv 1x1": lambda x: F.conv2d(x, weight(40, 32, 1, 1), weight(40)),
    "conv 1x1, groups": lambda x: F.conv2d(x, weight(40, 16, 1, 1), weight(40), groups=2),
    "conv 1x1, stride 2": lambda x: F.conv2d(x, weight(40, 32, 1, 1), stride=2),
    "conv, groups": lambda x: F.conv2d(x, weight(40, 8, 3, 3), groups=4),
    "conv, depthwise": lambda x: F.conv2d(x, weight(32, 1, 3, 3), padding=1, groups=32),
    "conv, depthwise, stride 2": lambda x: F.conv2d(x, weight(32, 1, 3, 3), padding=1, groups=32, stride=2),
    "conv, depthwise 5x5, wide padding": lambda x: F.conv2d(x, weight(32, 1, 5, 5), weight(32), padding=6, groups=32),
    "conv, depthwise 7x7": lambda x: F.conv2d(x, weight(32, 1, 7, 7), weight(32), padding=3, groups=32),
    "conv, depthwise 5x5, stride 2": lambda x: F.conv2d(x, weight(32, 1, 5, 5), stride=2, padding=2, groups=32),
    "conv, groups of 2": lambda x: F.conv2d(x, weight(32, 2, 3, 3), weight(32), padding=1, groups=16),
    "conv, groups of 4, stride 2": lambda x: F.conv2d(x, weight(32, 4, 3, 3), stride=2, padding=1, groups=8),
    "conv, groups of 8, 4x2, dilated": lambda x: F.conv2d(x, weight(32, 8, 4, 2), padding=2, dilation=(2, 1), groups=4),
    "conv, groups of 16": lambda x: F.conv2d(x, weight(32, 16, 3, 3), padding=2, groups=2),
    "conv, groups of 16, stride (1, 2)": lambda x: F.conv2d(
        x, weight(32, 16, 2, 3), stride=(1, 2), padding=1, groups=2
    ),
    "conv, bfloat16, groups of 4": lambda x: F.conv2d(x.bfloat16(), weight(32, 4, 3, 3).bfloat16(), groups=8),
    "conv, bfloat16, groups of 16": lambda x: F.conv2d(
        x.bfloat16(), weight(32, 16, 2, 3).bfloat16(), stride=2, groups=2
    ),
    "conv, depthwise 4x3, dilated": lambda x: F.conv2d(x, weight(32, 1, 4, 3), padding=2, dilation=(3, 2), groups=32),
    "conv, depthwise 1x7, stride 3": lambda x: F.conv2d(x, weight(32, 1, 1, 7), stride=3, padding=(0, 3), groups=32),
    "conv, few outputs": lambda x: F.conv2d(x, weight(3, 32, 3, 3)),
    "transposed": lambda x: F.conv_transpose2d(x, weight(32, 24, 4, 4), stride=2, padding=1),
    "max_pool": lambda x: F.max_pool2d(x, 3, 2, 1),
    "avg_pool": lambda x: F.avg_pool2d(x, 2),
    "max_pool, wide": lambda x: F.max_pool2d(F.conv2d(x, weight(85, 32, 1, 1)), 3, 2, 1),
    "max_pool, dilated": lambda x: F.max_pool2d(x, 3, 2, 1, 2),
    "max_pool, ceil": lambda x: F.max_pool2d(x, (3, 4), (2, 3), 1, ceil_mode=True),
    "max_pool, bfloat16": lambda x: F.max_pool2d(x.bfloat16(), 2),
    "max_pool, indices": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True)[1] * F.max_pool2d(x, 3, 2, 1),
    "global max": lambda x: F.adaptive_max_pool2d(x, 1),
    "avg_pool, padding": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "avg_pool, overlap": lambda x: F.avg_pool2d(F.conv2d(x, weight(85, 32, 1, 1)), (3, 2), 1, (1, 0)),
    "adaptive_avg_pool, even": lambda x: F.adaptive_avg_pool2d(x, (4, 5)),
    "adaptive_avg_pool": lambda x: F.adaptive_avg_pool2d(x, 3),
    "adaptive_max_pool": lambda x: F.adaptive_max_pool2d(x, 3),
    "batch_norm": lambda x: F.batch_norm(x, None, None, weight(32), weight(32), training=True),
    "batch_norm, not training": lambda x: F.batch_norm(x, weight(32), weight(32) + 2),
    "group_norm": lambda x: F.group_norm(x, 4),
    "batch_norm, large": lambda x: F.batch_norm(large(x), None, None, weight(85), weight(85), training=True),
    "batch_norm, large, not training": lambda x: F.batch_norm(large(x), weight(85), weight(85) + 2),
    "group_norm, large": lambda x: F.group_norm(large(x), 5, weight(85), weight(85)),
    "relu6": F.relu6,
    "add": lambda x: x + x,
    "flip": lambda x: x.flip(2, 3),
    "flip, channels": lambda x: x.flip(1),
    "roll": lambda x: x.roll((1, -3, 5), (2, 3, 1)),
    "cat": lambda x: taeda.cat([x, x], 1),
    "nearest": lambda x: F.interpolate(x, scale_factor=2, mode="nearest"),
    "bilinear": lambda x: F.interpolate(x, size=(5, 17), mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"),
    "pad": lambda x: F.pad(x, (1, 2, 0, 1), value=3.0),
    "pad, reflect": lambda x: F.pad(x, (1, 2, 0, 1), mode="reflect"),
    "pad, replicate": lambda x: F.pad(x, (1, 0, 2, 1), mode="replicate"),
    "pad, circular": lambda x: F.pad(x, (1, 0, 2, 1), mode="circular"),
    "area": lambda x: F.interpolate(x, size=(5, 17), mode="area"),
    "antialias": lambda x: F.interpolate(x, size=(5, 4), mode="bicubic", antialias=True),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda x: F.channel_shuffle(x, 4),
    "bfloat16": lambda x: F.conv2d(x.bfloat16(), weight(40, 32, 3, 3).bfloat16()),
}
VOLUMES = {
    "conv": lambda x: F.conv3d(x, weight(24, 16, 3, 3, 3), padding=1),
    "conv, stride 2": lambda x: F.conv3d(x, weight(24, 16, 3, 3, 3), stride=2, padding=1),
    "conv, stride (1, 2, 2)": lambda x: F.conv3d(x, weight(24, 16, 3, 2, 3), stride=(1, 2, 2), padding=1),
    "depthwise": lambda x: F.conv3d(x, weight(16, 1, 3, 3, 3), padding=1, groups=16),
    "transposed": lambda x: F.conv_transpose3d(x, weight(16, 8, 2, 2, 2), stride=2),
    "max_pool": lambda x: F.max_pool3d(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, weight(16), weight(16), training=True),
    "pad": lambda x: F.pad(x, (1, 2, 0, 1, 1, 1), mode="replicate"),
    "trilinear": lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"),
}
CASES = [(C2, f) for f in OPS.values()] + [(C3, f) for f in VOLUMES.values()]


@pytest.mark.parametrize("format, fn", CASES, ids=[*OPS, *(f"{name}, 3-d" for name in VOLUMES)])
def test_format_is_kept(format, fn):
    taeda.manual_seed(0)
    x = taeda.randn(3, 32, 12, 10) if format is C2 else taeda.randn(2, 16, 6, 8, 10)
    x.requires_grad_()
    last = x.detach().clone(memory_format=format).requires_grad_()
    want, got = fn(x), fn(last)
    assert got.is_contiguous(memory_format=format) and want.is_contiguous()
    g = taeda.randn_like(want)
    (dx,) = taeda.autograd.grad(want, x, g)
    (dlast,) = taeda.autograd.grad(got, last, g.clone(memory_format=format))
    assert dlast.is_contiguous(memory_format=format)
    near = 2e-2 if want.dtype is taeda.bfloat16 else 1e-5
    for a, b in ((want, got), (dx, dlast)):
        assert (a - b).abs().max() <= near * a.abs().max()
    (doubled,) = taeda.autograd.grad(fn(last).mul_(2), last, g.clone(memory_format=format))  # written in place
    assert (doubled - 2 * dlast).abs().max() <= near * dlast.abs().max()


@pytest.mark.parametrize(
    "groups, stride, kernel",
    [(32, 1, (3, 3)), (32, 2, (3, 3)), (32, 1, (5, 4)), (1, 1, (1, 1)), (1, 2, (3, 3)), (8, 1, (3, 3)), (4, 2, (2, 3))],
)
def test_gradient_of_weights(groups, stride, kernel):
    """The same as from channels first, and the same bits for any number of threads."""
    taeda.manual_seed(0)
    x, w = taeda.randn(9, 32, 13, 11), taeda.randn(32, 32 // groups, *kernel).requires_grad_()
    y = F.conv2d(x, w, None, stride, 2, 1, groups)
    g = taeda.randn_like(y)
    (want,) = taeda.autograd.grad(y, w, g)
    found = set()
    for threads in (1, 2, 3, 5):
        taeda.set_num_threads(threads)
        y = F.conv2d(x.clone(memory_format=C2), w, None, stride, 2, 1, groups)
        (got,) = taeda.autograd.grad(y, w, g.clone(memory_format=C2))
        found.add(y.detach().numpy().tobytes() + got.numpy().tobytes())
    assert len(found) == 1 and (want - got).abs().max() <= 1e-5 * want.abs().max()


def test_weights_decide_too():
    """Weights with channels last make the result so, and keep their format in their gradient."""
    x, layer = taeda.randn(2, 8, 6, 6), nn.Conv2d(8, 16, 3).to(memory_format=C2)
    y = layer(x)
    assert y.is_contiguous(memory_format=C2)
    y.sum().backward()
    assert layer.weight.grad.stride() == layer.weight.stride()


class Residual(nn.Module):
    """Layers of a ResNet and of a MobileNet."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 7, 2, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.conv = nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU())
        self.wide = nn.Sequential(nn.Conv2d(32, 64, 1), nn.BatchNorm2d(64), nn.ReLU6())
        self.deep = nn.Sequential(nn.Conv2d(64, 64, 3, 2, 1, groups=64), nn.BatchNorm2d(64), nn.Hardswish())
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        x = self.stem(x)
        x = self.deep(self.wide(x + self.conv(x)))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def test_every_layer_of_a_network():
    taeda.manual_seed(0)
    plain = Residual()
    moved = Residual()
    moved.load_state_dict(plain.state_dict())
    moved.to(memory_format=C2)
    formats = []
    for layer in moved.modules():
        if not list(layer.children()) and not isinstance(layer, nn.Linear):
            layer.register_forward_hook(lambda m, args, out: formats.append(out.is_contiguous(memory_format=C2)))
    x = taeda.randn(2, 3, 48, 40)
    want, got = plain(x), moved(x.to(memory_format=C2))
    assert len(formats) == 13 and all(formats)
    assert (want - got).abs().max() < 1e-5
    want.square().sum().backward()
    got.square().sum().backward()
    for a, b in zip(plain.parameters(), moved.parameters(), strict=True):
        assert (a.grad - b.grad).abs().max() <= 1e-4 * (1 + a.grad.abs().max())
        assert b.grad.stride() == b.stride()


@pytest.mark.parametrize("dim", range(4))
def test_what_is_joined_of_parts(dim):
    """Parts of an image, whose channels have gaps between their runs, join to one with channels last."""
    x = taeda.arange(720.0).reshape(3, 8, 5, 6).contiguous(memory_format=C2)
    parts = x[:, :4], x[:, 4:]
    joined, stacked = taeda.cat(parts, dim), taeda.stack(parts, dim)
    assert joined.is_contiguous(memory_format=C2)
    assert stacked.select(dim, 0).stride(1) == 1 and stacked.is_contiguous() is False
    plain = [p.contiguous() for p in parts]
    assert taeda.equal(joined, taeda.cat(plain, dim)) and taeda.equal(stacked, taeda.stack(plain, dim))
    assert taeda.stack(parts, 4).is_contiguous() and taeda.cat([parts[0], plain[1]], dim).is_contiguous()


POOLS_OF_VOLUMES = {
    "adaptive average": lambda F, x: F.adaptive_avg_pool3d(x, (2, 3, 4)),
    "adaptive maximum": lambda F, x: F.adaptive_max_pool3d(x, (2, 3, 4)),
    "adaptive maximum, uneven": lambda F, x: F.adaptive_max_pool3d(x, (3, 4, 5)),
    "maximum": lambda F, x: F.max_pool3d(x, 2),
    "indices": lambda F, x: F.max_pool3d(x, 3, 1, 1, return_indices=True)[1].double(),
    "average": lambda F, x: F.avg_pool3d(x, 2),
    "average, overlapping": lambda F, x: F.avg_pool3d(x, 3, 1, 1),
    "power": lambda F, x: F.lp_pool3d(x, 2, 2),
}


@pytest.mark.parametrize("name", POOLS_OF_VOLUMES)
def test_a_volume_without_a_batch_may_be_laid_out_as_images_are(name):
    """Its four dimensions are channels, depth, height and width, whatever their strides say."""
    x = taeda.arange(384.0).sin().reshape(2, 4, 6, 8).requires_grad_()
    z = x.detach().contiguous(memory_format=taeda.channels_last).requires_grad_()
    want, got = (POOLS_OF_VOLUMES[name](taeda.nn.functional, y) for y in (x, z))
    assert got.shape == want.shape and taeda.equal(got, want)
    if want.requires_grad:
        weights = taeda.arange(float(want.numel())).cos().reshape(want.shape)
        (want * weights).sum().backward()
        (got * weights).sum().backward()
        assert taeda.allclose(z.grad, x.grad, atol=1e-6)


def test_cat_keeps_the_format_where_sizes_of_1_leave_it_open():
    images = taeda.randn(2, 1, 4, 4).to(memory_format=C2)
    assert taeda.cat([images, images], 1).stride() == (32, 1, 8, 2)
    assert taeda.cat([taeda.randn(2, 1, 4, 4)] * 2, 1).stride() == (32, 16, 4, 1)
    pixels = taeda.randn(2, 3, 1, 1).to(memory_format=C2)
    assert taeda.cat([pixels, pixels], 2).stride() == (6, 1, 3, 3)
    assert taeda.equal(taeda.cat([images, images], 1), images.expand(2, 2, 4, 4))
