"""XNNPACK, which is not used."""

enabled = False
