"""CUDA graphs with a CUDA device at hand; ``test_cuda.py`` runs them as it does ``on_device.py``."""

import copy
import gc
import inspect
import threading

import pytest

import taeda
from taeda import cuda, nn

F = nn.functional
pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="there is no CUDA device")


def there(*sizes, seed=0):
    return taeda.randn(*(sizes or (3, 4)), generator=taeda.Generator().manual_seed(seed)).cuda()


def on_another_stream(function):
    with cuda.stream(cuda.Stream()):
        return function()


def captured(function, **options):
    """A graph of the function, and what it gave."""
    with cuda.stream(cuda.Stream()):
        function()  # all kernels are there
    cuda.synchronize()
    made = cuda.CUDAGraph()
    with cuda.graph(made, **options):
        result = function()
    return made, result


def test_a_graph_computes_again_from_the_same_memory():
    x, w = there(5, 4), there(4, 4, seed=1)
    graph, y = captured(lambda: (x @ w).relu().sum(0, keepdim=True) * x)
    for seed in range(3):
        new = there(5, 4, seed=seed)
        x.copy_(new)
        graph.replay()
        assert y.equal((new @ w).relu().sum(0, keepdim=True) * new)
    assert not cuda.is_current_stream_capturing()


def network():
    taeda.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.4), nn.Linear(8, 3)).cuda()


OPTIMISERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9}, "AdamW": {"lr": 0.01}, "Adam": {"lr": 0.01, "amsgrad": True, "capturable": True},
    "NAdam": {"lr": 0.01}, "RAdam": {"lr": 0.01}, "RMSprop": {"lr": 0.01, "momentum": 0.5}, "Adagrad": {"lr_decay": 0.1},
    "ASGD": {"lr": 0.1}, "Rprop": {"lr": 0.01}, "Adadelta": {}, "Adamax": {"lr": 0.01},
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMISERS)
def test_steps_of_training_are_those_of_calls(name):
    """Dropout draws other numbers in each launch, the optimiser counts, statistics move, the learning rate decays."""
    x, target = there(7, 6), taeda.tensor([0, 1, 2, 0, 1, 2, 0]).cuda()
    nets = [network() for _ in range(2)]
    optimisers = [getattr(taeda.optim, name)(net.parameters(), **OPTIMISERS[name]) for net in nets]
    decays = [taeda.optim.lr_scheduler.ExponentialLR(optimiser, 0.5) for optimiser in optimisers]

    def step(net, optimiser):
        optimiser.zero_grad(set_to_none=True)
        loss = ((net(x) - target[:, None]) ** 2).mean()
        loss.backward()
        optimiser.step()
        return loss

    losses = [[], []]
    for k in range(2):  # the same numbers for both
        cuda.manual_seed(11)
        with cuda.stream(cuda.Stream()):
            for _ in range(3):
                step(nets[k], optimisers[k])
        cuda.synchronize()
        if k == 0:
            for _ in range(4):
                losses[0].append(step(nets[0], optimisers[0]).item())
                decays[0].step()
        else:
            graph = cuda.CUDAGraph()
            optimisers[1].zero_grad(set_to_none=True)
            with cuda.graph(graph):
                loss = step(nets[1], optimisers[1])
            for _ in range(4):
                graph.replay()
                losses[1].append(loss.item())
                decays[1].step()
        state = cuda.get_rng_state()
    assert losses[0] == losses[1]
    for a, b in zip(nets[0].state_dict().values(), nets[1].state_dict().values(), strict=True):
        assert a.equal(b)
    for a, b in zip(*(o.state_dict()["state"].values() for o in optimisers), strict=True):
        assert all(a[key] is b[key] is None or taeda.as_tensor(a[key]).equal(taeda.as_tensor(b[key])) for key in a)
    cuda.manual_seed(11)
    assert state.tolist()[:8] == cuda.get_rng_state().tolist()[:8] and state[8] == 4 * 7


def test_memory_that_a_graph_reads_is_kept():
    """A tensor that the graph reads may go; PyTorch's graph would read what is there next."""
    given = [there(300, 4)]
    right, before = (given[0] * 2).cpu(), given[0].data_ptr()
    graph, y = captured(lambda: given[0] * 2)
    given.clear()
    gc.collect()
    others = [taeda.zeros(300, 4, device="cuda") for _ in range(20)]
    assert before not in [t.data_ptr() for t in others]
    graph.replay()
    assert y.cpu().equal(right)
    del graph, y
    gc.collect()
    assert before in [taeda.zeros(300, 4, device="cuda").data_ptr() for _ in range(3)] or cuda.memory_reserved() > 0
    cuda.empty_cache()
    assert cuda.memory_allocated() == sum(t.untyped_storage().nbytes() // 512 * 512 + 512 for t in others)


def test_memory_within_a_capture_is_used_again_and_by_nobody_else():
    x = there(1000)
    before = cuda.memory_reserved()

    def chain():
        y = x
        for _ in range(50):
            y = y + 1
        return y

    graph, y = captured(chain)
    assert cuda.memory_reserved() - before <= 4 << 20
    free = [taeda.zeros(1000, device="cuda") for _ in range(30)]
    graph.replay()
    assert y.equal(chain()) and all(t.eq(0).all() for t in free)
    assert (0, graph.pool()[1]) in {s["segment_pool_id"] for s in cuda.memory_snapshot()}
    assert all(s["segment_pool_id"] == graph.pool() for s in cuda.memory_snapshot(graph.pool()))
    pool = graph.pool()
    graph.reset()
    del y
    cuda.empty_cache()
    assert not cuda.memory_snapshot(pool)


def test_graphs_share_a_pool():
    x, pool = there(100), cuda.graph_pool_handle()
    first, y = captured(lambda: x + 1, pool=pool)
    first.replay()
    second, z = captured(lambda: y * 2, pool=pool)
    assert first.pool() == second.pool() == pool
    first.replay(), second.replay()
    assert z.equal((x + 1) * 2)


def test_a_pool_of_its_own():
    pool = cuda.MemPool()
    with cuda.use_mem_pool(pool):
        x = taeda.ones(1000, device="cuda")
    assert x.data_ptr() in [b["address"] for s in pool.snapshot() for b in s["blocks"]] and pool.use_count() == 1
    del x
    cuda.empty_cache()
    assert pool.snapshot()  # it is the pool's
    with pytest.raises(RuntimeError, match="the pool is of cuda:0"), cuda.use_mem_pool(pool, 1):
        pass
    number = pool.id
    del pool
    cuda.empty_cache()
    assert not cuda.memory_snapshot(number)


def test_streams_fork_and_join_in_a_capture():
    a, b, side = there(50), there(50, seed=1), cuda.Stream()

    def both():
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            y = b.exp()
            y.record_stream(cuda.current_stream())
        x = a.sin()
        cuda.current_stream().wait_stream(side)
        y.record_stream(cuda.current_stream())
        return x + y

    graph, z = captured(both)
    graph.replay()
    cuda.synchronize()
    assert z.equal(a.sin() + b.exp())


@pytest.mark.parametrize("what, error, says", [
    (lambda x: x.sum().item(), RuntimeError, "cannot be captured"),
    (lambda x: x[x > 0], RuntimeError, "cannot be captured"),
    (lambda x: x.copy_(taeda.zeros(3, 4)), RuntimeError, "cannot be captured"),
    (lambda x: taeda.randperm(5, device="cuda"), RuntimeError, "cannot be captured"),
    (lambda x: taeda.linalg.det(x[:, :3]), RuntimeError, "cannot be captured"),
    (lambda x: taeda.rand(2, device="cuda", generator=taeda.Generator("cuda")), RuntimeError, "register_generator_state"),
    (lambda x: on_another_stream(lambda: x + 1), RuntimeError, "not captured"),
    (lambda x: on_another_stream(lambda: taeda.rand(2, device="cuda")), RuntimeError, "not captured"),
    (lambda x: on_another_stream(lambda: taeda.tensor([1.0, 2.0], device="cuda")), RuntimeError, "captured"),
    (lambda x: cuda.manual_seed(1), RuntimeError, "not while a graph is captured"),
    (lambda x: cuda.get_rng_state(), RuntimeError, "not while a graph is captured"),
    (lambda x: cuda.synchronize(), RuntimeError, "CAPTURE_UNSUPPORTED"),
    (lambda x: cuda.CUDAGraph().capture_begin(), RuntimeError, "one capture at a time"),
])  # fmt: skip
def test_what_cannot_be_captured_is_an_error_and_leaves_the_device_well(what, error, says):
    x = there()
    state = cuda.get_rng_state()
    graph = cuda.CUDAGraph()
    with pytest.raises(error, match=says), cuda.graph(graph):
        what(x)
    assert not cuda.is_current_stream_capturing() and cuda.get_rng_state().equal(state)
    assert (x + 1).sub(1).allclose(x) and taeda.rand(2, device="cuda").shape == (2,)
    with cuda.graph(cuda.CUDAGraph()):
        x + 1


# ---- indices ---------------------------------------------------------------------------------------------------------


def test_a_language_model_trains_by_launches_as_by_calls():
    """Embeddings, their gradients and losses check their indices."""
    data = taeda.randint(0, 11, (5, 2, 6), generator=taeda.Generator().manual_seed(4)).cuda()
    losses, nets = [], []
    for graphed in (False, True):
        taeda.manual_seed(2)
        net = nn.Sequential(nn.Embedding(11, 8), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 11)).cuda()
        optimiser = taeda.optim.AdamW(net.parameters(), lr=0.01)
        x, target = data[0].clone(), data[1].clone()

        def step(net=net, optimiser=optimiser, x=x, target=target):
            optimiser.zero_grad(set_to_none=True)
            loss = F.cross_entropy(net(x).flatten(0, 1), target.flatten())
            loss.backward()
            optimiser.step()
            return loss

        with cuda.stream(cuda.Stream()):
            step()
        cuda.synchronize()
        if graphed:
            graph = cuda.CUDAGraph()
            optimiser.zero_grad(set_to_none=True)
            with cuda.graph(graph):
                loss = step()
        found = []
        for k in range(4):
            x.copy_(data[k]), target.copy_(data[k + 1])
            if graphed:
                graph.replay()
            else:
                loss = step()
            found.append(loss.item())
        losses.append(found), nets.append(net)
    assert losses[0] == losses[1] and len(set(losses[0])) == 4
    assert all(a.equal(b) for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True))


BAD = {
    "embedding": (lambda x, i: F.embedding(i, x), IndexError, "an index is out of range"),
    "index": (lambda x, i: x[i], IndexError, "an index is out of range"),
    "gather": (lambda x, i: x.gather(0, i[:, None]), RuntimeError, "an index is out of bounds"),
    "cross_entropy": (lambda x, i: F.cross_entropy(x, i % 5), IndexError, "target 4 is out of bounds"),
    "index_add_": (lambda x, i: x.index_add_(0, i, x * 2), RuntimeError, "an index is out of bounds"),
    "index_put_": (lambda x, i: x.index_put_((i,), x[0] * 2), IndexError, "an index is out of range"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_launch_of_a_graph_finds_an_index_out_of_range(name):
    """The next wait raises, with the line of the capture. Then the graph can be launched again."""
    function, kind, text = BAD[name]
    x, i = there(3, 4), taeda.tensor([2, 0, 1]).cuda()
    before = x.clone()
    graph, y = captured(lambda: function(x, i))
    x.copy_(before)
    graph.replay()
    cuda.synchronize()
    right = function(before.clone(), i)
    assert y.equal(right)
    for wait in (cuda.synchronize, lambda: cuda.current_stream().synchronize(), lambda: x.sum().item()):
        x.copy_(before), i.copy_(taeda.tensor([2, 9, 1]))
        graph.replay()
        graph.replay()
        with pytest.raises(kind, match=text) as found:
            wait()
        message, line = str(found.value), inspect.getsourcelines(function)[1]
        assert message.startswith(f"{name}(): ") and message.endswith(f"called in {__file__}, line {line}")
        cuda.synchronize()
        assert x.equal(before)  # nothing was written
        i.copy_(taeda.tensor([2, 0, 1]))
        graph.replay()
        cuda.synchronize()
        assert y.equal(right)


def test_errors_of_graphs_come_in_their_order_and_outlive_them():
    x, i, j = there(3, 4), taeda.tensor([1]).cuda(), taeda.tensor([1]).cuda()
    first, _ = captured(lambda: x[i])
    second, _ = captured(lambda: x.index_select(0, j))
    i.fill_(7), j.fill_(7)
    second.replay(), first.replay(), second.replay(), x.take(j * 9)
    del second  # its memory is gone
    gc.collect()
    with pytest.raises(IndexError, match=r"index_select\(\): "):
        cuda.synchronize()
    cuda.synchronize()
    first.replay()
    first.reset()
    with pytest.raises(IndexError, match=r"index\(\): "):
        cuda.synchronize()
    x.take(j - 6)
    cuda.synchronize()


def test_a_graph_within_a_graph_finds_an_index_out_of_range():
    x, i = there(3, 4), taeda.tensor([1]).cuda()
    inner, y = captured(lambda: x[i])
    outer = cuda.CUDAGraph()
    with cuda.graph(outer):
        inner.replay()
        z = y + 1
    i.fill_(2)
    outer.replay()
    assert z.equal(x[2:] + 1)
    i.fill_(3)
    outer.replay()
    with pytest.raises(IndexError, match=r"index\(\): "):
        cuda.synchronize()
    cuda.synchronize()


def test_a_graph_within_a_graph_keeps_its_memory():
    x = there(3, 4)
    inner, y = captured(lambda: x.exp().cumsum(0) * 2)
    outer = cuda.CUDAGraph()
    with cuda.graph(outer):
        inner.replay()
        z = y + 1
    del inner, y
    gc.collect()
    others = [taeda.zeros(3, 4, device="cuda") for _ in range(20)]
    outer.replay()
    assert z.equal(x.exp().cumsum(0) * 2 + 1) and not any(o.any() for o in others)


def test_draws_and_steps_are_not_replayed_within_a_capture():
    inner, y = captured(lambda: taeda.rand(4, device="cuda"))
    with pytest.raises(RuntimeError, match="cannot be replayed within a capture"), cuda.graph(cuda.CUDAGraph()):
        inner.replay()
    inner.replay()
    assert 0 <= y.min() <= y.max() < 1


def test_many_checks_of_a_graph_and_many_launches():
    x, i = there(3, 4), taeda.tensor([1]).cuda()
    others = [cuda.CUDAGraph() for _ in range(2)]
    for graph in others:
        with cuda.graph(graph):
            x[i]
    with pytest.raises(ZeroDivisionError), cuda.graph(cuda.CUDAGraph()):
        x[i], 1 / 0
    graph, y = captured(lambda: [x[i] for _ in range(130)] + [x.take(i)])
    graph.replay()
    for _ in range(520):
        others[0].replay(), others[1].replay()
    assert all(t.equal(x[1:2]) for t in y[:-1])
    i.fill_(5)
    graph.replay()
    with pytest.raises(IndexError, match=r"index\(\): "):
        cuda.synchronize()
    cuda.synchronize()


def test_a_generator_is_in_one_capture_at_a_time():
    gc.collect()
    before, found, g = cuda.memory_allocated(), [], cuda.CUDAGraph()

    def another():
        with cuda.stream(cuda.Stream()):
            with pytest.raises(RuntimeError, match="one capture at a time"):
                cuda.CUDAGraph().capture_begin(capture_error_mode="relaxed")
            found.append(cuda.is_current_stream_capturing())

    with cuda.graph(g, capture_error_mode="relaxed"):
        y = taeda.rand(3, device="cuda")
        thread = threading.Thread(target=another)
        thread.start()
        thread.join()
    g.replay()
    assert found == [False] and y.ge(0).all()
    del y, g
    assert cuda.memory_allocated() == before


def test_a_step_without_state_is_an_error():
    net = network()
    optimiser = taeda.optim.AdamW(net.parameters())
    net(there(7, 6)).sum().backward()
    with pytest.raises(RuntimeError, match="AdamW: this step cannot be captured"), cuda.graph(cuda.CUDAGraph()):
        optimiser.step()


def test_an_optimiser_that_changed_is_an_error():
    w = there().requires_grad_()
    optimiser = taeda.optim.AdamW([w])
    w.grad = there(seed=1)
    graph, _ = captured(optimiser.step)
    graph.replay()
    assert optimiser.state[w]["step"] == 2  # the capture itself is no step
    optimiser.load_state_dict(copy.deepcopy(optimiser.state_dict()))
    before = w.detach().clone()
    with pytest.raises(RuntimeError, match="AdamW has changed since it was captured"):
        graph.replay()
    assert w.equal(before)


def test_use_without_a_capture():
    graph = cuda.CUDAGraph()
    for call in (graph.replay, graph.pool, graph.raw_cuda_graph, graph.raw_cuda_graph_exec, graph.capture_end):
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(RuntimeError, match="non-default stream"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match="capture error mode"):
        graph.capture_begin(capture_error_mode="lax")
    x = there()
    graph, _ = captured(lambda: x + 1)
    with pytest.raises(RuntimeError, match="already owns a captured graph"), cuda.graph(graph):
        x + 1
    graph.reset()
    with cuda.graph(graph):
        y = x + 2
    graph.replay()
    assert y.equal(x + 2)


def test_generators_of_their_own():
    g = taeda.Generator("cuda").manual_seed(5)
    graph = cuda.CUDAGraph()
    graph.register_generator_state(g)
    with cuda.graph(graph):
        y = taeda.rand(100, device="cuda", generator=g)
    made = []
    for _ in range(2):
        graph.replay()
        made.append(y.clone())
    again = taeda.Generator("cuda").manual_seed(5)
    assert all(t.equal(taeda.rand(100, device="cuda", generator=again)) for t in made)


def test_a_graph_is_drawn_and_kept(tmp_path):
    x, graph = there(), cuda.CUDAGraph(keep_graph=True)
    with cuda.graph(graph):
        y = x + 1
    assert graph.raw_cuda_graph()
    graph.replay()
    assert graph.raw_cuda_graph_exec() and y.equal(x + 1)
    graph = cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="enable_debug_mode"):
        graph.debug_dump(str(tmp_path / "g.dot"))
    graph.enable_debug_mode()
    with cuda.graph(graph):
        x + 1
    graph.debug_dump(str(tmp_path / "g.dot"))
    assert (tmp_path / "g.dot").read_text().startswith("digraph")


# ---- functions and modules -------------------------------------------------------------------------------------------


def test_a_module_trains_as_without_graphs():
    nets = [nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).cuda() for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    graphed = cuda.make_graphed_callables(nets[1], (there(7, 6),))
    assert graphed is nets[1]
    optimisers = [taeda.optim.SGD(net.parameters(), 0.1) for net in nets]
    for seed in range(3):
        losses = []
        for net, optimiser in zip(nets, optimisers, strict=True):
            x = there(7, 6, seed=seed).requires_grad_(False)
            optimiser.zero_grad()
            loss = (net(x) ** 2).mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        assert losses[0] == losses[1]
    assert nets[1].eval()(there(2, 6)).shape == (2, 3)  # another mode: as it was


def test_functions_in_a_row_with_gradients_of_their_inputs():
    parts = (lambda x: (x.exp(), x.sin()), lambda p: p[0] * p[1])
    x = there().requires_grad_()
    pair = (there(seed=1).requires_grad_(), there(seed=2).requires_grad_())
    first, second = cuda.make_graphed_callables(
        (parts[0], lambda a, b: parts[1]((a, b))), ((x.detach().requires_grad_(),), pair)
    )
    y = second(*first(x))
    y.sum().backward()
    z = x.detach().requires_grad_()
    right = parts[1](parts[0](z))
    right.sum().backward()
    assert y.equal(right) and x.grad.equal(z.grad)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        again = second(*first(x))
        (g,) = taeda.autograd.grad((again**2).sum(), x, create_graph=True)
        g.sum().backward()


def test_callables_that_are_refused():
    net = nn.Linear(4, 4).cuda()
    net.register_forward_hook(lambda *a: None)
    with pytest.raises(AssertionError, match="hooks"):
        cuda.make_graphed_callables(net, (there(),))
    with pytest.raises(AssertionError, match="only tensors"):
        cuda.make_graphed_callables(lambda x, n: x * n, (there(), 2))
    with taeda.autocast("cuda"), pytest.raises(RuntimeError, match="autocast caching"):
        cuda.make_graphed_callables(lambda x: x * 2, (there(),))
