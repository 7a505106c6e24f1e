"""timm: a ResNet, a ViT, a ConvNeXt and a MobileNet from their names, trained, with averages, and exported."""

import timm
import timm.optim
import timm.scheduler
import torch
from timm.data import Mixup
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.utils import ModelEmaV3

torch.manual_seed(0)
images = torch.randn(4, 3, 32, 32)
labels = torch.tensor([0, 1, 2, 1])


def train(name, optimizer, **options):
    torch.manual_seed(1)
    model = timm.create_model(name, pretrained=False, num_classes=3, **options)
    average = ModelEmaV3(model, decay=0.5)
    optimizer = timm.optim.create_optimizer_v2(model, opt=optimizer, lr=1e-3, weight_decay=0.01)
    schedule = timm.scheduler.CosineLRScheduler(optimizer, t_initial=4)
    losses = []
    for step in range(3):
        loss = LabelSmoothingCrossEntropy(0.1)(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step(step + 1)
        average.update(model)
        losses.append(loss.item())
    print(f"{name}:", sum(p.numel() for p in model.parameters()), *losses)
    assert losses[-1] < losses[0]
    return model.eval()


resnet = train("resnet18", "sgd")
vit = train("vit_tiny_patch16_224", "adamw", img_size=32, patch_size=8, depth=2)
train("convnext_atto", "lamb", depths=(1, 1, 1, 1), dims=(16, 32, 48, 64))
features = timm.create_model("resnet18", features_only=True)(images)
print("features:", *(size for f in features for size in f.shape[1:]))
soft = Mixup(mixup_alpha=0.8, num_classes=3)
mixed, targets = soft(images.clone(), labels)
assert SoftTargetCrossEntropy()(vit(mixed), targets).isfinite()

for model in (resnet, vit):
    with torch.no_grad():
        expected = model(images)
        exported = torch.export.export(model, (images,)).module()
        torch.testing.assert_close(exported(images), expected, rtol=1e-4, atol=1e-5)
        traced = torch.jit.trace(model, images)
        torch.testing.assert_close(traced(images), expected, rtol=1e-4, atol=1e-5)
