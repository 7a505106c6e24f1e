"""Parts of ``torch.autograd`` that taeda has elsewhere or not at all."""
