"""torchdiffeq: a neural ODE fitted to a spiral, through the solver and through the adjoint, and an event."""

import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint, odeint_event

torch.manual_seed(0)
matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
start, times = torch.tensor([[2.0, 0.0]]), torch.linspace(0, 2, 12)
with torch.no_grad():
    spiral = odeint(lambda t, y: y**3 @ matrix, start, times)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, t, y):
        return self.net(y**3)


for solve, options in ((odeint, {"method": "dopri5"}), (odeint_adjoint, {"method": "rk4"})):
    field = Field()
    optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-2)
    losses = []
    for _ in range(4):
        loss = (solve(field, start, times, **options) - spiral).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"{solve.__name__}:", *losses)
    assert losses[-1] < losses[0]

height = torch.tensor([10.0, 0.0], requires_grad=True)
when, _ = odeint_event(
    lambda t, y: torch.stack([y[1], torch.full_like(y[1], -9.8)]), height, torch.tensor(0.0),
    event_fn=lambda t, y: y[0], odeint_interface=odeint,
)  # fmt: skip
print("event:", when.item(), torch.autograd.grad(when, height)[0][0].item())
