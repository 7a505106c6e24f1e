"""Write operations with gradients of their own, check one, and train through the other."""

import taeda
from taeda.autograd import Function


class Softsign(Function):
    """``x / (1 + |x|)``, whose derivative is cheaper from the saved denominator than from the formula."""

    @staticmethod
    def forward(ctx, x):
        denominator = 1 + x.abs()
        ctx.save_for_backward(denominator)
        return x / denominator

    @staticmethod
    def backward(ctx, grad):
        (denominator,) = ctx.saved_tensors
        return grad / (denominator * denominator)


class Round(Function):
    """Rounds, and passes the gradient through as if it had not (Bengio et al. 2013)."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


def main() -> None:
    taeda.manual_seed(0)
    x = taeda.randn(5, dtype=taeda.float64, requires_grad=True)
    (ours,) = taeda.autograd.grad(Softsign.apply(x).sum(), x)
    (theirs,) = taeda.autograd.grad(taeda.nn.functional.softsign(x).sum(), x)
    print("largest difference from the library's softsign gradient:", (ours - theirs).abs().max().item())

    target = taeda.tensor([3.0, -1.0, 4.0])
    w = taeda.zeros(3, requires_grad=True)
    optimizer = taeda.optim.SGD([w], lr=0.1)
    for _ in range(50):
        loss = (Round.apply(w) - target).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("whole numbers found by gradient descent:", w.detach().round().tolist())


if __name__ == "__main__":
    main()
