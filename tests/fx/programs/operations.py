"""Operators, methods, functions, parameters, buffers and constants in one forward."""

# ruff: noqa
import torch, torch.fx as fx, operator
import torch.nn.functional as F


class M(torch.nn.Module):
    def __init__(s):
        super().__init__()
        s.register_buffer("b", torch.ones(3))
        s.w = torch.nn.Parameter(torch.ones(3))
        s.lin = torch.nn.Linear(3, 3)
        s.seq = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())

    def forward(s, x, y=3, *, k: int = 2):
        a = s.b + x
        b = s.w + x
        c = x + s.b
        d = torch.add(s.b, x)
        e = s.b.add(x)
        f = torch.relu(x)
        g = s.b.lt(x)
        h = s.b > x
        i = s.b @ x
        j = 1 + x
        k2 = x + 1
        l = -x
        m = x[0:2, ..., None]
        n = x.shape[0]
        o = x.view(n, -1).T
        p = F.dropout(s.lin(x), 0.3)
        q = s.seq(o)
        r = F.relu(q).sum(dim=-1, keepdim=True)
        s2 = torch.sigmoid(torch.sigmoid(r))
        t = F.max_pool2d(x, 2)
        u = F.linear(x, s.lin.weight)
        v = F.softmax(u, -1)
        x2 = x.clone()
        x2 += 1
        z = torch.cat([x, x2], dim=0)
        w = torch.zeros(3) + x
        f2 = F.gelu(x)
        ln = F.layer_norm(x, (3,))
        bn = F.batch_norm(x, s.b, s.b)
        iv = ~x
        aa = abs(x)
        dd = divmod(x, 2) if False else 0
        return {
            "a": a,
            "l": [b, c, d, e],
            "t": (
                f,
                g,
                h,
                i,
                j,
                k2,
                l,
                m,
                p,
                q,
                r,
                s2,
                t,
                u,
                v,
                z,
                w,
                f2,
                ln,
                bn,
                iv,
                aa,
                y,
                k,
                1.5,
                torch.float32,
                torch.strided,
                slice(1, 2),
                torch.device("cpu"),
                None,
                ...,
            ),
        }


g = fx.symbolic_trace(M())
print(g.code)
print(g.graph)
print(g)
