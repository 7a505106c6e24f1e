"""transformers: five kinds of models from a configuration, three steps each, and generated tokens."""

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTForImageClassification,
)  # fmt: skip

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


def train(name, model, **batch):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    model.train()
    for _ in range(4):
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    print(f"{name}:", *losses)
    assert losses[-1] < losses[0]
    model.eval()


torch.manual_seed(0)
ids = torch.randint(3, 50, (4, 12))
mask = torch.ones_like(ids)
mask[1, 8:] = 0

bert = BertForSequenceClassification(BertConfig(vocab_size=50, num_labels=3, **SMALL))
train("bert", bert, input_ids=ids, attention_mask=mask, labels=torch.tensor([0, 1, 2, 1]))

gpt2 = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=4, n_positions=32))
train("gpt2", gpt2, input_ids=ids, attention_mask=mask, labels=ids)
print("gpt2 greedy:", *gpt2.generate(ids[:1, :4], max_new_tokens=6, do_sample=False, pad_token_id=0)[0].tolist())
beams = gpt2.generate(ids[:1, :4], max_new_tokens=4, num_beams=3, do_sample=False, pad_token_id=0)
print("gpt2 beams:", *beams[0].tolist())

llama = LlamaForCausalLM(LlamaConfig(vocab_size=50, num_key_value_heads=2, max_position_embeddings=32, **SMALL))
train("llama", llama, input_ids=ids, attention_mask=mask, labels=ids)
print(
    "llama greedy:", *llama.generate(ids[:2, :4], max_new_tokens=6, do_sample=False, pad_token_id=0).flatten().tolist()
)
half = llama.to(torch.bfloat16)
assert half(input_ids=ids, attention_mask=mask).logits.isfinite().all()  # masks of -inf in half precision

t5 = T5ForConditionalGeneration(
    T5Config(vocab_size=50, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0)
)
train("t5", t5, input_ids=ids, attention_mask=mask, labels=ids[:, :6].clone())
print("t5 greedy:", *t5.generate(ids[:1], max_new_tokens=5, do_sample=False)[0].tolist())

vit = ViTForImageClassification(ViTConfig(image_size=16, patch_size=4, num_labels=3, **SMALL))
train("vit", vit, pixel_values=torch.randn(4, 3, 16, 16), labels=torch.tensor([0, 1, 2, 1]))
