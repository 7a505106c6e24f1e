"""torchaudio: its compiled ops (filters, alignment, the transducer loss), features, resampling, a Conformer."""

import torch
import torchaudio
import torchaudio.functional as F
from torchaudio import transforms

torch.manual_seed(0)
wave = torch.rand(2, 1000) * 2 - 1
wave.requires_grad_()
a, b = torch.tensor([1.0, -0.5, 0.2]), torch.tensor([0.3, 0.2, 0.1])
filtered = F.lfilter(wave, a, b)
filtered.square().sum().backward()
print("filter:", filtered.sum().item(), filtered.square().sum().item(), wave.grad.sum().item())
wave = wave.detach()
print("overdrive:", F.overdrive(wave, 20, 20).abs().sum().item())

emission = torch.log_softmax(torch.randn(1, 20, 5), -1)
path, scores = F.forced_align(emission, torch.tensor([[1, 2, 2, 3]], dtype=torch.int32))
print("alignment:", *path[0].tolist(), scores.sum().item())

logits = torch.randn(1, 6, 4, 5, requires_grad=True)
lengths = [torch.tensor([n], dtype=torch.int32) for n in (6, 3)]
loss = F.rnnt_loss(logits, torch.tensor([[1, 2, 3]], dtype=torch.int32), *lengths, blank=0)
loss.backward()
print("transducer loss:", loss.item(), logits.grad.abs().sum().item())

mel = transforms.MelSpectrogram(16000, n_fft=200, n_mels=20)(wave)
print("mel:", mel.mean().item(), *mel.shape)
print("mfcc:", transforms.MFCC(16000, 13, melkwargs={"n_fft": 400, "n_mels": 23})(wave).mean().item())
print("resampled:", transforms.Resample(16000, 8000)(wave).abs().sum().item())
print("stretched:", F.speed(wave, 16000, 1.5)[0].abs().sum().item())

torch.manual_seed(1)
model = torchaudio.models.Conformer(8, 2, 16, 1, 3)
features = torch.rand(2, 7, 8)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for _ in range(3):
    made, _ = model(features, torch.tensor([7, 5]))
    loss = (made - 0.1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("conformer:", *losses)
