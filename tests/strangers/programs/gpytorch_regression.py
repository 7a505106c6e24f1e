"""GPyTorch: exact, structured and variational Gaussian processes, in float64, where the digits are comparable."""

import gpytorch
import torch
from gpytorch import kernels, means, mlls, variational
from gpytorch.distributions import MultivariateNormal

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
x = torch.linspace(0, 1, 30)
y = torch.sin(6 * x) + 0.1 * torch.randn(30)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, kernel, likelihood):
        super().__init__(x, y, likelihood)
        self.mean, self.kernel = means.ConstantMean(), kernel

    def forward(self, at):
        return MultivariateNormal(self.mean(at), self.kernel(at))


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self):
        points = torch.linspace(0, 1, 8).unsqueeze(-1)
        strategy = variational.VariationalStrategy(self, points, variational.CholeskyVariationalDistribution(8))
        super().__init__(strategy)
        self.mean, self.kernel = means.ConstantMean(), kernels.ScaleKernel(kernels.RBFKernel())

    def forward(self, at):
        return MultivariateNormal(self.mean(at), self.kernel(at))


def train(name, model, likelihood, objective):
    model.train()
    likelihood.train()
    optimizer = torch.optim.Adam([*model.parameters()], lr=0.1)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        predicted = likelihood(model(torch.tensor([0.25, 0.5])))
    print(f"{name}:", *losses, *predicted.mean.tolist(), *predicted.variance.tolist())
    assert losses[-1] < losses[0]


grid = kernels.GridInterpolationKernel(kernels.RBFKernel(), grid_size=16, num_dims=1, grid_bounds=[(0.0, 1.0)])
for name, kernel in (
    ("rbf", kernels.ScaleKernel(kernels.RBFKernel())),
    ("matern", kernels.MaternKernel(nu=1.5) * kernels.PeriodicKernel()),
    ("grid", kernels.ScaleKernel(grid)),
):
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Exact(kernel, likelihood)
    train(name, model, likelihood, mlls.ExactMarginalLogLikelihood(likelihood, model))
likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Variational()
train("variational", model, likelihood, mlls.VariationalELBO(likelihood, model, num_data=30))
