"""Usual uses of torch.jit, in one program; it runs under the stand-in."""

import torch, io
import torch.nn as nn, torch.nn.functional as F
from torch import Tensor
from torch.jit import Final, export
import typing
from typing import List, Tuple, Optional, Dict, List as Many, Optional as Maybe
import torch.jit.frontend, torch.jit._trace, torch.jit._script, torch._jit_internal


@torch.jit.script
def swish(x, inplace: bool = False):
    return x.mul_(x.sigmoid()) if inplace else x.mul(x.sigmoid())


def old(x, n):
    # type: (Tensor, int) -> List[Tensor]
    out = []  # type: List[Tensor]
    for i in range(n):
        out.append(x * i)
    return out


class M(torch.jit.ScriptModule):
    __constants__ = ["k"]

    def __init__(self):
        super().__init__()
        self.k = 2
        self.w = nn.Parameter(torch.ones(2))

    @torch.jit.script_method
    def forward(self, x):
        return x * self.w * self.k


class SE(nn.Module):
    rd: Final[int]
    act: Final[bool] = True

    def __init__(self, c, rd=4, act_layer=nn.ReLU):
        super().__init__()
        self.rd = rd
        self.fc1 = nn.Conv2d(c, c // rd, 1)
        self.act1 = act_layer(inplace=True)
        self.gate = nn.Sigmoid()
        self.fc2 = nn.Conv2d(c // rd, c, 1)
        self.drop = nn.Identity()
        self.pool = nn.AdaptiveAvgPool2d((1, 1))

    def forward(self, x):
        s = x.mean((2, 3), keepdim=True)
        s = self.fc2(self.act1(self.fc1(s)))
        if self.act:
            s = self.gate(s)
        return self.drop(x * s), self.pool(x).flatten(1)


class DW(nn.Sequential):
    def __init__(self, c):
        super().__init__(nn.Conv2d(c, c, 3, padding=1, groups=c), nn.BatchNorm2d(c), nn.ReLU6())


class Dense(nn.ModuleDict):
    def __init__(self, n):
        super().__init__()
        for i in range(n):
            self.add_module("l%d" % i, nn.Conv2d(4 + i, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        feats = [x]
        for name, layer in self.items():
            feats.append(layer(torch.cat(feats, 1)))
        return torch.cat(feats, 1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.se, self.dw, self.dense = SE(4), DW(4), Dense(2)
        self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(2)])
        self.norm = nn.LayerNorm(6)
        self.pos = nn.Parameter(torch.zeros(1, 1, 6))
        self.scale = 6**-0.5
        self.register_buffer("idx", torch.arange(4), persistent=False)
        self.fused = hasattr(F, "scaled_dot_product_attention")

    def forward(self, x: Tensor) -> Tuple[Tensor, Dict[str, Tensor]]:
        y, p = self.se(x)
        y = self.dense(self.dw(y))
        B, C, H, W = y.shape
        t = y.flatten(2).transpose(1, 2) + self.pos
        for layer in self.layers:
            t = t + layer(self.norm(t))
        qkv = t.reshape(B, -1, 3, 1, 2).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        if self.fused:
            a = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if self.training else 0.0)
        else:
            a = (q * self.scale @ k.transpose(-2, -1)).softmax(dim=-1) @ v
        return a.mean(dim=(1, 2)), {"p": p, "n": torch.tensor(B * H * W)}


x = torch.randn(2, 4, 5, 5)
m = Block().eval()
s = torch.jit.script(m)
a, b = m(x), s(x)
assert torch.allclose(a[0], b[0], atol=1e-5) and torch.equal(a[1]["p"], b[1]["p"])
buf = io.BytesIO()
torch.jit.save(s, buf)
buf.seek(0)
l = torch.jit.load(buf, map_location="cpu")
assert torch.allclose(l(x)[0], a[0], atol=1e-5)
t = torch.jit.trace(m, x, strict=False)
assert torch.allclose(t(x)[0], a[0], atol=1e-5)
f = torch.jit.freeze(s)
assert torch.allclose(f(x)[0], a[0], atol=1e-5)
f = torch.jit.optimize_for_inference(s)
assert torch.allclose(f(x)[0], a[0], atol=1e-5)
mm = M()
assert mm(torch.ones(2)).sum() == 4 and "def forward" in mm.code
b2 = io.BytesIO()
mm.save(b2)
b2.seek(0)
assert torch.jit.load(b2)(torch.ones(2)).sum() == 4
assert len(torch.jit.script(old)(x, 3)) == 3 and torch.equal(swish(x), x * x.sigmoid())
tr = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
st = torch.jit.script(tr)
y = torch.randn(2, 3, 8)
assert torch.allclose(tr(y), st(y), atol=1e-5)
ends = torch.tensor([[False, False, True], [False, True, True]])
assert torch.allclose(tr(y, src_key_padding_mask=ends)[~ends], st(y, src_key_padding_mask=ends)[~ends], atol=1e-5)
td = nn.Transformer(8, 2, 1, 1, 16, batch_first=True).eval()
sd = torch.jit.script(td)
assert torch.allclose(td(y, y), sd(y, y), atol=1e-5)
g = nn.GRU(3, 4, batch_first=True)
assert torch.allclose(torch.jit.script(g)(torch.ones(1, 2, 3))[0], g(torch.ones(1, 2, 3))[0])


def first(a: Many[int], b: Maybe[int], c: typing.Dict[str, int]) -> Maybe[int]:
    out: Many[int] = torch.jit.annotate(Many[int], [])
    return (out + a)[0] if b is None else c["a"]


class Words(nn.Module):
    def forward(self, words: List[str]) -> List[str]:
        return words


assert torch.jit.script(first)([1], None, {}) == 1
assert torch.jit.script(torch.fx.symbolic_trace(Words()))(["a"]) == ["a"]
print("ok")
