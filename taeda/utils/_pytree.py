"""Nested containers as lists of leaves and back: tuples, lists, dicts, named tuples, deques, and classes that are
registered."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from .._core import Size

__all__ = [
    "GetAttrKey", "KeyEntry", "LeafSpec", "MappingKey", "PyTree", "SequenceKey", "TreeSpec", "keystr",
    "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten",
    "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_map", "tree_map_", "tree_map_only",
    "tree_map_only_", "tree_map_with_path", "tree_structure", "tree_unflatten", "treespec_dumps", "treespec_loads",
]  # fmt: skip

PyTree = Any
Context = Any
KeyEntry = Any


class _Node(NamedTuple):
    """The functions that flatten and rebuild a class."""

    flatten_fn: Callable[[Any], tuple[Iterable, Any]]
    unflatten_fn: Callable[[Iterable, Any], Any]
    keys: Callable[[Any, Any], list]


@dataclass(frozen=True)
class SequenceKey:
    """A place in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The item of ``sequence``."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A place in a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The value in ``mapping``."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """An attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The attribute of ``obj``."""
        return getattr(obj, self.name)


def _places(x: Any, context: Any) -> list:
    return [SequenceKey(i) for i in range(len(x))]


def _dict_flatten(d: dict) -> tuple[list, list]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable, context: list) -> dict:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: dict) -> tuple[list, list]:
    return [(MappingKey(k), v) for k, v in d.items()], list(d)


def _list_flatten(d: list) -> tuple[list, None]:
    return d, None


def _list_flatten_with_keys(d: list | tuple) -> tuple[list, None]:
    return [(SequenceKey(i), v) for i, v in enumerate(d)], None


_tuple_flatten_with_keys = _list_flatten_with_keys


def _list_unflatten(values: Iterable, context: None) -> list:
    return list(values)


def _tuple_flatten(d: tuple) -> tuple[tuple, None]:
    return d, None


def _tuple_unflatten(values: Iterable, context: None) -> tuple:
    return tuple(values)


def _namedtuple_flatten(d: Any) -> tuple[list, type]:
    return list(d), type(d)


def _namedtuple_unflatten(values: Iterable, context: Any) -> Any:
    return context(*values)


def _dict_keys(x: Any, keys: Any) -> list:
    return [MappingKey(k) for k in keys]


SUPPORTED_NODES: dict[Any, _Node] = {
    tuple: _Node(_tuple_flatten, _tuple_unflatten, _places),
    list: _Node(_list_flatten, _list_unflatten, _places),
    dict: _Node(_dict_flatten, _dict_unflatten, _dict_keys),
    OrderedDict: _Node(_dict_flatten, lambda items, keys: OrderedDict(zip(keys, items, strict=True)), _dict_keys),
    defaultdict: _Node(
        lambda x: (list(x.values()), [x.default_factory, list(x)]),
        lambda items, context: defaultdict(context[0], zip(context[1], items, strict=True)),
        lambda x, context: _dict_keys(x, context[1]),
    ),
    deque: _Node(lambda x: (list(x), x.maxlen), lambda items, maxlen: deque(items, maxlen), _places),
    namedtuple: _Node(
        _namedtuple_flatten, _namedtuple_unflatten, lambda x, kind: [GetAttrKey(name) for name in kind._fields]
    ),
}
BUILTIN_TYPES = frozenset(SUPPORTED_NODES)
#: As in PyTorch: sizes are taken apart, and put together they are a tuple.
SUPPORTED_NODES[Size] = _Node(lambda x: (list(x), None), _tuple_unflatten, _places)


def _is_namedtuple_instance(x: Any) -> bool:
    return isinstance(x, tuple) and hasattr(type(x), "_fields") and type(x) is not tuple


is_namedtuple = is_namedtuple_instance = _is_namedtuple_instance


def _kind(x: Any) -> Any:
    kind = type(x)
    if kind not in SUPPORTED_NODES and _is_namedtuple_instance(x):
        return namedtuple
    return kind


_get_node_type = _kind


def register_pytree_node(
    cls: type, flatten_fn: Callable[[Any], tuple[Iterable, Any]], unflatten_fn: Callable[[Iterable, Any], Any], *,
    flatten_with_keys_fn: Callable | None = None, **options: Any,
) -> None:  # fmt: skip
    """Let objects of ``cls`` be taken apart.

    Args:
        cls: the class.
        flatten_fn: from an object to its children and a context.
        unflatten_fn: from children and context to an object.
        flatten_with_keys_fn: as ``flatten_fn``, with ``(key, child)`` for each child.
    Raises:
        ValueError: the class is registered already.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")

    def keys(x: Any, context: Any) -> list:
        if flatten_with_keys_fn is None:
            return [SequenceKey(i) for i in range(len(list(flatten_fn(x)[0])))]
        return [key for key, _ in flatten_with_keys_fn(x)[0]]

    SUPPORTED_NODES[cls] = _Node(flatten_fn, unflatten_fn, keys)


_register_pytree_node = register_pytree_node


def register_dataclass(cls: type, *, field_names: list[str] | None = None, **options: Any) -> None:
    """Let objects of a dataclass be taken apart into their fields."""
    import dataclasses

    names = field_names or [field.name for field in dataclasses.fields(cls)]
    register_pytree_node(
        cls,
        lambda x: ([getattr(x, name) for name in names], names),
        lambda items, context: cls(**dict(zip(context, items, strict=True))),
        flatten_with_keys_fn=lambda x: ([(GetAttrKey(name), getattr(x, name)) for name in names], names),
    )


def register_constant(cls: type) -> None:
    """Objects of ``cls`` are part of the structure: they have no children."""
    register_pytree_node(cls, lambda x: ((), x), lambda items, context: context)


class TreeSpec:
    """A structure: the ``type`` of its root, its ``context``, and the structures of its children."""

    __slots__ = ("__weakref__", "children_specs", "context", "num_children", "num_leaves", "num_nodes", "type")

    num_nodes: int
    num_leaves: int

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self.children_specs = children_specs
        self.num_children = len(children_specs)
        nodes, leaves = 1, 0 if type is not None else 1
        for spec in children_specs:
            nodes += spec.num_nodes
            leaves += spec.num_leaves
        self.num_nodes, self.num_leaves = nodes, leaves

    def children(self) -> list[TreeSpec]:
        """The structures of the children."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """The structure of one child."""
        return self.children_specs[index]

    def is_leaf(self) -> bool:
        """Whether it is a leaf."""
        return self.type is None

    def flatten_up_to(self, tree: Any) -> list:
        """The parts of ``tree`` that stand where this structure has leaves."""
        found: list = []
        self._up_to(tree, found)
        return found

    def _up_to(self, tree: Any, found: list) -> None:
        if self.type is None:
            found.append(tree)
            return
        kind = _kind(tree)
        if kind is not self.type:
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {kind!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        children = list(children)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if kind in (dict, OrderedDict):
            if set(context) != set(self.context):
                raise ValueError(f"Node keys mismatch; expected {self.context}, but got {context}.")
            children = [tree[key] for key in self.context]
        for spec, child in zip(self.children_specs, children, strict=True):
            spec._up_to(child, found)

    def unflatten(self, leaves: Iterable) -> Any:
        """The tree of this structure with these leaves.

        Raises:
            ValueError: there are too many or too few.
        """
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves: Any) -> Any:
        if self.type is None:
            return next(leaves)
        children = [next(leaves) if spec is _LEAF else spec._build(leaves) for spec in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TreeSpec)
            and self.type is other.type
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, tuple(self.children_specs)))

    def __repr__(self) -> str:
        return self._text(0)

    def _text(self, indent: int) -> str:
        if self.type is None:
            return "*"
        name, gap = getattr(self.type, "__name__", self.type), ",\n" + " " * (indent + 2)
        return f"TreeSpec({name}, {self.context}, [{gap.join(s._text(indent + 2) for s in self.children_specs)}])"


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


_LEAF = LeafSpec()


def tree_is_leaf(tree: Any, is_leaf: Callable | None = None) -> bool:
    """Whether ``tree`` has no structure."""
    return (is_leaf is not None and is_leaf(tree)) or _kind(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


def _flatten(tree: Any, leaves: list, is_leaf: Callable | None) -> TreeSpec:
    kind: Any = type(tree)
    node = SUPPORTED_NODES.get(kind)
    if node is None and isinstance(tree, tuple) and hasattr(kind, "_fields"):
        kind, node = namedtuple, SUPPORTED_NODES[namedtuple]
    if node is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF
    children, context = node.flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def _add_leaves(tree: Any, leaves: list, is_leaf: Callable | None) -> None:
    node = SUPPORTED_NODES.get(type(tree))
    if node is None and isinstance(tree, tuple) and hasattr(tree, "_fields"):
        node = SUPPORTED_NODES[namedtuple]
    if node is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
    else:
        for child in node.flatten_fn(tree)[0]:
            _add_leaves(child, leaves, is_leaf)


def tree_flatten(tree: Any, is_leaf: Callable | None = None) -> tuple[list, TreeSpec]:
    """The leaves in order, and the structure."""
    leaves: list = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> Any:
    """The inverse of :func:`tree_flatten`.

    Raises:
        TypeError: ``treespec`` is no structure.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got item of type "
            f"{type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: Callable | None = None) -> list:
    """The leaves in order."""
    leaves: list = []
    _add_leaves(tree, leaves, is_leaf)
    return leaves


def tree_iter(tree: Any, is_leaf: Callable | None = None) -> Iterable:
    """The leaves, one after the other."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: Callable | None = None) -> TreeSpec:
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable, tree: Any, *rests: Any, is_leaf: Callable | None = None) -> Any:
    """``func`` of every leaf (and of the items in the same places of ``rests``), in the structure of ``tree``."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


def tree_map_(func: Callable, tree: Any, *rests: Any, is_leaf: Callable | None = None) -> Any:
    """Like :func:`tree_map`, for the side effects of ``func``; returns ``tree``."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    for row in zip(*columns, strict=True):
        func(*row)
    return tree


def _chosen(kinds: Any) -> Callable[[Any], bool]:
    if isinstance(kinds, (type, tuple)) or not callable(kinds):
        return lambda x: isinstance(x, kinds)
    return kinds


def map_only(type_or_types_or_pred: Any, /) -> Callable:
    """Decorator: the function leaves objects of other types as they are."""
    chosen = _chosen(type_or_types_or_pred)

    def decorate(func: Callable) -> Callable:
        @functools.wraps(func)
        def wrapped(x: Any) -> Any:
            return func(x) if chosen(x) else x

        return wrapped

    return decorate


def tree_map_only(kinds: Any, /, func: Callable, tree: Any, is_leaf: Callable | None = None) -> Any:
    """:func:`tree_map` over leaves of these types; the others stay."""
    return tree_map(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_map_only_(kinds: Any, /, func: Callable, tree: Any, is_leaf: Callable | None = None) -> Any:
    """:func:`tree_map_` over leaves of these types."""
    return tree_map_(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable, tree: Any, is_leaf: Callable | None = None) -> bool:
    """Whether ``pred`` is true of every leaf."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable, tree: Any, is_leaf: Callable | None = None) -> bool:
    """Whether ``pred`` is true of a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(kinds: Any, /, pred: Callable, tree: Any, is_leaf: Callable | None = None) -> bool:
    """Whether ``pred`` is true of every leaf of these types."""
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, kinds))


def tree_any_only(kinds: Any, /, pred: Callable, tree: Any, is_leaf: Callable | None = None) -> bool:
    """Whether ``pred`` is true of a leaf of these types."""
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, kinds))


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec, is_leaf: Callable | None = None) -> list | None:
    """One item per leaf of ``treespec`` from ``tree``, a prefix of it; None if they do not fit."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _kind(tree) is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[_kind(tree)].flatten_fn(tree)
    children = list(children)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    found: list = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        flat = _broadcast_to_and_flatten(child, spec, is_leaf)
        if flat is None:
            return None
        found.extend(flat)
    return found


def _with_path(tree: Any, path: tuple, found: list, is_leaf: Callable | None) -> None:
    if tree_is_leaf(tree, is_leaf):
        found.append((path, tree))
        return
    node = SUPPORTED_NODES[_kind(tree)]
    children, context = node.flatten_fn(tree)
    for key, child in zip(node.keys(tree, context), children, strict=True):
        _with_path(child, (*path, key), found, is_leaf)


def tree_flatten_with_path(tree: Any, is_leaf: Callable | None = None) -> tuple[list, TreeSpec]:
    """``(path, leaf)`` of every leaf, and the structure."""
    found: list = []
    _with_path(tree, (), found, is_leaf)
    return found, tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: Callable | None = None) -> list:
    """``(path, leaf)`` of every leaf."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(func: Callable, tree: Any, *rests: Any, is_leaf: Callable | None = None) -> Any:
    """:func:`tree_map` with ``func(path, leaf, ...)``."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten([func(path, leaf, *more) for (path, leaf), *more in zip(found, *columns, strict=True)])


def keystr(path: Iterable) -> str:
    """A path as Python would write it: ``['a'][0].b``."""
    return "".join(map(str, path))


def key_get(obj: Any, path: Iterable) -> Any:
    """The item at ``path``."""
    for key in path:
        obj = key.get(obj)
    return obj


#: Structures that have a form as JSON, by their names there.
_WRITTEN = {
    "builtins.list": list, "builtins.tuple": tuple, "builtins.dict": dict, "collections.OrderedDict": OrderedDict,
    "collections.deque": deque,
}  # fmt: skip


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as JSON.

    Raises:
        NotImplementedError: a class in it has no such form, or ``protocol`` is not 1.
    """
    import json

    if protocol not in (None, 1):
        raise ValueError(f"treespec_dumps: expected protocol 1, got {protocol}")
    names = {kind: name for name, kind in _WRITTEN.items()}

    def written(spec: TreeSpec) -> dict:
        if spec.is_leaf():
            return {"type": None, "context": None, "children_spec": []}
        if spec.type not in names:
            raise NotImplementedError(f"treespec_dumps: no form is known for {spec.type}")
        children = [written(s) for s in spec.children_specs]
        return {"type": names[spec.type], "context": json.dumps(spec.context), "children_spec": children}

    return json.dumps((1, written(treespec)))


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that :func:`treespec_dumps` wrote.

    Raises:
        ValueError: it is of another form.
    """
    import json

    def read(x: Any) -> TreeSpec:
        if x["type"] is None:
            return LeafSpec()
        if x["type"] not in _WRITTEN:
            raise ValueError(f"treespec_loads: no class is known as {x['type']!r:.80}")
        return TreeSpec(_WRITTEN[x["type"]], json.loads(x["context"]), [read(s) for s in x["children_spec"]])

    protocol, spec = json.loads(serialized)
    if protocol != 1:
        raise ValueError(f"treespec_loads: expected protocol 1, got {protocol}")
    return read(spec)


def treespec_pprint(treespec: TreeSpec) -> str:
    """A structure as text."""
    return repr(treespec)
