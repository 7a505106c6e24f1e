"""Smaller namespaces in both frameworks: dual numbers, trees, own ops, hub."""

import functools
import importlib

import pytest

torch = pytest.importorskip("torch")

import taeda  # noqa: E402


def test_dual_numbers():
    def fn(t):
        fw = __import__(f"{t.__name__}.autograd.forward_ad", fromlist=["x"])
        t.manual_seed(0)
        x, d, w = t.randn(3, 4), t.randn(3, 4), t.randn(4, 2)
        with fw.dual_level():
            dual = fw.make_dual(x, d)
            values = [
                fw.unpack_dual(y)
                for y in (dual.sin().mm(w), (dual * dual).sum(), dual.softmax(-1), t.cat([dual, dual]))
            ]
            none = fw.unpack_dual(t.ones(2)).tangent
            kept = fw.unpack_dual(dual).tangent
        outside = fw.unpack_dual(dual).tangent
        return [v.tangent for v in values], none, kept, outside

    want, got = fn(torch), fn(taeda)
    for w, g in zip(want[0], got[0], strict=True):
        torch.testing.assert_close(torch.from_dlpack(g.detach()), w)
    assert got[1] is want[1] is None and got[3] is want[3] is None
    torch.testing.assert_close(torch.from_dlpack(got[2]), want[2])


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_tangent_of_another_dtype(dtype):
    def fn(t):
        fw = __import__(f"{t.__name__}.autograd.forward_ad", fromlist=["x"])
        x, d = t.arange(3.0, dtype=t.float64), t.ones(3, dtype=getattr(t, dtype))
        with fw.dual_level():
            dual = fw.make_dual(x, d)
            assert fw.unpack_dual(dual).tangent is d
            return fw.unpack_dual(dual.exp()).tangent.detach()

    got, want = fn(taeda), fn(torch)
    torch.testing.assert_close(torch.from_dlpack(got), want)


def test_functions_with_a_jvp_alone():
    def fn(t):
        fw = __import__(f"{t.__name__}.autograd.forward_ad", fromlist=["x"])

        class Scaled(t.autograd.Function):
            @staticmethod
            def forward(ctx, x, factor, y):
                ctx.result, ctx.factor = x.exp() * factor * y, factor
                ctx.by_y = x.exp() * factor
                return ctx.result

            @staticmethod
            def jvp(ctx, dx, dfactor, dy):
                assert dfactor is None
                out = ctx.result * dx + ctx.by_y * dy
                del ctx.result, ctx.by_y
                return out

        t.manual_seed(0)
        x, y, d, e = (t.randn(3, dtype=t.float64) for _ in range(4))
        with fw.dual_level():
            dual, other = fw.make_dual(x, d), fw.make_dual(y, e)
            one = fw.unpack_dual(Scaled.apply(dual.sin(), 3.0, y).sum()).tangent
            two = fw.unpack_dual(Scaled.apply(dual, 3.0, other)).tangent
        assert t.autograd.gradcheck(
            lambda x, y: Scaled.apply(x, 2.0, y), (x.requires_grad_(), y), check_forward_ad=True,
            check_backward_ad=False, check_undefined_grad=False, check_batched_grad=False,
        )  # fmt: skip
        with pytest.raises((RuntimeError, NotImplementedError), match="must implement either the backward or vjp"):
            Scaled.apply(x, 2.0, y).sum().backward()
        return [one.detach(), two.detach()]

    for got, want in zip(fn(taeda), fn(torch), strict=True):
        torch.testing.assert_close(torch.from_dlpack(got), want)


def test_dual_numbers_outside_a_level():
    from taeda.autograd import forward_ad

    with pytest.raises(RuntimeError, match="level"):
        forward_ad.make_dual(taeda.ones(1), taeda.ones(1))
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="sizes"):
        forward_ad.make_dual(taeda.ones(1), taeda.ones(2))


def test_trees():
    from collections import OrderedDict, namedtuple

    point = namedtuple("point", "x y")
    tree = {"a": [1, (2, 3)], "b": OrderedDict(c=point(4, None)), "d": 5}

    def fn(t):
        p = __import__(f"{t.__name__}.utils._pytree", fromlist=["x"])
        leaves, spec = p.tree_flatten(tree)
        paths = [p.keystr(path) for path, _ in p.tree_flatten_with_path(tree)[0]]
        with pytest.raises(ValueError):
            p.tree_unflatten([1], spec)
        return (
            leaves,
            paths,
            p.tree_unflatten(leaves, spec),
            p.tree_map(lambda x, y: (x, y), tree, tree),
            p.tree_map(lambda x: x + 1, [t.ones(2, 3).shape]),
            p.tree_flatten(t.Size([1, 2]))[0],
            p.tree_map_only(int, lambda x: x + 1, tree),
            p.SUPPORTED_NODES[dict].flatten_fn({"a": 1})[0],
            spec.num_leaves,
            spec.num_nodes,
            p.tree_any(lambda x: x == 3, tree),
            spec == p.tree_structure(tree),
            p.treespec_dumps(p.tree_structure([1, (2,)])),
            repr(p.MappingKey("a")),
            p.SequenceKey(1) == p.MappingKey(1),
            isinstance(p.GetAttrKey("x"), tuple),
        )

    assert fn(taeda) == fn(torch)


def test_own_ops():
    def fn(t):
        library = __import__(f"{t.__name__}.library", fromlist=["x"])

        def double(x: t.Tensor, n: int = 2) -> t.Tensor:
            return x.detach().clone() * n

        double.__annotations__ = {"x": t.Tensor, "n": int, "return": t.Tensor}
        op = library.custom_op("testlib::double", double, mutates_args=())
        op.register_autograd(
            lambda ctx, g: (g * ctx.n, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "n", inputs[1])
        )
        x = t.ones(2, requires_grad=True)
        op(x, 3).sum().backward()
        apart = library.Library("testlib", "FRAGMENT")
        assert apart.define("third(Tensor x, float by=3) -> Tensor") == "third"
        library.define("testlib::fourth", "(Tensor x) -> Tensor")
        ops = t.ops if t is torch else __import__("taeda.standin.overlay._ops", fromlist=["ops"]).ops
        call = lambda name: getattr(ops.testlib, name)  # noqa: E731
        with pytest.raises(NotImplementedError, match="Could not run 'testlib::third' with arguments from the 'CPU'"):
            call("third")(x)
        apart.impl("third", lambda x, by=3: x / by, "CompositeExplicitAutograd")
        library.impl("testlib::fourth", "cpu", lambda x: x / 4)
        library.impl("testlib::fourth", "cuda", lambda x: x / 5)
        values = call("double")(x, 2), call("third")(x.detach(), 2.0), call("fourth")(x.detach())
        return x.grad.tolist(), op(x).tolist(), [v.tolist() for v in values]

    assert fn(taeda) == fn(torch)


def test_hub_uses_what_is_here(tmp_path):
    (tmp_path / "hubconf.py").write_text("def net(n=2):\n    'A net.'\n    return ['net'] * n\n")
    assert taeda.hub.list(str(tmp_path), source="local") == ["net"]
    assert taeda.hub.load(str(tmp_path), "net", n=3, source="local") == ["net"] * 3
    assert taeda.hub.help(str(tmp_path), "net", source="local") == "A net."
    taeda.save({"w": taeda.ones(2)}, tmp_path / "w.pt")
    assert taeda.hub.load_state_dict_from_url((tmp_path / "w.pt").as_uri())["w"].tolist() == [1.0, 1.0]
    with pytest.raises(NotImplementedError, match="network"):
        taeda.hub.load("someone/something", "net")
    with pytest.raises(NotImplementedError, match="network"):
        taeda.hub.load_state_dict_from_url("https://example.org/w.pt", model_dir=str(tmp_path / "none"))


def test_benchmark_timer():
    from taeda.utils.benchmark import Compare, Timer

    timer = Timer("x + 1", setup="x = taeda.ones(2)", label="add", description="one")
    measured = timer.blocked_autorange(min_run_time=0.01)
    assert measured.median > 0 and "add" in repr(measured) and timer.timeit(10).number_per_run == 10
    assert "one" in str(Compare([measured]))


def test_attention_with_changed_scores():
    from taeda.nn.attention.flex_attention import create_block_mask, flex_attention

    taeda.manual_seed(0)
    q, k, v = (taeda.randn(1, 2, 5, 4) for _ in range(3))
    mask = create_block_mask(lambda b, h, i, j: i >= j, 1, 2, 5, 5)
    want = taeda.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    taeda.testing.assert_close(flex_attention(q, k, v, block_mask=mask), want)
    scaled = flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s * 0)
    taeda.testing.assert_close(scaled, v.mean(2, keepdim=True).expand_as(v))


BLOCK_LISTS = (
    "kv_num_blocks kv_indices full_kv_num_blocks full_kv_indices q_num_blocks q_indices full_q_num_blocks full_q_indices"
).split()


@pytest.mark.parametrize(("lengths", "size"), [((300, 260), 64), ((128, 256), 128), ((40, 50), (8, 16))])
@pytest.mark.parametrize("separate", [True, False])
def test_block_masks(lengths, size, separate):
    def window(b, h, q, k):
        return (q >= k) & (q - k < 100 + 9 * h)

    seen = []
    for f in (torch, taeda):
        flex = importlib.import_module(f"{f.__name__}.nn.attention.flex_attention")
        options = {"BLOCK_SIZE": size, "device": "cpu", "separate_full_blocks": separate}
        mask = flex.create_block_mask(window, None, 2, *lengths, **options)
        given = [getattr(mask, name) for name in BLOCK_LISTS]
        again = flex.BlockMask.from_kv_blocks(*given[:4], BLOCK_SIZE=size, mask_mod=window, seq_lengths=lengths)
        dense = [x if x is None else x.tolist() for x in [*given, again.q_indices, mask.to_dense()]]
        parts = [part.shape for part in (mask, mask[0], mask[:, 1], mask[:, :, :1], mask._adjust(16, 16))]
        seen.append((dense, parts, mask.sparsity(), mask.numel(), mask.seq_lengths, mask.BLOCK_SIZE))
        whole = flex.create_mask(window, 1, 2, *lengths, device="cpu")
        f.manual_seed(0)
        q, k, v = f.randn(1, 2, lengths[0], 8), f.randn(1, 2, lengths[1], 8), f.randn(1, 2, lengths[1], 8)
        want = flex.flex_attention(
            q, k, v, score_mod=lambda s, b, h, i, j, w=whole, f=f: f.where(w[0, h, i, j], s, -1e30)
        )
        rows = whole.any(-1)[0]  # of a query that sees nothing the weights are all equal there, and 0 with a mask
        for m in (mask, again):
            f.testing.assert_close(flex.flex_attention(q, k, v, block_mask=m)[0][rows], want[0][rows])
    assert seen[0] == seen[1]


def test_a_block_mask_shows_only_the_blocks_that_it_lists():
    from taeda.nn.attention.flex_attention import BlockMask, flex_attention

    counts, columns = taeda.tensor([[[1, 0]]]), taeda.tensor([[[[1, 0], [0, 1]]]])
    full = taeda.tensor([[[0, 1]]]), taeda.tensor([[[[0, 1], [0, 1]]]])
    mask = BlockMask.from_kv_blocks(counts, columns, *full, BLOCK_SIZE=2, mask_mod=lambda b, h, q, k: k == 3)
    x = taeda.eye(4)[None, None]
    weights = flex_attention(taeda.zeros_like(x), x, x, block_mask=mask)[0, 0]
    assert weights.tolist() == [[0, 0, 0, 1], [0, 0, 0, 1], [0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0]]


def test_aten_names_ops():
    x = taeda.tensor([-1.0, 2.0])
    for relu in (taeda.ops.aten.relu, taeda.ops.aten.relu.default):
        assert relu(x).tolist() == torch.ops.aten.relu.default(torch.tensor([-1.0, 2.0])).tolist()
    with pytest.raises(AttributeError, match="no_such_op"):
        _ = taeda.ops.aten.no_such_op


def test_tensors_and_storages_over_files_and_buffers(tmp_path):
    def fn(t):
        path = str(tmp_path / t.__name__)
        with open(path, "wb") as file:
            file.write(bytes(range(32)))
        shared = t.from_file(path, True, 4, dtype=t.int32)
        shared.add_(1)
        private = t.from_file(path, size=2, dtype=t.int32)
        private.zero_()
        with pytest.raises(RuntimeError, match="smaller than the required mapping size"):
            t.from_file(path, size=9)
        with pytest.raises(RuntimeError, match="No such file"):
            t.from_file(path + "x", size=1)
        storages = [
            t.IntStorage.from_file(path, False, 3), t.IntStorage.from_buffer(b"abcd1234", byte_order="big"),
            t.ByteStorage.from_buffer(b"abc", count=2, offset=1), t.UntypedStorage.from_buffer(b"ab", dtype=t.int8),
            t.Storage(2).fill_(3),
        ]  # fmt: skip
        with pytest.raises(RuntimeError, match="byte_order"):
            t.FloatStorage.from_buffer(b"abcd")
        return (
            shared.tolist(),
            private.tolist(),
            [s.tolist() for s in storages],
            isinstance(t.ones(1).storage(), t.Storage),
        )

    assert fn(taeda) == fn(torch)
    assert taeda.nn.functional.grad is taeda.nn.grad


def test_options_of_linear_cross_entropy_are_resolved_as_there():
    from dataclasses import astuple
    from itertools import product

    def fn(t):
        for rows, method, policy, dtype, where in product(
            (None, 4),
            (None, "auto", "aspect_ratio", "aspect_ratio:3"),
            ("auto", "compact"),
            ("float32", "bfloat16"),
            (None, "cpu"),
        ):
            options = t.nn.LinearCrossEntropyOptions(batch_chunk_size=rows, chunking_method=method, acc_policy=policy)
            try:
                found = options._adjust(8, 4, 32, getattr(t, dtype), None if where is None else t.device(where))
            except ValueError:
                yield "ValueError"
            else:
                yield [str(value).rpartition(".")[2] for value in astuple(found)]

    assert list(fn(taeda)) == list(fn(torch))


def test_custom_ops_are_shown_by_name():
    shown = [
        t.library.custom_op("shown::twice", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
        for t in (torch, taeda)
    ]
    assert repr(shown[1]) == repr(shown[0]) == "<CustomOpDef(shown::twice)>"


#: Functions of Python there or here, and names that neither calls by.
OTHER_NAMES = frozenset(
    """dsmm spmm symeig sym_sqrt native_channel_shuffle logsigmoid threshold const_data_ptr ndimension nelement""".split()
)


@pytest.mark.parametrize("space", ["", "special", "fft", "linalg", "nn.functional", "Tensor"])
def test_functions_have_the_names_of_theirs(space):
    theirs, ours = (functools.reduce(getattr, filter(None, space.split(".")), root) for root in (torch, taeda))
    different = {}
    for name in dir(theirs):
        a, b = getattr(theirs, name, None), getattr(ours, name, None)
        if name.startswith("_") or name in OTHER_NAMES or isinstance(a, type) or not (callable(a) and callable(b)):
            continue
        if getattr(a, "__name__", None) != getattr(b, "__name__", None):
            different[name] = b.__name__
    assert not different
