"""Tensors among NumPy's arrays, Python's numbers and lists: each expression gives the same text in both frameworks."""

import math
import re
import warnings

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

EXPRESSIONS = """
np.add(t,t)
np.add(a,t)
np.add(t,a)
t+a
ti*a
np.float32(2)*t
t*np.float32(2)
np.float64(2)*ti
ti*np.float64(2)
ti*np.int8(2)
ti//np.int8(2)
ti%np.uint8(200)
np.int64(2)+t
t+np.array(2.)
ti+np.array(2.)
ti+np.array(2,dtype=np.int8)
ti.to(torch.int8)+np.int64(3)
ti.to(torch.int8)+np.array([3])
t.double()+np.float32(1)
t==a
a==t
a[torch.tensor([0,1])]
a[torch.tensor(1)]
a[t>1]
t[a>1]
t[np.array([0,1])]
t[np.int64(1)]
t[np.array(1)]
np.sin(t)
np.max(t)
np.std(t)
np.asarray(g)
np.array(g)
np.asarray(b)
np.asarray(t, dtype=np.float64)
np.array(t,dtype=int,copy=False)
np.concatenate([t,t])
np.stack([t,t])
np.where(t>1,t,0)
np.dot(t,t)
t@a
np.linalg.norm(t)
np.array([t,t])
np.array([torch.tensor(1.),torch.tensor(2.)])
np.float64(torch.tensor(2.))
math.sin(torch.tensor(1.)), math.floor(torch.tensor(1.5)), math.ceil(torch.tensor(1.5))
math.floor(torch.tensor(1.5))
math.ceil(torch.tensor(1.5))
math.trunc(torch.tensor(1.5))
round(torch.tensor(1.5))
divmod(torch.tensor(7),torch.tensor(2))
divmod(7,torch.tensor(2))
torch.tensor(np.float32(1)), torch.tensor(np.float64(1)), torch.tensor(np.int8(1)), torch.tensor(np.bool_(True)), torch.tensor(np.complex64(1)), torch.tensor(np.float16(1))
torch.tensor([np.float32(1),2]), torch.tensor([np.float64(1)]), torch.tensor([np.int8(1)]), torch.tensor([np.array([1.,2]),np.array([3,4.])]), torch.tensor([np.array([1,2],dtype=np.int32)])
torch.as_tensor(np.float64(2)), torch.as_tensor(np.array(2,dtype=np.int16)), torch.as_tensor([np.float64(3)])
torch.from_numpy(np.float64(2))
torch.from_numpy(np.array(['a']))
torch.from_numpy(np.array([1],dtype='>i4'))
torch.from_numpy(np.array([1],dtype=np.uint16)), torch.from_numpy(np.array([1],dtype=np.uint64))
torch.from_numpy(np.array([True])), torch.from_numpy(np.zeros((0,3))), torch.from_numpy(np.array(3.))
torch.tensor(np.array([1,'a'],dtype=object))
torch.full((2,),np.float32(3)), torch.full((2,),np.int64(3)), torch.full((2,), np.float64(2))
torch.zeros(np.int64(2),3), torch.zeros((np.int32(2),)), torch.arange(np.float64(3)), torch.arange(np.int64(3)), torch.linspace(np.float32(0),1,3)
torch.zeros(np.int64(2),3)
torch.zeros(np.int64(2))
torch.arange(np.float64(3)), torch.arange(np.int64(3))
torch.linspace(np.float32(0),1,3)
torch.ones(torch.tensor(2))
t.sum(np.int64(0))
t.reshape(np.int64(3),1).shape
t.view((np.int64(3),1)).shape
t.expand(np.int64(2),-1).shape
t.repeat(np.int64(2)).shape
t.add(np.float64(1)), torch.add(t,np.float64(1))
torch.clamp(t,np.float64(1.5)), torch.pow(t,np.int64(2))
torch.where(t>1,t,np.float64(0))
torch.add(t,1,alpha=np.float64(2))
t.clone().fill_(np.float32(2)), t.masked_fill(t>1,np.float64(7))
S(np.array([0,2]), 7.)
S(np.array([True,False,True]), 7.)
float(torch.tensor(2)), int(torch.tensor(2.7)), complex(torch.tensor(2.)), bool(torch.tensor(0.)), complex(torch.tensor(1+2j))
float(torch.tensor(1+2j))
int(torch.tensor(1+0j))
int(torch.tensor([[2]]))
float(torch.tensor([1.,2.]))
int(torch.tensor([]))
torch.tensor([1,2]).item()
bool(torch.tensor([1,2]))
int(torch.tensor(float('nan')))
int(torch.tensor(float('inf')))
[1,2,3][torch.tensor(1)], range(10)[torch.tensor(3):torch.tensor(5)], 'abc'[torch.tensor([1])]
[1,2][torch.tensor(1.)]
[1,2][torch.tensor(True)]
hex(torch.tensor(255)), bin(torch.tensor(5))
'%d'%torch.tensor(3), '%.2f'%torch.tensor(3.14159), '%s'%torch.tensor(3)
f"{torch.tensor(3.14159):.2f}", f"{torch.tensor(3):5d}", f"{torch.tensor(True)}"
f"{torch.tensor([1.5]):.2f}"
list(range(torch.tensor(3)))
np.arange(torch.tensor(3)), np.zeros(torch.tensor(3)), np.zeros((torch.tensor(2),torch.tensor(2))).shape
np.random.default_rng(0).integers(torch.tensor(10))
t.__array_priority__
t.__array_wrap__(np.array([1.]))
t.__array__(), t.__array__(np.float64), t.__array__(dtype=np.int32)
np.exp(t,out=np.zeros(3)), np.matmul(t.reshape(1,3),t), np.add.reduce(t), np.add.outer(t,t)
np.allclose(t,a), np.array_equal(t,t), np.testing.assert_allclose(t,t), np.unique(ti), np.sort(t), np.argmax(t), np.shape(t), np.ndim(t)
np.clip(t,1,2)
np.squeeze(t)
np.transpose(torch.ones(2,3))
np.cumsum(t), np.reshape(t,(1,3)), np.round(t)
sum(t), sum([t,t]), max(t), min(t), sorted(t), list(t), abs(t), 2 in t, any(t>1), all(t>5), len(t), -t, ~ti, +t
t+None
t+'a'
'a'+t
t+[1]
[1]+t
t==None, t!='a', t==[1]
t<None
t.numpy(force=True), g.numpy(force=True), g.detach().numpy()
g.numpy()
b.numpy()
t.conj().numpy()
torch.tensor(np.array([1,2],dtype=np.uint16)), torch.tensor(np.datetime64('2020'))
np.vstack((t,t)), np.hstack([t,t]), np.r_[t,t]
np.multiply(t, np.float32(2)), np.power(t,2), np.negative(t)
np.divmod(ti,2)
np.modf(t)
a.dot(t)
isinstance(t.tolist()[0],float), ti.tolist(), torch.tensor(2).tolist()
torch.tensor([[1,2],[3,4]]).__reversed__()
t.__contains__(1), None in t
np.frombuffer(t.numpy().tobytes(),dtype=np.float32)
bytes(torch.tensor([1,2],dtype=torch.uint8))
np.ma.masked_array(t), np.interp(t,t,t), np.linalg.inv(torch.eye(2)), np.fft.fft(t), np.einsum('i,i',t,t)
np.linalg.inv(torch.eye(2))
np.linalg.solve(torch.eye(2),torch.ones(2))
np.linalg.svd(torch.eye(2))
t//np.float32(2), t%np.array(2.), t**np.float64(2), np.float64(2)**t, np.float64(2)/t, np.float64(2)-t, np.int64(7)//ti, np.int64(7)%ti, np.float32(1)<t, np.float32(1)==t, np.int64(1)&ti, np.int64(1)<<ti
t.clone().__imul__(np.float64(2))
ti.clone().__iadd__(np.float64(2.5))
ti.clone().__iadd__(2.5)
list(reversed(torch.tensor([1,2,3]))), reversed(torch.tensor([1,2,3]))
reversed(torch.tensor(1))
reversed(torch.ones(2,2))
torch.tensor(True).__index__(), torch.tensor([[3]]).__index__()
torch.tensor(2**64-1,dtype=torch.uint64).item(), int(torch.tensor(200,dtype=torch.uint8))
t.__len__(), torch.tensor(1.).__len__()
iter(torch.tensor(1))
torch.tensor([[]]).tolist(), torch.empty(0,2).tolist(), torch.empty(2,0).tolist()
torch.tensor(torch.tensor([1,2])), torch.tensor([torch.tensor(1),torch.tensor(2.)]), torch.tensor([[torch.tensor(1)],[2]])
torch.tensor([torch.ones(1),torch.ones(1)])
torch.tensor(range(3)), torch.tensor((1,2.)), torch.tensor([True,2]), torch.tensor([1,2j]), torch.tensor([[1,2],[3,4.]]), torch.tensor('a')
torch.tensor(['a'])
torch.tensor([None])
torch.tensor(None)
torch.tensor({1:2})
torch.tensor([1,[2]])
torch.tensor([[1],2])
torch.tensor([[1,2],[3]])
torch.tensor(2**63)
torch.tensor(2**64)
torch.tensor([2**31], dtype=torch.int32)
torch.tensor(300,dtype=torch.uint8)
torch.tensor(-1,dtype=torch.uint8)
torch.tensor(1.5,dtype=torch.int32), torch.tensor(float('nan'),dtype=torch.float16)
torch.tensor(float('inf'),dtype=torch.int32)
torch.tensor(1j,dtype=torch.float32)
torch.tensor(1e40), torch.tensor(1e300,dtype=torch.float16)
torch.tensor(1,device='cpu',requires_grad=True)
torch.tensor(1.,requires_grad=True)
torch.tensor([],dtype=torch.int8), torch.tensor([]), torch.tensor(()), torch.tensor([[],[]])
torch.as_tensor([1,2],dtype=torch.float32), torch.asarray([1,2]), torch.asarray(a,copy=True), torch.asarray(2.), torch.asarray(t,dtype=torch.int8)
torch.as_tensor(a) is a, torch.as_tensor(t) is t, torch.asarray(t) is t
torch.as_tensor(a).data_ptr()==a.ctypes.data, torch.asarray(a).data_ptr()==a.ctypes.data
torch.asarray(t,dtype=torch.int8,copy=False)
torch.asarray([1],copy=False)
torch.frombuffer(b'\x01\x02',dtype=torch.uint8)
torch.frombuffer(bytearray(8),dtype=torch.float32,count=1,offset=4)
torch.promote_types(torch.int8,torch.uint8), torch.promote_types(torch.float16,torch.bfloat16), torch.promote_types(torch.int64,torch.float16), torch.promote_types(torch.complex64,torch.float64)
torch.result_type(t,1), torch.result_type(ti,1.5), torch.result_type(ti,t), torch.result_type(1,2.), torch.result_type(torch.tensor(1.),ti), torch.result_type(1j,t), torch.result_type(True,ti)
torch.can_cast(torch.float32,torch.int32), torch.can_cast(torch.int64,torch.float16), torch.can_cast(torch.complex64,torch.float32), torch.can_cast(torch.uint8,torch.int8), torch.can_cast(torch.float64,torch.float16), torch.can_cast(torch.int8,torch.bool), torch.can_cast(torch.bool,torch.uint8)
torch.equal(t,t), torch.equal(t,ti), torch.equal(t,t[:2]), torch.equal(torch.tensor(float('nan')),torch.tensor(float('nan')))
torch.equal(t,t.double())
torch.allclose(t,t+1e-9), torch.allclose(t,t*1.1), torch.allclose(torch.tensor(float('nan')),torch.tensor(float('nan')),equal_nan=True)
torch.allclose(t,t.double())
torch.allclose(ti,ti), torch.isclose(ti,ti+1), torch.isclose(ti,ti+1,rtol=1), torch.isclose(torch.tensor(True),torch.tensor(True))
torch.isclose(t,t,rtol=-1)
torch.isclose(t,2.)
torch.isclose(torch.tensor([1+1j,float('inf')]),torch.tensor([1+1j,float('inf')]))
torch.isclose(torch.tensor([1,100],dtype=torch.uint8),torch.tensor([2,250],dtype=torch.uint8),rtol=0.5)
t.__array_interface__
t.dtype.is_floating_point, t.dtype.itemsize, t.dtype.is_signed, torch.float32.to_complex(), torch.complex128.to_real(), torch.int8.to_complex()
str(torch.float32), repr(torch.int64), torch.float32 == torch.float, torch.float32 is torch.float
torch.device('cuda') == torch.device('cuda:0'), torch.device('foo'), torch.device('cpu:x')
torch.device('cpu:-1')
torch.device(torch.device('cpu')), torch.device('cpu:0').index, torch.device('meta').type
t.is_cpu, t.is_cuda, t.is_meta, t.is_sparse, t.is_quantized, t.is_mkldnn, t.is_xla, t.is_mps, t.is_xpu, t.is_vulkan, t.is_ipu, t.is_nested, t.is_sparse_csr, t.is_mtia, t.is_maia
torch.Size([1,2])+torch.Size([3]), torch.Size([1,2])[0], torch.Size([1,2])[:1], torch.Size([2,3]).numel(), torch.Size((1,2))*2, torch.Size([1,2])==(1,2), hash(torch.Size([1]))==hash((1,)), torch.Size([1,2])+(3,), (3,)+torch.Size([1])
torch.Size([1.5])
torch.Size([torch.tensor(2)]), torch.Size(), torch.Size([1,2]).count(1), torch.Size([1,2]).index(2)
"""


def evaluate(expression, framework):
    """The text of the expression's value, or the type of its exception."""
    names = {
        "torch": framework,
        "np": np,
        "math": math,
        "t": framework.tensor([1.0, 2, 3]),
        "ti": framework.tensor([1, 2, 3]),
        "a": np.array([1.0, 2, 3]),
        "g": framework.ones(2, requires_grad=True),
        "b": framework.ones(2, dtype=framework.bfloat16),
    }

    def S(index, value):
        """A tensor after ``x[index] = value``."""
        x = framework.tensor([1.0, 2, 3])
        x[index] = value
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            text = repr(eval(expression, {**names, "S": S}))
        except Exception as error:
            return type(error).__name__
    return re.sub("0x[0-9a-f]+", "0x", text.replace("taeda", "torch"))


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().split("\n"))
def test_expression(expression):
    assert evaluate(expression, taeda) == evaluate(expression, torch)


def test_arrays_on_either_side():
    """PyTorch refuses an array on the left of an operator; here it makes no difference where it stands."""
    t, a = taeda.tensor([1.0, 2, 3], requires_grad=True), np.array([1.0, 2, 3])
    for made in (a + t, t + a, a * t, a - t, a @ t, t @ a):
        assert made.dtype is taeda.float64 and made.requires_grad
    assert (a < t).tolist() == [False] * 3 and (a == t).tolist() == [True] * 3 and (a != t).tolist() == [False] * 3
    assert (taeda.ones(3, dtype=taeda.int64) + np.ones(3, np.float32)).dtype is taeda.float64  # NumPy's rule for arrays
    t = taeda.zeros(3)
    t += a
    t[:2] = [8, 9]
    t[2] = np.float32(7)
    assert t.tolist() == [8, 9, 7] and t.dtype is taeda.float32


def test_answers_of_ufuncs_are_bool():
    """PyTorch makes uint8 of them, as from before it had bool."""
    t = taeda.tensor([1.0, math.nan])
    assert np.isnan(t).dtype is taeda.bool and t[np.isnan(t)].numel() == 1
    assert np.logical_not(t).dtype is taeda.bool


def test_wrapped_results():
    assert isinstance(np.add.reduce(taeda.ones(3)), taeda.Tensor)
    made = np.sqrt(taeda.tensor(4.0))
    assert made.shape == () and made.item() == 2


def test_where_nothing_is_recorded_a_parameter_has_an_array():
    for framework in (torch, taeda):
        x = framework.ones(2, requires_grad=True)
        with pytest.raises(RuntimeError):
            x.numpy()
        with framework.no_grad():
            assert x.numpy().tolist() == [1.0, 1.0] and np.asarray(x).sum() == 2.0
