"""x-transformers: a decoder with rotary positions and grouped queries, and an encoder, trained; sampled tokens."""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper

torch.manual_seed(0)
tokens = torch.randint(0, 20, (4, 16))
decoder = TransformerWrapper(
    num_tokens=20, max_seq_len=24,
    attn_layers=Decoder(
        dim=32, depth=2, heads=4, attn_dim_head=8, attn_kv_heads=2, rotary_pos_emb=True, ff_glu=True, use_rmsnorm=True
    ),
)  # fmt: skip
model = AutoregressiveWrapper(decoder)
encoder = TransformerWrapper(num_tokens=20, max_seq_len=24, attn_layers=Encoder(dim=32, depth=1, heads=4))
head = torch.nn.Linear(20, 2)


def train(name, parameters, objective):
    optimizer = torch.optim.AdamW(parameters, lr=3e-3)
    losses = []
    for _ in range(4):
        loss = objective()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"{name}:", *losses)
    assert losses[-1] < losses[0]


train("decoder", model.parameters(), lambda: model(tokens))
mask = torch.arange(16) < torch.tensor([[16], [12], [9], [16]])
train(
    "encoder", [*encoder.parameters(), *head.parameters()],
    lambda: torch.nn.functional.cross_entropy(head(encoder(tokens, mask=mask).mean(1)), torch.tensor([0, 1, 0, 1])),
)  # fmt: skip
print("greedy:", *model.generate(tokens[:1, :4], 6, temperature=0.0).flatten().tolist())
