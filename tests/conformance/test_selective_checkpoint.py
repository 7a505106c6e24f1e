"""Checkpoints that keep what a policy says: gradients, arithmetic done again, errors."""

import functools

import pytest

torch = pytest.importorskip("torch")

import taeda  # noqa: E402

SAVED = {
    "products": lambda aten: [aten.mm.default, aten.addmm.default],
    "nothing": lambda aten: [],
    "everything": lambda aten: lambda context, op, *args, **kwargs: True,
}


def model(t):
    t.manual_seed(0)  # the same weights in both
    return t.nn.Sequential(t.nn.Linear(4, 8), t.nn.GELU(), t.nn.Linear(8, 4))


def run(t, policy, net, x):
    checkpoint = t.utils.checkpoint
    context = functools.partial(checkpoint.create_selective_checkpoint_contexts, policy(t.ops.aten))
    return checkpoint.checkpoint(net, x, use_reentrant=False, context_fn=context)


@pytest.mark.parametrize("kept", SAVED)
def test_gradients_and_arithmetic(kept):
    def fn(t):
        net = model(t)
        x = t.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
        counter = __import__(f"{t.__name__}.utils.flop_counter", fromlist=["x"]).FlopCounterMode(display=False)
        with counter:
            run(t, SAVED[kept], net, x).square().sum().backward()
        return [x.grad, *(p.grad for p in net.parameters())], counter.get_total_flops()

    (want, flops), (got, counted) = fn(torch), fn(taeda)
    assert counted == flops
    for w, g in zip(want, got, strict=True):
        torch.testing.assert_close(torch.from_dlpack(g), w)


def test_what_the_policy_sees():
    def fn(t):
        seen = []

        def policy(context, op, *args, **kwargs):
            if any(name in str(op) for name in ("mm", "gelu", "convolution", "native_layer_norm", "_softmax")):
                seen.append((str(op), context.is_recompute, tuple(context.op_output[0].shape)))
            return t.utils.checkpoint.CheckpointPolicy.PREFER_RECOMPUTE

        net = t.nn.Sequential(t.nn.Conv1d(2, 2, 1), t.nn.Linear(4, 3), t.nn.GELU(), t.nn.LayerNorm(3), t.nn.Softmax(-1))
        run(
            t, lambda aten: policy, lambda x: net(x)[0] @ t.ones(3, 2), t.ones(1, 2, 4, requires_grad=True)
        ).sum().backward()
        return [(name, again) for name, again, _ in seen]

    assert fn(taeda) == fn(torch)


def test_errors():
    def fn(t):
        checkpoint, errors = t.utils.checkpoint, []
        x = t.ones(3, requires_grad=True)
        for bad in ([t.ops.aten.mm], 3):
            with pytest.raises((ValueError, TypeError)) as error:
                checkpoint.create_selective_checkpoint_contexts(bad)
            errors.append(error.type)
        y = run(t, SAVED["everything"], lambda x: x.sin().exp(), x).sum()
        y.backward(retain_graph=True)
        with pytest.raises(RuntimeError, match="backward an extra time"):
            y.backward()

        def writes(x):
            y = x.sin()
            z = y.exp()
            with t.no_grad():
                y.add_(1)
            return z

        with pytest.raises(RuntimeError, match="has been mutated"):
            run(t, SAVED["everything"], writes, x).sum().backward()
        return errors

    assert fn(taeda) == fn(torch)


def test_kept_random_numbers_leave_the_others_as_they_were():
    def grad(checkpointed):
        taeda.manual_seed(0)
        x = taeda.ones(64, requires_grad=True)

        def twice(x):
            return taeda.nn.functional.dropout(taeda.nn.functional.dropout(x, 0.5).exp(), 0.5)

        kept = []

        def policy(aten):
            return lambda context, op, *args, **kwargs: (kept.append(op), len(kept) == 1)[1]  # the first dropout alone

        (run(taeda, policy, twice, x) if checkpointed else twice(x)).sum().backward()
        return x.grad

    assert taeda.equal(grad(True), grad(False))
