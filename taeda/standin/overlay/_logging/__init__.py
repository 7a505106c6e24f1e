"""``torch._logging``: levels of PyTorch's loggers, by component."""

from __future__ import annotations

import logging
from collections.abc import Mapping

_COMPONENTS = frozenset(
    "all dynamo aot autograd dynamic inductor distributed c10d ddp fsdp dtensor onnx export optimizer torch".split()
)


def set_logs(*, modules: Mapping[str, int | bool] | None = None, **levels: int | bool) -> None:
    """Set the levels of loggers named ``torch.<component>``, and of ``modules`` by their names; without arguments,
    reset all.

    What PyTorch's compiler would write on the way (``graph_breaks=True``, ``output_code=True``, ...) is accepted and
    not written, as nothing here makes it: ``torch._dynamo.explain`` and ``taeda.compiler.explain`` show graphs and
    kernels.

    Raises:
        ValueError: a level is neither an int nor a bool.
    """
    for name, level in {**levels, **(modules or {})}.items():
        if not isinstance(level, int):
            raise ValueError(
                f"set_logs: expected a level of logging or a bool for {name!r}, got {type(level).__name__}"
            )
    for name in _COMPONENTS:
        level = levels.get(name, logging.NOTSET)
        logging.getLogger("torch" if name in ("all", "torch") else f"torch.{name}").setLevel(int(level))
    for name, level in (modules or {}).items():
        logging.getLogger(name).setLevel(logging.DEBUG if level is True else int(level))


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """The logger of a module's artifact."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


def warning_once(logger: logging.Logger, *args: object, **kwargs: object) -> None:
    """Warn the first time that these arguments are given."""
    key = (logger.name, *map(str, args))
    if key not in _warned:
        _warned.add(key)
        logger.warning(*args, **kwargs)  # type: ignore[arg-type]


_warned: set[tuple] = set()
