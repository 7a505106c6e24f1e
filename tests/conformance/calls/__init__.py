"""Every form in which PyTorch's functions and methods can be called, called in both libraries."""
