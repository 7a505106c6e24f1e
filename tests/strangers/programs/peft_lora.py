"""peft: LoRA on a small GPT-2, saved, loaded and merged; and IA3."""

import tempfile

import torch
from peft import IA3Config, LoraConfig, PeftModel, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

CONFIG = GPT2Config(
    vocab_size=40, n_embd=32, n_layer=2, n_head=4, n_positions=16, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
)


def base():
    torch.manual_seed(0)
    return GPT2LMHeadModel(CONFIG)


ids = torch.arange(24).view(2, 12) % 7


def train(model, lr):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr)
    losses = []
    for _ in range(5):
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    return losses


model = get_peft_model(base(), LoraConfig(r=4, lora_alpha=8, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True))
print("trainable:", *model.get_nb_trainable_parameters())
print("lora:", *train(model, 2e-2))
model.eval()
logits = model(input_ids=ids).logits
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    again = PeftModel.from_pretrained(base(), folder).eval()
    assert torch.equal(again(input_ids=ids).logits, logits)
merged = model.merge_and_unload()
torch.testing.assert_close(merged(input_ids=ids).logits, logits, rtol=1e-4, atol=1e-5)
print("merged:", *merged.generate(ids[:1, :4], max_new_tokens=5, do_sample=False, pad_token_id=0)[0].tolist())

model = get_peft_model(
    base(), IA3Config(target_modules=["c_attn", "c_fc"], feedforward_modules=["c_fc"], fan_in_fan_out=True)
)
print("ia3:", *train(model, 5e-2))
