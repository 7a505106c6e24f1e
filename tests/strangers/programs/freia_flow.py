"""FrEIA: invertible networks of coupling blocks, trained by likelihood, and run backwards."""

import FrEIA.framework as Ff
import FrEIA.modules as Fm
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
np.random.seed(0)  # the rotations of AllInOneBlock


def subnet(a, b):
    return nn.Sequential(nn.Linear(a, 16), nn.ReLU(), nn.Linear(16, b))


x = torch.randn(64, 2) @ torch.tensor([[1.0, 0.6], [0.0, 0.5]])
for name, block in (("allinone", Fm.AllInOneBlock), ("glow", Fm.GLOWCouplingBlock), ("nice", Fm.NICECouplingBlock)):
    flow = Ff.SequenceINN(2)
    for _ in range(2):
        flow.append(block, subnet_constructor=subnet)
        flow.append(Fm.ActNorm)
    optimizer = torch.optim.SGD(
        flow.parameters(), lr=2e-2
    )  # ActNorm's first gradients are rounding, which Adam amplifies
    losses = []
    for _ in range(5):
        z, log_det = flow(x)
        loss = (0.5 * (z**2).sum(1) - log_det).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"{name}:", *losses)
    assert losses[-1] < losses[0]
    back, _ = flow(flow(x)[0], rev=True)
    torch.testing.assert_close(back, x, rtol=1e-3, atol=1e-3)
