"""``testing``: assert_close says in the same words what differs and where; make_tensor makes the same numbers."""

import collections
import re
import warnings

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

CALLS = """
ac(T([1.,2,3]),T([1.,2,4]))
ac(T([1.,2,3]),T([1.,2,4]),rtol=0,atol=0)
ac(T([1,2,3]),T([1,2,4]))
ac(T([1,2,3]),T([1,2,4]),rtol=0.1,atol=0)
ac(T(1.),T(2.))
ac(T(1),T(2))
ac(1.,2.)
ac(1,2)
ac(1,2.)
ac(1.,2.,rtol=0,atol=0)
ac(True,False)
ac(1j,2j)
ac(None,None)
ac(None,1)
ac('a','b')
ac('a','a')
ac(T(1.),1.)
ac(1.,T(1.))
ac(np.array([1.]),np.array([2.]))
ac(T([1.]),np.array([1.]))
ac(np.float32(1),np.float32(2))
ac(np.float32(1),2.0)
ac([1,2],[1,2,3])
ac([1,[2,3]],[1,[2,4]])
ac({'a':T([1.])},{'a':T([2.])})
ac({'a':1},{'b':1})
ac([T([1.])],(T([1.]),))
ac([T([1.])],T([[1.]]))
ac({'a':[1,{'b':2}]},{'a':[1,{'b':3}]})
ac(T([1.,2]),T([1.]))
ac(T([1.]),T([1.],dtype=torch.float64))
ac(T([1.]),T([1.],dtype=torch.float64),check_dtype=False)
ac(T([float('nan')]),T([float('nan')]))
ac(T([float('nan')]),T([float('nan')]),equal_nan=True)
ac(float('nan'),float('nan'))
ac(float('inf'),float('inf'))
ac(torch.zeros(2,3).t(),torch.zeros(3,2),check_stride=True)
ac(T([1.]),T([2.]),msg='hello')
ac(T([1.]),T([2.]),msg=lambda m: 'X\n'+m)
ac(T([1.]),T([2.]),rtol=1)
ac(T([1.]),T([2.]),atol=1)
ac(T([float('inf'),1]),T([1.,float('inf')]))
ac(T([float('inf'),1]),T([-float('inf'),1.]))
ac(T([True,False]),T([True,True]))
ac(T([1+1j]),T([1+2j]))
ac(T([0,255],dtype=torch.uint8),T([255,0],dtype=torch.uint8))
ac(torch.empty(0),torch.empty(0))
ac(T([0.,1]),T([1.,0]))
ac(torch.nn.Parameter(T([1.])),T([1.]))
ac(torch.nn.Parameter(T([1.])),T([1.]),allow_subclasses=False)
ac(torch.randn(10,10,generator=torch.Generator().manual_seed(0)),torch.zeros(10,10))
ac({1,2},{1,2})
ac(object(),object())
ac([1,'a'],[1,'b'])
ac(T([1,2]),[1,2])
ac(T([1.,5.]).to(torch.bfloat16),T([1.,6.]).to(torch.bfloat16))
ac(T([1.,5.]).half(),T([1.,6.]).double(),check_dtype=False)
ac(collections.OrderedDict(a=1),{'a':1})
ac(T([1,2],dtype=torch.int32),T([1,2],dtype=torch.int64))
ac(T([1,2],dtype=torch.int32),T([1,2],dtype=torch.int64),check_dtype=False)
ac([1,2],[3,4])
ac(T([[1.,2],[3,4]]),T([[1.,2],[3,5]]),rtol=1e-3,atol=1e-2)
ac(T([1],dtype=torch.int64),T([2**60+1]))
ac(2**70,2**70+1)
ac(range(3),range(3))
ac((1,),[1])
ac(bytes(b'a'),bytes(b'a'))
ac(T([]),T([[]]))
ac(T([1.,2], requires_grad=True),T([1.,2]))
"""


def evaluate(call, framework):
    names = {"torch": framework, "T": framework.tensor, "np": np, "collections": collections}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(eval(call, {**names, "ac": framework.testing.assert_close}))
        except Exception as error:
            return f"{type(error).__name__}: {error}".replace("taeda", "torch")


@pytest.mark.parametrize("call", CALLS.strip().split("\n"))
def test_assert_close(call):
    assert evaluate(call, taeda) == evaluate(call, torch)


def test_bool_and_int_differ_in_type():
    with pytest.raises(AssertionError, match="types do not match"):
        taeda.testing.assert_close(True, 1)


def test_keys_that_have_no_order():
    with pytest.raises(AssertionError, match=re.escape("Missing keys in the actual mapping: ['b']")):
        taeda.testing.assert_close({"a": 1, 1: 2}, {"b": 1, 1: 2})


def test_negative_tolerance():
    with pytest.raises(RuntimeError, match="must not be negative"):
        taeda.testing.assert_close(1.0, 1.0, rtol=0, atol=-1)


DTYPES = "float32 float64 float16 bfloat16 complex64 complex128 int64 int32 int16 int8 uint8 bool".split()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"low": 1, "high": 2},
        {"noncontiguous": True},
        {"exclude_zero": True},
        {"low": 0},
        {"low": -300, "high": 1000},
        {"low": 5, "high": 1},
        {"low": float("nan")},
        {"low": 1e300, "high": float("inf")},
        {"requires_grad": True},
        {"memory_format": "channels_last"},
    ],
    ids=str,
)
def test_make_tensor(dtype, options):
    found = []
    for framework in (torch, taeda):
        framework.manual_seed(1)
        named = dict(options)
        if "memory_format" in named:
            named["memory_format"] = getattr(framework, named["memory_format"])
        try:
            made = framework.testing.make_tensor((3, 4, 2, 5), dtype=getattr(framework, dtype), device="cpu", **named)
        except Exception as error:
            found.append(type(error))
            continue
        found.append((made.stride(), made.requires_grad, made._is_view(), made.detach().tolist()))
    assert found[0] == found[1]
