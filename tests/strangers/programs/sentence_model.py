"""sentence-transformers: a small BERT with pooling, trained by three losses, saved, loaded and searched with."""

import tempfile
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer, losses, util
from sentence_transformers.models import Normalize, Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizer

WORDS = "a the cat dog sat ran on under mat tree red blue sky sea fish bird".split()
SENTENCES = ["a cat sat on the mat", "the dog ran under a tree", "red sky", "blue sea fish", "a bird on the tree"]

with tempfile.TemporaryDirectory() as folder:
    base = Path(folder, "base")
    base.mkdir()
    vocabulary = base / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    BertModel(config).save_pretrained(base)
    BertTokenizer(str(vocabulary)).save_pretrained(base)
    words = Transformer(str(base), max_seq_length=16)
    model = SentenceTransformer(modules=[words, Pooling(32, "mean"), Normalize()], device="cpu")

    for loss, labels in (
        (losses.CosineSimilarityLoss(model), torch.tensor([0.9, 0.1])),
        (losses.MultipleNegativesRankingLoss(model), None),
        (losses.ContrastiveLoss(model), torch.tensor([1, 0])),
    ):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        values = []
        for _ in range(4):
            features = [model.tokenize(SENTENCES[:2]), model.tokenize(SENTENCES[2:4])]
            value = loss(features, labels)
            value.backward()
            optimizer.step()
            optimizer.zero_grad()
            values.append(value.item())
        print(f"{type(loss).__name__}:", *values)
        assert values[-1] < values[0]

    embedded = model.encode(SENTENCES, convert_to_tensor=True)
    print("similar:", *util.cos_sim(embedded[:1], embedded)[0].tolist())
    found = util.semantic_search(embedded[:1], embedded, top_k=2)[0]
    print("found:", *(hit["corpus_id"] for hit in found))
    model.save(f"{folder}/saved")
    again = SentenceTransformer(f"{folder}/saved", device="cpu").encode(SENTENCES, convert_to_tensor=True)
    assert torch.equal(again, embedded)
