"""The emulated CUDA device: what kernels compute, and that each check finds the mistake it is for."""

import numpy as np
import pytest
from emulator import faults, reset
from emulator.calls import Calls, DriverError

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
PLACE = """
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
"""


@pytest.fixture
def calls():
    reset()
    yield Calls()
    reset()


def kernel(body: str, params: int = 2, outside: str = "") -> str:
    """A kernel ``k`` of pointers p0, p1, ...; %rd0, %rd1, ... hold them, %r4 the thread's number in the grid."""
    names = ", ".join(f".param .u64 p{i}" for i in range(params))
    loads = "\n".join(f"    ld.param.u64 %rd{i}, [p{i}];" for i in range(params))
    return f"""{HEAD}{outside}
.visible .entry k({names})
{{
    .reg .pred %p<9>;
    .reg .b16 %rs<9>;
    .reg .b32 %r<40>;
    .reg .b64 %rd<40>;
{loads}{PLACE}{body}
    ret;
}}
"""


ADD_ONE = kernel("""
    setp.ge.u32 %p1, %r4, 100;
    @%p1 ret;
    mul.wide.u32 %rd8, %r4, 4;
    add.s64 %rd9, %rd0, %rd8;
    add.s64 %rd10, %rd1, %rd8;
    ld.global.f32 %r5, [%rd10];
    add.rn.f32 %r6, %r5, 0f3F800000;
    st.global.f32 [%rd9], %r6;
""")


def test_a_kernel_computes(calls):
    x = np.random.default_rng(0).standard_normal(100).astype("f4")
    out = calls.empty(400)
    calls.launch(calls.function(ADD_ONE, "k"), 2, 64, out, calls.send(x))
    assert (calls.read(out, "f4", 100) == x + np.float32(1)).all()
    assert not faults()


def test_reads_behind_an_allocation(calls):
    out = calls.empty(400)
    f = calls.function(ADD_ONE, "k")
    calls.launch(f, 2, 64, out, calls.send(np.zeros(99, "f4")))
    with pytest.raises(DriverError) as error:
        calls.cuCtxSynchronize()
    assert error.value.number == 700
    (fault,) = faults()
    assert (fault.kind, fault.block, fault.thread) == ("bounds", (1, 0, 0), (35, 0, 0))
    assert fault.text.startswith("ld.global.f32") and "0 bytes behind" in fault.message
    with pytest.raises(DriverError):  # the error stays
        calls.empty(4)


def test_reads_what_was_not_written(calls):
    calls.launch(calls.function(ADD_ONE, "k"), 2, 64, calls.empty(400), calls.empty(400))
    assert [f.kind for f in faults()] == ["unwritten"]
