"""PyG: four convolutions on random graphs, batches of graphs from a loader, a heterogeneous graph, transforms."""

import torch
from torch.nn import functional as F
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.nn import (
    GATv2Conv,
    GCNConv,
    GINConv,
    HeteroConv,
    SAGEConv,
    TopKPooling,
    TransformerConv,
    global_mean_pool,
    to_hetero,
)  # fmt: skip
from torch_geometric.transforms import AddSelfLoops, Compose, ToSparseTensor, ToUndirected
from torch_geometric.utils import (
    add_self_loops,
    degree,
    remove_self_loops,
    scatter,
    softmax,
    to_dense_adj,
    to_undirected,
)

torch.manual_seed(0)
x = torch.randn(20, 8)
edges = to_undirected(remove_self_loops(torch.randint(0, 20, (2, 40)))[0])
labels = torch.arange(20) % 3


def train(name, model, forward, target):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(6):
        loss = F.cross_entropy(forward(), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"{name}:", *losses)
    assert losses[-1] < losses[0]


class Net(torch.nn.Module):
    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def mlp(a, b):
    return torch.nn.Sequential(torch.nn.Linear(a, b), torch.nn.ReLU(), torch.nn.Linear(b, b))


for name, first, second in (
    ("gcn", GCNConv(8, 16), GCNConv(16, 3)),
    ("sage", SAGEConv(8, 16), SAGEConv(16, 3)),
    ("gat", GATv2Conv(8, 8, heads=2), GATv2Conv(16, 3)),
    ("gin", GINConv(mlp(8, 16)), GINConv(mlp(16, 3))),
    ("transformer", TransformerConv(8, 8, heads=2), TransformerConv(16, 3)),
):
    net = Net(first, second)
    train(name, net, lambda net=net: net(x, edges), labels)

net = Net(GCNConv(8, 16), GCNConv(16, 3))
sparse = ToSparseTensor(layout=torch.sparse_csr)(Data(x=x, edge_index=edges))
dense, by_matrix = net(x, edges), net(x, sparse.adj_t)
torch.testing.assert_close(dense, by_matrix, rtol=1e-4, atol=1e-5)

graphs = [
    Data(x=torch.randn(n, 8), edge_index=torch.randint(0, n, (2, 2 * n)), y=torch.tensor([n % 2])) for n in range(4, 12)
]
loader = DataLoader([Compose([ToUndirected(), AddSelfLoops()])(graph) for graph in graphs], batch_size=8)
batch = next(iter(loader))
convolution, pool, last = GCNConv(8, 16), TopKPooling(16, 0.5), torch.nn.Linear(16, 2)


def classify():
    h = convolution(batch.x, batch.edge_index).relu()
    h, _, _, index, _, _ = pool(h, batch.edge_index, batch=batch.batch)
    return last(global_mean_pool(h, index))


train("pooled", torch.nn.ModuleList([convolution, pool, last]), classify, batch.y)

data = HeteroData()
data["user"].x, data["item"].x = torch.randn(5, 4), torch.randn(6, 4)
data["user", "buys", "item"].edge_index = torch.stack([torch.randint(0, 5, (12,)), torch.randint(0, 6, (12,))])
data["item", "sold", "user"].edge_index = data["user", "buys", "item"].edge_index.flip(0)
hetero = HeteroConv({kind: SAGEConv((4, 4), 3) for kind in data.edge_types})
train("hetero", hetero, lambda: hetero(data.x_dict, data.edge_index_dict)["user"], torch.arange(5) % 3)


# traced by parts of fx that are private
by_kind = to_hetero(Net(SAGEConv((-1, -1), 8), SAGEConv((-1, -1), 3)), data.metadata())
by_kind(data.x_dict, data.edge_index_dict)
train("traced", by_kind, lambda: by_kind(data.x_dict, data.edge_index_dict)["user"], torch.arange(5) % 3)

print("degree:", *degree(edges[0], 20).tolist())
print("scatter:", *scatter(x[edges[0]], edges[1], dim_size=20, reduce="max").sum(1).tolist())
print("softmax:", softmax(x[edges[0], 0], edges[1]).sum().item(), to_dense_adj(add_self_loops(edges)[0]).sum().item())
