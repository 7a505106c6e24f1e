"""``gradcheck`` and ``gradgradcheck``: right derivatives pass, each kind of wrong one is found."""

import pytest

import taeda
from taeda import nn
from taeda.autograd import Function, GradcheckError, gradcheck, gradgradcheck


def leaf(*values, dtype=taeda.float64):
    return taeda.tensor(values, dtype=dtype, requires_grad=True)


def function(forward, backward):
    class Made(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, *grads):
            return backward(*ctx.saved_tensors, *grads)

    return Made.apply


RIGHT = [
    (lambda x: x.exp() * x.sum(), (leaf(0.5, -1.0),)),
    (
        lambda x, w: x @ w,
        (
            taeda.randn(2, 3, dtype=taeda.float64, requires_grad=True),
            taeda.randn(3, 2, dtype=taeda.float64, requires_grad=True),
        ),
    ),
    (lambda x: (x * 2, x.sum() ** 3), (leaf(0.5, 2.0),)),
    (lambda z: z.abs(), (taeda.tensor([1 + 2j, -0.5j], dtype=taeda.complex128, requires_grad=True),)),
    (lambda z: z * z.conj(), (taeda.tensor([1 + 2j, -0.5j], dtype=taeda.complex128, requires_grad=True),)),
    (lambda x, n, text: x**n, (leaf(0.5, 2.0), 3, "text")),
    (lambda xs: xs[0] * xs[1], ([leaf(2.0), leaf(3.0)],)),
]


@pytest.mark.parametrize("case", range(len(RIGHT)))
def test_right_derivatives_pass(case):
    f, inputs = RIGHT[case]
    assert gradcheck(f, inputs)
    assert gradcheck(f, inputs, fast_mode=True, check_batched_grad=True, check_forward_ad=True, check_grad_dtypes=True)


def test_second_derivatives_pass():
    for f, inputs in RIGHT[:5]:
        assert gradgradcheck(f, inputs)
    assert gradgradcheck(lambda x: x.sin(), leaf(1.0, 2.0), gen_non_contig_grad_outputs=True, check_fwd_over_rev=True)
    assert gradgradcheck(lambda x: x.sin(), leaf(1.0, 2.0), [leaf(1.0, 0.5)], fast_mode=True)


@pytest.mark.parametrize("fast", [False, True])
def test_a_wrong_factor_is_found(fast):
    wrong = function(lambda x: x * x, lambda x, g: x * g)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(wrong, (leaf(1.0, 2.0),), fast_mode=fast)
    assert gradcheck(wrong, (leaf(1.0, 2.0),), fast_mode=fast, raise_exception=False) is False


def test_a_wrong_second_derivative_is_found():
    wrong = function(lambda x: x**3, lambda x, g: 3 * x.detach() ** 2 * g)
    assert gradcheck(wrong, (leaf(1.0, 2.0),))
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradgradcheck(wrong, (leaf(1.0, 2.0),))


def test_a_gradient_for_a_constant_is_found():
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, (leaf(1.0),))
    assert gradcheck(lambda x: taeda.ones(2), (leaf(1.0),))


def test_a_gradient_that_ignores_its_own_gradient_is_found():
    wrong = function(lambda x: x * 2, lambda x, g: taeda.full_like(x, 2.0))
    with pytest.raises(GradcheckError, match="not multiplied by grad_output"):
        gradcheck(wrong, (leaf(1.0),))


def test_chance_in_backward_is_found():
    wrong = function(lambda x: x * 2, lambda x, g: g * 2 + taeda.rand(1, dtype=taeda.float64) * 1e-7)
    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(wrong, (leaf(1.0),))
    assert gradcheck(
        function(lambda x: x * 2, lambda x, g: g * (2 + taeda.rand(1, dtype=taeda.float64) * 1e-7)),
        (leaf(1.0),),
        nondet_tol=1e-6,
    )


def test_undefined_gradients_that_are_not_handled_are_found():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            return g * 2 + h * 3

    with pytest.raises(GradcheckError, match="undefined output grads"):
        gradcheck(Two.apply, (leaf(1.0),))
    assert gradcheck(Two.apply, (leaf(1.0),), check_undefined_grad=False)


def test_inputs_are_checked():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, (taeda.ones(2),))
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(lambda x: x * 2, (leaf(1.0, dtype=taeda.float32),), eps=1e-2, atol=1e-2)
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(lambda x: x * 2, (taeda.ones(1, dtype=taeda.float64).expand(3).requires_grad_(),))
    with pytest.raises(AssertionError):
        gradcheck(lambda x: x * 2, (leaf(1.0),), check_backward_ad=False)


def test_inputs_keep_their_values():
    x = leaf(1.0, 2.0)
    gradcheck(lambda x: x.exp(), (x,))
    assert x.tolist() == [1.0, 2.0]
    assert x.grad is None


def test_it_works_where_recording_is_off():
    with taeda.no_grad():
        assert gradcheck(lambda x: x.exp(), (leaf(1.0),))
        assert not taeda.is_grad_enabled()


def test_the_function_gets_the_very_inputs():
    """A parameter stays one: a module registers it, and the first derivative is asked for by walking the parameters."""

    def by_module(w):
        module = nn.Module()
        module.w = w
        (given,) = module.parameters()
        return given.sin()

    w = nn.Parameter(taeda.rand(3, dtype=taeda.float64))
    assert gradcheck(by_module, (w,)) and gradgradcheck(by_module, (w,))


COMPLEX = (
    "abs acos acosh angle asin asinh atan atanh conj conj_physical cos cosh cumprod cumsum exp exp2 expm1 imag log log10 "
    "log1p log2 logcumsumexp neg prod real reciprocal rsqrt sgn sigmoid sin sinc sinh sqrt square std tan tanh var"
).split()


@pytest.mark.parametrize("name", [*COMPLEX, "silu"])
def test_second_derivatives_and_forward_mode_of_complex_functions(name):
    function = nn.functional.silu if name == "silu" else getattr(taeda, name)
    arguments = (0,) if name.startswith(("cum", "logcum")) else ()
    x = leaf(0.3 + 0.2j, 0.9 - 0.5j, -0.4 + 0.8j, dtype=taeda.complex128)
    assert gradcheck(lambda x: function(x, *arguments), (x,), check_forward_ad=True)
    assert gradgradcheck(lambda x: function(x, *arguments), (x,))


@pytest.mark.parametrize("fast_mode", [False, True])
def test_what_changes_from_call_to_call(fast_mode):
    class Noisy(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g * (1 + 1e-6 * taeda.rand_like(g))

    x = taeda.ones(3, dtype=taeda.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="not reentrant"):
        gradcheck(Noisy.apply, (x,), fast_mode=fast_mode)
    assert gradcheck(Noisy.apply, (x,), fast_mode=fast_mode, nondet_tol=1e-5)
    for what, change in (("shape", lambda x: taeda.cat([x, x])), ("dtype", lambda x: x.float())):
        with pytest.raises(AssertionError, match=f"same {what}"):
            gradcheck(lambda x, change=change: change(x) if (x >= 1).all() else x, (x,), fast_mode=fast_mode)
