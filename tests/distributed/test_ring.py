"""Attention of a sequence that is cut over processes, against attention of the whole."""

from .launch import outputs


def test_ring_attention():
    code = """
    import taeda.nn.functional as F
    from taeda.distributed.device_mesh import init_device_mesh
    from taeda.distributed.tensor.experimental import context_parallel, context_parallel_unshard
    n = dist.get_world_size()
    mesh = init_device_mesh("cpu", (n,))
    for dtype, tolerance in ((taeda.float32, 1e-5), (taeda.bfloat16, 5e-2)):
        for causal in (False, True):
            taeda.manual_seed(0)
            given = [taeda.randn(2, 3, 12, 8).to(dtype) for _ in range(4)]
            q, k, v, w = (t.clone().requires_grad_() for t in given)
            expected = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            (expected * w.detach()).sum().backward()
            wholes = [t.clone() for t in given]
            with context_parallel(mesh, buffers=wholes, buffer_seq_dims=[2] * 4):
                a, b, c = (t.clone().requires_grad_() for t in wholes[:3])
                assert a.shape == (2, 3, 12 // n, 8)
                made = F.scaled_dot_product_attention(a, b, c, is_causal=causal)
                (made * wholes[3]).sum().backward()
            assert wholes[0].equal(given[0])
            found = context_parallel_unshard(mesh, [made, a.grad, b.grad, c.grad], [2] * 4)
            for x, y in zip(found, (expected, q.grad, k.grad, v.grad)):
                assert taeda.allclose(x.float(), y.float(), atol=tolerance), (causal, (x - y).abs().max())
    """
    for world in (2, 3):
        outputs(code, world)
