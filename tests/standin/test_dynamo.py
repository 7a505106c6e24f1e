"""``torch._dynamo``, ``torch._inductor`` and ``torch.compiler`` under the stand-in."""

from .test_standin import run


def test_graphs_of_a_backend_are_explained_and_counted():
    out = run(
        """
        import torch, torch._dynamo
        from torch._dynamo.utils import counters

        graphs = []

        @torch._dynamo.register_backend
        def mine(module, inputs):
            graphs.append(module)
            return module.forward

        assert "mine" in torch._dynamo.list_backends() and torch._dynamo.lookup_backend("mine") is mine

        def function(x):
            y = torch.relu(x) + 1
            if y.sum() > 0:
                y = y * 2
            torch._dynamo.graph_break()
            return y.sin()

        compiled = torch.compile(function, backend="mine")
        x = torch.ones(3)
        assert torch.equal(compiled(x), function(x)) and len(graphs) == 3
        assert isinstance(graphs[0], torch.fx.GraphModule) and "torch.relu" in graphs[0].code
        assert counters["stats"]["unique_graphs"] == 3 and sum(counters["graph_break"].values()) == 2
        torch._dynamo.reset()
        assert not counters["stats"]
        compiled(x)
        assert len(graphs) == 6
        found = torch._dynamo.explain(function)(x)
        print(found.graph_count, found.graph_break_count, found.op_count, len(found.break_reasons))
        assert "Graph Count: 3" in str(found) and "Break Reason 2" in str(found)
        assert torch.equal(torch._dynamo.optimize("eager")(function)(x), function(x))
        assert torch.equal(torch._dynamo.run(function)(x), function(x))
        """
    )
    assert out.split() == ["3", "2", "6", "2"]


def test_sizes_that_are_marked_and_settings():
    run(
        """
        import torch, torch._dynamo, torch._inductor.config
        graphs = []
        def backend(module, inputs):
            graphs.append(module)
            return module.forward
        compiled = torch.compile(lambda x: x * 2, backend=backend)
        for n in (2, 3, 4):
            x = torch.ones(n, 3)
            torch._dynamo.mark_dynamic(x, 0)
            compiled(x)
        assert len(graphs) == 1
        before = torch._dynamo.config.cache_size_limit
        with torch._dynamo.config.patch(cache_size_limit=3):
            assert torch._dynamo.config.cache_size_limit == 3
        assert torch._dynamo.config.cache_size_limit == before
        @torch._inductor.config.patch("max_autotune", True)
        def inside():
            return torch._inductor.config.max_autotune
        assert inside() and not torch._inductor.config.max_autotune
        torch._dynamo.config.suppress_errors = True
        assert "max_autotune" in torch._inductor.list_options()
        assert torch._inductor.list_mode_options("reduce-overhead") == {"triton.cudagraphs": True}
        """
    )


def test_results_are_the_same():
    run(
        """
        import torch
        from torch._dynamo.utils import same
        x = torch.ones(3)
        assert same(x, x + 1e-5) and not same(x, x + 1e-2) and same(x, x + 1e-2, tol=0.1)
        assert same([x, {"a": 1}], (x.clone(), {"a": 1})) and not same([x, 1], [x, 2]) and not same([x], [x, x])
        assert not same(x, x.double()) and not same(x, x[:2]) and not same(x, 1) and same(torch.tensor(2), torch.tensor(2))
        nan = x * float("nan")
        assert not same(nan, nan) and same(nan, nan, equal_nan=True)
        """
    )


def test_exceptions():
    run(
        """
        import torch, torch._dynamo
        from torch._dynamo.exc import BackendCompilerFailed, InvalidBackend, TorchDynamoException, Unsupported
        from torch._dynamo.exc import InternalTorchDynamoError
        assert issubclass(InternalTorchDynamoError, TorchDynamoException)
        cases = (
            (InvalidBackend, lambda: torch.compile(len, backend="nothing")),
            (BackendCompilerFailed, lambda: torch.compile(torch.relu, backend=lambda m, i: None)(torch.ones(1))),
            (Unsupported, lambda: torch.compile(lambda x: x.item(), fullgraph=True)(torch.ones(1))),
        )
        for kind, call in cases:
            try:
                call()
            except kind as error:
                assert isinstance(error, TorchDynamoException) and isinstance(error, RuntimeError)
            else:
                raise AssertionError(kind)
        """
    )


def test_backends_count_keep_and_hand_on_their_graphs():
    out = run(
        """
        import logging
        import torch
        import torch._logging
        from torch._dynamo import lookup_backend
        from torch._dynamo.testing import CompileCounter, CompileCounterWithBackend, EagerAndRecordGraphs, same
        from torch._inductor.compile_fx import compile_fx

        def function(x):
            return (x + 1).sin()

        x = torch.ones(4)
        for counter in (CompileCounter(), CompileCounterWithBackend("aot_eager"), EagerAndRecordGraphs()):
            compiled = torch.compile(function, backend=counter)
            assert torch.equal(compiled(x), function(x)) and torch.equal(compiled(x), function(x))
            assert (counter.frame_count, counter.op_count, len(counter.graphs)) == (1, 2, 1)
        assert same([x], [x + 1e-6]) and not same(x, x + 1)
        for name in ("inductor", "eager"):
            assert torch.equal(torch.compile(function, backend=lambda m, i: lookup_backend(name)(m, i))(x), function(x))
        assert torch.equal(torch.compile(function, backend=lambda m, i: compile_fx(m, i))(x), function(x))
        backend = lambda m, i: torch._inductor.compile(m, i, options={"max_autotune": True})
        with torch._inductor.config.patch({"post_grad_custom_pre_pass": lambda graph: None}):
            assert torch.equal(torch.compile(function, backend=backend)(x), function(x))
        torch._logging.set_logs(dynamo=logging.INFO, graph_breaks=True)
        assert logging.getLogger("torch.dynamo").level == logging.INFO
        torch._logging.set_logs()
        assert logging.getLogger("torch.dynamo").level == logging.NOTSET
        try:
            torch._logging.set_logs(dynamo="loud")
        except ValueError as error:
            print("refused", "dynamo" in str(error))
        """
    )
    assert out == "refused True\n"


def test_programs_compiled_ahead_of_time():
    run(
        """
        import torch
        from torch import nn
        from functorch.compile import aot_function, aot_module, make_boxed_func, nop

        f = aot_function(lambda x: nn.functional.dropout(x, 0.5).sin(), nop)
        x = torch.ones(64, requires_grad=True)
        y = f(x)
        y.sum().backward()
        assert 0 < (y != 0).sum() < 64 and torch.equal(y != 0, x.grad != 0)  # one draw for both graphs

        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        x = torch.randn(5, 3)
        graphs = []
        def compiler(graph, inputs):
            graphs.append(graph)
            return make_boxed_func(graph)
        compiled = aot_module(model, compiler)
        compiled(x).square().sum().backward()
        got = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        model(x).square().sum().backward()
        assert len(graphs) == 2 and all(torch.allclose(g, p.grad) for g, p in zip(got, model.parameters()))
        assert model[1].num_batches_tracked == 2

        program = torch.export.export(model.eval(), (x,), dynamic_shapes={"input": {0: torch.export.Dim("b")}})
        path = torch._inductor.aoti_compile_and_package(program)
        loaded = torch._inductor.aoti_load_package(path)
        y = torch.randn(7, 3)
        assert torch.equal(loaded(y), model(y)) and not loaded(y).requires_grad
        loaded.load_constants({"0.bias": torch.zeros(4)}, check_full_update=False)
        assert not torch.equal(loaded(y), model(y))
        """
    )


def test_ops_of_the_users_are_steps_of_a_compiled_program():
    out = run(
        """
        import numpy as np
        import torch

        @torch.library.custom_op("tests::sine", mutates_args=())
        def sine(x: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(np.sin(x.detach().numpy()))

        sine.register_fake(lambda x: torch.empty_like(x))
        sine.register_autograd(
            lambda ctx, g: g * ctx.saved_tensors[0].cos(),
            setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
        )

        @torch.library.custom_op("tests::count_", mutates_args={"x"})
        def count_(x: torch.Tensor) -> None:
            x.add_(1)

        steps = []

        def backend(module, inputs):
            steps.extend(str(node.target) for node in module.graph.nodes if node.op == "call_function")
            return module.forward

        def function(x, n):
            count_(n)
            return sine(x * 2) + n

        for options in ({"backend": backend}, {}):
            x, n = torch.arange(3.0, requires_grad=True), torch.zeros(3)
            y = torch.compile(function, fullgraph=True, **options)(x, n)
            y.sum().backward()
            assert torch.allclose(y, (x * 2).sin() + 1) and torch.equal(n, torch.ones(3))
            assert torch.allclose(x.grad, 2 * (x * 2).cos())
        print([step for step in steps if "tests" in step])
        """
    )
    assert out == "['tests.count_.default', 'tests.sine.default']\n"


def test_what_recipes_take_from_inside_the_compiler():
    run(
        """
        import torch
        from torch._higher_order_ops.foreach_map import foreach_map

        a, b = [torch.ones(2), torch.full((3,), 2.0)], [torch.ones(2), torch.ones(3)]
        first, second = foreach_map(torch.add, a, b)
        assert first.sum() == 4 and second.sum() == 9
        assert [x.sum().item() for x in torch.compile(lambda a: foreach_map(lambda x, n: x * n, a, 3))(a)] == [6, 18]
        assert foreach_map(torch.mul, torch.ones(1), 2).item() == 2
        with torch._inductor.utils.fresh_inductor_cache():
            torch.compile(torch.sin)(torch.ones(2))
        config = torch._C._profiler._ExperimentalConfig(verbose=True)
        with torch.profiler.profile(experimental_config=config) as p:
            torch.ones(2) + 1
        assert p.key_averages()
        """
    )
