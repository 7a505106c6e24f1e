"""Programs for PyTorch to script: ``PROGRAMS`` has, by name, a function that gives a module and a list of calls.

A call is ``(method, args)``. Modules are annotated as scripts want them, in PyTorch's names.
"""

import math
from collections import OrderedDict
from enum import Enum
from typing import Dict, List, NamedTuple, Optional, Tuple, Union  # noqa: UP035 - as programs have them

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

PROGRAMS = {}


def program(make):
    """Add a program under its name."""
    PROGRAMS[make.__name__] = make
    return make


@program
def cnn():
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(8, 12, 3, padding="same", groups=4, bias=False), nn.LeakyReLU(0.1), nn.AvgPool2d(2, ceil_mode=True),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.5), nn.Linear(12, 5), nn.LogSoftmax(dim=1),
    )  # fmt: skip
    return net, [("forward", (torch.randn(2, 3, 32, 32),)), ("forward", (torch.randn(5, 3, 40, 24),))]


class Block(nn.Module):
    def __init__(self, cin: int, cout: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.downsample = None
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return F.relu(out)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 7, 2, 3)
        self.layers = nn.ModuleList([Block(8, 8, 1), Block(8, 16, 2), Block(16, 16, 1)])
        self.fc = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(self.stem(x), 3, 2, 1)
        for layer in self.layers:
            x = layer(x)
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1))


@program
def resnet():
    return ResNet(), [("forward", (torch.randn(2, 3, 33, 33),))]


class PackedLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        packed = pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)
        out, (h, _) = self.lstm(packed)
        padded, sizes = pad_packed_sequence(out, batch_first=True)
        return padded, h, sizes


@program
def packed_lstm():
    tokens = torch.randint(1, 20, (3, 7))
    return PackedLSTM(), [("forward", (tokens, torch.tensor([4, 7, 2])))]


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 5, 2)
        self.rnn = nn.RNN(5, 3, nonlinearity="relu")
        self.cell = nn.GRUCell(3, 3)
        self.step = nn.LSTMCell(3, 2)

    def forward(self, x: Tensor, h: Optional[Tensor] = None) -> Tuple[Tensor, Tensor, List[Tensor]]:
        out, last = self.gru(x, h)
        out, _ = self.rnn(out)
        steps: List[Tensor] = []
        state = self.cell(out[0])
        both = self.step(out[0])
        for t in range(1, out.size(0)):
            state = self.cell(out[t], state)
            both = self.step(out[t], both)
            steps.append(both[0])
        return state, last, steps


@program
def recurrent():
    return Recurrent(), [
        ("forward", (torch.randn(6, 2, 4),)),
        ("forward", (torch.randn(4, 3, 4), torch.randn(2, 3, 5))),
    ]


def box_iou(a: Tensor, b: Tensor) -> Tensor:
    area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    lt = torch.max(a[:, None, :2], b[:, :2])
    rb = torch.min(a[:, None, 2:], b[:, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[:, :, 0] * wh[:, :, 1]
    return inter / (area_a[:, None] + area_b - inter)


def nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    order = scores.argsort(descending=True)
    keep: List[int] = []
    while order.numel() > 0:
        i = int(order[0])
        keep.append(i)
        if order.numel() == 1:
            break
        iou = box_iou(boxes[i].unsqueeze(0), boxes[order[1:]])[0]
        order = order[1:][iou <= threshold]
    return torch.tensor(keep, dtype=torch.int64, device=boxes.device)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Conv2d(3, 6, 1)
        self.threshold = 0.4

    def forward(self, images: List[Tensor]) -> List[Dict[str, Tensor]]:
        results: List[Dict[str, Tensor]] = []
        for image in images:
            out = self.head(image[None]).flatten(2)[0].t()
            centres, sizes, score = out[:, :2] * 10, out[:, 2:4].exp(), out[:, 4].sigmoid()
            boxes = torch.cat([centres - sizes / 2, centres + sizes / 2], dim=1)
            mask = score > self.threshold
            boxes, score = boxes[mask], score[mask]
            keep = nms(boxes, score, 0.5)
            labels = torch.zeros_like(keep)
            labels[score[keep] > 0.55] = 1
            results.append({"boxes": boxes[keep], "scores": score[keep], "labels": labels})
        return results


@program
def detector():
    return Detector(), [("forward", ([torch.randn(3, 6, 5), torch.randn(3, 4, 4)],))]


class Streaming(nn.Module):
    buffer: Tensor
    history: List[Tensor]

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 3)
        self.register_buffer("buffer", torch.zeros(1, 2, 2))
        self.steps: int = 0
        self.history = torch.jit.annotate(List[Tensor], [])
        self.seen = {"frames": 0}

    def forward(self, chunk: Tensor) -> Tensor:
        x = torch.cat([self.buffer, chunk], dim=2)
        self.buffer = x[:, :, -2:]
        self.steps += 1
        self.seen["frames"] = self.seen["frames"] + chunk.size(2)
        self.history.append(x.mean())
        return self.conv(x)

    @torch.jit.export
    def reset(self, value: float = 0.0) -> int:
        self.buffer.fill_(value)
        self.history = []
        before = self.steps
        self.steps = 0
        return before

    @torch.jit.export
    def count(self) -> Tuple[int, int, int]:
        return self.steps, self.seen["frames"], len(self.history)


@program
def streaming():
    chunk = torch.randn(1, 2, 5)
    calls = [
        ("forward", (chunk,)),
        ("forward", (chunk * 2,)),
        ("count", ()),
        ("reset", (1.5,)),
        ("forward", (chunk,)),
        ("count", ()),
    ]
    return Streaming(), calls


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.vocabulary: Dict[str, int] = {"<unk>": 0, "the": 1, "cat": 2, "sat": 3}
        self.bag = nn.EmbeddingBag(4, 3, mode="mean")
        self.names = ["a", "b"]

    def tokens(self, text: str) -> List[int]:
        out: List[int] = []
        for word in text.lower().strip().split(" "):
            if len(word) == 0:
                continue
            out.append(self.vocabulary[word] if word in self.vocabulary else self.vocabulary["<unk>"])
        return out

    @torch.jit.export
    def counts(self, text: str) -> Dict[str, int]:
        found: Dict[str, int] = {}
        for word in text.split():
            found[word] = found.get(word, 0) + 1
        for key, value in found.items():
            if value > 2:
                found[key] = -value
        return found

    @torch.jit.export
    def describe(self, text: str, n: int) -> str:
        parts = [w.upper() for w in text.split(",")]
        s = "{} of {}: {}".format(n, len(parts), "|".join(parts))
        s += " %d %s" % (n, parts[0])
        return f"{s}{n * 2}" + text[1:3] + str(n / 2) + ("yes" if text.startswith("x") else "no")

    def forward(self, lines: List[str]) -> Tensor:
        ids: List[int] = []
        offsets: List[int] = []
        for line in lines:
            offsets.append(len(ids))
            ids.extend(self.tokens(line))
        return self.bag(torch.tensor(ids), torch.tensor(offsets))


@program
def text():
    return Text(), [
        ("forward", (["The cat  sat", "a dog", "cat cat the"],)), ("counts", ("a b a c a b",)),
        ("describe", ("xab,cd", 3)),
    ]  # fmt: skip


class Point(NamedTuple):
    x: Tensor
    y: Tensor
    weight: float = 1.0


class Tuples(nn.Module):
    def make(self, x: Tensor) -> Point:
        return Point(x, x * 2, 0.5)

    def forward(self, x: Tensor, p: Optional[Point] = None) -> Tuple[Point, Tensor, int]:
        if p is None:
            p = self.make(x)
        a, b, w = p
        q = Point(x=p.y, y=p.x)
        pair = (a.sum(), b.sum())
        return q, pair[0] + pair[1] * w + q.weight, len(pair)


@program
def named_tuples():
    return Tuples(), [("forward", (torch.randn(3),))]


class Optionals(nn.Module):
    scale: Optional[Tensor]

    def __init__(self):
        super().__init__()
        self.scale = None
        self.bias: Optional[float] = 0.5

    def forward(self, x: Tensor, mask: Optional[Tensor] = None, sizes: Optional[List[int]] = None) -> Optional[Tensor]:
        scale = self.scale
        if scale is not None:
            x = x * scale
        if mask is not None and mask.numel() > 0:
            x = x.masked_fill(mask, 0.0)
        elif sizes is not None:
            x = x.reshape(sizes)
        bias = self.bias
        assert bias is not None
        if x.dim() > 2 or (sizes is None and mask is None and x.size(0) > 3):
            return None
        return x + bias


@program
def optionals():
    x = torch.randn(2, 3)
    return Optionals(), [
        ("forward", (x,)), ("forward", (x, x > 0)), ("forward", (x, None, [3, 2])), ("forward", (x, None, [1, 3, 2])),
        ("forward", (torch.randn(5, 1),)),
    ]  # fmt: skip


class Mode(Enum):
    MEAN = "mean"
    SUM = "sum"


class Enums(nn.Module):
    def __init__(self, mode: Mode):
        super().__init__()
        self.mode = mode

    def forward(self, x: Tensor) -> Tuple[Tensor, str]:
        if self.mode == Mode.SUM:
            return x.sum(), self.mode.name
        return x.mean(), self.mode.value


@program
def enums():
    return Enums(Mode.MEAN), [("forward", (torch.randn(4),))]


class Raises(nn.Module):
    def forward(self, x: Tensor, kind: int) -> Tensor:
        assert kind < 5, f"kind {kind} is too large"
        if kind == 1:
            raise ValueError("kind {} of {}".format(kind, x.shape))
        if kind == 2:
            raise RuntimeError("two")
        for i in range(3):
            if i == kind:
                return x * i
        if kind == 3:
            y: List[int] = []
            return x + y[2]
        return x.view(-1, 7)


@program
def raises():
    return Raises(), [("forward", (torch.ones(2, 3), k)) for k in (0, 1, 2, 3, 4, 6)]


class Flow(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tuple[Tensor, int, List[float], Dict[int, str]]:
        total, steps = 0, 0
        values: List[float] = []
        for i in range(n):
            if i % 3 == 0:
                continue
            for j in range(i, -1, -2):
                if j > 5:
                    break
                total += i * j
                values.append(math.sqrt(float(j)) + i // 2 - 7 % (j + 1) + 2**j)
            steps += 1
        while True:
            x = x * 0.5
            steps -= 1
            if bool(x.abs().max() < 0.1) or steps < -10:
                break
        table = {k: "odd" if k % 2 else "even" for k in range(3)}
        squares = [v * v for v in values]
        for k, (a, b) in enumerate(zip(values, squares)):
            values[k] = a - b
        values.sort()
        nested = [[1, 2], [3]]
        nested[0][1] += 10
        last = nested[0].pop()
        return x, total + steps + last + max(3, n) + min([4, 2, 9]), values[:4] + squares[-2:], table


@program
def control_flow():
    return Flow(), [("forward", (torch.randn(3, 3), 7)), ("forward", (torch.randn(2) * 100, 2))]


class Overloads(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Upsample(scale_factor=2.0, mode="bilinear", align_corners=False)
        self.proj = nn.Linear(3, 3)

    @torch.jit._overload_method  # noqa: F811
    def twice(self, x: int) -> int:
        pass

    @torch.jit._overload_method  # noqa: F811
    def twice(self, x: Tensor) -> Tensor:
        pass

    def twice(self, x):  # noqa: F811
        return x * 2

    def forward(self, x: Tensor) -> Tuple[Tensor, int]:
        return self.twice(self.up(x)), self.twice(4)


@program
def overloads():
    return Overloads(), [("forward", (torch.randn(1, 3, 3, 3),))]


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)])
        self.bottom = nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.ModuleList([nn.ConvTranspose2d(8, 4, 2, 2), nn.ConvTranspose2d(4, 2, 2, 2, output_padding=0)])
        self.mix = nn.ModuleDict(OrderedDict([("a", nn.Conv2d(12, 4, 1)), ("b", nn.Conv2d(6, 3, 1))]))

    def forward(self, x: Tensor) -> Tensor:
        skips: List[Tensor] = []
        for conv in self.down:
            x = F.silu(conv(x))
            skips.append(x)
            x = F.avg_pool2d(x, 2)
        x = self.bottom(x)
        for i, (up, mix) in enumerate(zip(self.up, self.mix.values())):
            x = up(x)
            skip = skips[-1 - i]
            if x.shape[-2:] != skip.shape[-2:]:
                x = F.interpolate(x, size=skip.shape[2:], mode="nearest")
            x = mix(torch.cat((x, skip), 1))
        return x


@program
def unet():
    return UNet(), [("forward", (torch.randn(1, 1, 16, 16),)), ("forward", (torch.randn(1, 1, 18, 22),))]


@program
def transformer():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True, activation="gelu")
    return layer, [("forward", (torch.randn(2, 5, 8),))]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)

    def forward(self, x: Tensor, mask: Optional[Tensor] = None) -> Tuple[Tensor, Optional[Tensor]]:
        out, weights = self.attention(x, x, x, key_padding_mask=mask)
        q, k, v = [t.reshape(x.size(0), -1, 2, 4).transpose(1, 2) for t in (x, out, x + out)]
        heads = F.scaled_dot_product_attention(q, k, v)
        scores = torch.softmax(torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(4), dim=-1)
        mixed = torch.einsum("bhij,bhjd->bhid", scores, v) + heads
        return self.norm(mixed.transpose(1, 2).flatten(2)), weights


@program
def attention():
    mask = torch.tensor([[False, False, True], [False, True, True]])
    return Attention(), [("forward", (torch.randn(2, 3, 8),)), ("forward", (torch.randn(2, 3, 8), mask))]


@torch.jit.script
class Accumulator:
    def __init__(self, start: float, name: str = "sum"):
        self.total = start
        self.name = name
        self.items: List[float] = []

    def add(self, value: float) -> "Accumulator":
        self.total += value
        self.items.append(value)
        return self

    def __len__(self) -> int:
        return len(self.items)


class Classes(nn.Module):
    def forward(self, x: Tensor) -> Tuple[float, int, str]:
        acc = Accumulator(1.0)
        for i in range(x.size(0)):
            acc = acc.add(float(x[i]))
        acc.total *= 2
        return acc.total, len(acc), acc.name


@program
def classes():
    return Classes(), [("forward", (torch.arange(4.0),))]


@torch.jit.interface
class Activation(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Doubled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Shifted(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Interfaces(nn.Module):
    first: Activation

    def __init__(self):
        super().__init__()
        self.first = Doubled()
        self.second = Shifted()

    def forward(self, x: Tensor) -> Tensor:
        return self.first.forward(x) + self.second(x)


@program
def interfaces():
    return Interfaces(), [("forward", (torch.randn(2),))]


class Indexing(nn.Module):
    def forward(self, x: Tensor, i: Tensor, k: int) -> List[Tensor]:
        out = [x[0], x[-1, 1:], x[..., k], x[:, None, ::2], x[i], x[:, i], x[i, :, k], x[x > 0], x[1, ..., None]]
        y = x.clone()
        y[0, 1] = 5.0
        y[:, 1:, 0] += 2
        y[i] = 3
        y[y > 4] *= -1
        z = torch.zeros([2, k], dtype=torch.long)
        z[1] = torch.arange(k)
        out.append(y)
        out.append(z)
        lo, hi = torch.split(x, [1, x.size(0) - 1])
        out.extend([lo, hi])
        values, where = x.max(dim=1)
        top = torch.topk(x, 2, dim=-1)
        return out + [values, where, top.values, top[1]]


@program
def indexing():
    return Indexing(), [("forward", (torch.randn(3, 4, 3), torch.tensor([2, 0]), 2))]


class Unions(nn.Module):
    def forward(self, x: Union[int, Tensor, str]) -> str:
        if isinstance(x, int):
            return str(x + 1)
        elif isinstance(x, Tensor):
            return str(x.numel())
        return x


@program
def unions():
    return Unions(), [("forward", (3,)), ("forward", (torch.ones(4),)), ("forward", ("s",))]


class Losses(nn.Module):
    def __init__(self):
        super().__init__()
        self.ce = nn.CrossEntropyLoss(label_smoothing=0.1)
        self.bce = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([2.0, 1.0, 1.0]))

    def forward(self, x: Tensor, y: Tensor) -> Dict[str, Tensor]:
        onehot = F.one_hot(y, 3).to(x.dtype)
        return {
            "ce": self.ce(x, y), "bce": self.bce(x, onehot), "nll": F.nll_loss(F.log_softmax(x, 1), y, reduction="sum"),
            "mse": F.mse_loss(x, onehot), "l1": F.smooth_l1_loss(x, onehot, beta=0.5),
            "kl": F.kl_div(F.log_softmax(x, -1), F.softmax(onehot, -1), reduction="batchmean"),
            "cos": F.cosine_embedding_loss(x, onehot, torch.ones(x.size(0))), "huber": F.huber_loss(x, onehot),
        }  # fmt: skip


@program
def losses():
    return Losses(), [("forward", (torch.randn(4, 3), torch.tensor([0, 2, 1, 1])))]


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.Sequential(nn.Conv1d(2, 4, 3, padding=1, padding_mode="circular"), nn.GroupNorm(2, 4), nn.ELU())
        self.inst = nn.InstanceNorm1d(4, affine=True)
        self.prelu = nn.PReLU(4)
        self.up = nn.ConvTranspose1d(4, 2, 3, stride=2, padding=1, output_padding=1)
        self.three = nn.Conv3d(1, 2, 2)
        self.norm = nn.LocalResponseNorm(2)
        self.bilinear = nn.Bilinear(3, 4, 2)
        self.pad = nn.ReflectionPad2d(1)
        self.shuffle = nn.PixelShuffle(2)
        self.act = nn.ModuleList(
            [
                nn.GELU(),
                nn.Hardswish(),
                nn.Mish(),
                nn.Softplus(),
                nn.SELU(),
                nn.GLU(1),
                nn.Hardtanh(-0.5, 0.5),
                nn.Tanhshrink(),
            ]
        )

    def forward(self, x: Tensor) -> List[Tensor]:
        y = self.prelu(self.inst(self.convs(x)))
        out = [self.up(y), self.three(x.reshape(1, 1, 2, 4, -1)), self.norm(y), self.bilinear(x[:, 0, :3], x[:, 1, :4])]
        grid = x.reshape(1, 4, -1, 4)
        out.append(self.shuffle(self.pad(grid[:, :, :3, :3])))
        for act in self.act:
            y = act(y)
            out.append(y)
        out.append(F.interpolate(grid, scale_factor=1.5, mode="bicubic", align_corners=True))
        out.append(F.grid_sample(grid, torch.tanh(grid[:, :2].permute(0, 2, 3, 1)), align_corners=False))
        out.append(F.unfold(grid, [2, 2]))
        out.append(F.pad(grid, [1, 2], value=3.0))
        out.append(F.normalize(grid, dim=1) + F.pairwise_distance(x[0], x[0] * 2).mean())
        return out


@program
def layers():
    return Layers(), [("forward", (torch.randn(1, 2, 16),))]


class Dtypes(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Tensor, int, bool, List[Tensor]]:
        dev = x.device
        y = torch.ones(x.shape, dtype=x.dtype, device=dev)
        if x.dtype == torch.float32 and not x.is_cuda:
            y = y.to(torch.float64)
        z = torch.full([2], 3.5, dtype=torch.half).to(x)
        made = [
            torch.empty(0), torch.eye(2), torch.linspace(0.0, 1.0, 3), torch.arange(1, 7, 2), torch.tensor([1, 2, 3]),
            torch.tensor([[1.5], [2.0]]), x.new_zeros([2]), torch.zeros_like(x, dtype=torch.int), x.type_as(y),
            x.long(),
            torch.where(x > 0, x, 0.0), torch.stack([x, x], dim=1), torch.cumsum(x, 0),
            x.unsqueeze(-1).expand(-1, -1, 2),
            torch.logical_not(x > 0), x.std(), x.var(dim=0, unbiased=False), torch.norm(x), x.argmax(), x.flip([0]),
            torch.meshgrid(x[0], x[1], indexing="ij")[0], torch.masked_select(x, x > 0), x.view(-1).topk(2)[0],
        ]  # fmt: skip
        return y + z.sum(), x.dim(), torch.is_floating_point(x), made


@program
def dtypes():
    return Dtypes(), [("forward", (torch.randn(2, 3),))]


class Futures(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        futures: List[torch.jit.Future[Tensor]] = []
        futures.append(torch.jit.fork(self.a, x))
        futures.append(torch.jit.fork(self.b, x * 2))
        total = torch.zeros_like(x)
        for f in futures:
            total = total + torch.jit.wait(f)
        return total


@program
def futures():
    return Futures(), [("forward", (torch.randn(2, 3),))]


class NoGrad(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tuple[Tensor, bool]:
        with torch.no_grad():
            y = x * self.w
        z = y + self.w
        return z, y.requires_grad


@program
def no_grad():
    return NoGrad(), [("forward", (torch.randn(3),))]


class StrictFusion(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        with torch.jit.strict_fusion():
            y = x * 2 + 1
        return y


@program
def strict_fusion():
    return StrictFusion(), [("forward", (torch.randn(3),))]


class Ordered(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = {"b": torch.tensor(2.0), "a": torch.tensor(1.0)}
        self.sizes: List[Tuple[int, float]] = [(1, 0.5), (2, 1.5)]

    def forward(self, n: int) -> Tuple[List[str], Tensor, Dict[str, List[int]], float]:
        total = torch.zeros(())
        for key in self.table:
            total = total + self.table[key]
        groups: Dict[str, List[int]] = {}
        for i in range(n):
            name = "even" if i % 2 == 0 else "odd"
            if name not in groups:
                groups[name] = torch.jit.annotate(List[int], [])
            groups[name].append(i)
        best = -float("inf")
        for size, weight in self.sizes:
            best = max(best, size * weight)
        keys = sorted(groups.keys())
        del groups["odd"]
        popped = groups.pop("even")
        groups["rest"] = popped[::-1]
        return keys, total, groups, best


@program
def ordered():
    return Ordered(), [("forward", (5,))]
