"""Parts of ``torch.testing`` that are private there."""
