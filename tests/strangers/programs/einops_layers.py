"""einops: its layers in a network that is trained, saved and scripted, and its functions on tensors."""

import io

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    Rearrange("b c (h i) (w j) -> b (h w) (c i j)", i=2, j=2),
    EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=12, d=16),
    nn.GELU(),
    Reduce("b t d -> b d", "mean"),
    nn.Linear(16, 3),
)
images, labels = torch.randn(6, 3, 8, 8), torch.tensor([0, 1, 2, 0, 1, 2])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for _ in range(5):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses:", *losses)
assert losses[-1] < losses[0]

file = io.BytesIO()
torch.save(model, file)
file.seek(0)
assert torch.equal(torch.load(file, weights_only=False)(images), model(images))

x = torch.arange(24.0).view(2, 3, 4)
print("rearranged:", *rearrange(x, "a b c -> c (a b)")[1].tolist())
print("reduced:", *reduce(x, "a b c -> b", "max").tolist(), *repeat(x[0, 0], "c -> c r", r=2).flatten().tolist())
packed, shapes = pack([x, torch.ones(2, 5)], "a *")
print("packed:", *packed.shape, *(size for part in unpack(packed, shapes, "a *") for size in part.shape))
print("einsum:", *einsum(x, x, "a b c, a d c -> b d").flatten().tolist())
