"""Parts of ``torch.distributed`` that packages name; each refuses to be used."""
