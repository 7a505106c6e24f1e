"""Pickle as a data format: a reader that cannot run code, and a writer of the same format.

The reader is an interpreter of its own, not a restricted ``pickle.Unpickler``: it knows only the opcodes that build
data. Names become plain values or :class:`Constructor` objects, both from an allow-list, or objects that the user
allowed; only the latter two can be called.
"""

from __future__ import annotations

import copyreg
import struct
import sys
from _pickle import PicklingError, UnpicklingError  # pickle's own, without importing all of it
from collections import OrderedDict, deque
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

MAX_KEY_DEPTH = 32  # hashing a nested tuple recurses in C, without a limit of its own


class Ignored:
    """An object in a file that nothing here reads, whatever its state."""

    def __setstate__(self, state: Any) -> None:
        """Nothing is kept."""


class TextError(UnicodeDecodeError, UnpicklingError):
    """Text that Python 2 wrote is in another encoding."""


class Constructor:
    """A function that a pickle may call: ``function(*args)``."""

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable):
        self.name = name
        self.function = function

    def __repr__(self) -> str:
        return f"<{self.name} in a file>"


def check_key(key: Any, depth: int = 0) -> None:
    """Refuse a dictionary key that could recurse without end when it is hashed."""
    if isinstance(key, (tuple, frozenset)):
        if depth == MAX_KEY_DEPTH:
            raise UnpicklingError(f"a dictionary key is nested more than {MAX_KEY_DEPTH} levels deep")
        for item in key:
            check_key(item, depth + 1)


class Reader:
    """Runs one pickle.

    Args:
        data: bytes that hold it.
        find: gives the value, Constructor or allowed object of ``(module, name)``, or raises UnpicklingError.
        persistent: gives the object of a persistent id.
        start: where it begins. After :meth:`load`, ``position`` is where it ended.
        encoding: of the strings that Python 2 wrote; ``"bytes"`` keeps them as bytes.
    """

    def __init__(
        self, data: bytes, find: Callable[[str, str], Any], persistent: Callable[[Any], Any], start: int = 0,
        encoding: str = "utf-8",
    ):  # fmt: skip
        self.data = data
        self.encoding = encoding
        self.find = find
        self.persistent = persistent
        self.position = start
        self.memo: dict[int, Any] = {}

    def load(self) -> Any:
        """The object.

        Returns:
            The object.

        Raises:
            UnpicklingError: it is damaged, or asks for something that is not on the allow-list.
        """
        try:
            return self._run()
        except UnpicklingError:
            raise
        except EOFError:
            raise
        except (IndexError, KeyError, ValueError, TypeError, AttributeError, OverflowError, struct.error) as error:
            raise UnpicklingError(
                f"the pickle in the file is damaged near byte {self.position}: {type(error).__name__}: {error}"
            ) from None

    def _take(self, n: int) -> bytes:
        at = self.position
        end = at + n
        if n < 0 or end > len(self.data):
            raise UnpicklingError(f"the pickle in the file is truncated: {n} bytes are announced at byte {at}")
        self.position = end
        return self.data[at:end]

    def _line(self) -> bytes:
        at = self.position
        end = self.data.index(b"\n", at)
        self.position = end + 1
        return self.data[at:end]

    def _text_of_python_2(self, data: bytes) -> str | bytes:
        if self.encoding == "bytes":
            return data
        try:
            return str(data, self.encoding)
        except UnicodeDecodeError as error:
            reason = f"{error.reason}; Python 2 wrote this text: load takes encoding='latin1' or 'bytes'"
            raise TextError(error.encoding, data, error.start, error.end, reason) from None

    def _run(self) -> Any:  # one branch per opcode, the frequent ones first
        data, memo, take = self.data, self.memo, self._take
        stack: list[Any] = []
        outer: list[list[Any]] = []
        while True:
            at = self.position
            op = data[at]
            self.position = at + 1
            if op == 0x71:  # q BINPUT
                memo[data[at + 1]] = stack[-1]
                self.position = at + 2
            elif op == 0x72:  # r LONG_BINPUT
                memo[int.from_bytes(take(4), "little")] = stack[-1]
            elif op == 0x4B:  # K BININT1
                stack.append(data[at + 1])
                self.position = at + 2
            elif op == 0x68:  # h BINGET
                stack.append(memo[data[at + 1]])
                self.position = at + 2
            elif op == 0x28:  # ( MARK
                outer.append(stack)
                stack = []
            elif op == 0x74:  # t TUPLE
                whole = tuple(stack)
                stack = outer.pop()
                stack.append(whole)
            elif op == 0x58:  # X BINUNICODE
                stack.append(str(take(int.from_bytes(take(4), "little")), "utf-8", "surrogatepass"))
            elif op == 0x6A:  # j LONG_BINGET
                stack.append(memo[int.from_bytes(take(4), "little")])
            elif op == 0x52:  # R REDUCE
                args = stack.pop()
                stack[-1] = self._call(stack[-1], args)
            elif op == 0x51:  # Q BINPERSID
                stack[-1] = self.persistent(stack[-1])
            elif op == 0x86:  # TUPLE2
                stack[-2:] = [tuple(stack[-2:]) if len(stack) > 1 else stack[-2]]
            elif op == 0x85:  # TUPLE1
                stack[-1] = (stack[-1],)
            elif op == 0x87:  # TUPLE3
                stack[-3:] = [tuple(stack[-3:]) if len(stack) > 2 else stack[-3]]
            elif op == 0x89:  # NEWFALSE
                stack.append(False)
            elif op == 0x88:  # NEWTRUE
                stack.append(True)
            elif op == 0x29:  # ) EMPTY_TUPLE
                stack.append(())
            elif op == 0x4D:  # M BININT2
                stack.append(int.from_bytes(take(2), "little"))
            elif op == 0x4A:  # J BININT
                stack.append(int.from_bytes(take(4), "little", signed=True))
            elif op == 0x47:  # G BINFLOAT
                stack.append(struct.unpack(">d", take(8))[0])
            elif op == 0x4E:  # N NONE
                stack.append(None)
            elif op == 0x7D:  # } EMPTY_DICT
                stack.append({})
            elif op == 0x5D:  # ] EMPTY_LIST
                stack.append([])
            elif op == 0x75:  # u SETITEMS
                items, stack = stack, outer.pop()
                self._set_items(stack[-1], items)
            elif op == 0x73:  # s SETITEM
                value = stack.pop()
                key = stack.pop()
                self._set_items(stack[-1], [key, value])
            elif op == 0x65:  # e APPENDS
                items, stack = stack, outer.pop()
                self._list(stack[-1]).extend(items)
            elif op == 0x61:  # a APPEND
                value = stack.pop()
                self._list(stack[-1]).append(value)
            elif op == 0x63:  # c GLOBAL
                module, name = str(self._line(), "utf-8"), str(self._line(), "utf-8")
                stack.append(self.find(module, name))
            elif op == 0x2E:  # . STOP
                if outer or len(stack) != 1:
                    raise UnpicklingError("the pickle in the file ends in the middle of something")
                return stack[0]
            else:
                stack = self._rare(op, stack, outer)

    def _rare(self, op: int, stack: list, outer: list) -> list:
        take, memo = self._take, self.memo
        if op == 0x80:  # PROTO
            if take(1)[0] > 5:
                raise UnpicklingError("the pickle in the file is of a protocol newer than 5")
        elif op == 0x95:  # FRAME
            take(8)
        elif op == 0x94:  # MEMOIZE
            memo[len(memo)] = stack[-1]
        elif op == 0x8C:  # SHORT_BINUNICODE
            stack.append(str(take(take(1)[0]), "utf-8", "surrogatepass"))
        elif op == 0x8D:  # BINUNICODE8
            stack.append(str(take(int.from_bytes(take(8), "little")), "utf-8", "surrogatepass"))
        elif op == 0x93:  # STACK_GLOBAL
            name = stack.pop()
            module = stack.pop()
            if type(name) is not str or type(module) is not str:
                raise UnpicklingError("a name in the pickle is no string")
            stack.append(self.find(module, name))
        elif op == 0x62:  # b BUILD
            state = stack.pop()
            self._build(stack[-1], state)
        elif op == 0x81:  # NEWOBJ
            args = stack.pop()
            stack[-1] = self._new(stack[-1], args, {})
        elif op == 0x92:  # NEWOBJ_EX
            keywords = stack.pop()
            args = stack.pop()
            stack[-1] = self._new(stack[-1], args, keywords)
        elif op in (0x8A, 0x8B):  # LONG1, LONG4
            size = take(1)[0] if op == 0x8A else int.from_bytes(take(4), "little", signed=True)
            stack.append(int.from_bytes(take(size), "little", signed=True))
        elif op in (0x49, 0x4C):  # I INT, L LONG
            text = self._line()
            known = {b"00": False, b"01": True}
            stack.append(known[text] if op == 0x49 and text in known else int(text.rstrip(b"L")))
        elif op == 0x46:  # F FLOAT
            stack.append(float(self._line()))
        elif op in (0x42, 0x43, 0x8E):  # BINBYTES, SHORT_BINBYTES, BINBYTES8
            width = {0x42: 4, 0x43: 1, 0x8E: 8}[op]
            stack.append(take(int.from_bytes(take(width), "little")))
        elif op == 0x96:  # BYTEARRAY8
            stack.append(bytearray(take(int.from_bytes(take(8), "little"))))
        elif op in (0x54, 0x55):  # BINSTRING, SHORT_BINSTRING: what Python 2 wrote
            size = int.from_bytes(take(4), "little", signed=True) if op == 0x54 else take(1)[0]
            stack.append(self._text_of_python_2(take(size)))
        elif op == 0x6C:  # l LIST
            items, stack = stack, outer.pop()
            stack.append(items)
        elif op == 0x64:  # d DICT
            items, stack = stack, outer.pop()
            stack.append({})
            self._set_items(stack[-1], items)
        elif op == 0x8F:  # EMPTY_SET
            stack.append(set())
        elif op == 0x90:  # ADDITEMS
            items, stack = stack, outer.pop()
            check_key(tuple(items))
            if type(stack[-1]) is not set:
                raise UnpicklingError("the pickle adds items to something that is no set")
            stack[-1].update(items)
        elif op == 0x91:  # FROZENSET
            items, stack = stack, outer.pop()
            check_key(tuple(items))
            stack.append(frozenset(items))
        elif op == 0x30:  # 0 POP
            if stack:
                stack.pop()
            else:
                stack = outer.pop()
        elif op == 0x31:  # 1 POP_MARK
            stack = outer.pop()
        elif op == 0x32:  # 2 DUP
            stack.append(stack[-1])
        elif op == 0x67:  # g GET
            stack.append(memo[int(self._line())])
        elif op == 0x70:  # p PUT
            memo[int(self._line())] = stack[-1]
        else:
            raise UnpicklingError(
                f"opcode {op:#04x} at byte {self.position - 1} builds no data: the file is damaged or of another kind"
            )
        return stack

    @staticmethod
    def _list(target: Any) -> Any:
        if type(target) not in (list, deque):
            raise UnpicklingError(f"the pickle appends to a {type(target).__name__}, expected a list")
        return target

    @staticmethod
    def _set_items(target: Any, items: list) -> None:
        if not isinstance(target, dict):
            raise UnpicklingError(f"the pickle sets items of a {type(target).__name__}, expected a dict")
        if len(items) % 2:
            raise UnpicklingError("the pickle has a key without a value")
        pairs = iter(items)
        for key, value in zip(pairs, pairs, strict=True):
            if type(key) is not str:
                check_key(key)
            target[key] = value

    @staticmethod
    def _call(constructor: Any, args: Any) -> Any:
        if type(constructor) is Constructor:
            name, function = constructor.name, constructor.function
        elif any(constructor is thing for thing in _ALLOWED.values()):
            name, function = constructor.__qualname__, constructor
        else:
            raise UnpicklingError(f"the pickle calls a {type(constructor).__name__}, which only builds data")
        if type(args) is not tuple:
            raise UnpicklingError(f"the pickle calls {name} with a {type(args).__name__}, expected a tuple")
        return function(*args)

    @staticmethod
    def _new(cls: Any, args: Any, keywords: Any) -> Any:
        if cls is Ignored:
            return Ignored()
        if not isinstance(cls, type) or cls not in _ALLOWED_CLASSES:
            raise UnpicklingError(f"the pickle makes an instance of {cls!r}, which is no class on the allow-list")
        return cls.__new__(cls, *args, **keywords)

    def _build(self, target: Any, state: Any) -> None:
        """Set attributes: of an ordered dict (the metadata of a state dict), or of a class that the user allowed."""
        if type(target) is Ignored:
            return
        if type(target) is OrderedDict:
            for name in state:
                if type(name) is not str or hasattr(OrderedDict, name):
                    raise UnpicklingError(f"the pickle sets attribute {name!r} of an OrderedDict")
            target.__dict__.update(state)
        elif type(target) in _ALLOWED_CLASSES:
            if hasattr(target, "__setstate__"):
                target.__setstate__(state)
                return
            slots = None
            if type(state) is tuple and len(state) == 2:
                state, slots = state
            for attributes in (state or {}, slots or {}):
                for name, value in attributes.items():
                    object.__setattr__(target, name, value)
        else:
            raise UnpicklingError(f"the pickle sets the state of a {type(target).__name__}, which is not allowed")


# ---- classes that the user allows ------------------------------------------------------------------------------------
_ALLOWED_CLASSES: set[type] = set()
_ALLOWED: dict[tuple[str, str], Any] = {}  # by the name in the file
_ALLOWED_ITEMS: dict[tuple[str, str], Any] = {}  # as they were given


def allow(items: list) -> None:
    """Add classes or functions, or ``(object, "module.name")`` pairs, to the allow-list."""
    for item in items:
        thing, full = item if isinstance(item, tuple) else (item, f"{item.__module__}.{item.__qualname__}")
        module, _, name = full.rpartition(".")
        _ALLOWED[(module, name)] = thing
        _ALLOWED_ITEMS[(module, name)] = item
        if isinstance(thing, type):
            _ALLOWED_CLASSES.add(thing)


def allowed() -> list:
    """The objects that :func:`allow` added."""
    return list(_ALLOWED_ITEMS.values())


def forget() -> None:
    """Empty the user's allow-list."""
    _ALLOWED.clear()
    _ALLOWED_ITEMS.clear()
    _ALLOWED_CLASSES.clear()


def find_allowed(module: str, name: str) -> Any:
    """The class or function of a name that the user allowed, or None."""
    return _ALLOWED.get((module, name))


#: Types that have no name in a module, with an object of each: pickles call ``type`` of the object.
_TYPES_OF_CONSTANTS = {type(x): x for x in (None, NotImplemented, ...)}


# ---- writing ---------------------------------------------------------------------------------------------------------
class Writer:
    """Writes one object as a pickle of protocol 2, of the opcodes that :class:`Reader` (and PyTorch's) reads.

    Args:
        special: ``special(writer, x)`` writes an object that is no Python container or number (a tensor, say) and gives
            True, or gives False.
    """

    def __init__(self, special: Callable[[Writer, Any], bool]):
        self.out = bytearray(b"\x80\x02")
        self.memo: dict[Any, int] = {}
        self.alive: list[Any] = []  # ids stay unique while objects live
        self.special = special
        self.path: list[Any] = []

    def dump(self, x: Any) -> bytes:
        """The pickle of ``x``."""
        try:
            self.write(x)
        except RecursionError:
            raise PicklingError("save: the object is nested too deeply") from None
        self.out += b"."
        return bytes(self.out)

    # ---- pieces -----------------------------------------------------------------------------------------------------
    def put(self, key: Any) -> None:
        """Remember the object on the stack under ``key``."""
        n = self.memo[key] = len(self.memo)
        self.out += bytes((0x71, n)) if n < 256 else b"r" + n.to_bytes(4, "little")

    def get(self, key: Any) -> bool:
        """Push the object remembered under ``key``; False if there is none."""
        n = self.memo.get(key)
        if n is None:
            return False
        self.out += bytes((0x68, n)) if n < 256 else b"j" + n.to_bytes(4, "little")
        return True

    def name(self, module: str, name: str) -> None:
        """Push a global."""
        if not self.get((module, name)):
            self.out += f"c{module}\n{name}\n".encode()
            self.put((module, name))

    def call(self, module: str, name: str, *args: Any) -> None:
        """Push the result of a call."""
        self.name(module, name)
        self._tuple_items(args)
        self.out += b"R"

    def fail(self, x: Any) -> None:
        """Raise for an object that is no data."""
        where = "".join(f"[{p!r}]" for p in self.path)
        raise PicklingError(
            "save: expected data, or objects of classes that are found by their names, got "
            f"{type(x).__module__}.{type(x).__qualname__}{' at ' + where if where else ''}; leave it out or convert it"
        )

    # ---- objects ----------------------------------------------------------------------------------------------------
    def write(self, x: Any) -> None:
        """Push ``x``."""
        kind = type(x)
        simple = _SIMPLE.get(kind)
        if simple is not None:
            simple(self, x)
        elif self.get(id(x)):
            pass
        elif kind in _CONTAINERS:
            self.alive.append(x)
            _CONTAINERS[kind](self, x)
        elif self.special(self, x):
            pass
        elif x is ... or x is NotImplemented:
            self.name("__builtin__", repr(x))
        elif isinstance(x, type) and x in _TYPES_OF_CONSTANTS:
            self.call("__builtin__", "type", _TYPES_OF_CONSTANTS[x])
        elif isinstance(x, (type, FunctionType, BuiltinFunctionType)) or hasattr(x, "__qualname__"):
            if not self._global(x):
                self.fail(x) if isinstance(x, (type, FunctionType)) else self._instance(x)
        else:
            self._instance(x)

    def _int(self, x: int) -> None:
        if 0 <= x < 256:
            self.out += bytes((0x4B, x))
        elif -(2**31) <= x < 2**31:
            self.out += b"J" + x.to_bytes(4, "little", signed=True)
        else:
            data = x.to_bytes(x.bit_length() // 8 + 1, "little", signed=True)
            head = bytes((0x8A, len(data))) if len(data) < 256 else b"\x8b" + len(data).to_bytes(4, "little")
            self.out += head + data

    def _str(self, x: str) -> None:
        if self.get(x):
            return
        data = x.encode("utf-8", "surrogatepass")
        self.out += b"X" + len(data).to_bytes(4, "little") + data
        self.put(x)

    def _bytes(self, x: bytes) -> None:
        self.call("_codecs", "encode", x.decode("latin1"), "latin1")  # protocol 2 has no bytes

    def _tuple_items(self, items: tuple) -> None:
        n = len(items)
        if n > 3:
            self.out += b"("
        for i, item in enumerate(items):
            self.path.append(i)
            self.write(item)
            self.path.pop()
        self.out += (b")", b"\x85", b"\x86", b"\x87")[n] if n <= 3 else b"t"

    def _tuple(self, x: tuple) -> None:
        if not x:
            self.out += b")"
            return
        self._tuple_items(x)
        if id(x) in self.memo:  # it contains itself, through a list or dict, and is there already: drop this one
            self.out += b"0"
            self.get(id(x))
        else:
            self.put(id(x))

    def _list(self, x: list) -> None:
        self.out += b"]"
        self.put(id(x))
        if x:
            self.out += b"("
            for i, item in enumerate(x):
                self.path.append(i)
                self.write(item)
                self.path.pop()
            self.out += b"e"

    def _items(self, x: dict) -> None:
        if x:
            self.out += b"("
            for key, value in x.items():
                self._item(key, value)
            self.out += b"u"

    def _item(self, key: Any, value: Any) -> None:
        self.write(key)
        self.path.append(key)
        self.write(value)
        self.path.pop()

    def _dict(self, x: dict) -> None:
        self.out += b"}"
        self.put(id(x))
        self._items(x)

    def _ordered_dict(self, x: OrderedDict) -> None:
        self.call("collections", "OrderedDict")
        self.put(id(x))
        self._items(x)
        if x.__dict__:
            self.write(dict(x.__dict__))
            self.out += b"b"

    def _set(self, x: set | frozenset) -> None:
        self.call("__builtin__", type(x).__name__, list(x))
        self.put(id(x))

    def _global(self, x: Any) -> bool:
        """Push a class or function by its name, if that is where it is found; gives whether it is."""
        module, name = getattr(x, "__module__", None), getattr(x, "__qualname__", None)
        found = sys.modules.get(module) if isinstance(module, str) else None
        outer = None
        for part in str(name).split("."):
            outer, found = found, getattr(found, part, None)
        if found is not x or not isinstance(module, str):
            return False
        if "." in str(name):  # within a class: protocol 2 has names of modules only
            self.call("__builtin__", "getattr", outer, str(name).rpartition(".")[2])
        else:
            self.name(module, str(name))
        return True

    def _instance(self, x: Any) -> None:
        """Push an object of any class, as it describes itself to pickle. Reading it takes more than writing it."""
        reduce = copyreg.dispatch_table.get(type(x))
        try:
            reduced = reduce(x) if reduce else x.__reduce_ex__(2)
        except TypeError:
            self.fail(x)
        if isinstance(reduced, str):  # the object's name in its module
            if getattr(sys.modules.get(x.__module__), reduced, None) is not x:
                self.fail(x)
            self.name(x.__module__, reduced)
            return
        function, args, state, items, pairs = (*reduced, None, None, None)[:5]
        new = getattr(function, "__name__", "") == "__newobj__"
        if not new:
            self.write(function)  # any object that can be called
        elif not self._global(args[0]):
            self.fail(x)
        self._tuple_items(args[1:] if new else args)
        self.out += b"\x81" if new else b"R"
        self.put(id(x))
        self.alive.append(x)
        for item in items or ():
            self.write(item)
            self.out += b"a"
        for key, value in pairs or ():
            self._item(key, value)
            self.out += b"s"
        if state is not None:
            self.path.append(type(x).__name__)
            self.write(state)
            self.path.pop()
            self.out += b"b"


def _constant(opcode: bytes) -> Callable:
    def write(writer: Writer, x: Any) -> None:
        writer.out += opcode

    return write


def _bool(writer: Writer, x: bool) -> None:
    writer.out += b"\x88" if x else b"\x89"


def _float(writer: Writer, x: float) -> None:
    writer.out += b"G" + struct.pack(">d", x)


def _complex(writer: Writer, x: complex) -> None:
    writer.call("__builtin__", "complex", x.real, x.imag)


def _bytearray(writer: Writer, x: bytearray) -> None:
    writer.call("__builtin__", "bytearray", bytes(x))


_SIMPLE: dict[type, Callable] = {
    type(None): _constant(b"N"), bool: _bool, int: Writer._int, float: _float, complex: _complex, str: Writer._str,
    bytes: Writer._bytes, bytearray: _bytearray,
}  # fmt: skip
_CONTAINERS: dict[type, Callable] = {
    tuple: Writer._tuple, list: Writer._list, dict: Writer._dict, OrderedDict: Writer._ordered_dict, set: Writer._set,
    frozenset: Writer._set,
}  # fmt: skip
