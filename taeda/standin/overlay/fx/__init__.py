"""Parts of ``torch.fx`` that taeda does not have."""
