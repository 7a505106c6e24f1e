"""torchmetrics: classification, regression, image and text metrics over batches, and a collection in a loop."""

import torch
import torchmetrics
from torchmetrics import MetricCollection, classification, image, regression, text

torch.manual_seed(0)
metrics = MetricCollection(
    {
        "accuracy": classification.MulticlassAccuracy(4),
        "f1": classification.MulticlassF1Score(4, average="weighted"),
        "auroc": classification.MulticlassAUROC(4),
        "binned": classification.MulticlassAUROC(4, thresholds=11),
        "ap": classification.MulticlassAveragePrecision(4),
        "kappa": classification.MulticlassCohenKappa(4),
        "ece": classification.MulticlassCalibrationError(4),
    }
)
confusion = classification.MulticlassConfusionMatrix(4)
for _ in range(3):
    scores, target = torch.randn(20, 4).softmax(-1), torch.randint(0, 4, (20,))
    metrics.update(scores, target)
    confusion.update(scores, target)
for name, value in sorted(metrics.compute().items()):
    print(f"{name}:", value.item())
print("confusion:", *confusion.compute().flatten().tolist())

a, b = torch.randn(40), torch.randn(40)
b = a + 0.3 * b
for metric in (
    regression.MeanSquaredError(), regression.PearsonCorrCoef(), regression.SpearmanCorrCoef(), regression.R2Score(),
    regression.KendallRankCorrCoef(), regression.ExplainedVariance(),
):  # fmt: skip
    metric.update(a[:20], b[:20])
    metric.update(a[20:], b[20:])
    print(f"{type(metric).__name__}:", metric.compute().item())

x = torch.rand(2, 3, 24, 24)
y = (x + 0.1 * torch.rand(2, 3, 24, 24)).clamp(max=1).requires_grad_()
ssim = image.StructuralSimilarityIndexMeasure(data_range=1.0)
value = ssim(y, x)
value.backward()
print("ssim:", value.item(), y.grad.abs().sum().item(), image.PeakSignalNoiseRatio(1.0)(y.detach(), x).item())
print(
    "text:",
    text.WordErrorRate()(["a b c"], ["a c c"]).item(),
    text.Perplexity()(torch.randn(1, 5, 7), x[:1, 0, 0, :5].long()).item(),
)
mean = torchmetrics.MeanMetric()
mean.update(torch.tensor([1.0, 3.0]))
mean.load_state_dict(mean.state_dict())
print("mean:", mean.compute().item(), mean.clone().compute().item())
