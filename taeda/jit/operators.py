"""Operators, containers and subscripts."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from . import ir, schemas
from .arithmetic import wrap
from .errors import NotSupportedError, unsupported
from .sugar import (
    BINARY,
    COMPARE,
    Part,
    Parts,
    Scope,
    Sugar,
    TypeRef,
    Value,
    _int,
    _is_module,
    _known,
    _target_names,
)  # fmt: skip
from .types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    NUMBERS,
    STR,
    TENSOR,
    ClassType,
    EnumType,
    Type,
    choices,
    dict_of,
    is_subtype,
    is_tuple,
    list_of,
    optional,
    unify,
    union,
)  # fmt: skip

#: Comparisons with their sides exchanged.
_MIRRORED = {"aten::lt": "aten::gt", "aten::le": "aten::ge", "aten::gt": "aten::lt", "aten::ge": "aten::le"}


class Operators(Part):
    """The compilation of operators, containers and subscripts."""

    # ---- operators --------------------------------------------------------------------------------------------------
    def _bin_op(self, node: ast.BinOp, hint: Type | None) -> Value:
        if type(node.op) not in BINARY:
            unsupported(self.source, node)
        left, right = self.emit(node.left), self.emit(node.right)
        a, b = self.parts(left, node), self.parts(right, node)
        if isinstance(node.op, ast.Add) and a is not None and b is not None:
            return Parts([*a, *b])
        left = self.value(left, node)
        if isinstance(node.op, ast.Mod) and left.type is STR:
            return self.op("aten::percentFormat", [left, self.value(right, node)], {}, node)
        return self.binary(node.op, left, self.value(right, node), node)

    def binary(self, op: ast.operator, a: ir.Expr, b: ir.Expr, node: ast.AST) -> ir.Expr:
        """``a op b``."""
        name, method = BINARY[type(op)]
        if isinstance(a.type, ClassType) and a.type.method(method) is not None:
            return self.call_method(a, method, [b], {}, node)
        known, other = _known(a), _known(b)
        if type(known) is int and type(other) is int and isinstance(op, (ast.Add, ast.Sub, ast.Mult)):
            value = (
                known + other
                if isinstance(op, ast.Add)
                else known - other
                if isinstance(op, ast.Sub)
                else known * other
            )
            return _int(wrap(value))
        if (
            a.type != TENSOR
            and b.type == TENSOR
            and isinstance(op, ast.Sub | ast.Div | ast.FloorDiv | ast.Mod | ast.LShift)
        ):
            if a.type in NUMBERS or a.type is NUMBER:
                if isinstance(op, ast.Sub):
                    return self.op("aten::rsub", [b, a], {}, node)
                if isinstance(op, ast.Div):
                    return self.op("aten::mul", [self.op("aten::reciprocal", [b], {}, node), a], {}, node)
        if a.type != TENSOR and b.type == TENSOR and isinstance(op, (ast.Add, ast.Mult)) and a.type is not BOOL:
            return self.op(name, [b, a], {}, node)
        return self.op(name, [a, b], {}, node)

    def _unary_op(self, node: ast.UnaryOp, hint: Type | None) -> Value:
        if isinstance(node.op, ast.Not):
            return self.condition(node)[0]
        value = self.expr(node.operand)
        known = _known(value)
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Invert):
            return self.op("aten::bitwise_not", [value], {}, node)
        if type(known) in (int, float, complex):
            return ir.Const(wrap(-known) if type(known) is int else -known, value.type)
        if isinstance(value.type, ClassType):
            return self.call_method(value, "__neg__", [], {}, node)
        return self.op("aten::neg", [value], {}, node)

    def _bool(self, node: ast.BoolOp, hint: Type | None) -> Value:
        return self._bool_op(node)[0]

    def _compare(self, node: ast.Compare, hint: Type | None) -> Value:
        whole: ir.Expr | None = None
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            one = self._compare_two(op, left, right, node)
            if whole is None:
                whole = one
            elif whole.type == TENSOR or one.type == TENSOR:
                whole = self.op("aten::__and__", [whole, one], {}, node)
            else:
                whole = ir.Both(whole, one, True)
            left = right
        return whole

    def _compare_two(self, op: ast.cmpop, left: ast.expr, right: ast.expr, node: ast.AST) -> ir.Expr:
        if isinstance(op, (ast.Is, ast.IsNot)):
            return self._is(left, right, isinstance(op, ast.Is), node)[0]
        if isinstance(op, (ast.In, ast.NotIn)):
            return self._contains(left, right, isinstance(op, ast.NotIn), node)
        a, b = self.expr(left), self.expr(right)
        name, method = COMPARE[type(op)]
        if isinstance(a.type, ClassType) and a.type.method(method) is not None:
            return self.call_method(a, method, [b], {}, node)
        known, other = _known(a), _known(b)
        if type(known) is type(other) is int or (type(known) is type(other) is str):
            compare: Callable = getattr(type(known), method)
            return ir.Const(compare(known, other), BOOL)
        if a.type is not BOOL and (a.type in NUMBERS or a.type is NUMBER) and b.type == TENSOR:  # element by element
            return self.op(_MIRRORED.get(name, name), [b, a], {}, node)
        return self.op(name, [a, b], {}, node)

    def generic_equal(self, a: ir.Expr, b: ir.Expr, name: str, node: ast.AST) -> ir.Expr:
        """``==`` or ``!=`` of values of any types."""
        if name not in ("aten::eq", "aten::ne"):
            self.fail(node, f"values of type {a.type} and {b.type} have no order")
        schema = next((s for s in schemas.overloads(name) if s.overload in ("enum", "int")), None)
        assert schema is not None
        return ir.Op(schema, [a, b], BOOL)

    def _contains(self, left: ast.expr, right: ast.expr, negated: bool, node: ast.AST) -> ir.Expr:
        container = self.emit(right)
        key = self.expr(left)
        parts = self.parts(container, node)
        if parts is not None:
            known = [_known(p) if isinstance(p, ir.Expr) else None for p in parts]
            if _known(key) is not None and None not in known:
                return ir.Const((_known(key) in known) is not negated, BOOL)
            container = self.list_literal([self.value(p, node) for p in parts], None, node)
        container = self.value(container, node)
        if isinstance(container.type, ClassType):
            found = self.call_method(container, "__contains__", [key], {}, node)
        else:
            found = self.op("aten::__contains__", [container, key], {}, node)
        return self.op("aten::__not__", [found], {}, node) if negated else found

    def _if_exp(self, node: ast.IfExp, hint: Type | None) -> Value:
        condition, true, false = self.condition(node.test)
        known = _known(condition)
        if known is not None:
            return self._in_scope(true if known else false, node.body if known else node.orelse, hint)
        a = self.value(self._in_scope(true, node.body, hint), node)
        b = self.value(self._in_scope(false, node.orelse, hint), node)
        t = unify(a.type, b.type)
        if t is None and hint is not None:
            t = hint
        if t is None:
            self.fail(node, f"if-expression's true branch has type {a.type} but false branch has type {b.type}")
        assert t is not None
        return ir.Choose(condition, a, b, t)

    def _in_scope(self, scope: Scope, node: ast.expr, hint: Type | None) -> Value:
        self.scopes.append(dict(scope))
        try:
            return self.emit(node, hint)
        finally:
            self.scopes.pop()

    def _joined_str(self, node: ast.JoinedStr, hint: Type | None) -> Value:
        template, values = "", []
        for part in node.values:
            if isinstance(part, ast.Constant):
                template += str(part.value)
                continue
            assert isinstance(part, ast.FormattedValue)
            if part.format_spec is not None or part.conversion not in (-1, 115):
                self.fail(part, "formats and conversions in f-strings aren't supported", NotSupportedError)
            template += "{}"
            values.append(self.expr(part.value))
        return self.op("aten::format", [ir.Const(template, STR), *values], {}, node)

    # ---- containers -------------------------------------------------------------------------------------------------
    def _tuple(self, node: ast.Tuple, hint: Type | None) -> Value:
        wanted: Any = hint.args if hint is not None and is_tuple(hint) and len(hint.args) == len(node.elts) else None
        if hint is not None and hint.name == "Optional":
            return self._tuple(node, hint.element)
        items: list[Value] = []
        for i, e in enumerate(node.elts):
            if isinstance(e, ast.Starred):
                parts = self.parts(self.emit(e.value), e)
                if parts is None:
                    self.fail(e, "only tuples are spread out with *")
                items += parts or ()
            else:
                items.append(self.emit(e, wanted[i] if wanted else None))
        if all(isinstance(i, ir.Expr) and not isinstance(i, ir.Iterate) for i in items):
            return self.tuple_of_items(items)
        return Parts(items)

    def _list(self, node: ast.List, hint: Type | None) -> Value:
        if hint is not None and hint.name in ("Optional", "Union"):
            hint = next((t for t in choices(hint) if t.name == "List"), None)
        element = hint.element if hint is not None and hint.name == "List" else None
        items = [self.emit(e, element) for e in node.elts]
        if any(isinstance(i, Sugar) and not isinstance(i, Parts) for i in items):
            return Parts(items)
        return self.list_literal([self.value(i, node) for i in items], element, node)

    def list_literal(self, items: list[ir.Expr], element: Type | None, node: ast.AST) -> ir.Expr:
        """``[items]``."""
        return ir.MakeList(*self._same([*items], element, node))

    def _same(self, items: list[ir.Expr], wanted: Type | None, node: ast.AST) -> tuple[list[ir.Expr], Type]:
        if wanted is not None and all(is_subtype(i.type, wanted) for i in items):
            return items, list_of(wanted)
        t: Type | None = items[0].type if items else wanted or TENSOR
        for i in items[1:]:
            joined = unify(t, i.type) if t is not None else None
            if joined is None:
                if {t, i.type} <= {*NUMBERS, NUMBER, BOOL}:
                    joined = NUMBER
                else:
                    joined = union([t, i.type]) if t is not None else None
            t = joined
        assert t is not None
        return items, list_of(t)

    def _dict(self, node: ast.Dict, hint: Type | None) -> Value:
        if hint is not None and hint.name == "Optional":
            hint = hint.element
        wanted = hint if hint is not None and hint.name == "Dict" else None
        if None in node.keys:
            self.fail(node, "dictionaries spread out with ** aren't supported", NotSupportedError)
        keys = [self.expr(k) for k in node.keys if k is not None]
        return self._dict_of(
            keys, [self.expr(v, wanted.args[1] if wanted else None) for v in node.values], wanted, node
        )

    def _dict_of(self, keys: list, values: list, wanted: Type | None, node: ast.AST) -> ir.Expr:
        if not keys:
            return ir.MakeDict([], [], wanted or dict_of(STR, TENSOR))
        k = self._same(keys, wanted.args[0] if wanted else None, node)[1].element
        v = self._same(values, wanted.args[1] if wanted else None, node)[1].element
        if k not in (STR, INT, FLOAT, BOOL, COMPLEX, TENSOR) and not isinstance(k, EnumType):
            self.fail(node, f"keys of dictionaries are numbers, strings or tensors, got {k}")
        return ir.MakeDict(keys, values, dict_of(k, v))

    def _comprehension(self, node: ast.ListComp | ast.DictComp, hint: Type | None) -> Value:
        if len(node.generators) != 1:
            self.fail(node, "comprehensions have one loop", NotSupportedError)
        (generator,) = node.generators
        if len(generator.ifs) > 1:
            self.fail(node, "comprehensions have one condition at most", NotSupportedError)
        over = self.iterable(generator.iter)
        if isinstance(over, Parts):
            return self._unrolled_comprehension(node, generator, over, hint)
        self.scopes.append({})
        own = _target_names(generator.target)  # its variables are its own: they get new places
        outer = {name: self.names.pop(name) for name in own if name in self.names}
        try:
            target = self._loop_target(generator.target, over.type.element, node)
            condition: ir.Expr | None = None
            narrowed: Scope = {}
            if generator.ifs:
                condition, narrowed, _ = self.condition(generator.ifs[0])
            self.scopes[-1].update(narrowed)
            key = self.expr(node.key) if isinstance(node, ast.DictComp) else None
            inner = hint.args[-1] if hint is not None and hint.name in ("List", "Dict") else None
            value = self.expr(node.value if isinstance(node, ast.DictComp) else node.elt, inner)
        finally:
            self.scopes.pop()
            for name in own:
                self.names.pop(name, None)
            self.names.update(outer)
        element = inner if inner is not None and is_subtype(value.type, inner) else value.type
        t = list_of(element) if key is None else dict_of(key.type, element)
        return ir.Comprehension(target, over, condition, key, value, t)

    def _unrolled_comprehension(self, node: Any, generator: ast.comprehension, over: Parts, hint: Type | None) -> Value:
        made: list[Value] = []
        keys: list[ir.Expr] = []
        for item in over.items:
            self.scopes.append({})
            try:
                self._bind_known(generator.target, item, node)
                if generator.ifs and not _known(self.condition(generator.ifs[0])[0]):
                    continue
                if isinstance(node, ast.DictComp):
                    keys.append(self.expr(node.key))
                made.append(self.emit(node.value if isinstance(node, ast.DictComp) else node.elt))
            finally:
                self.scopes.pop()
        values = [self.value(m, node) for m in made]
        if isinstance(node, ast.DictComp):
            return self._dict_of(keys, values, hint, node)
        return self.list_literal(values, hint.element if hint is not None and hint.name == "List" else None, node)

    def _bind_known(self, target: ast.expr, item: Value, node: ast.AST) -> None:
        if isinstance(target, ast.Name):
            self.scopes[-1][target.id] = item
            return
        parts = self.parts(item, node)
        if not isinstance(target, ast.Tuple) or parts is None or len(parts) != len(target.elts):
            self.fail(node, "this cannot be taken apart here")
        assert isinstance(target, ast.Tuple) and parts is not None
        for sub, part in zip(target.elts, parts, strict=True):
            self._bind_known(sub, part, node)

    # ---- subscripts -------------------------------------------------------------------------------------------------
    def _subscript(self, node: ast.Subscript, hint: Type | None) -> Value:
        value = self.emit(node.value)
        if isinstance(value, Sugar) and not isinstance(value, Parts):
            t = self.type_of_sugar(value, node)
            if t is not None or isinstance(value, TypeRef):
                return TypeRef(self.annotation(node))
        parts = self.parts(value, node)
        if parts is not None:
            return self._item_of_tuple(value, parts, node)
        value = self.value(value, node)
        t = value.type
        if t == TENSOR:
            view, indices = self.tensor_view(value, node.slice)
            return self.op("aten::index", [view, self.index_list(indices)], {}, node) if indices else view
        if isinstance(node.slice, ast.Slice) and (t.name == "List" or t is STR):
            return self.op("aten::slice", [value, *self._bounds(node.slice)], {}, node)
        if isinstance(t, ClassType):
            if t.is_module:
                found = self.module_item(value, node)
                if found is not None:
                    return found
            return self.call_method(value, "__getitem__", [self.expr(node.slice)], {}, node)
        if t.name == "Optional":
            self.fail(node, f"'{t}' object is not subscriptable; check first whether it is None")
        return self.op("aten::__getitem__", [value, self.expr(node.slice)], {}, node)

    def module_item(self, value: ir.Expr, node: ast.Subscript) -> Value:
        """A module of a container, by a key that is no number."""
        return None

    def _item_of_tuple(self, value: Value, parts: list[Value], node: ast.Subscript) -> Value:
        if isinstance(node.slice, ast.Slice):
            bounds = []
            for b in (node.slice.lower, node.slice.upper, node.slice.step):
                known = None if b is None else _known(self.expr(b))
                if b is not None and type(known) is not int:
                    self.fail(node, "tuple slices must be known integers")
                bounds.append(known)
            return Parts(parts[slice(*bounds)])
        key = self.expr(node.slice)
        i = _known(key)
        if type(i) is str or key.type is STR:
            found = self.module_item(self.value(value, node), node) if isinstance(value, ir.Expr) else None
            return found if found is not None else self.fail(node, "tuples have no keys")
        if type(i) is not int:
            found = self.module_item(value, node) if isinstance(value, ir.Expr) and not is_tuple(value.type) else None
            if found is not None:
                return found
            if parts and len({self.value(p, node).type for p in parts}) == 1 and not _is_module(parts[0]):
                whole = self.list_literal([self.value(p, node) for p in parts], None, node)
                return self.op("aten::__getitem__", [whole, key], {}, node)
            self.fail(node, "tuple index must be a compile-time integer, or all elements of one type")
        assert type(i) is int
        if not -len(parts) <= i < len(parts):
            self.fail(node, f"Tuple index out of range: it has {len(parts)} elements, the index is {i}")
        if isinstance(value, ir.Expr) and is_tuple(value.type):
            return ir.TupleItem(value, i % len(parts), value.type.args[i])
        return parts[i]

    def _bounds(self, node: ast.Slice) -> list[ir.Expr]:
        out = [ir.Const(None, NONE) if b is None else self.expr(b) for b in (node.lower, node.upper)]
        return [*out, _int(1) if node.step is None else self.expr(node.step)]

    def tensor_view(self, value: ir.Expr, node: ast.expr) -> tuple[ir.Expr, list[ir.Expr | None]]:
        """``value[node]`` as a view by slices and single numbers, and the tensors that index the other dimensions."""
        parts = list(node.elts) if isinstance(node, ast.Tuple) else [node]
        spec: list[Any] = []
        for part in parts:
            if isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is Ellipsis):
                spec.append(part)
                continue
            one = self.emit(part)
            known = self.parts(one, part)
            if known is not None and isinstance(node, ast.Tuple) is False:
                spec += [self.value(k, part) for k in known]
            else:
                spec.append(self.value(one, part))
        after = 0  # dimensions from the end that what follows an ellipsis takes
        dim = 0
        indices: list[ir.Expr | None] = []
        dots = next((i for i, p in enumerate(spec) if isinstance(p, ast.Constant)), -1)
        if dots >= 0:
            after = sum(not (isinstance(p, ir.Expr) and p.type is NONE) for p in spec[dots + 1 :])
            tail = spec[dots + 1 :]
            if any(isinstance(p, ir.Expr) and p.type not in (INT, NONE) for p in spec):
                self.fail(node, "... together with tensors as indices isn't supported", NotSupportedError)
            for head in spec[:dots]:
                value, dim = self._one_index(value, head, dim, node)
            rest = after
            for one in tail:
                if isinstance(one, ir.Expr) and one.type is NONE:
                    value = self.op("aten::unsqueeze", [value, _int(-rest - 1)], {}, node)
                    continue
                if isinstance(one, ir.Expr):
                    value = self.op("aten::select", [value, _int(-rest), one], {}, node)
                else:
                    value = self.op("aten::slice", [value, _int(-rest), *self._bounds(one)], {}, node)
                rest -= 1
            return value, []
        for p in spec:
            if isinstance(p, ir.Expr) and p.type not in (INT, NONE):
                if p.type is BOOL:
                    self.fail(node, "a bool is no index")
                if p.type.name == "List":
                    p = self.op("aten::tensor", [p], {}, node)
                if p.type != TENSOR:
                    self.fail(
                        node,
                        f"Unsupported operation: indexing tensor with unsupported index type '{p.type}'. Only ints, "
                        "slices, lists and tensors are supported",
                    )
                indices += [None] * (dim - len(indices)) + [p]
                dim += 1
            else:
                value, dim = self._one_index(value, p, dim, node)
        return value, indices

    def _one_index(self, value: ir.Expr, p: Any, dim: int, node: ast.AST) -> tuple[ir.Expr, int]:
        if isinstance(p, ast.Slice):
            return self.op("aten::slice", [value, _int(dim), *self._bounds(p)], {}, node), dim + 1
        if p.type is NONE:
            return self.op("aten::unsqueeze", [value, _int(dim)], {}, node), dim + 1
        return self.op("aten::select", [value, _int(dim), p], {}, node), dim

    def index_list(self, indices: list[ir.Expr | None]) -> ir.Expr:
        """The tensors of an index, as the op takes them."""
        if None not in indices:
            return ir.MakeList([i for i in indices if i is not None], list_of(TENSOR))
        items = [ir.Const(None, NONE) if i is None else i for i in indices]
        return ir.MakeList(items, list_of(optional(TENSOR)))

    def _set_item(self, target: ast.Subscript, value: ir.Expr, node: ast.stmt, out: list) -> None:
        owner = self.expr(target.value)
        if isinstance(owner.type, ClassType):
            call = self.call_method(owner, "__setitem__", [self.expr(target.slice), value], {}, node)
            out.append(ir.Do(call, node.lineno))
            return
        if owner.type == TENSOR:
            view, indices = self.tensor_view(owner, target.slice)
            self._store_item(view, indices, value, node, out)
            return
        if isinstance(target.slice, ast.Slice):
            self.fail(node, "slices of lists cannot be assigned", NotSupportedError)
        if owner.type.name in ("List", "Dict"):
            value = self.coerce(value, owner.type.args[-1], node, "the element")
        out.append(ir.Do(self.op("aten::_set_item", [owner, self.expr(target.slice), value], {}, node), node.lineno))

    def _store_item(self, view: ir.Expr, indices: list, value: ir.Expr, node: ast.stmt, out: list) -> None:
        if value.type != TENSOR:
            dtype, device = self.op("prim::dtype", [view], {}, node), self.op("prim::device", [view], {}, node)
            value = self.op("aten::tensor", [value], {"dtype": dtype, "device": device}, node)
        if indices:
            call = self.op("aten::index_put_", [view, self.index_list(indices), value], {}, node)
        else:
            call = self.op("aten::copy_", [view, value], {}, node)
        out.append(ir.Do(call, node.lineno))
