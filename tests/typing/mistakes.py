"""Programs with a mistake each, in the lines that end in ``# wrong``: a type checker finds every one."""

import taeda
import taeda.nn as nn
import taeda.nn.functional as F
import taeda.optim as optim
from taeda import Tensor
from taeda.utils.data import DataLoader, TensorDataset

x = taeda.ones(2, 3)
y = taeda.zeros(2).long()
model = nn.Linear(3, 2)
optimizer = optim.SGD(model.parameters(), lr=0.1)

taeda.sofmax(x)  # wrong
x.sofmax(1)  # wrong
nn.Linaer(3, 2)  # wrong
F.rleu(x)  # wrong
optim.Adamm(model.parameters())  # wrong
nn.Conv2d(3, 4, kernel_sise=3)  # wrong
nn.Linear("3", 2)  # wrong
nn.Linear(3)  # wrong
F.cross_entropy(x)  # wrong
optimizer.zerograd()  # wrong
x.sum().backwards()  # wrong
DataLoader(TensorDataset(x, y), batchsize=2)  # wrong
x + "1"  # wrong
x.shape()  # wrong
taeda.stack(x, y)  # wrong
taeda.cat([x, x], dim="0")  # wrong
x.max(dim=1).argmax()  # wrong
x.split(1).sum()  # wrong
text: str = x.sum()  # wrong
nn.Dropout(p="0.5")  # wrong
x.unsqueeze()  # wrong
model.load_state_dict()  # wrong
F.conv2d(x, x, stride="2")  # wrong
F.max_pool2d(x, (2, "2"))  # wrong
taeda.roll(x, 1.5)  # wrong
x.chunk(2.0)  # wrong


def forward(v: Tensor) -> Tensor:
    return v.size(0)  # wrong


def loss(v: Tensor) -> Tensor:
    return F.mse_loss(v, v).tolst()  # wrong


nn.Linear(2, 3).forward(x).meen()  # wrong
print(nn.Linear(2, 3).weight.grad.shapes)  # wrong
[p.data.nelemnt() for p in nn.Linear(2, 3).parameters()]  # wrong
x.view("4")  # wrong
x.to(dtype=3)  # wrong
x.requires_grad_("yes")  # wrong
x.backward(5)  # wrong
x["a"]  # wrong
taeda.zeros("3")  # wrong
taeda.arange("3")  # wrong
print(x.device.types)  # wrong
print(x.dtype.is_float)  # wrong
nn.Sequential(nn.Linear(2, 2), 3)  # wrong
size: str = x.shape[:1]  # wrong


@taeda.compile
def fused(v: Tensor) -> Tensor:
    return v


fused(3)  # wrong
