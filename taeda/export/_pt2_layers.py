"""Layers that are several steps in a file of PyTorch: recurrent networks and bags of embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from taeda._core import Tensor
from taeda.fx import Node
from taeda.fx.experimental.symbolic_shapes import _Symbolic
from taeda.ops.table import OPS

from .. import _core
from ._pt2 import _DTYPES, _FORMATS
from ._pt2_ops import refuse
from ._unknown_sizes import _bound

__all__ = ["CODES", "Layers", "constant"]

CODES = {name: code for code, name in _DTYPES.items()}


def constant(x: Any) -> dict:
    if x is None:
        return {"as_none": True}
    if isinstance(x, bool):
        return {"as_bool": x}
    if isinstance(x, int):
        return {"as_int": int(x)}
    if isinstance(x, float):
        shown = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(x, "NaN" if x != x else float(x))
        return {"as_float": shown}
    if isinstance(x, str):
        return {"as_string": x}
    if isinstance(x, _core.dtype) and x.name in CODES:
        return {"as_scalar_type": CODES[x.name]}
    if isinstance(x, _core.memory_format):
        return {"as_memory_format": next(code for code, known in _FORMATS.items() if known == x)}
    if isinstance(x, complex):
        return {"as_complex": {"real": x.real, "imag": x.imag}}
    if isinstance(x, _core.device) and x.type == "cpu":
        return {"as_device": {"type": "cpu", "index": None}}
    raise ValueError(f"export.save: {x!r:.80} has no form in files of PyTorch. Save with format='taeda'")


class Layers:
    """The part of the writer that writes layers."""

    tensors: dict[str, dict]
    nodes: list[dict]
    _raw: Callable
    _meta: Callable
    _argument: Callable

    def _part(self, name: str, target: str, x: dict, rank: int, like: Tensor, **given: Any) -> dict:
        """A step of a tensor that stands for a part of one; only the rank of its result counts."""
        self.tensors[name] = {
            **self._meta(like), "sizes": [{"as_int": 1}] * rank, "strides": [{"as_int": 1}] * rank
        }  # fmt: skip
        self._raw(f"torch.ops.aten.{target}", [("self", x), *((k, self._argument(v)) for k, v in given.items())], name)
        return {"as_tensor": {"name": name}}

    def _recurrent(self, node: Node) -> None:
        """A layer of which the products with the input are there: ATen's network, with ones for those weights."""
        mode, gates, h0, c0, w_hh, b_hh, sizes, reverse, *_ = node.args
        steps = sizes  # a number that may change, of the whole batch
        if node.target is OPS["_recurrent_layer"]:
            if any(n is not sizes[0] and n != sizes[0] for n in sizes):
                raise refuse(node, "a packed sequence")
            steps = len(sizes)
        users = {n.args[1]: n for n in node.users}
        states = 2 if mode == "LSTM" else 1
        if any(i > states for i in users):
            raise refuse(node, "what its derivative needs is used")
        label, like = node.name, gates.meta["val"]
        width = like.shape[1]

        def part(name: str, target: str, x: dict, rank: int, **given: Any) -> dict:
            return self._part(f"{label}_{name}", target, x, rank, like, **given)

        x = part("rows", "reshape.default", self._argument(gates), 3, shape=[steps, -1, width])
        x = part("flipped", "flip.default", x, 3, dims=[0]) if reverse else x
        first = [
            part(f"first_{i}", "unsqueeze.default", self._argument(s), 3, dim=0)
            for i, s in enumerate((h0, c0)[:states])
        ]
        self._sized(f"{label}_ones", "eye.default", like, [("n", width)], 2)
        weights = [f"{label}_ones", w_hh.name]
        if b_hh is not None:
            self._sized(f"{label}_zeros", "zeros.default", like, [("size", [width])], 1)
            weights += [f"{label}_zeros", b_hh.name]
        hx = {"as_tensors": [s["as_tensor"] for s in first]} if mode == "LSTM" else first[0]
        rest = [
            ("has_biases", b_hh is not None), ("num_layers", 1), ("dropout", 0.0), ("train", False),
            ("bidirectional", False), ("batch_first", False),
        ]  # fmt: skip
        inputs = [("input", x), ("hx", hx), ("params", {"as_tensors": [{"name": w} for w in weights]})]
        inputs += [(k, constant(v)) for k, v in rest]
        made = [f"{label}_{k}" for k in ("output", "h", "c")[: states + 1]]
        self._raw(f"torch.ops.aten.{mode.lower()}.input", inputs, label)
        self.nodes[-1]["outputs"] = [{"as_tensor": {"name": m}} for m in made]
        for m in made:
            self.tensors[m] = self.tensors[f"{label}_rows"]
        self._network_results(node, made, reverse, users, part)

    def _network_results(self, node: Node, made: list[str], reverse: bool, users: dict, part: Any) -> None:
        """The results of ATen's network as ours: rows in the order of the steps, and states without a dimension."""
        for i, name in enumerate(made):
            if i not in users:
                continue
            x: dict = {"as_tensor": {"name": name}}
            value = users[i].meta["val"]
            if i == 0 and reverse:
                x = part("output_flipped", "flip.default", x, 3, dims=[0])
            self.tensors[users[i].name] = self._meta(value)
            given = {"shape": [-1, value.shape[1]]} if i == 0 else {"dim": 0}
            target = "reshape.default" if i == 0 else "squeeze.dim"
            self._raw(
                f"torch.ops.aten.{target}",
                [("self", x), *((k, self._argument(v)) for k, v in given.items())],
                users[i].name,
            )

    def _sized(self, name: str, target: str, like: Tensor, given: list, rank: int) -> None:
        """Write a step that makes a tensor from numbers."""
        ones = [{"as_int": 1}] * rank
        self.tensors[name] = {**self._meta(like), "sizes": ones, "strides": ones}
        self._raw(f"torch.ops.aten.{target}", [(k, self._argument(v)) for k, v in given], name)
        self.nodes[-1]["inputs"].append({"name": "dtype", "arg": constant(like.dtype), "kind": 2})

    def _bags(self, node: Node) -> None:
        """``embedding_bag``: ATen takes a vector, and offsets."""
        given = _bound(node.target, tuple(node.args), dict(node.kwargs))
        indices, value = given["input"], given["input"].meta["val"]
        if given.get("max_norm") is not None:
            raise refuse(node, "max_norm, which writes to the weights")
        x, offsets, label = self._argument(indices), given.get("offsets"), node.name
        weights = given.get("per_sample_weights")
        weights = {"as_none": True} if weights is None else self._argument(weights)
        if value.dim() == 2:
            count, width = value.shape
            if isinstance(width, _Symbolic):
                raise refuse(node, "bags of a size that may change")
            x = self._part(f"{label}_flat", "reshape.default", x, 1, value, shape=[-1])
            if "as_tensor" in weights:
                like = given["per_sample_weights"].meta["val"]
                weights = self._part(f"{label}_weights", "reshape.default", weights, 1, like, shape=[-1])
            if isinstance(count, _Symbolic):  # 0, width, 2 width ... from as many ones
                starts = self._part(f"{label}_column", "select.int", self._argument(indices), 1, value, dim=1, index=0)
                starts = self._part(f"{label}_ones", "ones_like.default", starts, 1, value)
                starts = self._part(f"{label}_counted", "cumsum.default", starts, 1, value, dim=0)
                starts = self._part(f"{label}_before", "sub.Scalar", starts, 1, value, other=1)
                starts = self._part(f"{label}_offsets", "mul.Scalar", starts, 1, value, other=width)
            else:
                ends = [("start", 0), ("end", count * width), ("step", width)]
                self._sized(f"{label}_offsets", "arange.start_step", value, ends, 1)
                starts = {"as_tensor": {"name": f"{label}_offsets"}}
        else:
            starts = self._argument(offsets)
        padding = given.get("padding_idx")
        inputs = [
            ("weight", self._argument(given["weight"])), ("indices", x), ("offsets", starts),
            ("scale_grad_by_freq", constant(bool(given.get("scale_grad_by_freq", False)))),
            ("mode", constant({"sum": 0, "mean": 1, "max": 2}[given.get("mode", "mean")])),
            ("sparse", constant(False)), ("per_sample_weights", weights),
            ("include_last_offset", constant(bool(given.get("include_last_offset", False)))),
            ("padding_idx", {"as_none": True} if padding is None else constant(padding)),
        ]  # fmt: skip
        self._raw("torch.ops.aten.embedding_bag.padding_idx", inputs, f"{label}_all")
        names = [label, *(f"{label}_unused_{i}" for i in range(3))]
        self.nodes[-1]["outputs"] = [{"as_tensor": {"name": n}} for n in names]
        self.tensors[label] = self._meta(node.meta["val"])
        for n in names[1:]:
            self.tensors[n] = {**self._meta(value), "sizes": [{"as_int": 1}], "strides": [{"as_int": 1}]}
