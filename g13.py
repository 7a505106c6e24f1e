import taeda as t


class M(t.nn.Module):
    def forward(self, x):
        y = t.zeros(3, dtype=t.float64, device="cpu")
        y.add_(x)
        z = t.ones(3, device=x.device)
        z[1:].mul_(x[1:])
        w = t.empty(3)
        w.fill_(x[0])
        e = t.eye(3) @ x
        a = t.arange(3, dtype=x.dtype) * x
        l = t.linspace(0, 1, 3)
        f = t.full((3,), 2)
        g = t.zeros(2, 3, requires_grad=False)
        g[0] = x.detach()
        h = t.arange(1, 7, 2)
        s = t.logspace(0, 1, 3)
        return (
            y.float()
            + z
            + w
            + e
            + a
            + l
            + f
            + g.sum(0)
            + h
            + s
            + t.zeros((3,)).to(x).add_(x)
            + t.ones(x.shape) * x
            + t.full([3], 1.5, dtype=t.float16).float()
            + x.data
        )


x = t.arange(3.0) + 1
m = t.jit.trace(M(), (x,), check_trace=False)
m.save("/tmp/atk/tr.pt")
print(m(x), M()(x), m(x + 1), M()(x + 1))
print(m.code)
l = t.jit.load("/tmp/atk/tr.pt")
print(l(x + 1))
