"""Parts of ``torch.utils`` that taeda does not have."""
