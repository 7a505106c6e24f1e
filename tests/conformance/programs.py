"""Random programs of views, in-place writes and arithmetic, run step by step on both frameworks."""

from __future__ import annotations

import random
import warnings

import torch

import taeda

from .peer import ours, theirs

#: Steps that PyTorch refuses and taeda does (docs/differences.md): a program ends there.
STRICTER = ("a function that returns multiple views", "some elements of the input tensor and the written-to")


def _view_steps(r: random.Random, x) -> list:
    """Steps that give views of ``x`` (PyTorch's), as functions of (framework, tensor)."""
    n, steps = x.dim(), []
    add = steps.append
    if n:
        d = r.randrange(n)
        size = x.shape[d]
        if size:
            i = r.randrange(-size, size)
            add(("select", lambda f, t: t.select(d, i)))
            start = r.randrange(size)
            length = r.randint(1, size - start)
            add(("narrow", lambda f, t: t.narrow(d, start, length)))
            step = r.randint(1, 2)
            add(("slice", lambda f, t: t[(slice(None),) * d + (slice(start, None, step),)]))
            width, hop = r.randint(1, size), r.randint(1, 2)
            add(("unfold", lambda f, t: t.unfold(d, width, hop)))
            parts, which = r.randint(1, 3), r.random()
            add(("chunk", lambda f, t: (lambda c: c[int(which * len(c))])(t.chunk(parts, d))))
            add(("unbind", lambda f, t: (lambda c: c[int(which * len(c))])(t.unbind(d))))
            add(("split", lambda f, t: t.split(max(1, size // 2), d)[0]))
        order = list(range(n))
        r.shuffle(order)
        add(("permute", lambda f, t: t.permute(order)))
        add(("transpose", lambda f, t: t.transpose(d, 0)))
        add(("flatten", lambda f, t: t.flatten()))
        add(("view", lambda f, t: t.view(-1)))
        add(("squeeze", lambda f, t: t.squeeze()))
        add(("expand", lambda f, t: t.unsqueeze(0).expand(2, *[-1] * n)))
        if n >= 2:
            k = r.randint(-1, 1)
            add(("diagonal", lambda f, t: t.diagonal(k)))
        if x.numel() > 1:
            m = r.randint(1, min(3, x.numel()))
            stride = r.randint(0, 2)
            add(("as_strided", lambda f, t: t.as_strided((m,), (stride,))))
    at = r.randint(0, n)
    add(("unsqueeze", lambda f, t: t.unsqueeze(at)))
    add(("alias", lambda f, t: t.view_as(t)))
    add(("detach", lambda f, t: t.detach()))
    add(("mT", lambda f, t: t.mT))
    if x.is_complex():
        add(("real", lambda f, t: t.real))
        add(("imag", lambda f, t: t.imag))
        add(("conj", lambda f, t: t.conj()))
        add(("mH", lambda f, t: t.mH))
        add(("view_as_real", lambda f, t: f.view_as_real(t)))
    return steps


def _write_steps(r: random.Random, x, pool: list) -> list:
    """In-place steps: functions of (framework, pool, tensor)."""
    steps = []
    add = steps.append
    value = round(r.uniform(-2, 2), 2)
    other = r.randrange(len(pool))
    add(("mul_", lambda f, p, t: t.mul_(value)))
    add(("add_", lambda f, p, t: t.add_(p[other])))
    add(("mul_tensor", lambda f, p, t: t.mul_(p[other])))
    add(("copy_", lambda f, p, t: t.copy_(p[other].clone())))
    add(("zero_", lambda f, p, t: t.zero_()))
    add(("fill_", lambda f, p, t: t.fill_(value)))
    add(("tanh_", lambda f, p, t: t.tanh_()))
    add(("addcmul_", lambda f, p, t: t.addcmul_(p[other], p[other])))
    add(("square", lambda f, p, t: t.mul_(t)))
    add(("masked_fill_", lambda f, p, t: t.masked_fill_(t.detach().abs() > 0.5, value)))
    add(("setitem", lambda f, p, t: t.__setitem__(Ellipsis, value)))
    if x.dim() and x.shape[0]:
        i = r.randrange(x.shape[0])
        add(("setrow", lambda f, p, t: t.__setitem__(i, p[other])))
        index = [r.randrange(x.shape[0]) for _ in range(2)]
        add(("index_put_", lambda f, p, t: t.index_put_((f.tensor(index),), p[other].detach().sum(), accumulate=True)))
        add(("index_fill_", lambda f, p, t: t.index_fill_(0, f.tensor(index), value)))
        add(("index_add_", lambda f, p, t: t.index_add_(0, f.tensor([i]), t.detach()[:1] * 2)))
    return steps


def _arithmetic_steps(r: random.Random, pool: list) -> list:
    a, b = r.randrange(len(pool)), r.randrange(len(pool))
    return [
        ("mul", lambda f, p: p[a] * p[b]),
        ("exp", lambda f, p: (p[a] * 0.1).exp()),
        ("sin", lambda f, p: p[a].sin()),
        ("clone", lambda f, p: p[a].clone()),
        ("sum", lambda f, p: p[a].sum(0) if p[a].dim() else p[a].sum()),
        ("add", lambda f, p: p[a] + p[b]),
    ]


def _attempt(f, function, *args):
    try:
        return function(*args), None
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        return None, error


class Run:
    """One program: pools of PyTorch's and of taeda's tensors, kept in step."""

    def __init__(self, seed: int, steps: int = 12):
        self.r = random.Random(seed)
        self.log: list[str] = []
        self.pools: tuple[list, list] = ([], [])
        self.leaves: list[int] = []
        generator = torch.Generator().manual_seed(seed)
        dtype = torch.complex128 if self.r.random() < 0.25 else torch.float64
        for k in range(2):
            shape = [self.r.randint(1, 3) for _ in range(self.r.randint(1, 3))]
            t = torch.randn(shape, generator=generator, dtype=dtype)
            mine = ours(t.clone())
            if k == 0 or self.r.random() < 0.5:
                t.requires_grad_()
                mine.requires_grad_()
            self._append(t, mine, f"leaf{shape}")
            self.leaves.append(k)
        self.over = False
        for _ in range(steps):
            if not self.over:
                self.step()
        if not self.over:
            self.backward()

    def _append(self, t, mine, name):
        self.pools[0].append(t)
        self.pools[1].append(mine)
        self.log.append(f"{len(self.pools[0]) - 1}: {name}")

    def step(self):
        r, (a, b) = self.r, self.pools
        i = r.randrange(len(a)) if r.random() < 0.4 else len(a) - 1
        kind = r.random()
        no_grad = r.random() < 0.1 and kind >= 0.45  # of views made in no_grad mode see docs/differences.md
        if kind < 0.45:
            name, function = r.choice(_view_steps(r, a[i]))
            args = [(torch, a[i]), (taeda, b[i])]
        elif kind < 0.8:
            name, function = r.choice(_write_steps(r, a[i], a))
            args = [(torch, a, a[i]), (taeda, b, b[i])]
        else:
            name, function = r.choice(_arithmetic_steps(r, a))
            args = [(torch, a), (taeda, b)]
        results = []
        for one in args:
            with one[0].set_grad_enabled(not no_grad):
                results.append(_attempt(one[0], function, *one))
        (want, error), (got, mistake) = results
        if error is not None and mistake is None and any(text in str(error) for text in STRICTER):
            self.over = True
            return
        self.log.append(f"   {name} of {i}{' no_grad' if no_grad else ''} -> {type(error).__name__ if error else 'ok'}")
        if error is not None or mistake is not None:
            assert type(error) is type(mistake) or isinstance(mistake, type(error or 0)), (
                f"PyTorch: {error!r}, taeda: {mistake!r}"
            )
            return
        if (isinstance(want, torch.Tensor) and kind < 0.45) or kind >= 0.8:
            self._append(want, got, name)
        self.check()

    def check(self):
        for k, (t, mine) in enumerate(zip(*self.pools, strict=True)):
            assert tuple(mine.shape) == tuple(t.shape), f"{k}: shape {mine.shape} instead of {t.shape}"
            shown = t.detach().resolve_conj().resolve_neg()
            torch.testing.assert_close(theirs(mine), shown, equal_nan=True, msg=lambda m, k=k: f"{k}: {m}")
            assert mine.is_conj() == t.is_conj() and mine.is_neg() == t.is_neg(), f"{k}: is_conj is {mine.is_conj()}"
            assert mine.requires_grad == t.requires_grad, f"{k}: requires_grad is {mine.requires_grad}"
            (leaf, error), (my_leaf, mistake) = (_attempt(None, lambda x=x: x.is_leaf) for x in (t, mine))
            if error is not None and STRICTER[0] in str(error):
                self.over = True
                return
            assert my_leaf == leaf and type(error) is type(mistake), (
                f"{k}: is_leaf is {my_leaf} ({mistake!r}, {error!r})"
            )
            assert mine._version == t._version, f"{k}: version {mine._version} instead of {t._version}"
            assert mine._is_view() == t._is_view(), f"{k}: _is_view is {mine._is_view()}"
            if t.numel() and t._is_view() and t._base.stride() == mine._base.stride():
                steps, expected = (
                    [step for step, n in zip(x.stride(), x.shape, strict=True) if n > 1] for x in (mine, t)
                )
                assert steps == expected, f"{k}: stride {mine.stride()} instead of {t.stride()}"

    def backward(self):
        found = []
        for f, pool in ((torch, self.pools[0]), (taeda, self.pools[1])):

            def run(f=f, pool=pool):
                total = 0
                for k, t in enumerate(pool):
                    if t.requires_grad:
                        t = f.view_as_real(t.resolve_conj()) if t.is_complex() else t
                        total = total + (t * (k + 1)).sum()
                if isinstance(total, int):
                    return []
                return f.autograd.grad(
                    total, [pool[k] for k in self.leaves if pool[k].requires_grad], allow_unused=True
                )

            found.append(_attempt(f, run))
        (want, error), (got, mistake) = found
        flipped = any(t.is_conj() or t.is_neg() for t in self.pools[0])
        if flipped and mistake is None and "modified by an inplace operation" in str(error):
            return  # an op that read a conjugated view keeps a copy of it here, which was not written to
        if error is not None or mistake is not None:
            assert type(error) is type(mistake), f"backward: PyTorch: {error!r}, taeda: {mistake!r}"
            return
        for k, (w, g) in enumerate(zip(want, got, strict=True)):
            if w is None or g is None:
                rest = w if w is not None else None if g is None else theirs(g)
                assert rest is None or not bool(rest.any()), f"gradient {k}: {g} instead of {w}"
                continue
            torch.testing.assert_close(theirs(g), w, equal_nan=True, msg=lambda m, k=k: f"gradient {k}: {m}")


def check_program(seed: int, steps: int = 12) -> None:
    """Run the program of ``seed``; an AssertionError tells its steps."""
    run = Run.__new__(Run)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run.__init__(seed, steps)  # type: ignore[misc]
        except AssertionError as error:
            raise AssertionError(f"seed {seed}\n" + "\n".join(run.log) + f"\n{error}") from None
