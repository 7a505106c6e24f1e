"""Parts of ``torch.jit`` that taeda does not have."""
