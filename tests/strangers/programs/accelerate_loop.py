"""accelerate: its training loop in float32 and in bfloat16, with accumulation, clipping and saved state."""

import tempfile

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

for precision in ("no", "bf16"):
    AcceleratorState._reset_state(reset_partial_state=True)
    torch.manual_seed(0)
    accelerator = Accelerator(mixed_precision=precision, gradient_accumulation_steps=2, cpu=True)
    x = torch.randn(32, 8)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    losses = []
    for _ in range(3):
        for inputs, targets in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.mse_loss(model(inputs), targets)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(accelerator.gather(loss.detach()).mean().item())
    print(f"{precision}:", *losses)
    assert sum(losses[-4:]) < sum(losses[:4])
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        before = [p.detach().clone() for p in model.parameters()]
        with torch.no_grad():
            for p in model.parameters():
                p.zero_()
        accelerator.load_state(folder)
        assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
