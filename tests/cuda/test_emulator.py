"""The emulated CUDA device: what kernels compute, and that each check finds the mistake it is for."""

import ctypes
import shutil
import subprocess
import threading

import numpy as np
import pytest
from emulator import driver, faults, reset
from emulator.calls import Calls, DriverError

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
PLACE = """
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd8, %r4, 4;
    add.s64 %rd9, %rd0, %rd8;
"""


@pytest.fixture
def calls():
    reset()
    yield Calls()
    assert not driver().notes
    reset()


def kernel(body: str, params: int = 2, outside: str = "", inside: str = "") -> str:
    """A kernel ``k`` of pointers p0, p1, ... in %rd0, %rd1, ...; %r3 is the thread in its block, %r4 that in the grid.

    %rd8 is four times the latter, and %rd9 the place of its word behind p0.
    """
    names = ", ".join(f".param .u64 p{i}" for i in range(params))
    loads = "\n".join(f"    ld.param.u64 %rd{i}, [p{i}];" for i in range(params))
    return f"""{HEAD}{outside}
.visible .entry k({names})
{{
    .reg .pred %p<9>;
    .reg .b16 %rs<9>;
    .reg .b32 %r<40>;
    .reg .b64 %rd<40>;
{inside}
{loads}{PLACE}{body}
    ret;
}}
"""


def run(calls, text, grid, block, *args, **more):
    calls.launch(calls.function(text, "k"), grid, block, *args, **more)


def kinds():
    return [fault.kind for fault in faults()]


# ---- what kernels compute --------------------------------------------------------------------------------------------

ADD_ONE = kernel("""
    setp.ge.u32 %p1, %r4, 100;
    @%p1 ret;
    add.s64 %rd10, %rd1, %rd8;
    ld.global.f32 %r5, [%rd10];
    add.rn.f32 %r6, %r5, 0f3F800000;
    st.global.f32 [%rd9], %r6;
""")


def test_a_kernel_computes(calls):
    x = np.random.default_rng(0).standard_normal(100).astype("f4")
    out = calls.empty(400)
    run(calls, ADD_ONE, 2, 64, out, calls.send(x))
    assert (calls.read(out, "f4", 100) == x + np.float32(1)).all()
    assert not faults() and driver().launches == 1
    assert driver().instructions == 128 * 10 + 100 * 5  # 28 threads leave by the guard


#: A sum over a block: by shuffles in a warp, then through shared memory, with a call and a table of branches.
SUM = f"""{HEAD}
.func (.param .b32 result) both(.param .b32 a, .param .b32 b)
{{
    .reg .b32 %r<4>;
    ld.param.b32 %r1, [a];
    ld.param.b32 %r2, [b];
    add.rn.f32 %r3, %r1, %r2;
    st.param.b32 [result], %r3;
    ret;
}}
.visible .entry k(.param .u64 out, .param .u64 in)
{{
    .shared .align 4 .b8 parts[32];
    .reg .pred %p<4>;
    .reg .b32 %r<20>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [in];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.b32 %r2, [%rd4];
    mov.b32 %r3, 16;
again:
    shfl.sync.bfly.b32 %r4, %r2, %r3, 31, -1;
    {{
    .param .b32 x;
    .param .b32 y;
    .param .b32 z;
    st.param.b32 [x], %r2;
    st.param.b32 [y], %r4;
    call.uni (z), both, (x, y);
    ld.param.b32 %r2, [z];
    }}
    shr.u32 %r3, %r3, 1;
    setp.ne.b32 %p1, %r3, 0;
    @%p1 bra again;
    and.b32 %r5, %r1, 31;
    shr.u32 %r6, %r1, 5;
    shl.b32 %r7, %r6, 2;
    mov.b32 %r8, parts;
    add.s32 %r8, %r8, %r7;
    setp.eq.b32 %p2, %r5, 0;
    @%p2 st.shared.b32 [%r8], %r2;
    bar.sync 0;
    min.u32 %r9, %r1, 2;
ways: .branchtargets first, second, last;
    brx.idx %r9, ways;
first:
    ld.shared.v4.b32 {{%r10, %r11, %r12, %r13}}, [parts];
    add.rn.f32 %r10, %r10, %r11;
    add.rn.f32 %r12, %r12, %r13;
    add.rn.f32 %r10, %r10, %r12;
    st.global.b32 [%rd1], %r10;
    bra last;
second:
    vote.sync.ballot.b32 %r14, %p2, 2;
    st.global.b32 [%rd1+4], %r14;
last:
    ret;
}}
"""


def test_warps_blocks_calls_and_tables(calls):
    x = np.random.default_rng(1).standard_normal(128).astype("f4")
    out = calls.empty(8)
    run(calls, SUM, 1, 128, out, calls.send(x))
    parts = x.reshape(4, 32)
    for d in (16, 8, 4, 2, 1):
        parts = parts + parts[:, np.arange(32) ^ d]
    want = (parts[0, 0] + parts[1, 0]) + (parts[2, 0] + parts[3, 0])
    assert calls.read(out, "f4", 1)[0] == want
    assert calls.read(out + 4, "u4", 1)[0] == 0  # the second lane's vote, of itself


def test_variables_parameters_and_dynamic_shared_memory(calls):
    text = f"""{HEAD}
.visible .global .align 4 .b32 total = 5;
.const .align 4 .b32 weights[4] = {{10, 20, 30, 40}};
.extern .shared .align 8 .b8 room[];
.visible .entry k(.param .align 8 .b8 all[40])
{{
    .reg .b32 %r<9>;
    .reg .b64 %rd<12>;
    mov.b64 %rd1, all;
    ld.param.b64 %rd2, [all+32];
    ld.param.v2.b32 {{%r1, %r2}}, [%rd1+8];
    mov.u32 %r3, %tid.x;
    mul.wide.u32 %rd3, %r3, 4;
    mov.b64 %rd4, weights;
    add.s64 %rd5, %rd4, %rd3;
    ld.const.b32 %r4, [%rd5];
    mov.b64 %rd6, room;
    add.s64 %rd7, %rd6, %rd3;
    cvta.shared.u64 %rd8, %rd7;
    st.b32 [%rd8], %r4;
    ld.shared.b32 %r5, [%rd7];
    atom.global.add.u32 %r6, [total], %r5;
    add.s32 %r7, %r1, %r2;
    add.s64 %rd9, %rd2, %rd3;
    st.global.b32 [%rd9], %r7;
    ret;
}}
"""
    module = calls.load(text)
    name = ctypes.create_string_buffer(b"k")
    f = calls.get("cuModuleGetFunction", module, ctypes.addressof(name))
    out = calls.empty(16)
    words = (ctypes.c_uint64 * 5)(0, 7 | 8 << 32, 0, 0, out)
    calls.launch(f, 1, 4, words, shared=16)
    assert calls.read(out, "u4", 4).tolist() == [15] * 4
    name = ctypes.create_string_buffer(b"total")
    total = calls.get("cuModuleGetGlobal_v2", 0, module, ctypes.addressof(name))
    assert calls.read(total, "u4", 1)[0] == 105
    calls.launch(f, 1, 4, words, shared=12)  # less than it needs
    assert kinds() == ["bounds"] and "12 of .shared memory, which has 12 bytes" in faults()[0].message


# ---- memory ----------------------------------------------------------------------------------------------------------


def test_reads_behind_an_allocation(calls):
    run(calls, ADD_ONE, 2, 64, calls.empty(400), calls.send(np.zeros(99, "f4")))
    with pytest.raises(DriverError) as error:
        calls.cuCtxSynchronize()
    assert error.value.number == 700
    (fault,) = faults()
    assert (fault.kind, fault.kernel, fault.block, fault.thread) == ("bounds", "k", (1, 0, 0), (35, 0, 0))
    assert fault.text.startswith("ld.global.f32") and "0 bytes behind allocation 2" in fault.message
    with pytest.raises(DriverError, match="ILLEGAL_ADDRESS"):  # the error stays
        calls.empty(4)


STORE = "st.global.b32 [%rd9], %r4;"


@pytest.mark.parametrize("body, kind, number", [
    ("add.s64 %rd9, %rd9, 400;\n st.global.b32 [%rd9], %r4;", "bounds", 700),
    ("add.s64 %rd9, %rd9, -4;\n st.global.b32 [%rd9], %r4;", "bounds", 700),
    ("st.b32 [%rd8], %r4;", "bounds", 700),  # a null pointer, by a generic address
    ("add.s64 %rd9, %rd9, 2;\n st.global.b32 [%rd9], %r4;", "alignment", 716),
    ("add.s64 %rd9, %rd0, 8;\n ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%rd9];", "alignment", 716),
    ("ld.global.b32 %r5, [%rd9];", "unwritten", 719),
    ("st.global.b8 [%rd9], %r4;\n ld.global.b32 %r5, [%rd9];", "unwritten", 719),
    ("ld.shared.b32 %r5, [room];", "unwritten", 719),
    ("st.shared.b32 [room+64], %r4;", "bounds", 700),
    ("mov.b64 %rd5, own;\n ld.local.b32 %r5, [%rd5+4];", "unwritten", 719),
    ("mov.b64 %rd5, own;\n st.local.b32 [%rd5+16], %r4;", "bounds", 700),
    ("mov.b64 %rd5, own;\n cvta.local.u64 %rd6, %rd5;\n st.b32 [%rd6+-4], %r4;", "bounds", 700),
    ("st.global.b32 [fixed], %r4;", "constant", 700),
    ("trap;", "trap", 719),
])  # fmt: skip
def test_a_wrong_access_is_found(calls, body, kind, number):
    text = kernel(body, 1, ".const .b32 fixed = 1;", ".shared .b8 room[64];\n.local .align 4 .b8 own[16];")
    run(calls, text.replace(".b8 room", ".align 4 .b8 room"), 1, 1, calls.empty(400))
    assert kinds() == [kind]
    with pytest.raises(DriverError) as error:
        calls.cuCtxSynchronize()
    assert error.value.number == number


@pytest.mark.parametrize("body", [
    STORE,
    "st.global.v2.b32 [%rd0+8], {%r4, %r4};\n ld.global.b64 %rd5, [%rd0+8];",
    "st.shared.b32 [room+60], %r4;\n ld.shared.b32 %r5, [room+60];",
    "mov.b64 %rd5, own;\n cvta.local.u64 %rd6, %rd5;\n st.b32 [%rd6+12], %r4;\n ld.local.b32 %r5, [%rd5+12];",
    "ld.global.b32 %r5, [fixed];",
])  # fmt: skip
def test_a_right_access_is_none(calls, body):
    text = kernel(body, 1, ".const .b32 fixed = 1;", ".shared .align 4 .b8 room[64];\n.local .align 4 .b8 own[16];")
    run(calls, text, 1, 1, calls.empty(400))
    calls.cuCtxSynchronize()
    assert not faults()


def test_local_memory_is_fresh_in_each_thread(calls):
    body = (
        "mov.b64 %rd5, own;\n setp.eq.b32 %p1, %r4, 0;\n @%p1 st.local.b32 [%rd5+8], %r4;\n ld.local.b32 %r5, [%rd5+8];"
    )
    run(calls, kernel(body, 1, inside=".local .align 4 .b8 own[16];"), 1, 2, calls.empty(8))
    assert kinds() == ["unwritten"] and faults()[0].thread == (1, 0, 0)


def test_shared_memory_is_fresh_in_each_block(calls):
    body = "setp.eq.b32 %p1, %r4, 0;\n @%p1 st.shared.b32 [room], %r4;\n ld.shared.b32 %r5, [room];"
    run(calls, kernel(body, 1, inside=".shared .align 4 .b8 room[16];"), 2, 1, calls.empty(8))
    assert kinds() == ["unwritten"] and faults()[0].block == (1, 0, 0)


def test_freed_memory(calls):
    out = calls.empty(400)
    f = calls.function(kernel(STORE, 1), "k")
    calls.launch(f, 1, 100, out)
    calls.cuMemFree_v2(out)
    calls.empty(400)  # does not get the same addresses
    calls.launch(f, 1, 1, out)
    assert kinds() == ["freed"] and "which was freed" in faults()[0].message


def test_memory_of_another_device(calls):
    other = calls.get("cuDevicePrimaryCtxRetain", 1)
    calls.cuCtxSetCurrent(other)
    there = calls.empty(400)
    calls.cuCtxSetCurrent(calls.context)
    here = calls.send(np.arange(4, dtype="u4"))
    calls.cuMemcpyPeerAsync(there, other, here, calls.context, 16, 0)
    assert calls.read(there, "u4", 4).tolist() == [0, 1, 2, 3]
    run(calls, kernel(STORE, 1), 1, 1, there)
    assert kinds() == ["device"]


def test_copies_and_fills_are_checked(calls):
    a, b = calls.empty(400), calls.empty(400)
    host = np.zeros(101, "f4")
    for name, *args in (
        ("cuMemcpyHtoD_v2", a, host.ctypes.data, 404), ("cuMemcpyDtoD_v2", a, b + 4, 400),
        ("cuMemcpyDtoH_v2", host.ctypes.data, a - 4, 8), ("cuMemsetD32_v2", a, 1, 101), ("cuMemsetD32_v2", a + 2, 1, 1),
        ("cuMemcpyDtoD_v2", host.ctypes.data, a, 4), ("cuMemFree_v2", a + 4), ("cuMemAlloc_v2", host.ctypes.data, 0),
    ):  # fmt: skip
        with pytest.raises(DriverError, match="INVALID_VALUE"):
            getattr(calls, name)(*args)
    calls.cuMemsetD16_v2(a, 0x1234, 200)
    calls.cuMemcpyDtoD_v2(b + 200, a, 200)
    assert calls.read(b + 200, "u2", 100).tolist() == [0x1234] * 100
    run(calls, kernel("ld.global.b32 %r5, [%rd9];", 1), 1, 100, b)  # a copy takes along what was not written
    assert kinds()[-1] == "unwritten" and faults()[-1].address == b


def test_memory_is_used_up(calls, monkeypatch):
    monkeypatch.setattr(calls.driver.contexts[0].arena, "limit", 1 << 20)
    limit = calls.get("cuDeviceTotalMem_v2", 0)
    with pytest.raises(DriverError, match="OUT_OF_MEMORY"):
        calls.empty(limit + 1)
    big = calls.empty(limit // 2)
    with pytest.raises(DriverError, match="OUT_OF_MEMORY"):
        calls.empty(limit // 2 + 1)
    calls.cuMemFree_v2(big)
    calls.cuMemFree_v2(calls.empty(limit // 2 + 1))


def test_pinned_and_registered_memory(calls):
    pinned = calls.get("cuMemHostAlloc", 400, 0)
    words = (ctypes.c_uint32 * 100).from_address(pinned)
    f = calls.function(kernel(STORE, 1), "k")
    calls.launch(f, 1, 100, pinned)
    calls.cuCtxSynchronize()
    assert list(words) == list(range(100))
    own = np.zeros(100, "u4")
    calls.cuMemHostRegister_v2(own.ctypes.data, 400, 0)
    calls.launch(f, 1, 100, own.ctypes.data)
    calls.cuCtxSynchronize()
    assert own.tolist() == list(range(100))
    calls.cuMemHostUnregister(own.ctypes.data)
    calls.launch(f, 1, 1, own.ctypes.data)
    assert kinds() == ["bounds"] and "where no memory is" in faults()[0].message


# ---- races -----------------------------------------------------------------------------------------------------------

ROOM = ".shared .align 4 .b8 room[512];"
MINE = "shl.b32 %r10, %r3, 2;\n mov.b32 %r11, room;\n add.s32 %r12, %r11, %r10;\n st.shared.b32 [%r12], %r3;\n"
NEXT = "xor.b32 %r13, %r10, 4;\n add.s32 %r14, %r11, %r13;\n ld.shared.b32 %r15, [%r14];\n"
ACROSS = "xor.b32 %r13, %r10, 128;\n add.s32 %r14, %r11, %r13;\n ld.shared.b32 %r15, [%r14];\n"


@pytest.mark.parametrize("body, found", [
    (MINE + "bar.sync 0;\n" + NEXT, False),
    (MINE + NEXT, True),
    (MINE + "bar.warp.sync -1;\n" + NEXT, False),  # within a warp that is enough
    (MINE + "bar.warp.sync -1;\n" + ACROSS, True),
    (MINE + "bar.sync 0;\n" + ACROSS, False),
    (MINE + "bar.sync 0;\n" + NEXT + "st.shared.b32 [%r12], %r15;", True),  # written while others read
    (MINE + "bar.sync 0;\n" + NEXT + "bar.sync 0;\n st.shared.b32 [%r12], %r15;", False),
    ("st.shared.b32 [room], 1;", True),
    ("atom.shared.add.u32 %r5, [room], 1;", None),  # an atomic reads: not written
    ("mov.b32 %r11, room;\n add.s32 %r12, %r11, %r3;\n st.shared.b8 [%r12], %r3;", False),
])  # fmt: skip
def test_races_in_shared_memory(calls, body, found):
    calls.driver.check("full")
    run(calls, kernel(body, 1, inside=ROOM), 2, 64, calls.empty(4))
    assert kinds() == ([] if found is False else ["unwritten"] if found is None else kinds()[:1])
    if found:  # without the barrier the neighbour's word may also not be there yet
        assert kinds() in (["race"], ["unwritten"])


@pytest.mark.parametrize("body, found", [
    (STORE, False),
    ("st.global.b32 [%rd0], 1;", True),
    ("ld.global.b32 %r5, [%rd0];\n", False),
    ("ld.global.b32 %r5, [%rd0];\n setp.eq.b32 %p1, %r4, 70;\n @%p1 st.global.b32 [%rd0], 1;", True),  # another block
    ("red.global.add.u32 [%rd0], 1;", False),
    ("red.global.add.u32 [%rd0], 1;\n ld.global.b32 %r5, [%rd0];", True),
    ("red.global.add.u32 [%rd0], 1;\n ld.relaxed.gpu.global.b32 %r5, [%rd0];", False),
    ("ld.global.nc.b32 %r5, [%rd9];\n st.global.b32 [%rd9], %r5;\n ld.global.nc.b32 %r5, [%rd9];", True),
    ("cvt.u64.u32 %rd5, %r4;\n add.s64 %rd5, %rd0, %rd5;\n st.global.b8 [%rd5], 1;", False),  # neighbouring bytes
])  # fmt: skip
def test_races_in_global_memory(calls, body, found):
    calls.driver.check("full")
    out = calls.send(np.zeros(128, "u4"))
    run(calls, kernel(body, 1), 2, 64, out)
    assert kinds() == (["race"] if found else [])
    if not found:
        run(calls, kernel(body, 1), 2, 64, out)  # launches of a stream are in order
        assert not faults()


def test_the_first_thread_of_a_race_is_named(calls):
    calls.driver.check("full")
    run(calls, kernel("st.global.b32 [%rd0], 1;", 1), 2, 1, calls.empty(4))
    assert faults()[0].block == (1, 0, 0) and "thread number 0 of another block" in faults()[0].message


# ---- divergence ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body, kind", [
    ("setp.lt.u32 %p1, %r3, 32;\n @%p1 bra skip;\n bar.sync 0;\nskip:\n", "ended"),
    ("setp.lt.u32 %p1, %r3, 32;\n @%p1 bra skip;\n bar.sync 0;\nskip:\n bar.sync 0;\n", "barrier"),
    ("setp.lt.u32 %p1, %r3, 8;\n @%p1 bra skip;\n shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1;\nskip:\n bar.sync 0;", "warp"),
    ("setp.lt.u32 %p1, %r3, 1;\n @%p1 ret;\n shfl.sync.idx.b32 %r5, %r4, 0, 31, -1;", "lane"),  # of one that has ended
    ("shfl.sync.bfly.b32 %r5, %r4, 1, 31, 1;", "lane"),  # of one that the mask does not name
    ("shfl.sync.bfly.b32 %r5, %r4, 1, 31, 2;", "warp"),  # a mask without the lane itself
    ("and.b32 %r6, %r3, 1;\n add.s32 %r6, %r6, 1;\n vote.sync.ballot.b32 %r5, %p1, %r6;", "warp"),
    ("bar.sync 0;\n shfl.sync.down.b32 %r5, %r4, 1, 31, -1;\n bar.sync 0;", None),
])  # fmt: skip
def test_divergence(calls, body, kind):
    run(calls, kernel(body, 1), 1, 64, calls.empty(4))
    assert kinds() == ([kind] if kind else [])


def test_shuffles_votes_and_sums_of_a_warp(calls):
    text = kernel("""
    mov.u32 %r5, %laneid;
    add.s32 %r6, %r4, 100;
    shfl.sync.up.b32 %r10|%p1, %r6, 3, 0, -1;
    shfl.sync.down.b32 %r11, %r6, 3, 6175, -1;
    shfl.sync.bfly.b32 %r12, %r6, 5, 31, -1;
    shfl.sync.idx.b32 %r13, %r6, 9, 6175, -1;
    selp.b32 %r14, 1, 0, %p1;
    and.b32 %r7, %r5, 1;
    setp.eq.b32 %p2, %r7, 0;
    vote.sync.ballot.b32 %r15, %p2, -1;
    vote.sync.any.pred %p3, %p2, -1;
    vote.sync.all.pred %p4, %p2, -1;
    vote.sync.uni.pred %p5, %p2, -1;
    selp.b32 %r16, 1, 0, %p3;
    selp.b32 %r17, 2, 0, %p4;
    selp.b32 %r18, 4, 0, %p5;
    or.b32 %r16, %r16, %r17;
    or.b32 %r16, %r16, %r18;
    redux.sync.add.s32 %r17, %r6, -1;
    redux.sync.min.s32 %r18, %r6, -1;
    redux.sync.xor.b32 %r19, %r6, -1;
    mov.u32 %r20, %lanemask_lt;
    mul.wide.u32 %rd5, %r4, 40;
    add.s64 %rd6, %rd0, %rd5;
""" + "".join(f"    st.global.b32 [%rd6+{4 * k}], %r{10 + k};\n" for k in range(10))
    + "    st.global.b32 [%rd6+36], %r20;\n", 1)  # fmt: skip
    out = calls.empty(40 * 32)
    run(calls, text, 1, 32, out)
    x = np.arange(32) + 100
    lane = np.arange(32)
    got = calls.read(out, "i4", (32, 10)).T
    assert (got[0] == np.where(lane >= 3, x - 3, x)).all() and (got[4] == (lane >= 3)).all()
    assert (got[1] == np.where(lane % 8 + 3 < 8, x + 3, x)).all() and (got[2] == x[lane ^ 5]).all()
    assert (got[3] == x[lane // 8 * 8 + 1]).all()
    assert set(got[5]) == {0x55555555} and set(got[6]) == {1}
    assert set(got[7]) == {x.sum()} and set(got[8]) == {100}
    assert (got[9].view("u4") == (1 << lane.astype("u8")) - 1).all()


#: Each lane puts its row of 16 bytes to shared memory, and gets its words of four matrices.
LOADED = """
    mul.wide.u32 %rd5, %r4, 16;
    add.s64 %rd6, %rd0, %rd5;
    ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd6];
    mov.u64 %rd7, rows;
    add.s64 %rd8, %rd7, %rd5;
    st.shared.v4.b32 [%rd8], {%r10, %r11, %r12, %r13};
    bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r14, %r15, %r16, %r17}, [%rd8];
    ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r18, %r19, %r20, %r21}, [%rd8];
    add.s64 %rd6, %rd1, %rd5;
"""
ROWS = ".shared .align 16 .b8 rows[512];"


def test_lanes_get_words_of_matrices(calls):
    text = kernel(LOADED + """
    st.global.v4.b32 [%rd6], {%r14, %r15, %r16, %r17};
    st.global.v4.b32 [%rd6+512], {%r18, %r19, %r20, %r21};
""", 2, inside=ROWS)  # fmt: skip
    given, out = np.arange(256, dtype="u2").reshape(4, 8, 8), calls.empty(1024)
    run(calls, text, 1, 32, calls.send(given), out)
    assert not faults()
    got = calls.read(out, "u2", (2, 8, 4, 4, 2))  # which of both, row, pair of columns, matrix, column
    for x, want in zip(got, (given, given.transpose(0, 2, 1)), strict=True):
        assert (x.transpose(2, 0, 1, 3).reshape(4, 8, 8) == want).all()


@pytest.mark.parametrize("t", ["f16", "bf16"])
def test_products_of_matrices_are_added_one_after_the_other(calls, t):
    """``mma``: rows of A and of B, of 16 and 8 columns, times each other, plus C; each addition rounds once."""
    rng = np.random.default_rng(3)
    text = kernel(LOADED + f"""
    ld.global.v4.b32 {{%r22, %r23, %r24, %r25}}, [%rd6];
    mma.sync.aligned.m16n8k16.row.col.f32.{t}.{t}.f32 {{%r26, %r27, %r28, %r29}}, {{%r14, %r15, %r16, %r17}},
        {{%r14, %r15}}, {{%r22, %r23, %r24, %r25}};
    st.global.v4.b32 [%rd6], {{%r26, %r27, %r28, %r29}};
""", 2, inside=ROWS)  # fmt: skip
    x = (rng.standard_normal((4, 8, 8)) * 2.0 ** rng.integers(-9, 9, (4, 8, 8))).astype("f4")
    bits = x.astype("f2").view("u2") if t == "f16" else (x.view("u4") >> 16).astype("u2")
    x = (bits.view("f2") if t == "f16" else (bits.astype("u4") << 16).view("f4")).astype("f8")
    c = rng.standard_normal((8, 4, 2, 2)).astype("f4")  # row, pair of columns, row + 8, column
    address = calls.send(c)
    run(calls, text, 1, 32, calls.send(bits), address)
    assert not faults()
    got = calls.read(address, "f4", (8, 4, 2, 2)).transpose(2, 0, 1, 3).reshape(16, 8)
    a = np.concatenate([np.concatenate([x[0], x[1]]), np.concatenate([x[2], x[3]])], 1)  # 16 x 16
    b = np.concatenate([x[0], x[1]], 1).T  # 16 x 8
    want = c.transpose(2, 0, 1, 3).reshape(16, 8)
    for k in range(16):  # products of two numbers of 11 bits are exact in float64, and here so are the sums
        want = (want.astype("f8") + np.outer(a[:, k], b[k])).astype("f4")
    assert np.abs(got - want).max() <= np.abs(want).max() * 2.0**-23 and (got == want).mean() > 0.9


@pytest.mark.parametrize("body, kind", [
    ("setp.lt.u32 %p1, %r3, 8;\n @%p1 bra skip;\n" + LOADED.replace("bar.sync 0;", "") + "skip:\n", "lane"),
    (LOADED.replace("%rd8];", "%rd8+8];"), "alignment"),
    (LOADED.replace("[%rd8], {", "[%rd7], {").replace("bar.sync 0;", ""), "unwritten"),  # rows that nobody wrote
])  # fmt: skip
def test_what_is_wrong_with_matrices_is_found(calls, body, kind):
    out = calls.send(np.zeros(1024, "u1"))
    run(calls, kernel(body, 2, inside=ROWS), 1, 32, out, out)
    assert kinds() == [kind]


# ---- streams ---------------------------------------------------------------------------------------------------------

DOUBLE = kernel("ld.global.b32 %r5, [%rd9];\n add.s32 %r5, %r5, %r5;\n st.global.b32 [%rd9], %r5;", 1)


def two_streams(calls, event=True, flags=1):
    """Adds on one stream, a doubling on another, with an event between them or not."""
    a, b = (calls.get("cuStreamCreateWithPriority", flags, 0) for _ in range(2))
    f, g = calls.function(ADD_ONE, "k"), calls.function(DOUBLE.replace("add.s32", "add.rn.f32"), "k")
    x = calls.send(np.ones(100, "f4"))
    for _ in range(3):
        calls.launch(f, 1, 100, x, x, stream=a)
    if event:
        e = calls.get("cuEventCreate", 2)
        calls.cuEventRecord(e, a)
        calls.cuStreamWaitEvent(b, e, 0)
    calls.launch(g, 1, 100, x, stream=b)
    calls.cuStreamSynchronize(b)
    calls.cuStreamSynchronize(a)
    return calls.read(x, "f4", 100)


@pytest.mark.parametrize("order", [None, 0, 1, 2])
def test_events_order_streams(calls, order):
    calls.driver.check("full", order)
    assert set(two_streams(calls)) == {8}
    assert not faults()


def test_a_missing_event_gives_other_results(calls):
    seen = set()
    for order in range(8):
        calls.driver.check("fast", order)
        seen |= set(two_streams(calls, event=False).tolist())
    assert len(seen) > 1


@pytest.mark.parametrize("order", [None, 5])
def test_a_missing_event_is_a_race(calls, order):
    calls.driver.check("full", order)
    with pytest.raises(DriverError):
        two_streams(calls, event=False)
    assert kinds() == ["race"] and "work of another stream" in faults()[0].message


def test_the_default_stream_waits_for_others(calls):
    calls.driver.check("full", 3)
    stream = calls.get("cuStreamCreateWithPriority", 0, 0)
    f = calls.function(ADD_ONE, "k")
    x = calls.send(np.zeros(100, "f4"))
    for s in (stream, 0, stream, 0):
        calls.launch(f, 1, 100, x, x, stream=s)
    assert set(calls.read(x, "f4", 100)) == {4}
    apart = calls.get("cuStreamCreateWithPriority", 1, 0)  # CU_STREAM_NON_BLOCKING
    calls.launch(f, 1, 100, x, x, stream=0)
    calls.launch(f, 1, 100, x, x, stream=apart)
    with pytest.raises(DriverError):
        calls.cuCtxSynchronize()
    assert kinds() == ["race"]


def test_a_buffer_that_is_used_again_too_early(calls):
    """A copy from pinned memory has not read it when the call returns; from other memory it has."""
    for pinned in (False, True):
        seen = set()
        for order in range(6):
            calls.driver.check("fast", order)
            own = np.zeros(4, "u4")
            at = calls.get("cuMemHostAlloc", 16, 0) if pinned else own.ctypes.data
            words = (ctypes.c_uint32 * 4).from_address(at)
            words[:] = [1] * 4
            out = calls.empty(16)
            calls.cuMemcpyHtoDAsync_v2(out, at, 16, 0)
            words[:] = [2] * 4
            seen |= set(calls.read(out, "u4", 4).tolist())
        assert seen == ({1, 2} if pinned else {1})


def test_memory_of_a_stream(calls):
    calls.driver.check("fast", 1)
    a, b = (calls.get("cuStreamCreateWithPriority", 1, 0) for _ in range(2))
    f = calls.function(kernel(STORE, 1), "k")
    x = calls.get("cuMemAllocAsync", 400, a)
    calls.launch(f, 1, 100, x, stream=a)
    calls.cuStreamSynchronize(a)
    calls.cuMemFreeAsync(x, b)
    calls.cuStreamSynchronize(b)
    calls.launch(f, 1, 100, x, stream=a)
    with pytest.raises(DriverError):
        calls.cuStreamSynchronize(a)
    assert kinds() == ["freed"]


def test_events_and_queries(calls):
    calls.driver.check("fast", 7)
    stream = calls.get("cuStreamCreateWithPriority", 1, -1)
    a, b = (calls.get("cuEventCreate", 0) for _ in range(2))
    x = calls.send(np.zeros(100, "f4"))
    f = calls.function(ADD_ONE, "k")
    calls.cuEventQuery(a)  # not recorded: done
    calls.cuEventRecord(a, stream)
    for _ in range(20):
        calls.launch(f, 1, 100, x, x, stream=stream)
    calls.cuEventRecord(b, stream)
    said = []
    for _ in range(1000):
        try:
            calls.cuEventQuery(b)
            break
        except DriverError as error:
            said.append(error.number)
    assert said and set(said) == {600}
    assert calls.get("cuEventElapsedTime", a, b, kind=ctypes.c_float) >= 0
    assert set(calls.read(x, "f4", 100)) == {20}
    done = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(done.append)
    calls.cuLaunchHostFunc(stream, ctypes.cast(callback, ctypes.c_void_p).value, 17)
    calls.cuStreamSynchronize(stream)
    assert done == [17]


# ---- counters --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step, sectors, used", [(4, 4, 1), (8, 8, 0.5), (32, 32, 0.125), (0, 1, 0.125)])
def test_sectors(calls, step, sectors, used):
    x = calls.send(np.zeros(2048, "u4"))
    calls.driver.check("count")
    text = kernel(f"mul.wide.u32 %rd5, %r4, {step};\n add.s64 %rd5, %rd0, %rd5;\n ld.global.b32 %r5, [%rd5];", 1)
    run(calls, text, 2, 64, x)
    counters = calls.driver.counters["k"]
    traffic = counters.of("global", "load")
    assert (counters.launches, traffic.requests, traffic.accesses) == (1, 4, 128)
    assert traffic.sectors == 4 * sectors and traffic.used == used
    assert counters.instructions == 128 * 11 and list(counters.lines) == [
        text[: text.index("ld.global.b32")].count("\n") + 1
    ]


@pytest.mark.parametrize("step, conflicts", [(4, 0), (8, 1), (128, 31), (132, 0), (0, 0)])
def test_conflicts_of_banks(calls, step, conflicts):
    calls.driver.check("count")
    body = f"mov.b32 %r11, room;\n mad.lo.s32 %r12, %r3, {step}, %r11;\n st.shared.b32 [%r12], 1;"
    run(calls, kernel(body, 1, inside=".shared .align 4 .b8 room[4224];"), 1, 32, calls.empty(4))
    assert calls.driver.counters["k"].of("shared", "store").conflicts == conflicts


# ---- the driver ------------------------------------------------------------------------------------------------------


def test_what_is_not_ready_gives_an_error(calls):
    f = calls.function(kernel(STORE, 1), "k")
    out = calls.empty(4096)
    for grid, block, shared in (((0, 1, 1), 1, 0), (1, 1025, 0), (1, (32, 32, 2), 0), (1, (1, 1, 65), 0), ((1, 65536, 1), 1, 0),
                                (1, 1, 49153)):  # fmt: skip
        with pytest.raises(DriverError, match="INVALID_VALUE"):
            calls.launch(f, grid, block, out, shared=shared)
    calls.cuFuncSetAttribute(f, 8, 100_000)
    calls.launch(f, 1, 1, out, shared=100_000)
    for bad in (f + 8, 0, out):
        with pytest.raises(DriverError, match="INVALID_HANDLE"):
            calls.launch(bad, 1, 1, out)
    with pytest.raises(DriverError, match="INVALID_HANDLE"):
        calls.launch(f, 1, 1, out, stream=12345)
    with pytest.raises(DriverError, match="INVALID_DEVICE"):
        calls.get("cuDeviceGet", 2)
    seen = []

    def elsewhere():
        try:
            calls.launch(f, 1, 1, out)
        except DriverError as error:
            seen.append(error.number)

    thread = threading.Thread(target=elsewhere)  # a thread has no context until it takes one
    thread.start()
    thread.join()
    assert seen == [201]


def test_launch_limits_of_a_kernel(calls):
    text = kernel(STORE, 1).replace("(.param .u64 p0)\n", "(.param .u64 p0) .maxntid 64, 1, 1\n")
    f = calls.function(text, "k")
    out = calls.empty(400)
    calls.launch(f, 1, 64, out)
    with pytest.raises(DriverError, match="INVALID_VALUE"):
        calls.launch(f, 1, 65, out)
    assert calls.get("cuFuncGetAttribute", 0, f, kind=ctypes.c_int) == 64


def test_ptx_that_is_not_taken_is_explained(calls):
    log = ctypes.create_string_buffer(500)
    options = (ctypes.c_int * 2)(5, 6)
    values = (ctypes.c_uint64 * 2)(ctypes.addressof(log), 500)
    image = ctypes.create_string_buffer(kernel("sin.approx.f32 %r5, %r6;", 1).encode())
    handle = ctypes.c_uint64()
    with pytest.raises(DriverError, match="INVALID_PTX"):
        calls.cuModuleLoadDataEx(
            ctypes.addressof(handle), ctypes.addressof(image), 2, ctypes.addressof(options), ctypes.addressof(values)
        )
    line = image.value[: image.value.index(b"sin")].count(b"\n") + 1
    assert log.value.decode() == f"the emulated device refuses the PTX: line {line}: sin.approx.f32"
    with pytest.raises(DriverError, match="NO_BINARY_FOR_GPU"):
        calls.load(kernel(STORE, 1).replace("sm_90", "sm_100"))
    with pytest.raises(DriverError, match="INVALID_IMAGE"):
        calls.load("\x7fELF")


def test_names_and_addresses(calls):
    text = ctypes.c_char_p()
    calls.cuGetErrorName(700, ctypes.addressof(text))
    assert text.value == b"CUDA_ERROR_ILLEGAL_ADDRESS"
    name = ctypes.create_string_buffer(b"cuMemAlloc")
    found, status = ctypes.c_uint64(), ctypes.c_int(-1)
    calls.cuGetProcAddress_v2(ctypes.addressof(name), ctypes.addressof(found), 13000, 0, ctypes.addressof(status))
    assert (found.value, status.value) == (calls.driver.functions["cuMemAlloc_v2"], 0)
    assert calls.get("cuDeviceGetCount", kind=ctypes.c_int) == 2
    assert [calls.get("cuDeviceGetAttribute", n, 0, kind=ctypes.c_int) for n in (10, 75, 76)] == [32, 9, 0]


def test_a_kernel_is_compiled_again_when_it_runs_long(calls):
    f = calls.function(ADD_ONE, "k")
    x = calls.send(np.zeros(100, "f4"))
    for _ in range(20):
        calls.launch(f, 1, 100, x, x)
    one = kernel(STORE, 1)
    g = calls.function(one, "k")
    y = calls.empty(4 << 20)
    for _ in range(3):
        calls.launch(g, 1 << 14, 64, y)
    assert calls.driver.handles[g].compiled["fast"][1] and not calls.driver.handles[f].compiled["fast"][1]
    assert (calls.read(y, "u4", 1 << 20) == np.arange(1 << 20)).all() and set(calls.read(x, "f4", 100)) == {20}


@pytest.mark.skipif(
    shutil.which("ptxas") is None, reason="ptxas of NVIDIA's package nvidia-cuda-nvcc is not on the path"
)
@pytest.mark.parametrize("text", [ADD_ONE, SUM, DOUBLE, kernel(MINE + "bar.sync 0;\n" + ACROSS, 1, inside=ROOM)])
def test_ptxas_takes_the_ptx_of_these_tests(tmp_path, text):
    (tmp_path / "k.ptx").write_text(text)
    done = subprocess.run(
        ["ptxas", "-arch=sm_90", "-c", "k.ptx", "-o", "k.cubin"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
