"""transformers: ``Trainer`` with a schedule, evaluation, and a checkpoint that is resumed."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(0)
config = BertConfig(
    vocab_size=30, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=2,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)  # fmt: skip
rows = [{"input_ids": (ids := torch.randint(0, 30, (8,))), "labels": int(ids[0] > 14)} for _ in range(32)]

with tempfile.TemporaryDirectory() as folder:

    def fit(epochs, resume=None):
        torch.manual_seed(1)
        arguments = TrainingArguments(
            folder, num_train_epochs=epochs, per_device_train_batch_size=8, learning_rate=5e-3, logging_steps=2,
            save_steps=4, warmup_steps=2, report_to=[], disable_tqdm=True, use_cpu=True, seed=3,
        )  # fmt: skip
        trainer = Trainer(BertForSequenceClassification(config), arguments, train_dataset=rows, eval_dataset=rows)
        trainer.train(resume_from_checkpoint=resume)
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        return trainer.evaluate()["eval_loss"], losses

    whole, losses = fit(2)
    print("losses:", *losses)
    print("evaluated:", whole)
    resumed, _ = fit(2, f"{folder}/checkpoint-4")
    print("resumed:", resumed)
    assert abs(resumed - whole) < 1e-5
