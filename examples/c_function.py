"""From a function in C to a trained model: the activation of a small network, with its derivative, both in C."""

import taeda
from taeda import nn
from taeda.utils.cpp_extension import load_inline

SOURCE = """
#include <math.h>
#include <stdint.h>
void softabs(const float *x, float *y, int64_t n) { for (int64_t i = 0; i < n; i++) y[i] = sqrtf(1 + x[i] * x[i]) - 1; }
void softabs_back(const float *g, const float *x, float *gx, int64_t n) {
    for (int64_t i = 0; i < n; i++) gx[i] = g[i] * x[i] / sqrtf(1 + x[i] * x[i]);
}
"""

own = load_inline("own", c_sources=SOURCE, extra_ldflags=["-lm"])
own.softabs.register_autograd(
    lambda ctx, g: own.softabs_back(g.contiguous(), *ctx.saved_tensors),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)
taeda.manual_seed(0)
x = taeda.linspace(-2, 2, 256).unsqueeze(1)
first, second = nn.Linear(1, 32), nn.Linear(32, 1)
optimizer = taeda.optim.Adam([*first.parameters(), *second.parameters()], lr=2e-2)
for _ in range(500):
    loss = nn.functional.mse_loss(second(own.softabs(first(x))), taeda.sin(2 * x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"mean squared error: {loss.item():.4f}")
