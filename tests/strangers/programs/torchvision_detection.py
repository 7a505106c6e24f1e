"""torchvision: its compiled ops (boxes, pooled regions, deformable convolution, images as files), and two detectors."""

import tempfile
from pathlib import Path

import torch
from torchvision import io, ops
from torchvision.models import detection
from torchvision.transforms import v2

torch.manual_seed(0)
boxes, scores = torch.rand(200, 4) * 50, torch.rand(200)
boxes[:, 2:] += boxes[:, :2]
kept = ops.nms(boxes, scores, 0.5)
print("nms:", len(kept), *kept[:8].tolist())
print("batched nms:", *ops.batched_nms(boxes, scores, torch.arange(200) % 3, 0.3)[:8].tolist())
try:
    ops.nms(boxes, scores[:3], 0.5)
except RuntimeError as error:
    print("an error:", int("same number of elements" in str(error)))

x = torch.rand(2, 18, 20, 20, requires_grad=True)
regions = torch.tensor([[0, 1.0, 2.0, 15.0, 14.0], [1, 3.0, 3.0, 10.0, 12.0]])
for name, pooled in [
    ("roi align", ops.roi_align(x, regions, (3, 3), 0.5, 2, True)),
    ("roi pool", ops.roi_pool(x, regions, (3, 3), 0.5)),
    ("ps roi align", ops.ps_roi_align(x, regions, 3, 0.5, 2)),
    ("ps roi pool", ops.ps_roi_pool(x, regions, 3, 0.5)),
]:
    x.grad = None
    pooled.square().sum().backward()
    print(f"{name}:", pooled.sum().item(), x.grad.sum().item(), x.grad.square().sum().item())

layer = ops.DeformConv2d(18, 4, 3, padding=1)
offset, mask = torch.rand(2, 18, 20, 20, requires_grad=True), torch.rand(2, 9, 20, 20)
made = layer(x.detach(), offset, mask)
made.square().sum().backward()
print("deformable convolution:", made.sum().item(), offset.grad.sum().item(), layer.weight.grad.sum().item())

picture = (torch.rand(3, 24, 32) * 255).to(torch.uint8)
path = Path(tempfile.mkdtemp()) / "picture.png"
io.write_png(picture, str(path))
jpeg = io.decode_jpeg(io.encode_jpeg(picture, quality=95))
print("files:", int(torch.equal(io.read_image(str(path)), picture)), *jpeg.shape)
grey = io.decode_image(io.read_file(str(path)), mode=io.ImageReadMode.GRAY)
print("grey:", grey.float().mean().item())
flipped = v2.Compose([v2.RandomHorizontalFlip(1.0), v2.ToDtype(torch.float32, scale=True), v2.Resize((12, 16))])(
    picture
)
print("transforms:", flipped.mean().item(), flipped[:, 0, 0].sum().item())

for name, options in [("fasterrcnn_mobilenet_v3_large_320_fpn", {}), ("fcos_resnet50_fpn", {})]:
    torch.manual_seed(1)
    model = getattr(detection, name)(
        weights=None, weights_backbone=None, num_classes=4, min_size=64, max_size=96, **options
    )
    images = [torch.rand(3, 64, 80), torch.rand(3, 72, 64)]
    targets = [
        {"boxes": torch.tensor([[4.0, 6, 30, 40], [20, 10, 60, 50]]), "labels": torch.tensor([1, 2])} for _ in images
    ]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    losses = []
    for _ in range(2):
        loss = sum(model(images, targets).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"{name}:", *losses)
    with torch.no_grad():
        found = model.eval()(images)
    print(f"{name} finds:", *(len(f["boxes"]) for f in found))
