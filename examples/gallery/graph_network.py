"""A graph network finds communities from five labels each (graph convolution, Kipf & Welling 2017).

    python examples/gallery/graph_network.py [--short] [--picture graph_network.png]

Shows: a sparse matrix in a model. Features are so noisy that a node alone says little; its neighbours say more.
Prints: accuracy on nodes without a label, with the graph and without it.
Time: 8 s of one processor, 3 s with --short (AVX-512; imports included).
"""

import argparse

import matplotlib.pyplot as plt

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn

GROUPS, FEATURES = 4, 16


def community_graph(nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Features (nodes, FEATURES), labels (nodes) and normalised adjacency (sparse). Of 11 neighbours 8 are kin."""
    labels = taeda.arange(nodes) % GROUPS
    kin = labels[:, None] == labels
    chance = taeda.where(kin, 32.0 / nodes, 4.0 / nodes)
    edges = (taeda.rand(nodes, nodes) < chance).triu(1)
    adjacency = (edges | edges.T).float() + taeda.eye(nodes)
    scale = adjacency.sum(1).rsqrt()
    normal = scale[:, None] * adjacency * scale
    features = taeda.randn(GROUPS, FEATURES)[labels] * 0.5 + taeda.randn(nodes, FEATURES)
    return features, labels, normal.to_sparse()


class GraphNet(nn.Module):
    """Two layers; between them each node takes a weighted mean over itself and its neighbours."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.inner, self.out = nn.Linear(FEATURES, width), nn.Linear(width, GROUPS)

    def forward(self, x: Tensor, adjacency: Tensor | None) -> Tensor:
        def mix(h: Tensor) -> Tensor:
            return h if adjacency is None else taeda.sparse.mm(adjacency, h)

        hidden = F.dropout(F.relu(mix(self.inner(x))), 0.5, self.training)
        return mix(self.out(hidden))


def fit(x: Tensor, labels: Tensor, adjacency: Tensor | None, known: Tensor, epochs: int) -> Tensor:
    """The groups that a model gives to all nodes, after training on those in ``known``."""
    model = GraphNet()
    optimizer = taeda.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-2)
    for epoch in range(1, epochs + 1):
        loss = F.cross_entropy(model(x, adjacency)[known], labels[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % (epochs // 2) == 0:
            print(f"  epoch {epoch}: loss {loss.item():.3f}")
    model.eval()
    with taeda.no_grad():
        return model(x, adjacency).argmax(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few seconds, for tests")
    parser.add_argument("--picture", default="graph_network.png", help="the file that the picture goes to")
    args = parser.parse_args()
    taeda.manual_seed(0)
    nodes, epochs = (400, 100) if args.short else (2000, 300)
    x, labels, adjacency = community_graph(nodes)
    known = taeda.arange(5 * GROUPS)
    hidden = taeda.arange(5 * GROUPS, nodes)
    accuracy, found = {}, {}
    for name, graph in (("with the graph", adjacency), ("without", None)):
        print(name)
        found[name] = fit(x, labels, graph, known, epochs)
        accuracy[name] = (found[name] == labels)[hidden].float().mean().item()
    # The picture: places by the graph alone, from the eigenvectors after the first.
    _, vectors = taeda.linalg.eigh(adjacency.to_dense())
    fig, axes = plt.subplots(1, 2, figsize=(10, 5))
    for ax, (name, groups) in zip(axes, found.items(), strict=True):
        ax.scatter(*vectors[:, -3:-1].T.numpy(), c=groups.numpy(), s=6, cmap="tab10")
        ax.set_title(f"{name}: {accuracy[name]:.0%} right")
    fig.savefig(args.picture, dpi=120)
    print(f"result: graph {accuracy['with the graph']:.3f} alone {accuracy['without']:.3f}")


if __name__ == "__main__":
    main()
