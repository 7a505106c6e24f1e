"""Parts of PyTorch's own tests that tests of packages use."""
