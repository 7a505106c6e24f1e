"""Lightning: ``Trainer`` with validation, callbacks, a checkpoint that is resumed, and manual optimisation."""

import logging
import tempfile
import warnings

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Regression(lightning.LightningModule):
    def __init__(self, width=16):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1))

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val", nn.functional.mse_loss(self.net(x), y))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
        return [optimizer], [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)]


class Manual(Regression):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, index):
        optimizer = self.optimizers()
        loss = nn.functional.mse_loss(self.net(batch[0]), batch[1])
        optimizer.zero_grad()
        self.manual_backward(loss)
        optimizer.step()
        self.log("loss", loss)


lightning.seed_everything(0)
x = torch.randn(64, 4)
data = TensorDataset(x, (x**2).sum(1, keepdim=True))
loader = DataLoader(data, batch_size=16)

with tempfile.TemporaryDirectory() as folder:

    def fit(model, epochs, **options):
        saved = ModelCheckpoint(f"{folder}/{type(model).__name__}", monitor="val", save_last=True)
        trainer = lightning.Trainer(
            max_epochs=epochs, accelerator="cpu", enable_progress_bar=False, enable_model_summary=True,
            logger=CSVLogger(folder), log_every_n_steps=1, **options,
            callbacks=[saved, EarlyStopping("val", patience=5), LearningRateMonitor()],
        )  # fmt: skip
        trainer.fit(model, loader, loader)
        return trainer, saved

    trainer, saved = fit(Regression(), 3, gradient_clip_val=1.0, accumulate_grad_batches=2)
    print("fitted:", trainer.callback_metrics["loss"].item(), trainer.callback_metrics["val"].item())
    print("validated:", trainer.validate(trainer.lightning_module, loader, verbose=False)[0]["val"])
    again = Regression.load_from_checkpoint(saved.last_model_path)
    assert torch.equal(again.net(x), trainer.lightning_module.net(x))
    longer = lightning.Trainer(
        max_epochs=5, accelerator="cpu", enable_progress_bar=False, logger=False, enable_checkpointing=False,
        enable_model_summary=False,
    )  # fmt: skip
    longer.fit(again, loader, ckpt_path=saved.last_model_path)
    print("resumed:", longer.global_step, longer.callback_metrics["loss"].item())
    lightning.seed_everything(1)
    trainer, _ = fit(Manual(), 2)
    print("manual:", trainer.callback_metrics["loss"].item(), trainer.callback_metrics["val"].item())
