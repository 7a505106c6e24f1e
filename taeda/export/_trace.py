"""``export``: a model runs on its example arguments, without values, and its calls become a graph."""

from __future__ import annotations

import itertools
import operator
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any

from taeda._core import Size, Tensor
from taeda.fx import GraphModule, Node
from taeda.fx.experimental.symbolic_shapes import (
    Expr,
    GuardOnDataDependentSymNode,
    SymBool,
    SymFloat,
    SymInt,
    ValueRanges,
    _Symbolic,
    int_oo,
)
from taeda.fx.node import map_arg
from taeda.nn import Module, Parameter
from taeda.nn._recorded import form_of, refuse_form, tensors_of
from taeda.utils import _pytree as pytree

from .. import _core
from ._capture import Capture, Recorded, _call_model
from ._checks import Checks, InputCheck
from ._unknown_sizes import implied, numbers
from ._unknowns import Again, Unknowns
from ._values import _WAYS, Conflict, FakeTensor, Traced, range_of, samples_of
from .dynamic_shapes import (
    AdditionalInputs,
    ConstraintsViolated,
    Reader,
    Root,
    ShapesCollection,
    UserError,
    named_arguments,
)
from .exported_program import CallSpec, ExportedProgram, ModuleCallEntry, ModuleCallSignature
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)

__all__ = ["draft_export", "export", "export_for_training"]

_NUMBERS = (int, float, complex, bool, str, type(None), _core.dtype, _core.device, _core.layout, _core.memory_format)


def export(
    mod: Module, args: tuple, kwargs: Mapping[str, Any] | None = None, *, dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (), prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:  # fmt: skip
    """The program that ``mod(*args, **kwargs)`` runs, as a graph of ops, with its parameters and buffers.

    The model runs without values, so it costs no memory. Its Python code is followed once: loops are unrolled, and
    conditions on sizes are kept as constraints. Code that depends on values of tensors must use ``cond`` and similar
    functions.

    Args:
        mod: the model.
        args: a tuple of example arguments: tensors, numbers, and trees of them. Numbers are fixed.
        kwargs: example arguments by name.
        dynamic_shapes: which sizes may change, for each argument: by name in a dict, or in order. ``{0: Dim("batch")}``
            for a tensor; trees of that for a tree; None where all sizes are fixed. All sizes are fixed by default.
        strict: accepted. Programs are recorded in one way.
        preserve_module_call_signature: paths of submodules that ``unflatten`` gives the arguments and results of their
            first call, so that another module can take their place.
        prefer_deferred_runtime_asserts_over_guards: accepted.

    Returns:
        An :class:`ExportedProgram`.

    Raises:
        ValueError: ``mod`` is no Module, the program sets an attribute of a module to a tensor, or an argument is
            neither a tensor nor a number.
        UserError: a RuntimeError. The program does not allow the sizes to change as ``dynamic_shapes`` says.
        GuardOnDataDependentSymNode: a RuntimeError. The program asks for the value of a tensor.

    Examples:
        >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        >>> program = taeda.export.export(model, (taeda.randn(2, 3),))
        >>> [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
        ['<op linear>', '<function relu>']
        >>> x = taeda.randn(2, 3)
        >>> bool((program.module()(x) == model(x)).all())
        True
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `taeda.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    args, given = pytree.tree_map(lambda x: tuple(x) if isinstance(x, Size) else x, (args, dict(kwargs or {})))
    for x in pytree.tree_leaves((args, given)):
        if not isinstance(x, (Tensor, *_NUMBERS)):
            raise ValueError(
                f"Unsupported input type {type(x)}. Export takes tensors, numbers, strings, and trees of them; "
                "register a dataclass with export.register_dataclass"
            )
    named = named_arguments(mod, args, given)
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, given)
    reader = Reader()
    sizes = reader.read(named, dynamic_shapes)
    exporter = _Exporter(mod, args, given, named, sizes, reader.roots)
    exporter.preserved = tuple(preserve_module_call_signature)
    return exporter.run()


def export_for_training(mod: Module, args: tuple, kwargs: Mapping[str, Any] | None = None, **options: Any) -> Any:
    """:func:`export`: a program is recorded before differentiation, so that it can be trained.

    Args:
        mod: the model.
        args: a tuple of example arguments.
        kwargs: example arguments by name.
        **options: as of :func:`export`.

    Returns:
        An :class:`ExportedProgram`.

    Raises:
        ValueError: as :func:`export`.

    Examples:
        >>> program = taeda.export.export_for_training(nn.Linear(3, 2), (taeda.randn(4, 3),))
        >>> program.module()(taeda.randn(4, 3)).requires_grad
        True
    """
    return export(mod, args, kwargs, **options)


def draft_export(mod: Module, args: tuple, kwargs: Mapping[str, Any] | None = None, **options: Any) -> Any:
    """:func:`export`, which has no weaker form here.

    Args:
        mod: the model.
        args: a tuple of example arguments.
        kwargs: example arguments by name.
        **options: as of :func:`export`.

    Returns:
        An :class:`ExportedProgram`.

    Raises:
        ValueError: as :func:`export`.

    Examples:
        >>> type(taeda.export.draft_export(nn.Linear(3, 2), (taeda.randn(4, 3),))).__name__
        'ExportedProgram'
    """
    return export(mod, args, kwargs, **options)


# ---- names -----------------------------------------------------------------------------------------------------------


def leaf_names(named: Mapping[str, Any]) -> list[str]:
    """The names of the leaves of arguments: ``x``, ``pair_0``, ``table_key``."""
    return [
        re.sub(r"[^0-9a-zA-Z_]+", "_", "_".join(map(_key, path)))
        for path, _ in pytree.tree_leaves_with_path(dict(named))
    ]


def _key(part: Any) -> str:
    return str(next(getattr(part, a) for a in ("key", "idx", "name") if hasattr(part, a))).replace(".", "_")


def leaf_places(args: tuple, kwargs: dict) -> list[str]:
    """The names of the leaves of arguments in errors: ``args[0]``, ``kwargs['x']['y']``."""
    found = []
    for path, _ in pytree.tree_leaves_with_path((args, kwargs)):
        found.append(("args", "kwargs")[path[0].idx] + "".join(map(str, path[1:])))
    return found


# ---- one attempt -----------------------------------------------------------------------------------------------------


class _Attempt(Recorded):
    """The model recorded at some sizes of its inputs."""

    def __init__(self, exporter: _Exporter, samples: list[dict[str, Any]], base: int = 0) -> None:
        self.exporter = exporter
        samples = [samples[base], *(s for i, s in enumerate(samples) if i != base)] if base else samples
        bounds = {r.name: (r.low, r.high) for r in exporter.roots.values()}
        super().__init__(Capture(samples, exporter.unknowns, bounds), [], {})
        self.state: dict[str, tuple[Any, Traced, InputSpec]] = {}  # by path
        self.lasting: list[tuple[str, Tensor, Traced, tuple, int]] = []  # what lasts, its form and version at first
        self.out_spec: Any = None
        self.outputs: list[Any] = []
        self.calls: dict[str, ModuleCallSignature] = {}  # modules whose signature is kept, by path
        with self.capture.complete():
            self._record()

    def _record(self) -> None:
        exporter, capture = self.exporter, self.capture
        known: dict[int, Traced] = {}
        parameters = list(exporter.mod.named_parameters(remove_duplicate=False))
        buffers = list(exporter.mod.named_buffers(remove_duplicate=False))
        for i, (path, x) in enumerate([*parameters, *buffers]):
            kind = InputKind.PARAMETER if i < len(parameters) else InputKind.BUFFER
            label = f"{'b' if kind is InputKind.BUFFER else 'p'}_{path.replace('.', '_')}"
            made = self._state(label, x)
            known.setdefault(id(x), made)  # one tensor of several names is used by the first
            capture.constants.setdefault(id(x), (x, made))
            persistent = path in exporter.persistent if kind is InputKind.BUFFER else None
            spec = InputSpec(kind, TensorArgument(capture.root.nodes[id(made)].name), path, persistent)
            self.state[path] = x, made, spec
            self._note_lasting(path, x, made)
            self.specs.append(spec)
        inputs = self._inputs()
        args, kwargs = pytree.tree_unflatten(inputs, exporter.in_spec)
        with self._swapped(known), capture.watching(exporter.mod), self._watching_calls(), capture.on():
            result = _call_model(exporter.mod, args, kwargs)
            self._write_back(known)
        self._check_lasting()
        result = pytree.tree_map(lambda x: tuple(x) if isinstance(x, Size) else x, result)
        leaves, self.out_spec = pytree.tree_flatten(result)
        if capture.grad_mode != _core.is_grad_enabled():
            capture._follow_grad_mode()
        for x in leaves:
            self.outputs.append(self._output(x))
        values = [o.value if isinstance(o, ConstantArgument) else self.nodes[o.name] for o in self.outputs]
        capture.root.graph.output(tuple(values))

    @contextmanager
    def _watching_calls(self) -> Iterator[None]:
        """Keep the signature of the first call of each module that is to keep it."""

        def argument(x: Any) -> Any:
            return (
                ConstantArgument("", x) if isinstance(x, _NUMBERS) and not isinstance(x, _Symbolic) else self._output(x)
            )

        def watch(path: str) -> Any:
            def called(module: Any, args: tuple, kwargs: dict, result: Any) -> None:
                given, taken = pytree.tree_flatten((args, kwargs))
                made, results = pytree.tree_flatten(result)
                if path not in self.calls:
                    inputs, outputs = [argument(x) for x in given], [argument(x) for x in made]
                    self.calls[path] = ModuleCallSignature(inputs, outputs, taken, results)

            return self.exporter.mod.get_submodule(path).register_forward_hook(called, with_kwargs=True)

        handles = [watch(path) for path in self.exporter.preserved]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _output(self, x: Any) -> Any:
        if isinstance(x, (Tensor, _Symbolic)):
            node = self.capture.node_of(self.capture._lifted(x) if isinstance(x, Tensor) else x)
            kinds = {SymInt: SymIntArgument, SymFloat: SymFloatArgument, SymBool: SymBoolArgument}
            return kinds.get(type(x), TensorArgument)(node.name)
        if isinstance(x, _NUMBERS):
            return ConstantArgument("", x)
        raise UserError(f"Unsupported output type {type(x)}: export takes tensors, numbers, strings, and trees of them")

    @property
    def nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self.capture.root.graph.nodes}

    def _inputs(self) -> list[Any]:
        exporter, found = self.exporter, []
        for name, leaf, sizes in zip(exporter.names, exporter.leaves, exporter.current_sizes(), strict=True):
            if isinstance(leaf, Tensor):
                made = self.capture.input(name, leaf, sizes)
                argument: Any = TensorArgument(self.capture.root.nodes[id(made)].name)
                found.append(made)
            else:
                node = self.capture.root.placeholder(name)
                node.meta["val"] = leaf
                argument = ConstantArgument(node.name, leaf)
                found.append(leaf)
            self.specs.append(InputSpec(InputKind.USER_INPUT, argument, None))
        return found

    def _lift(self, x: Tensor) -> Traced:
        """A placeholder for a tensor from outside."""
        if isinstance(x, FakeTensor) or x.is_meta:
            raise RuntimeError(
                "export: a tensor on device meta, or of another program, is used as a constant. A gradient that the "
                "model computes itself (func.grad, autograd.grad) is such a tensor: record it with make_fx"
            )
        path = self.exporter.attributes.get(id(x)) or self._new_path()
        made = self._constant(x, path)
        self._note_lasting(path, x, made)
        return made

    def _note_lasting(self, path: str, x: Tensor, made: Traced) -> None:
        self.lasting.append((path, x, made, form_of(made.metas[0]), made.metas[0]._version))

    def _check_lasting(self) -> None:
        """Raise if tensors that last from run to run change so that the next run needs another program."""
        with self.capture.aside():
            read = {id(x.untyped_storage()) for x in self.capture.read if x._without_memory is None}
            for path, x, made, form, version in self.lasting:
                refuse_form("export", form, form_of(made.metas[0]), path)
                if x._without_memory is None and id(x.untyped_storage()) in read and version != made.metas[0]._version:
                    raise RuntimeError(
                        f"export: Python reads the values of {path}, and the program writes to it: what was read would "
                        f"be the same in every run. Read them with ops, or register {path} as a buffer"
                    )

    @contextmanager
    def _swapped(self, known: dict[int, Traced]) -> Iterator[None]:
        """Tensors of the program in place of parameters and buffers; the model is as before afterwards."""
        root = self.exporter.mod
        before = [(m, dict(m._parameters), dict(m._buffers), dict(vars(m))) for m in root.modules()]
        for module, parameters, buffers, _ in before:
            for table, held in ((module._parameters, parameters), (module._buffers, buffers)):
                table.update({name: known[id(x)] for name, x in held.items() if x is not None})
        inside = [(x, copy(x)) for _, _, _, kept in before for x in kept.values() if type(x) in (list, dict)]
        held = tensors_of(root)
        changed: dict[bool, list[str]] = {True: [], False: []}  # attributes, by whether the next run would miss it
        try:
            yield
            now = tensors_of(root)
            for place in dict.fromkeys((*held, *now)):
                old, new = held.get(place), now.get(place)
                same = new is old or (new is not None and place[0] in self.state)
                fixed = isinstance(new, Traced) and self.capture.value_of(new) is not None and not place[1]
                read = bool(place[1]) or id(old) in self.capture.constants
                if not same and (read or not fixed):
                    changed[read].append(f"{type(root).__name__}.{place[0]}")
        finally:
            for container, contents in inside:
                container.clear()
                (container.extend if isinstance(container, list) else container.update)(contents)
            for module, parameters, buffers, attributes in before:
                module.__dict__.clear()
                module.__dict__.update(attributes)
                for table, held in ((module._parameters, parameters), (module._buffers, buffers)):
                    table.clear()
                    table.update(held)
        for read, names in changed.items():
            said = (
                f"The tensor attribute{'s' if len(names) > 1 else ''} {', '.join(names)} "
                f"{'were' if len(names) > 1 else 'was'} assigned during export. Such attributes must be registered as "
                "buffers using the `register_buffer` API."
            )
            if names and read:
                raise ValueError(said)
            if names:  # such as the weights of attention, kept to look at them
                warnings.warn(f"{said} The program does not assign them.", stacklevel=2)

    def _write_back(self, known: dict[int, Traced]) -> None:
        """Copy buffers that were set to new tensors."""
        for path, (x, _, _) in self.state.items():
            made = known[id(x)]
            owner, _, name = path.rpartition(".")
            module = self.exporter.mod.get_submodule(owner)
            now = module._buffers.get(name, module._parameters.get(name))
            if now is made or now is x or not isinstance(now, Tensor):
                continue
            now = self.capture._lifted(now)
            for meta in now.metas:
                refuse_form("export", form_of(made.metas[0])[:2], form_of(meta)[:2], path)
            if _place(now) == _place(made):
                continue
            if any(_place(now)[0] is _place(other)[0] for _, _, other, *_ in self.lasting):
                raise ValueError(
                    f"export: {path} is set to a view of another parameter, buffer or attribute, or of itself, which "
                    f"the program could not keep apart; set it to a copy by clone()"
                )
            made.copy_(now)


class _Exporter:
    """Records the model until its sizes may change as asked, or it is known why they may not."""

    def __init__(
        self, mod: Module, args: tuple, kwargs: dict, named: dict, sizes: list[list[Expr | None]],
        roots: dict[str, Root],
    ) -> None:  # fmt: skip
        self.mod, self.args, self.kwargs, self.named = mod, args, kwargs, named
        self.leaves, self.in_spec = pytree.tree_flatten((args, kwargs))
        order = _order(mod, self.in_spec)
        names, places = leaf_names(named), leaf_places(args, kwargs)
        self.names = [names[i] for i in order]
        self.places = places
        self.sizes = [sizes[i] for i in order]
        self.roots = roots
        self.fixed: dict[str, Any] = {}
        self.avoid: set[int] = set()
        self.unknowns = Unknowns()
        self.persistent = set(mod.state_dict())
        self.preserved: tuple[str, ...] = ()
        self.attributes = _attributes(mod)

    # ---- sizes ----

    def current_sizes(self) -> list[list[Any]]:
        """The expressions of the inputs' sizes, with the facts about symbols that are known so far."""
        return [[None if e is None else self.expr(e) for e in sizes] for sizes in self.sizes]

    def expr(self, expr: Expr) -> Any:
        """``expr`` with fixed symbols replaced; None if it is then a number."""
        replaced = _replace(expr, self.fixed)
        return replaced if isinstance(replaced, Expr) else None

    def samples(self) -> list[dict[str, int]]:
        """Values of the symbols that are left, and of the numbers that only a run finds."""
        roots = {r.name: (r.hint, r.low, r.high) for r in self.roots.values() if r.name not in self.fixed}
        return self.unknowns.extended(samples_of(roots, self.avoid))

    def _left(self) -> list[str]:
        """The names of the symbols, in the order of the samples that differ in one of them."""
        return [name for name in self.roots if name not in self.fixed] + self.unknowns.free()

    # ---- attempts ----

    def run(self) -> ExportedProgram:
        """The program."""
        for _ in range(200):
            conflict, attempt = self._try()
            if conflict is None:
                return self._finished(attempt)
            self._resolve(conflict)
        raise UserError("export: the sizes that may change could not be found; say which with dynamic_shapes")

    def _try(self) -> tuple[Conflict | None, Any]:
        while True:
            try:
                return self._tried()
            except Again:
                continue

    def _tried(self) -> tuple[Conflict | None, Any]:
        try:
            samples = self.samples()
            attempt = _Attempt(self, samples)
            if left := set(self.unknowns.symbols) - set(attempt.capture.found):
                self.unknowns.forget(left)  # met on a way that the program does not take
                raise Again
            self._constrain(attempt.capture)
            for base in range(1, len(attempt.capture.samples)):
                other = _Attempt(self, samples, base)
                if difference := _graphs_differ(attempt.capture.root, other.capture.root, attempt, other):
                    return Conflict(base, attempt.capture.progress, difference), None
            return None, attempt
        except Conflict as conflict:
            return conflict, None

    def _constrain(self, capture: Capture) -> None:
        """Narrow the ranges of symbols by the comparisons that were made; those that say more are left in
        ``guards``."""
        left = {}
        for expr, outcome, where in capture.guards:
            low_high = self._range_of(expr, outcome)
            if low_high is None:
                left[repr(expr), outcome] = expr, outcome, where
                continue
            name, low, high = low_high
            if name == "":
                continue
            root = self.roots[name]
            if (low > root.low and root.bounded[0]) or (high < root.high and root.bounded[1]):
                raise ConstraintsViolated(
                    f"Constraints violated ({name})! Not all values of {name} = {root.where} in the specified range "
                    f"{root.low} <= {name} <= {root.high} satisfy '{expr}', which is {outcome} in the "
                    f"example.\n{where}\n"
                    f"Suggested fixes:\n  {name} = Dim('{name}', min={max(low, root.low)}, max={min(high, root.high)})"
                )
            root.low, root.high = max(low, root.low), min(high, root.high)
        self.guards = list(left.values())

    def _range_of(self, expr: Expr, outcome: bool) -> tuple[str, int, float] | None:
        return range_of(expr, outcome, {r.name: (r.low, r.high) for r in self.roots.values()})

    # ---- resolving conflicts ----

    def _resolve(self, conflict: Conflict) -> None:
        """Take it that some sizes are tied to each other or fixed, if they may be."""
        left = self._left()
        index = conflict.sample - 1
        suspects = [left[index]] if 0 <= index < len(left) else left
        if any(name in self.unknowns.symbols for name in suspects) and self._resolve_unknown(conflict, suspects):
            return
        suspects = [name for name in suspects if name in self.roots]
        if conflict.guard is not None and (self._stepped_on(conflict) or self._narrow(conflict)):
            return
        for name in suspects:
            for kind, fixed in self._hypotheses(name, conflict):
                before = dict(self.fixed), dict(self.roots)
                self._assume(name, fixed)
                later = None if kind == "static" else self._try()[0]
                if later is None or later.progress > conflict.progress or self._is_about_another(later, name, fixed):
                    if kind == "static" and not self.roots[name].free:
                        self._refuse_static(name, conflict)
                    if kind != "static" and not self._may_tie(name, fixed):
                        self._refuse_tie(name, fixed, conflict)
                    return
                self.fixed, self.roots = before
        raise ConstraintsViolated(f"Constraints violated ({', '.join(suspects)})! {conflict.text}")

    def _is_about_another(self, later: Conflict, name: str, fixed: Any) -> bool:
        """Whether a conflict at the same step comes of a size that was not tied to another one."""
        left = self._left()
        about = left[later.sample - 1] if 0 < later.sample <= len(left) else name
        return about not in (name, str(fixed), f"_{name}")

    def _resolve_unknown(self, conflict: Conflict, suspects: list[str]) -> bool:
        """Take over the fact that a failing step implies for a number that only a run finds. Returns False if that is
        not the reason."""
        mine = [n for n in suspects if n in self.unknowns.symbols]
        if conflict.given is None:
            if len(mine) < len(suspects):
                return False
            origin = "".join(f"\n{n} comes from\n{self.unknowns.symbols[n].where}" for n in mine)
            raise GuardOnDataDependentSymNode(
                f"Could not extract specialized integer from data-dependent expression {', '.join(mine)}: "
                f"{conflict.text}{origin}{_WAYS}"
            )
        function, given = conflict.given
        for fact in implied(function, given, mine):
            if repr(fact) in self.unknowns.assumed:
                continue
            before = self.unknowns
            self.unknowns = before.copy()
            self.unknowns.assume(fact)
            if len(fact.symbols()) > 1 and not isinstance(fact.args[1], Expr):
                return True  # a sum of sizes
            try:
                later = self._try()[0]
            except RuntimeError:
                later = conflict
            if later is None or later.progress > conflict.progress:
                return True
            self.unknowns = before
        sample = self.samples()[conflict.sample]
        for name in reversed(numbers(conflict.given[1], mine)):
            if name in sample and self.unknowns.narrow(name, sample[name]):
                left = {s[name] for s in self.samples()}
                if len(left) == 1 and self.unknowns.symbols[name].kind == "int":
                    self.unknowns.assume(Expr("eq", Expr(name), left.pop()))
                return True
        if len(mine) == len(suspects):
            raise conflict.error or UserError(conflict.text)
        return False

    def _stepped_on(self, conflict: Conflict) -> bool:
        """Whether a sample was the one size that the program makes an exception for; it is avoided then."""
        if (conflict.guard.head, conflict.outcome) not in (("ne", True), ("eq", False)):
            return False
        sizes = set(self.samples()[conflict.sample].values()) - self.avoid
        self.avoid |= sizes
        return bool(sizes)

    def _narrow(self, conflict: Conflict) -> bool:
        found = self._range_of(conflict.guard, conflict.outcome)
        if found is None or not found[0]:
            return False
        name, low, high = found
        root = self.roots[name]
        low, high = max(low, root.low), min(high, root.high)
        if low >= high:
            return False
        if (low > root.low and root.bounded[0]) or (high < root.high and root.bounded[1]):
            raise ConstraintsViolated(
                f"Constraints violated ({name})! Not all values of {name} = {root.where} in the specified range "
                f"satisfy the "
                f"program: {conflict.text}\nSuggested fixes:\n  {name} = Dim('{name}', min={low}, max={high})"
            )
        root.low, root.high = low, high
        return True

    def _hypotheses(self, name: str, conflict: Conflict) -> Iterator[tuple[str, Any]]:
        root = self.roots[name]
        for other in self.roots.values():
            if other.name != name and other.name not in self.fixed and other.hint == root.hint:
                yield "equal", Expr(other.name)
        for factor in (2, 3, 4, 8, 16, 32, 64):
            if root.hint % factor == 0 and root.hint > 0:
                yield "multiple", Expr("mul", factor, Expr(f"_{name}"))
        yield "static", root.hint

    def _assume(self, name: str, value: Any) -> None:
        self.fixed[name] = value
        if isinstance(value, Expr) and value.head == "mul":
            root, factor = self.roots[name], value.args[0]
            inner = f"_{name}"
            self.roots = {
                **self.roots,
                inner: Root(
                    inner, root.hint // factor, -(-root.low // factor),
                    root.high if root.high == int_oo else root.high // factor, root.free, root.bounded, root.where,
                    root.tied,
                ),
            }  # fmt: skip

    def _may_tie(self, name: str, value: Expr) -> bool:
        return self.roots[name].tied or any(
            s in self.roots and self.roots[s].tied for s in value.symbols() if s != f"_{name}"
        )

    def _refuse_static(self, name: str, conflict: Conflict) -> None:
        root = self.roots[name]
        raise ConstraintsViolated(
            f"Constraints violated ({name})! You marked {name} = {root.where} as dynamic, but the program works for "
            f"the constant "
            f"{root.hint} alone: {conflict.text}\nSuggested fixes:\n  {name} = {root.hint}"
        )

    def _refuse_tie(self, name: str, value: Expr, conflict: Conflict) -> None:
        root = self.roots[name]
        if value.head == "mul":
            made = f"_{name} = Dim('_{name}')\n  {name} = {value.args[0]}*_{name}"
            says = f"{name} = {root.where} must be a multiple of {value.args[0]}"
        else:
            made = f"{name} = {value}"
            says = (
                f"the values of {name} = {root.where} and {value} = {self.roots[str(value)].where} must always be equal"
            )
        raise ConstraintsViolated(f"Constraints violated ({name})! {says}: {conflict.text}\nSuggested fixes:\n  {made}")

    # ---- the program ----

    def _finished(self, attempt: _Attempt) -> ExportedProgram:
        capture = attempt.capture
        graph = capture.root.graph
        _prune(graph)
        signature = ExportGraphSignature(
            attempt.specs, [OutputSpec(OutputKind.USER_OUTPUT, o, None) for o in attempt.outputs]
        )
        state = self.mod.state_dict(keep_vars=True)
        state = {k: v if isinstance(v, Parameter) else v.detach() for k, v in state.items() if isinstance(v, Tensor)}
        constants = dict(attempt.constants)
        for path, (x, _, spec) in attempt.state.items():
            if spec.persistent is False:
                constants[path] = x.detach()
        ranges = {r.name: ValueRanges(r.low, r.high) for r in self.roots.values() if r.name not in self.fixed}
        ranges.update({name: ValueRanges(*capture.knowledge.bounds[name]) for name in capture.found})
        checks = Checks(
            [
                InputCheck(
                    place, name, sizes if isinstance(leaf, Tensor) else None, None if isinstance(leaf, Tensor) else leaf
                )
                for place, name, leaf, sizes in zip(
                    self.places, self.names, self.leaves, self._shown_sizes(), strict=True
                )
            ],
            ranges,
            [(expr, outcome) for expr, outcome, _ in self.guards],
        )
        module = GraphModule(dict(capture.root.modules), graph, "GraphModule")
        return ExportedProgram(
            module, graph, signature, state, ranges, self._calls(attempt), (self.args, self.kwargs), constants,
            checks=checks, call_spec=CallSpec(self.in_spec, attempt.out_spec), argument_names=self._argument_names(),
        )  # fmt: skip

    def _calls(self, attempt: _Attempt) -> list[ModuleCallEntry]:
        """The call of the model, and of each module in it."""
        inputs = [s.arg for s in attempt.specs if s.kind is InputKind.USER_INPUT]
        whole = ModuleCallSignature(inputs, attempt.outputs, self.in_spec, attempt.out_spec)
        inner = (ModuleCallEntry(path, attempt.calls.get(path)) for path, _ in self.mod.named_modules() if path)
        return [ModuleCallEntry("", whole), *inner]

    def _shown_sizes(self) -> list[list[Any]]:
        found = []
        for leaf, sizes in zip(self.leaves, self.current_sizes(), strict=True):
            plain = list(leaf.shape) if isinstance(leaf, Tensor) else []
            found.append([n if e is None else e for n, e in zip(plain, sizes, strict=True)])
        return found

    def _argument_names(self) -> tuple[list[str], list[str]]:
        by_position = list(self.named)[: len(self.args)]
        if len(by_position) < len(self.args) or any(
            self.named[n] is not x for n, x in zip(by_position, self.args, strict=True)
        ):
            by_position = [f"args_{i}" for i in range(len(self.args))]
        return by_position, list(self.kwargs)


def _place(x: Traced) -> tuple:
    """The memory of ``x``, and where it is there."""
    meta = x.metas[0]
    return meta.untyped_storage(), meta.storage_offset(), meta.shape, meta.stride(), meta.is_conj(), meta.is_neg()


def _order(mod: Module, spec: Any) -> list[int]:
    """For each leaf of ``(args, kwargs)`` its place among the leaves of the arguments by name."""
    args, kwargs = pytree.tree_unflatten(range(spec.num_leaves), spec)
    places = {leaf: i for i, leaf in enumerate(pytree.tree_leaves(named_arguments(mod, args, kwargs)))}
    return [places[i] for i in range(spec.num_leaves)]


def _replace(expr: Any, fixed: dict[str, Any]) -> Any:
    """``expr`` with symbols replaced; a number where none is left."""
    if not isinstance(expr, Expr):
        return expr
    if not expr.args:
        return _replace(fixed[expr.head], fixed) if expr.head in fixed else expr
    args = [_replace(a, fixed) for a in expr.args]
    made = Expr(expr.head, *args)
    return made if made.symbols() else made.value({})


def _attributes(mod: Module) -> dict[int, str]:
    """The paths of tensors that are attributes of modules and neither parameters nor buffers."""
    found = {}
    for path, module in mod.named_modules():
        for name, x in vars(module).items():
            if isinstance(x, Tensor):
                found[id(x)] = f"{path}.{name}" if path else name
    return found


def _prune(graph: Any) -> None:
    """Take out sizes, arithmetic of sizes, and parts of tuples that nothing uses."""
    for node in reversed(graph.nodes):
        if node.op != "call_function" or node.users or node.is_impure():
            continue
        part = node.target is operator.getitem and isinstance(node.args[0].meta.get("val"), tuple)
        if part or not isinstance(node.meta.get("val"), (Tensor, tuple)):
            graph.erase_node(node)


def _graphs_differ(one: Any, two: Any, first: _Attempt, second: _Attempt) -> str | None:
    numbers: dict[Node, int] = {}
    others: dict[Node, int] = {}
    steps, again = list(one.graph.nodes), list(two.graph.nodes)
    for i, (a, b) in enumerate(itertools.zip_longest(steps, again)):
        if a is None or b is None or (a.op, a.target) != (b.op, b.target) or _form(a, numbers) != _form(b, others):
            node = a or b
            return (
                f"the program does something else at other sizes, at '{node.format_node()}'. Is a size used as a "
                f"Python "
                f"number (in range, int, a list's length)?\n{node.meta.get('stack_trace', '').rstrip()}"
            )
        numbers[a] = others[b] = i
    for path, x in first.constants.items():
        y = second.constants.get(path)
        if y is None or x.shape != y.shape or x.dtype != y.dtype or not _equal(x, y):
            return f"the constant {path} is another one at other sizes"
    for name in one.modules:
        inner = _modules_differ(one.modules[name], two.modules[name])
        if inner:
            return inner
    return None


def _modules_differ(one: GraphModule, two: GraphModule) -> str | None:
    if one.code != two.code:
        return "a function given to cond or the like does something else at other sizes"
    return None


def _equal(x: Tensor, y: Tensor) -> bool:
    return x.is_set_to(y) or bool(((x == y) | ((x != x) & (y != y))).all())


def _form(node: Node, numbers: dict[Node, int]) -> Any:
    return map_arg((node.args, node.kwargs), lambda n: ("node", numbers.get(n, -1)))
