"""The engine of quantised ops, of which there are none."""

engine = "none"
supported_engines: list[str] = ["none"]
