"""``__torch_function__`` in both frameworks: classes, subclasses of Tensor, modes."""

import operator
import threading

import pytest

torch = pytest.importorskip("torch")

import taeda  # noqa: E402

FRAMEWORKS = [torch, taeda]


def both(fn):
    """What ``fn(framework)`` gives in each, which must be the same."""
    want, got = (fn(framework) for framework in FRAMEWORKS)
    assert got == want
    return got


def test_subclasses_keep_their_class():
    def fn(t):
        class Mine(t.Tensor):
            pass

        x = t.ones(2, 3).as_subclass(Mine)
        made = [
            x + 1, 1 + x, t.ones(2, 3) * x, x.sum(), t.std(x), t.nn.functional.relu(x), x[0], x.T, t.stack([x, x]), x.detach(),
            x.max(0)[0], t.cat([t.ones(2, 3), x]), x.clone().add_(1), x.view(-1), x.to(t.float64),
        ]  # fmt: skip
        plain = [t.ones(2) + 1, x.tolist(), x.shape, x.sum().item()]
        return (
            [type(m).__name__ for m in made],
            [type(p).__name__ for p in plain],
            isinstance(t.nn.Parameter(t.ones(1)), Mine),
        )

    both(fn)


def test_no_complement_of_floats():
    def fn(t):
        class Mine(t.Tensor):
            pass

        with pytest.raises(TypeError, match="only implemented on integer and Boolean-type"):
            ~t.ones(2).as_subclass(Mine)
        return type(~t.ones(2, dtype=t.int64).as_subclass(Mine)).__name__

    both(fn)


def loud(t, seen):
    """Two subclasses of Tensor, one of the other, that note the functions they are asked for and the classes."""

    class Loud(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func.__name__, [k.__name__ for k in types]))
            return super().__torch_function__(func, types, args, kwargs or {})

    class Louder(Loud):
        pass

    return Loud, Louder


def test_order_and_names_of_calls():
    def fn(t):
        seen = []
        Loud, Louder = loud(t, seen)

        a, b = t.ones(2).as_subclass(Loud), t.ones(2).as_subclass(Louder)
        assert type(t.add(a, b)) is Louder
        a.mean()
        t.cat([a, b])
        with t._C.DisableTorchFunctionSubclass() if t is torch else t.DisableTorchFunctionSubclass():
            a + b
        return seen

    both(fn)


def test_other_classes_may_take_over():
    def fn(t):
        handled = {}

        class Diagonal:
            def __init__(self, n, value):
                self.n, self.value = n, value

            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                if func not in handled:
                    return NotImplemented
                return handled[func](*args, **(kwargs or {}))

        handled[t.mean] = lambda d: d.value / d.n
        handled[t.add] = lambda a, b, **k: "added"
        handled[t.stack] = lambda ds, dim=0: len(ds)
        handled[t.nn.functional.linear] = lambda *args, **k: len(args)
        d = Diagonal(4, 2.0)
        results = [
            t.mean(d),
            t.add(d, t.ones(2)),
            t.add(t.ones(2), d),
            t.stack([d, d]),
            t.nn.functional.linear(t.ones(1), d),
        ]
        with pytest.raises(TypeError):
            t.exp(d)
        return results

    both(fn)


CALLS = {
    "div": lambda t, d: t.div(d, 2, rounding_mode="floor"),
    "div_right": lambda t, d: t.div(t.ones(2), d),
    "cholesky": lambda t, d: t.linalg.cholesky(d),
    "norm": lambda t, d: t.linalg.norm(d, ord=2),
    "cosine_similarity": lambda t, d: t.nn.functional.cosine_similarity(t.ones(2), x2=d),
    "block_diag": lambda t, d: t.block_diag(t.ones(2), d),
    "hstack": lambda t, d: t.hstack((t.ones(2), d)),
}


@pytest.mark.parametrize("name", CALLS)
def test_other_classes_are_asked_about_the_function_called(name):
    """Not about the ops that it is written in."""

    def fn(t):
        class Diagonal:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                assert cls in types
                return func.__name__.rpartition("linalg_")[2], len(args), sorted(kwargs or {})

        return CALLS[name](t, Diagonal())

    both(fn)


def test_modes_see_what_is_no_op():
    """Methods, attributes and what makes tensors of data; classes that were looked up before are the same."""

    def fn(t):
        mode_class = __import__(f"{t.__name__}.overrides", fromlist=["x"]).TorchFunctionMode
        item, tensor, shape = t.Tensor.item, t.tensor, t.Tensor.shape
        seen, known = [], []

        class Mode(mode_class):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                name = func.__name__
                seen.append(name if name not in ("__get__", "__set__") else (name, func.__self__.__name__))
                known.append(func is item or func is tensor or func == shape.__get__)
                return func(*args, **(kwargs or {}))

        x = t.ones(2, 2)
        p = t.ones(2, requires_grad=True)
        with Mode():
            x[0, 0].item(), x.tolist(), x.size(), x.shape, x.dtype, x.is_floating_point(), x.numpy()
            t.tensor([1.0]), t.as_tensor([1.0], dtype=t.float64), t.asarray([1])
            p.grad = t.ones(2)
            p.grad.detach().requires_grad_().numel()
            (p * 2).sum().backward()
        after = x.sum().item(), x.shape, t.Tensor.item is item, len(seen)
        return seen, known, after

    both(fn)


def test_a_mode_changes_no_call_that_it_passes_on():
    class Mode(taeda.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with Mode():
        with pytest.raises(ValueError, match="can't share"):
            taeda.asarray([1, 2], copy=False)
        assert taeda.tensor([1.0], requires_grad=True, device="meta").is_meta
        assert not taeda.asarray(taeda.ones(1, requires_grad=True), requires_grad=False).requires_grad
        assert taeda.overrides.is_tensor_method_or_property(taeda.Tensor.item)
        assert taeda.Tensor.item in taeda.overrides.get_overridable_functions()[taeda.Tensor]


def test_modes_of_one_thread_are_not_asked_by_another():
    import threading

    class Mode(taeda.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise AssertionError(func)

    entered, done = threading.Event(), threading.Event()

    def hold():
        with Mode():
            entered.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    x = taeda.ones(2)
    assert (x.shape, x.sum().item(), taeda.tensor([1.0]).tolist()) == ((2,), 2.0, [1.0])
    done.set()
    thread.join()


def test_modes_see_every_call_and_can_replace_it():
    def fn(t):
        mode_class = __import__(f"{t.__name__}.overrides", fromlist=["x"]).TorchFunctionMode
        seen = []

        class Mode(mode_class):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                if func is t.exp:
                    return "replaced"
                seen.append(func.__name__)
                return func(*args, **(kwargs or {}))

        x = t.ones(2, 2)
        with Mode():
            result = t.exp(x)
            t.nn.functional.softmax(x, -1)
            t.tanh(x)
            with Mode():
                t.sin(x)
        t.cos(x)
        return result, seen

    both(fn)


def test_questions():
    def fn(t):
        o = __import__(f"{t.__name__}.overrides", fromlist=["x"])

        class Duck:
            @classmethod
            def __torch_function__(cls, *args):
                return 1

        class Mine(t.Tensor):
            pass

        mine = t.ones(1).as_subclass(Mine)
        return (
            [o.is_tensor_like(x) for x in (t.ones(1), mine, Duck(), 1, [t.ones(1)])],
            [o.has_torch_function((x,)) for x in (t.ones(1), mine, Duck(), 1, t.nn.Parameter(t.ones(1)))],
            [t.nn.functional.relu in o.get_overridable_functions()[space] for space in (t.nn.functional, t.Tensor)],
        )

    both(fn)


def test_gradients_flow_through_subclasses():
    def fn(t):
        class Mine(t.Tensor):
            pass

        x = t.ones(3).as_subclass(Mine).requires_grad_()
        (x * t.arange(3.0)).sum().backward()
        return type(x.grad).__name__, x.grad.tolist()

    both(fn)


def test_ordinary_tensors_are_not_handed_over_while_there_are_others():
    class Mine(taeda.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    seen: list = []
    x = taeda.ones(2).as_subclass(Mine)
    taeda.ones(2) + 1
    assert not seen
    x + 1
    assert seen


def test_other_classes_are_asked_before_the_call():
    """An argument of any class with ``__torch_function__`` is asked, in lists and as an operand; the op is not tried first."""

    class Foreign:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    for f in (torch, taeda):
        x, foreign = f.ones(2), Foreign()
        assert [f.add(x, foreign), f.cat([x, foreign]), f.nn.functional.relu(foreign)] == ["add", "cat", "relu"]
        assert x + foreign in ("add", "__add__")
        with pytest.raises((TypeError, AttributeError)):
            f.add(x, object())


def test_a_tensor_overrides_on_every_thread():
    """A tensor of a subclass is asked wherever it is used, not only on the thread that made it."""

    def program(f):
        class Loud(f.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func.__name__

        x, heard = f.ones(2).as_subclass(Loud), []
        i = f.tensor([[0, 1]])
        sparse = f.sparse_coo_tensor(i, f.ones(2), (3,))
        thread = threading.Thread(
            target=lambda: heard.extend([f.add(x, 1), f.cat([x, x]), (sparse * 2).to_dense().tolist()])
        )
        thread.start()
        thread.join()
        return heard

    assert program(taeda) == program(torch)


def _extended(f):
    class Extended(f.Tensor):
        """As forums write it: ``__init__`` does not call Tensor's."""

        @staticmethod
        def __new__(cls, x, extra, *args, **kwargs):
            return super().__new__(cls, x, *args, **kwargs)

        def __init__(self, x, extra):
            self.extra = extra

    class Bare(f.Tensor):
        def __init__(self):
            self.extra = 1

    return Extended, Bare


@pytest.mark.parametrize("f", [torch, taeda])
def test_subclasses_that_make_their_objects_themselves(f):
    extended, bare = _extended(f)
    x = f.arange(6.0).view(2, 3)
    made = extended(x, "more")
    assert type(made) is extended and made.extra == "more" and made.data_ptr() == x.data_ptr()
    assert (made + 1).sum().item() == 21.0 and type(made + 1) is extended
    assert [type(row) for row in made] == [extended] * 2 and [row.sum().item() for row in made] == [3.0, 12.0]
    assert extended([1, 2.5], 0).tolist() == [1.0, 2.5] and extended(f.arange(2), 0).dtype == f.int64
    assert f.Tensor.__new__(extended, 2, 3).shape == (2, 3) and f.Tensor.__new__(extended).shape == (0,)
    assert bare().shape == (0,) and bare().extra == 1
    y = f.ones(2, requires_grad=True)
    extended(y * 2, 0).sum().backward()
    assert y.grad.tolist() == [2.0, 2.0]
    assert f.Tensor(y).requires_grad and y.new(y).requires_grad and f.Tensor(y).data_ptr() == y.data_ptr()
    with pytest.raises(TypeError, match="iteration over a 0-d"):
        iter(made.sum())
    with pytest.raises(TypeError):
        bare(x)


def test_as_subclass_asks_no_class():
    """It gives an object of the class that it is told, inside vmap too."""

    def fn(t):
        class Base(t.Tensor):
            pass

        class Mine(Base):
            pass

        class Other(t.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append(func.__name__)

        class Asking(t.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append(func.__name__)
                return func(*args, **(kwargs or {}))

        def function(x):
            for given in classes:
                for wanted in classes:
                    got.append(
                        type(t.Tensor.as_subclass(x.as_subclass(given), wanted)).__name__.replace("Batched", "Tensor")
                    )
            return x

        seen, got, classes = [], [], [Base, Mine, Other, t.Tensor]
        for x in (t.ones(2), t.ones(2, requires_grad=True), t.ones(2, requires_grad=True) * 2):
            function(x)
        t.func.vmap(function)(t.ones(2, 3))
        x = t.ones(2)
        with Asking():
            function(x)
        return got, seen

    both(fn)


def test_a_class_given_inside_vmap():
    """``as_subclass`` of one example: the class stays while the function runs, with its methods and attributes, and the
    results are plain tensors. Writes reach the example."""

    def fn(t):
        class Base(t.Tensor):
            def twice(self):
                return self * 2

        class Mine(Base):
            scale = 1

            def sum(self, *args, **kwargs):
                return super().sum(*args, **kwargs) * 10

        seen = []

        def function(x):
            mine = x.as_subclass(Mine)
            mine.scale = 3
            x = x.clone()
            x.as_subclass(Base).mul_(3)
            made = [
                mine.twice(),
                mine[..., :1],
                t.stack([mine, x]),
                mine.detach(),
                mine.new_zeros(2),
                mine.sum(),
                mine + 1,
            ]
            seen.append([type(m).__name__ for m in [*made, made[0].as_subclass(Base)]])
            seen.append([isinstance(mine, Base), type(mine.as_subclass(Base) + mine).__name__, tuple(mine.shape)])
            seen.append([mine.requires_grad, mine.dtype.itemsize, mine.scale])
            other = x.as_subclass(type(mine)).as_subclass(t.Tensor)
            return [*made, x, other, mine.twice() * mine.scale]

        func, x = t.func, t.arange(6.0).reshape(3, 2)
        made = [
            *func.vmap(function)(x),
            *func.vmap(function, in_dims=1)(x.as_subclass(Base)),
            *func.vmap(func.vmap(function))(t.arange(8.0).reshape(2, 2, 2)),
            func.vmap(func.jacrev(lambda x: function(x)[0]))(x),
            func.vmap(func.grad(lambda x: function(x)[5]), randomness="same")(x),
            func.jacrev(func.vmap(lambda x: x.as_subclass(Mine).twice()))(x),
            func.jacfwd(lambda x: x.as_subclass(Mine).twice() ** 2)(x),
            func.hessian(lambda x: (x.as_subclass(Mine) ** 3).sum())(x),
            func.vmap(lambda x: (x, x.as_subclass(Mine).add_(1))[1])(x.clone()),
        ]
        for cls in (int, 3, dict):
            with pytest.raises(TypeError):
                func.vmap(lambda x, cls=cls: x.as_subclass(cls))(x)
        return seen, [(type(m).__name__, m.tolist()) for m in made]

    both(fn)


def test_who_is_asked_inside_vmap():
    def fn(t):
        seen = []
        Loud, Louder = loud(t, seen)

        class Other(t.Tensor):
            pass

        constant = t.ones(2).as_subclass(Louder)
        made = t.func.vmap(lambda x: x.as_subclass(Loud) * 2 + constant)(t.ones(3, 2))
        with pytest.raises(TypeError):
            t.func.vmap(lambda x: t.mul(x.as_subclass(Loud), t.ones(2).as_subclass(Other)))(t.ones(3, 2))
        t.func.vmap(lambda x: x * 2)(t.ones(3, 2).as_subclass(Other))
        return made.tolist(), seen

    both(fn)


def test_classes_of_what_is_differentiated():
    """The function of ``grad``, ``vjp`` and ``jacrev`` gets plain tensors, that of ``jvp`` and ``jacfwd`` the class; what
    comes back is plain."""

    def fn(t):
        class Mine(t.Tensor):
            pass

        class Silent(t.Tensor):
            __torch_function__ = (
                t._C._disabled_torch_function_impl if t is torch else taeda.overrides._disabled_torch_function_impl
            )

        def function(x):
            given.append(type(x).__name__.replace("Batched", "Tensor"))
            return (x**3).sum()

        given, got, f = [], [], t.func
        plain = t.arange(3.0)
        for x in (plain.as_subclass(Mine), plain.as_subclass(Silent), t.nn.Parameter(plain)):
            made = [
                f.grad(function)(x), *f.grad_and_value(function)(x), f.vjp(function, x)[0], f.jacrev(function)(x),
                f.jacfwd(function)(x), *f.jvp(function, (x,), (x.detach(),)), f.hessian(function)(x),
                f.grad(lambda y, x=x: (y * x).sum())(plain), f.vmap(lambda y, x=x: y * x)(plain),
                f.grad(lambda y: f.grad(function)(y).sum())(x), f.vmap(lambda y, x=x: x)(plain),
                f.vmap(f.grad(function))(x),
            ]  # fmt: skip
            got.append([(type(m).__name__, m.tolist()) for m in made])
        return given, got

    both(fn)


@pytest.mark.parametrize(
    "name",
    "add einsum split linalg.svd fft.fft special.erf nn.functional.relu nn.functional.conv2d nn.functional.softmax "
    "Tensor.add Tensor.view Tensor.requires_grad_ Tensor.__getitem__ Tensor.T.__get__ Tensor.grad.__set__".split(),
)
def test_names_of_functions(name):
    """``resolve_name`` gives PyTorch's names, also of attributes."""

    def resolved(lib):
        f = lib
        for part in name.split("."):
            f = getattr(f, part)
        return lib.overrides.resolve_name(f)

    assert resolved(taeda) == resolved(torch)


def seen_by(t, program):
    """The names and the numbers of arguments of what a mode and a subclass of Tensor are asked for."""
    seen = []

    class Mode(t.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((func.__name__, len(args)))
            return func(*args, **(kwargs or {}))

    class Sub(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func.__name__, "class"))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = t.tensor([3, 1])
    with Mode():
        program(x.clone())
    seen.append("-")
    program(t.tensor([3, 1]).as_subclass(Sub))
    return seen


OPERATORS = {
    "rsub": lambda x: 1 - x, "div": lambda x: x / 2, "rdiv": lambda x: 2 / x, "floordiv": lambda x: x // 2,
    "rfloordiv": lambda x: 2 // x, "mod": lambda x: x % 2, "rmod": lambda x: 2 % x, "rpow": lambda x: 2**x,
    "rmatmul": lambda x: x.__rmatmul__(x), "eq": lambda x: x == 2, "ne": lambda x: x != 2, "req": lambda x: x.__eq__(2),
    "and": lambda x: x & 1, "rand": lambda x: 1 & x, "iand": lambda x: operator.iand(x, 1), "or": lambda x: x | 1,
    "ror": lambda x: 1 | x, "ixor": lambda x: operator.ixor(x, 1), "lshift": lambda x: x << 1,
    "rlshift": lambda x: 1 << x, "irshift": lambda x: operator.irshift(x, 1), "invert": lambda x: ~x,
    "bool": lambda x: bool(x[0]), "int": lambda x: int(x[0]), "float": lambda x: float(x[0]), "len": len,
    "index": lambda x: [1, 2, 3, 4][x[0]], "complex": lambda x: complex(x[0]), "iter": lambda x: [y for y in x],
    "list": list, "contains": lambda x: 2 in x, "max": max, "sorted": sorted, "repr": repr,
    "getitem": lambda x: [x[0], x[:], x[[0, 1]], x[x > 2], x[..., None], x[True]],
    "setitem": lambda x: operator.setitem(x, 0, 1), "setitem_mask": lambda x: operator.setitem(x, x > 2, 1),
    "setitem_slice": lambda x: operator.setitem(x, slice(None), x),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_names_of_operators(name):
    both(lambda t: seen_by(t, OPERATORS[name]))


def test_operators_within_several_modes():
    def fn(t):
        seen = []

        class Mode(t.overrides.TorchFunctionMode):
            def __init__(self, label):
                super().__init__()
                self.label = label

            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append((self.label, func.__name__))
                return func(*args, **(kwargs or {}))

        x = t.ones(3)
        with Mode("outer"), Mode("inner"):
            results = [len(x), (1 - x).sum(), bool(x[0] == 1), float(x[1])]
            x[1] = 2
        return seen, [float(y) if isinstance(y, t.Tensor) else y for y in results], x.tolist()

    both(fn)


def test_operators_may_be_replaced():
    def fn(t):
        class Mode(t.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return {"__rsub__": "mine", "__len__": 7, "__bool__": False, "__getitem__": "row"}[func.__name__]

        x = t.ones(3)
        with Mode():
            return [1 - x, len(x), bool(x), x[0]]

    both(fn)


@pytest.mark.parametrize("name", ["uniform_", "normal_", "constant_", "kaiming_uniform_", "xavier_normal_", "ones_"])
def test_names_of_first_values(name):
    def fn(t):
        seen = []

        class Mode(t.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                if func.__name__ != "_set_grad_enabled":
                    seen.append((func.__name__, len(args), sorted(kwargs or {})))
                return func(*args, **(kwargs or {}))

        x, more = t.empty(2, 3), (0.5,) if name == "constant_" else ()
        with Mode():
            getattr(t.nn.init, name)(x, *more)
            t.nn.Parameter(x)
        return [entry if entry[0] != "uniform_" or entry[1] == 0 else entry[0] for entry in seen]

    both(fn)


def test_names_within_layers():
    def fn(t):
        seen = []

        class Mode(t.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append(func.__name__)
                return func(*args, **(kwargs or {}))

        with Mode():
            t.nn.Linear(2, 3)
        return seen

    both(fn)
