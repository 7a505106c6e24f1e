"""``torch._six``: what old programs take from it."""

inf = float("inf")
nan = float("nan")
string_classes = (str, bytes)
int_classes = int

__all__ = ["inf", "int_classes", "nan", "string_classes"]
