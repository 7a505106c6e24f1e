"""The caching allocator and Storage."""

import random
import threading
import weakref

import pytest

import taeda
from taeda._core import memory


def allocated():
    return memory.memory_stats()["allocated"]


def test_blocks_are_aligned_and_hold_what_was_asked_for():
    sizes = [0, 1, 63, 64, 65, 511, 512, 513, 4095, 4096, 4097, 65535, 1 << 20, (1 << 20) + 1, (1 << 21) + 5, 3 << 21]
    assert set(memory._exercise(sizes)) == {0}  # writes every byte; each address is a multiple of 64


@pytest.mark.parametrize("size", [1, 64, 65, 500, 513, 1000, 4097, 100_001, 1 << 20, 5_000_000])
def test_rounding_wastes_at_most_a_ninth_above_small_sizes(size):
    before = allocated()
    storage = memory._storage(size)
    taken = allocated() - before
    del storage
    assert size <= taken <= max(size + 63, size * 9 / 8)


def test_a_freed_block_is_used_again():
    first = memory._storage(1 << 20)
    address = first.data_ptr()
    del first
    calls = memory.memory_stats()["system_allocations"]
    second = memory._storage(1 << 20)
    assert second.data_ptr() == address
    assert memory.memory_stats()["system_allocations"] == calls


def test_statistics_and_peak():
    memory.reset_peak_memory_stats()
    before = memory.memory_stats()
    storage = memory._storage(1 << 22)
    stats = memory.memory_stats()
    assert stats["allocated"] - before["allocated"] == 1 << 22
    assert stats["peak_allocated"] >= before["allocated"] + (1 << 22)
    assert stats["allocations"] == before["allocations"] + 1
    del storage
    assert allocated() == before["allocated"]
    assert memory.memory_stats()["releases"] == before["releases"] + 1
    memory.reset_peak_memory_stats()
    assert memory.memory_stats()["peak_allocated"] == before["allocated"]


def test_empty_cache_keeps_a_slab_that_was_carved_further_since():
    slabs = set()
    begun = [memory._storage(3584)]
    while begun[-1].data_ptr() // 65536 in slabs or len(begun) < 30:  # until the last one begins a slab of its own
        slabs.add(begun[-1].data_ptr() // 65536)
        begun.append(memory._storage(3584))
    memory.empty_cache()
    rest = [memory._storage(3584) for _ in range(40)]  # fills that slab, and others
    assert any(s.data_ptr() // 65536 == begun[-1].data_ptr() // 65536 for s in rest)
    memory.empty_cache()
    before = memory.memory_stats()["reserved"]
    del begun[-1]
    memory.empty_cache()
    assert memory.memory_stats()["reserved"] == before


def test_empty_cache_gives_everything_unused_back():
    memory.empty_cache()
    before = memory.memory_stats()["cached"]  # in slabs that what tests before have left is in
    kept = [memory._storage(n) for n in (100, 5000, 1 << 21)]
    rest = [
        memory._storage(n) for n in (100, 1000, 3000, 10_000, 1 << 19, 1 << 22) for _ in range(300 if n < 4096 else 2)
    ]
    del rest
    memory.empty_cache()
    stats = memory.memory_stats()
    assert stats["cached"] - before < 2 << 20  # partly used slabs at most
    assert [s.nbytes() for s in kept] == [100, 5000, 1 << 21]
    again = [memory._storage(1000) for _ in range(1000)]
    assert len({s.data_ptr() for s in again}) == 1000


def test_out_of_memory_fails_at_once_and_leaves_the_program_usable():
    failures = memory.memory_stats()["failures"]
    with pytest.raises(memory.OutOfMemoryError, match=r"out of memory on cpu: tried to allocate 32\.00 TiB") as info:
        memory._storage(1 << 45)
    assert isinstance(info.value, RuntimeError)
    with pytest.raises(memory.OutOfMemoryError):
        memory._storage((1 << 62) + 1)
    assert memory.memory_stats()["failures"] == failures + 2
    assert memory._storage(1000).nbytes() == 1000


def test_medium_blocks_do_not_overlap_and_their_pages_are_given_back():
    """Blocks of some tens of KiB to 2 MiB share huge pages: many of every size, taken and freed in any order."""
    memory.empty_cache()
    before = memory.memory_stats()["reserved"]
    order, held = random.Random(0), []
    for turn in range(3):
        for i in range(300):
            size = int(2 ** order.uniform(15, 21))
            storage = memory._storage(size)
            storage.fill_(i % 251)
            held.append((storage, i % 251))
        order.shuffle(held)
        for storage, value in held:
            assert bytes(memoryview(storage)[:: max(len(storage) // 7, 1)]).count(value) >= 7
            assert storage[0] == storage[len(storage) - 1] == value
        if turn == 0:  # nothing was cached: what is held beyond the blocks are ends of pages
            stats = memory.memory_stats()
            assert stats["cached"] < stats["allocated"] // 8 + (4 << 20)
        del held[turn * 100 :], storage
        if turn == 1:
            memory.empty_cache()
    held.clear()
    memory.empty_cache()
    assert memory.memory_stats()["reserved"] <= before


def test_negative_sizes_are_refused():
    with pytest.raises(RuntimeError, match="at least 0 bytes, got -1"):
        memory._storage(-1)


def test_memory_limit():
    memory.empty_cache()
    memory.set_memory_limit(allocated() + (8 << 20))
    try:
        held = memory._storage(6 << 20)
        with pytest.raises(memory.OutOfMemoryError):
            memory._storage(4 << 20)
        del held
        assert memory._storage(4 << 20).nbytes() == 4 << 20
    finally:
        memory.set_memory_limit(None)


def test_cache_limit():
    limit = memory.memory_stats()["cache_limit"]
    memory.empty_cache()
    try:
        memory.set_cache_limit(4 << 20)
        base = memory.memory_stats()["reserved"]
        held = [memory._storage(2 << 20) for _ in range(16)]
        del held
        assert memory.memory_stats()["reserved"] - base <= 4 << 20
        memory.set_cache_limit(0)
        assert memory.memory_stats()["reserved"] - base <= 0
        with pytest.raises(ValueError, match="at least 0 bytes"):
            memory.set_cache_limit(-1)
    finally:
        memory.set_cache_limit(limit)


def test_drifting_sizes_do_not_pile_up():
    memory.empty_cache()
    memory.reset_peak_memory_stats()
    for megabytes in range(32, 160):  # all of them kept would be 12 GB
        memory._storage(megabytes << 20)
    stats = memory.memory_stats()
    assert stats["peak_reserved"] <= stats["peak_allocated"] * 9 / 8 + (65 << 20)
    memory.empty_cache()


def test_storage_properties_and_resize():
    storage = memory._storage(100)
    assert (storage.nbytes(), storage.version, storage.owner, storage.resizable()) == (100, 0, None, True)
    assert storage.data_ptr() % 64 == 0
    assert weakref.ref(storage)() is storage
    before = allocated()
    memory._resize(storage, 128)
    assert storage.nbytes() == 128 and allocated() == before  # the same block
    memory._resize(storage, 1 << 20)
    assert storage.nbytes() == 1 << 20
    memory._resize(storage, 0)
    assert storage.nbytes() == 0
    with pytest.raises(RuntimeError):
        memory._resize(storage, -5)
    with pytest.raises(AttributeError):
        storage.version = 3
    assert storage.resize_(10) is storage
    assert storage.size() == len(storage) == 10
    assert storage.clone().tolist() == storage.tolist()
    assert storage.device == taeda.device("cpu") and storage.element_size() == 1


def test_a_view_of_a_resized_storage_stays_readable():
    t = taeda.arange(4.0)
    view = t[1:]
    t.resize_(100_000)
    assert t[:4].tolist() == [0.0, 1.0, 2.0, 3.0]
    memory.empty_cache()
    assert view.tolist() == [1.0, 2.0, 3.0]


def test_threads_share_the_allocator():
    before = allocated()
    seen = []

    def work():
        for _ in range(200):
            seen.append(set(memory._exercise([64, 1000, 5000, 100_000])))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(seen) == 800 and all(s == {0} for s in seen)
    assert allocated() == before


def test_cache_limit_from_the_environment(run_python):
    code = "from taeda._core import memory as m; print(m.memory_stats()['cache_limit'])"
    assert int(run_python(code, TAEDA_CACHE_LIMIT="12345")) == 12345
