"""Graphs of the emulated driver: what they compute again, and what may not be captured."""

import ctypes
import threading

import numpy as np
import pytest
from emulator import driver, faults, reset
from emulator.calls import Calls, DriverError
from test_emulator import kernel

ADD_ONE = "ld.global.f32 %f1, [%rd9]; add.rn.f32 %f1, %f1, 0f3F800000; st.global.f32 [%rd9], %f1;"
DOUBLE = "ld.global.f32 %f1, [%rd9]; add.rn.f32 %f1, %f1, %f1; st.global.f32 [%rd9], %f1;"
FLOATS = "    .reg .f32 %f<9>;"


@pytest.fixture(params=[None, 3])
def calls(request):
    reset()
    driver().check("fast", request.param)
    yield Calls()
    assert not driver().notes
    driver().check("fast")
    reset()


def stream_of(calls):
    return calls.get("cuStreamCreate", 1)


def number(calls, name, *args):
    with pytest.raises(DriverError) as error:
        getattr(calls, name)(*args)
    return error.value.number


def function(calls, body):
    return calls.function(kernel(body, 1, inside=FLOATS), "k")


def test_a_graph_runs_again_on_the_same_memory(calls):
    one, twice = function(calls, ADD_ONE), function(calls, DOUBLE)
    x, s = calls.send(np.zeros(64, np.float32)), stream_of(calls)
    calls.cuStreamBeginCapture_v2(s, 0)
    calls.launch(one, 2, 32, x, stream=s)
    calls.launch(twice, 2, 32, x, stream=s)
    graph = _end(calls, s)
    assert calls.read(x, np.float32, 64).tolist() == [0] * 64  # nothing has run
    executable = calls.get("cuGraphInstantiateWithFlags", graph, 0)
    for _ in range(3):
        calls.cuGraphLaunch(executable, s)
    calls.cuStreamSynchronize(s)
    assert calls.read(x, np.float32, 64).tolist() == [14] * 64
    calls.cuGraphExecDestroy(executable), calls.cuGraphDestroy(graph)
    assert not faults()


def _end(calls, s):
    made = ctypes.c_uint64()
    calls.cuStreamEndCapture(s, ctypes.addressof(made))
    return made.value


def test_streams_join_a_capture_by_events(calls):
    one, twice = function(calls, ADD_ONE), function(calls, DOUBLE)
    x, y = calls.send(np.ones(64, np.float32)), calls.send(np.ones(64, np.float32))
    s, other = stream_of(calls), stream_of(calls)
    fork, join = calls.get("cuEventCreate", 2), calls.get("cuEventCreate", 2)
    calls.cuStreamBeginCapture_v2(s, 0)
    calls.cuEventRecord(fork, s), calls.cuStreamWaitEvent(other, fork, 0)
    calls.launch(one, 2, 32, x, stream=s)
    calls.launch(twice, 2, 32, y, stream=other)
    calls.cuEventRecord(join, other), calls.cuStreamWaitEvent(s, join, 0)
    calls.launch(one, 2, 32, y, stream=s)
    executable = calls.get("cuGraphInstantiateWithFlags", _end(calls, s), 0)
    calls.cuGraphLaunch(executable, s), calls.cuGraphLaunch(executable, other)
    calls.cuCtxSynchronize()
    assert calls.read(x, np.float32, 64).tolist() == [3] * 64
    assert calls.read(y, np.float32, 64).tolist() == [7] * 64


def test_a_stream_that_does_not_come_back_is_an_error(calls):
    one, s, other = function(calls, ADD_ONE), stream_of(calls), stream_of(calls)
    x, fork = calls.send(np.ones(64, np.float32)), calls.get("cuEventCreate", 2)
    calls.cuStreamBeginCapture_v2(s, 0)
    calls.cuEventRecord(fork, s), calls.cuStreamWaitEvent(other, fork, 0)
    calls.launch(one, 2, 32, x, stream=other)
    made = ctypes.c_uint64()
    assert number(calls, "cuStreamEndCapture", s, ctypes.addressof(made)) == 904  # unjoined
    assert made.value == 0


def test_what_waits_may_not_be_captured(calls):
    x, s = calls.send(np.ones(64, np.float32)), stream_of(calls)
    back, made = np.zeros(64, np.float32), ctypes.c_uint64()
    event, early = calls.get("cuEventCreate", 2), calls.get("cuEventCreate", 2)
    calls.cuEventRecord(early, s)
    for name, args, expected in (
        ("cuStreamSynchronize", (s,), 900), ("cuCtxSynchronize", (), 900),
        ("cuMemcpyDtoHAsync_v2", (back.ctypes.data, x, 256, s), 900), ("cuStreamQuery", (s,), 900),
        ("cuMemAlloc_v2", (ctypes.addressof(made), 64), 900), ("cuStreamWaitEvent", (s, early, 0), 905),
    ):  # fmt: skip
        calls.cuStreamBeginCapture_v2(s, 0)
        assert number(calls, name, *args) == expected, name
        assert number(calls, "cuStreamEndCapture", s, ctypes.addressof(made)) == 901, name  # invalidated
    calls.cuStreamBeginCapture_v2(s, 0)
    calls.cuEventRecord(event, s)
    assert number(calls, "cuEventSynchronize", event) == 907
    assert number(calls, "cuStreamEndCapture", s, ctypes.addressof(made)) == 901
    assert number(calls, "cuStreamBeginCapture_v2", 0, 0) == 900  # the default stream
    assert number(calls, "cuStreamEndCapture", s, ctypes.addressof(made)) == 401


def test_a_thread_may_allocate_where_it_says_so(calls):
    s, made = stream_of(calls), ctypes.c_uint64()
    calls.cuStreamBeginCapture_v2(s, 0)
    mode = ctypes.c_int(2)
    calls.cuThreadExchangeStreamCaptureMode(ctypes.addressof(mode))
    assert mode.value == 0
    assert calls.empty(64)
    calls.cuThreadExchangeStreamCaptureMode(ctypes.addressof(mode))
    assert mode.value == 2
    _end(calls, s)
    calls.cuStreamBeginCapture_v2(s, 1)  # forbids this thread alone
    found = []

    def allocate():
        calls.cuCtxSetCurrent(calls.context)
        found.append(calls.empty(64))

    thread = threading.Thread(target=allocate)
    thread.start(), thread.join()
    assert found and _end(calls, s) and not made.value


def test_launches_of_a_graph_come_one_after_another(calls):
    """A race would be found: both launches write the same memory, from two streams."""
    driver().check("full", 5)
    one, x, s, other = (
        function(calls, ADD_ONE),
        calls.send(np.zeros(64, np.float32)),
        stream_of(calls),
        stream_of(calls),
    )
    calls.cuStreamBeginCapture_v2(s, 0)
    calls.launch(one, 2, 32, x, stream=s)
    executable = calls.get("cuGraphInstantiateWithFlags", _end(calls, s), 0)
    calls.cuGraphLaunch(executable, s), calls.cuGraphLaunch(executable, other)
    calls.cuCtxSynchronize()
    assert calls.read(x, np.float32, 64).tolist() == [2] * 64
    assert not faults()
