"""diffusers: a U-Net trained to take noise away, samples of two schedulers, saving and loading."""

import tempfile

import torch
from diffusers import DDIMScheduler, DDPMScheduler, UNet2DModel

torch.manual_seed(0)
model = UNet2DModel(
    sample_size=8, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=4,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)  # fmt: skip
scheduler = DDPMScheduler(num_train_timesteps=20)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
images = torch.linspace(-1, 1, 64).view(1, 1, 8, 8).repeat(4, 1, 1, 1)
losses = []
for _ in range(6):
    noise = torch.randn(images.shape)
    times = torch.randint(0, 20, (4,))
    loss = torch.nn.functional.mse_loss(model(scheduler.add_noise(images, noise, times), times).sample, noise)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
print("losses:", *losses)
assert losses[-1] < losses[0]

model.eval()
for scheduler in (DDPMScheduler(num_train_timesteps=20), DDIMScheduler(num_train_timesteps=20)):
    scheduler.set_timesteps(4)
    x = torch.randn(1, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        for t in scheduler.timesteps:
            x = scheduler.step(model(x, t).sample, t, x, generator=torch.Generator().manual_seed(2)).prev_sample
    print(f"{type(scheduler).__name__}:", x.mean().item(), x.std().item())

with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    again = UNet2DModel.from_pretrained(folder).eval()
    assert torch.equal(again(images, 3).sample, model(images, 3).sample)
