"""What packages' tests take from PyTorch's own tests."""
