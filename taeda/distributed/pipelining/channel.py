"""Tensors that go from a stage to its neighbours, by messages or, on the same process, as they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import taeda

from ..._typed import Tensor
from ..collectives import irecv, isend
from ..groups import Work, device_of
from .orders import BACKWARD, FORWARD, in_loop

_KINDS = (FORWARD, BACKWARD)
Mail = dict[tuple[int, str, int], list[Tensor]]


class Meta(NamedTuple):
    """The description of a tensor, which is sent before it."""

    dtype: str
    shape: tuple[int, ...]
    wants_grad: bool

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    @classmethod
    def of(cls, tensor: Tensor) -> Meta:
        """The description of ``tensor``."""
        return cls(str(tensor.dtype).rpartition(".")[2], tuple(tensor.shape), tensor.requires_grad)


def told(metas: Sequence[Meta]) -> str:
    """Dtypes and sizes for messages."""
    return ", ".join(map(str, metas)) or "nothing"


class Channel:
    """The messages of one stage.

    Sizes, dtypes and whether a tensor wants a gradient are sent before the first tensors of a microbatch. They stay the
    same.

    Args:
        stage: its index.
        device: where received tensors are put.
        group: the processes.
        rank: of this one in the group.
        size: of the group. Stages lie in a loop, unless a schedule says otherwise (:attr:`place`).
    """

    def __init__(self, stage: int, device: Any, group: Any, rank: int, size: int) -> None:
        self._stage, self._device, self._group, self._rank, self._size = stage, device, group, rank, size
        self.place: Callable[[int, int], int] = in_loop  # stage -> rank
        self.mail: Mail = {}  # shared by the stages of a process
        self._known: dict[tuple[str, int, bool], list[Meta]] = {}
        self._sending: list[tuple[Work, Tensor]] = []  # tensors under way must not be freed

    def _is_here(self, stage: int) -> bool:
        return self.place(stage, self._size) == self._rank

    def _post(self, to: int, kind: str, tensor: Tensor) -> None:
        tensor = tensor.contiguous()
        work = isend(tensor, None, self._group, 2 * to + _KINDS.index(kind), self.place(to, self._size))
        self._sending = [(w, t) for w, t in self._sending if not w.is_completed()]
        if work is not None:
            self._sending.append((work, tensor))

    def _take(self, frm: int, kind: str, tensor: Tensor) -> Tensor:
        work = irecv(tensor, None, self._group, 2 * self._stage + _KINDS.index(kind), self.place(frm, self._size))
        if work is not None:
            work.wait()
        return tensor

    def send_outputs(self, microbatch: int, outputs: Sequence[Tensor]) -> None:
        """Send them to the next stage.

        Args:
            microbatch: its number.
            outputs: what the stage gave.

        Raises:
            RuntimeError: their sizes are not those of the first step.
        """
        to, metas = self._stage + 1, [Meta.of(t) for t in outputs]
        if self._is_here(to):
            self.mail[to, FORWARD, microbatch] = [t.detach().requires_grad_(t.requires_grad) for t in outputs]
            return
        key = ("sent", microbatch, taeda.is_grad_enabled())
        if key not in self._known:
            self._known[key] = metas
            text = json.dumps(metas).encode()
            device = device_of(self._group)
            self._post(to, FORWARD, taeda.tensor(len(text), device=device))
            self._post(to, FORWARD, taeda.frombuffer(bytearray(text), dtype=taeda.uint8).to(device))
        elif self._known[key] != metas:
            raise RuntimeError(
                f"[Stage {self._stage}] microbatch {microbatch}: outputs are {told(metas)}, in the first step they "
                f"were {told(self._known[key])}; give every step a batch of the same size (drop_last=True), or make a "
                f"new schedule"
            )
        for t in outputs:
            self._post(to, FORWARD, t.detach())

    def receive_inputs(self, microbatch: int) -> list[Tensor]:
        """The outputs of the stage before, as leaves. A leaf wants a gradient if its output does."""
        frm = self._stage - 1
        if self._is_here(frm):
            return self.mail.pop((self._stage, FORWARD, microbatch))
        key = ("received", microbatch, taeda.is_grad_enabled())
        if key not in self._known:
            device = device_of(self._group)
            size = self._take(frm, FORWARD, taeda.tensor(0, device=device)).item()
            text = self._take(frm, FORWARD, taeda.empty(size, dtype=taeda.uint8, device=device))
            self._known[key] = [Meta(d, tuple(shape), g) for d, shape, g in json.loads(bytes(text.tolist()))]
        inputs = []
        for meta in self._known[key]:
            place = taeda.empty(meta.shape, dtype=getattr(taeda, meta.dtype), device=self._device)
            inputs.append(self._take(frm, FORWARD, place).requires_grad_(meta.wants_grad))
        return inputs

    def send_grads(self, microbatch: int, grads: list[Tensor]) -> None:
        """Send the gradients of the inputs to the stage before."""
        to = self._stage - 1
        if self._is_here(to):
            self.mail[to, BACKWARD, microbatch] = grads
            return
        for grad in grads:
            self._post(to, BACKWARD, grad)

    def receive_grads(self, microbatch: int, outputs: Sequence[Tensor]) -> list[Tensor]:
        """The gradients of ``outputs``, from the next stage."""
        frm = self._stage + 1
        if self._is_here(frm):
            return self.mail.pop((self._stage, BACKWARD, microbatch))
        return [self._take(frm, BACKWARD, taeda.empty(t.shape, dtype=t.dtype, device=t.device)) for t in outputs]

    def forget(self) -> None:
        """Tell sizes anew: a new schedule may have other microbatches."""
        self._known.clear()

    def flush(self) -> None:
        """Wait until everything that was sent is on its way."""
        for work, _ in self._sending:
            work.wait()
        self._sending.clear()
