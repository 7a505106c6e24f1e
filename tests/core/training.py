"""Programs that train on the CPU and on a device: losses, and checkpoints of either device on either device.

TAEDA_TARGET=lane python training.py DEVICE [NAME ...]     (the CPU's kernels then have one lane, as the device's)
"""

import importlib
import io
import sys

import taeda
from taeda import nn
from taeda._core.random import draw_as_on
from taeda.nn import functional as F
from taeda.ops import attention


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.places = nn.Embedding(20, 16), nn.Embedding(12, 16)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(16, 2, 32, 0.1, "gelu", batch_first=True, norm_first=True) for _ in range(2)
        )
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 20)

    def forward(self, i):
        x = self.embed(i) + self.places(taeda.arange(i.shape[1], device=i.device))
        mask = nn.Transformer.generate_square_subsequent_mask(i.shape[1], device=i.device)
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        return self.head(self.norm(x)).flatten(0, 1)


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(6, 12, 2, batch_first=True), nn.Linear(12, 3)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 3))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 3),
    )


def batches(make, steps):
    for step in range(steps):
        taeda.manual_seed(step)
        if make is GPT:
            text = taeda.randint(0, 20, (4, 13))
            yield text[:, :-1], text[:, 1:].flatten()
        else:
            sizes = {mlp: (32, 8), cnn: (16, 1, 12, 12), LSTM: (8, 5, 6)}[make]
            yield taeda.randn(*sizes), taeda.randint(0, 3, sizes[:1])


def train(make, device, steps=4, start=None):
    taeda.manual_seed(0)
    model = make().to(device)
    optimizer = taeda.optim.AdamW(model.parameters(), lr=1e-2)
    scaler = taeda.amp.GradScaler(device, enabled=make is LSTM)
    if start is not None:
        start.seek(0)
        state = taeda.load(start, map_location=device)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    losses = []
    for x, y in batches(make, steps):
        with taeda.autocast(device, dtype=taeda.bfloat16, enabled=make is LSTM):
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert all(p.device.type == p.grad.device.type == device for p in model.parameters())
    file = io.BytesIO()
    taeda.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    return losses, file


def main(device, names):
    """Train each model on the CPU and on ``device``; the bits of the losses must be the same.

    A GPU adds up attention in another order and draws its own random numbers: here both compute attention by its
    definition, and the CPU draws in the same way.
    """
    if device == "far":
        importlib.import_module("taeda.testing.far")
    else:
        draw_as_on(taeda.cuda.default_generators[0])
        attention._kernels = lambda *_: (False, True)
    for make in (mlp, cnn, GPT, LSTM):
        if names and make.__name__ not in names:
            continue
        (losses, file), (there, there_file) = train(make, "cpu"), train(make, device)
        assert losses == there, (make, losses, there)
        on = [train(make, place, 2, start)[0] for place in ("cpu", device) for start in (file, there_file)]
        assert all(x == on[0] for x in on), (make, on)
    print("the same bits")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
