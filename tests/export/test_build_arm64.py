"""Libraries for arm64: linked as the system's loader wants, and run on an emulated processor."""

import struct

import numpy as np
import pytest

import taeda
from taeda import nn
from taeda.export import Dim, build, export

unicorn = pytest.importorskip("unicorn")
BASE, HEAP, STACK, HOST = 0x10000000, 0x40000000, 0x7000000, 0x1000000


class Processor:
    """An arm64 processor with a library in its memory and what that needs of a C library."""

    def __init__(self, blob: bytes):
        from unicorn import arm64_const as regs

        self.regs, self.heap = regs, HEAP
        self.machine = uc = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
        for start, size in ((BASE, 1 << 26), (HEAP, 1 << 26), (STACK, 1 << 20), (HOST, 1 << 16)):
            uc.mem_map(start, size)
        uc.reg_write(regs.UC_ARM64_REG_CPACR_EL1, 3 << 20)  # vectors are on
        self.load(blob)
        uc.hook_add(unicorn.UC_HOOK_CODE, self.called, begin=HOST, end=HOST + 0xFFFF)

    def load(self, blob):
        start, count = struct.unpack_from("<Q", blob, 32)[0], struct.unpack_from("<H", blob, 56)[0]
        assert struct.unpack_from("<H", blob, 18)[0] == 183
        heads = [struct.unpack_from("<IIQQQQQQ", blob, start + 56 * i) for i in range(count)]
        for kind, _, offset, address, _, size, _, _ in heads:
            if kind == 1:
                self.machine.mem_write(BASE + address, blob[offset : offset + size])
        at, size = next((h[2], h[5]) for h in heads if h[0] == 2)
        entries = [struct.unpack_from("<QQ", blob, at + 16 * i) for i in range(size // 16)]
        tags = {tag: value for tag, value in entries if tag}
        (names,) = struct.unpack_from("<I", blob, tags[4] + 4)  # the file begins where its first segment does

        def symbol(i):
            name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", blob, tags[6] + 24 * i)
            text = blob[tags[5] + name : blob.index(b"\0", tags[5] + name)].decode()
            return text, section, value

        symbols = [symbol(i) for i in range(names)]
        self.imports = [name for name, section, _ in symbols if name and section == 0]
        self.exports = {name: value for name, section, value in symbols if section}
        for i in range(tags[8] // 24):
            place, info, addend = struct.unpack_from("<QQq", blob, tags[7] + 24 * i)
            value = BASE + addend
            if info & 0xFFFFFFFF == 1025:
                value = HOST + 16 * self.imports.index(symbols[info >> 32][0])
            else:
                assert info == 1027
            self.machine.mem_write(BASE + place, struct.pack("<Q", value))

    def called(self, uc, address, *_):
        r = self.regs
        a, b, n = (uc.reg_read(x) for x in (r.UC_ARM64_REG_X0, r.UC_ARM64_REG_X1, r.UC_ARM64_REG_X2))
        name = self.imports[(address - HOST) // 16] if address < HOST + 0x8000 else "end"
        if name == "end":
            uc.emu_stop()
            return
        result = a
        if name in ("memcpy", "memmove"):
            uc.mem_write(a, bytes(uc.mem_read(b, n)))
        elif name == "memset":
            uc.mem_write(a, bytes([b & 255]) * n)
        elif name == "aligned_alloc":
            result, self.heap = self.heap, self.heap + (b + 63) // 64 * 64
        elif name in ("free", "clock_gettime", "sched_getaffinity"):
            result = 0
        else:
            raise AssertionError(f"{name} is called")
        uc.reg_write(r.UC_ARM64_REG_X0, result & (1 << 64) - 1)
        uc.reg_write(r.UC_ARM64_REG_PC, uc.reg_read(r.UC_ARM64_REG_LR))

    def put(self, content):
        at, self.heap = self.heap, self.heap + (len(content) + 63) // 64 * 64
        self.machine.mem_write(at, content)
        return at

    def tensor(self, x):
        data, sizes = self.put(x.tobytes()), self.put(np.array(x.shape, np.int64).tobytes())
        return data, self.put(struct.pack("<QiiQ", data, 1, x.ndim, sizes))

    def call(self, name, *args):
        r = self.regs
        for register, value in zip(
            (r.UC_ARM64_REG_X0, r.UC_ARM64_REG_X1, r.UC_ARM64_REG_X2, r.UC_ARM64_REG_X3), args, strict=False
        ):
            self.machine.reg_write(register, value)
        self.machine.reg_write(r.UC_ARM64_REG_SP, STACK + (1 << 20) - 64)
        self.machine.reg_write(r.UC_ARM64_REG_LR, HOST + 0x8000)
        self.machine.emu_start(BASE + self.exports[name], HOST + 0x8000)
        return self.machine.reg_read(r.UC_ARM64_REG_X0) & 0xFFFFFFFF


def test_an_emulated_processor_computes_what_this_one_does(tmp_path):
    taeda.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10), nn.GELU(),
        nn.Softmax(-1),
    )  # fmt: skip
    x = taeda.randn(3, 1, 8, 8)
    program = export(model, (x,), dynamic_shapes=({0: Dim("batch", min=1, max=4)},))
    build(program, tmp_path / "net.so", target="arm64")
    arm = Processor((tmp_path / "net.so").read_bytes())
    assert set(arm.exports) == {"net_run", "net_error", "net_set_threads", "net_free", "net_version"}
    assert arm.call("net_set_threads", 1) == 1
    for batch in (3, 4):
        x = taeda.randn(batch, 1, 8, 8)
        _, given = arm.tensor(x.numpy())
        data, result = arm.tensor(np.zeros((batch, 10), np.float32))
        assert arm.call("net_run", given, 1, result, 1) == 0
        found = np.frombuffer(arm.machine.mem_read(data, 40 * batch), np.float32).reshape(batch, 10)
        with taeda.no_grad():
            np.testing.assert_allclose(found, model(x).numpy(), rtol=1e-5, atol=1e-6)
    code = arm.call("net_run", given, 1, given, 1)
    at = arm.call("net_error", code)
    assert (
        bytes(arm.machine.mem_read(at, 99))
        .partition(b"\0")[0]
        .startswith(b"net_run: output 0 (output0): expected 2 dim")
    )
