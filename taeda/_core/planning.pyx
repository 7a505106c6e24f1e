"""Making plans: of a function's call, and of ops, by the forms of their arguments.

`make_plan` calls a function on *twins* of its arguments, tensors of the same form on the meta device, while a recorder
collects the launches. It turns their addresses into blocks and offsets. Only launches can be repeated. If the body
reads elements, calls LAPACK or writes to memory itself, `make_plan` returns the reason why there is no plan.

An op with ``planned=True`` in its stanza keeps its plans by the forms of its arguments (`call_planned`). At the first
call with a form its body runs, at the second it runs on the meta device, and then not again. See docs/notes/0014.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memcpy

from .devices cimport CPU_NUMBER, META_NUMBER, swap_place
from .memory cimport Storage, new_storage
from .plan cimport (
    BAD, FIXED, GIVEN, LINE, MADE, MOST_POINTERS, MOST_PREPARED, MOST_STORAGES, MOST_WORDS, PREPARED, SCRATCH, Fields,
    Form, Key, Plan, Pointer, Ready, add_argument, form_key, prototype,
)
from .recorder cimport (
    CONSTANT, FLAG, HELD, NUMBERS, Block, Recorder, Step, begin_recording, end_recording, free_recorder, is_touched,
)
from .tensor cimport (
    CONJUGATES, ITEMSIZE, NOTHING, U8, Op, Tensor, address_of, alias_tensor, call_body, default_code, empty_tensor,
    set_planner,
)

from ..kernels import build
from .plan import NoPlan
from .pool import get_num_threads

cdef enum:
    MOST_KEPT = 512          # plans of an op


cdef void extent(Tensor t, int64_t* low, int64_t* high) noexcept:
    """Bytes that the elements of ``t`` take before its first element, and from there on."""
    cdef int d
    low[0], high[0] = 0, ITEMSIZE[t.code]
    for d in range(t.nd):
        if t.sizes[d] > 1:
            if t.strides[d] < 0:
                low[0] -= (t.sizes[d] - 1) * t.strides[d] * ITEMSIZE[t.code]
            else:
                high[0] += (t.sizes[d] - 1) * t.strides[d] * ITEMSIZE[t.code]


cdef class Maker:
    """The twins of the arguments of a call; turns its launches into a plan."""

    cdef list tensors        # the arguments, in order
    cdef list twins
    cdef list storages       # of the twins
    cdef list given          # see Plan
    cdef dict by_id          # twins by the id of their tensor

    def __cinit__(self):
        self.tensors, self.twins, self.storages, self.given, self.by_id = [], [], [], [], {}

    cdef int add(self, list tensors) except -1:
        """Make the twins, in storages of their own, with the same offsets and shared memory as the arguments."""
        cdef Tensor t, first
        cdef int64_t low, high, before, after
        cdef Storage storage
        cdef list groups = []
        for t in tensors:
            for group in groups:
                if (<Tensor>group[0]).storage is t.storage:
                    group.append(t)
                    break
            else:
                groups.append([t])
        for group in groups:
            first = <Tensor>group[0]
            before = after = 0
            for t in group:
                extent(t, &low, &high)
                before, after = max(before, low - (t.raw - first.raw)), max(after, high + (t.raw - first.raw))
            before = (before + LINE - 1) // LINE * LINE + <int64_t>(<uintptr_t>first.raw % LINE)
            storage = new_storage(before + after)
            self.storages.append(storage)
            self.given.append((index_of(tensors, first), before))
            for t in group:
                if id(t) not in self.by_id:
                    self.by_id[id(t)] = self.twin(t, storage, before + (t.raw - first.raw))
        for t in tensors:
            self.tensors.append(t)
            self.twins.append(self.by_id[id(t)])
        return 0

    cdef Tensor twin(self, Tensor t, Storage storage, int64_t offset):
        cdef Tensor base = <Tensor>Tensor.__new__(Tensor)
        cdef Tensor made
        base.storage, base.raw, base.code = storage, storage.data, t.code
        base.holds, base.device_type = t.holds, 0
        made = alias_tensor(base, t.nd, t.sizes, t.strides, 0)
        made.raw = storage.data + offset
        made.holds, made.device_type = NOTHING, 1
        return made

    cdef object exchange(self, object x):
        """``x`` with twins in place of its tensors."""
        if isinstance(x, Tensor):
            return self.by_id[id(x)]
        if type(x) is tuple:
            return tuple([self.exchange(y) for y in <tuple>x])
        if type(x) is list:
            return [self.exchange(y) for y in <list>x]
        return x


cdef int index_of(list tensors, object t) except -1:
    cdef int i
    for i in range(len(tensors)):
        if tensors[i] is t:
            return i
    raise ValueError("not among the tensors")


cdef int collect(object x, list found) except -1:
    """The tensors of an argument."""
    if isinstance(x, Tensor):
        found.append(x)
    elif type(x) is tuple or type(x) is list:
        for y in x:
            collect(y, found)
    return 0


def make_plan(function, *args):
    """The plan of ``function(*args)``.

    Args:
        function: an op, or a Python function of tensors written in ops, that gives tensors in tuples and lists.
        args: tensors on the CPU, numbers, strings, and tuples and lists of them. They are not changed.

    Raises:
        NoPlan: the call does something that is not a launch.
    """
    cdef list tensors = []
    for x in args:
        collect(x, tensors)
    cdef Plan plan = record(function, list(args), tensors)
    plan.key = form_key(tensors)
    return plan


cdef Plan record(object function, list args, list tensors):
    cdef Recorder* recorder = begin_recording()
    cdef Maker maker = Maker()
    cdef int before = swap_place(META_NUMBER)
    try:
        try:
            maker.add(tensors)
            result = function(*[maker.exchange(x) for x in args])
        except NotImplementedError as error:
            raise NoPlan(str(error)) from error
        finally:
            swap_place(before)
        return finish(recorder, maker, result)
    finally:
        end_recording()
        free_recorder(recorder)


cdef int by_size(const void* a, const void* b) noexcept nogil:
    """Order: larger first, then by first use."""
    cdef const Room* x = <const Room*>a
    cdef const Room* y = <const Room*>b
    if x.nbytes != y.nbytes:
        return 1 if x.nbytes < y.nbytes else -1
    return 1 if x.block > y.block else -1


cdef int by_offset(const void* a, const void* b) noexcept nogil:
    cdef int64_t x = (<const int64_t*>a)[0], y = (<const int64_t*>b)[0]
    return (x > y) - (x < y)


cdef int64_t first_free(const Room* rooms, int64_t n, const Room* room, int64_t bin, int64_t begin,
                        int64_t* taken) noexcept nogil:
    """The first offset from ``begin`` on in ``bin`` where ``room`` overlaps no other that is in use with it."""
    cdef int64_t k, found = 0, at = begin
    for k in range(n):
        if rooms[k].bin == bin and rooms[k].first <= room.last and room.first <= rooms[k].last:
            taken[2 * found], taken[2 * found + 1] = rooms[k].offset, rooms[k].offset + rooms[k].nbytes
            found += 1
    qsort(taken, found, 16, by_offset)
    for k in range(found):
        if taken[2 * k] >= at + room.nbytes:
            break
        at = max(at, taken[2 * k + 1])
    return at


cdef int64_t arrange(Room* rooms, int64_t n, int64_t begin) except -1:
    """Assign offsets to blocks, from ``begin`` on: blocks that are in use together do not overlap. The total bytes.

    The largest first, each at the first offset that is free during its lifetime. Blocks in bins stay there.
    """
    cdef int64_t i, top = begin
    # the ranges of blocks that are in use together with it
    cdef int64_t* taken = <int64_t*>malloc(n * 16 + 1)
    if taken == NULL:
        raise MemoryError()
    qsort(rooms, n, sizeof(Room), by_size)
    for i in range(n):
        if rooms[i].bin == 0:
            rooms[i].offset = first_free(rooms, i, &rooms[i], 0, begin, taken)
            top = max(top, rooms[i].offset + rooms[i].nbytes)
    free(taken)
    return top


cdef int arrange_in(Room* rooms, int64_t n, Room* bins, int64_t nbins) except -1:
    """Place blocks in the memory of ``bins`` that is not in use yet. Then `arrange` places the others.

    The largest first, each into the smallest bin where it fits and which is first used after its last use.
    """
    cdef int64_t i, k, at
    cdef int64_t* taken = <int64_t*>malloc(n * 16 + 1)
    if taken == NULL:
        raise MemoryError()
    qsort(rooms, n, sizeof(Room), by_size)
    qsort(bins, nbins, sizeof(Room), by_size)
    for i in range(n):
        for k in range(nbins - 1, -1, -1):
            if bins[k].nbytes < rooms[i].nbytes or bins[k].first <= rooms[i].last or rooms[i].first < 0:
                continue
            at = first_free(rooms, i, &rooms[i], bins[k].block + 1, 0, taken)
            if at + rooms[i].nbytes <= bins[k].nbytes:
                rooms[i].bin, rooms[i].offset = bins[k].block + 1, at
                break
    free(taken)
    return 0


cdef object describe(object x, Maker maker, dict made):
    """The result of the function, with Forms in place of tensors."""
    cdef Tensor t
    cdef Form form
    if isinstance(x, Tensor):
        t = <Tensor>x
        form = Form()
        form.argument = None
        if t.holds == CONJUGATES:
            raise NoPlan("a conjugate view is given back")
        for i in range(len(maker.twins)):
            if maker.twins[i] is t:
                form.argument = i
                return form
        form.like = prototype(t)
        form.offset = t.raw - t.storage.data
        for i in range(len(maker.storages)):
            if maker.storages[i] is t.storage:
                form.place, form.index = GIVEN, i
                return form
        form.place, form.index = MADE, made.setdefault(<uintptr_t>t.storage.data, len(made))
        return form
    if type(x) is tuple:
        return tuple([describe(y, maker, made) for y in <tuple>x])
    if isinstance(x, tuple) and hasattr(type(x), "n_fields"):
        return Fields(type(x), tuple([describe(y, maker, made) for y in x]))
    if type(x) is list:
        return [describe(y, maker, made) for y in <list>x]
    if x is None or type(x) in (int, float, bool, str):
        return x
    raise NoPlan(f"{type(x).__name__} is given back")


cdef Plan finish(Recorder* r, Maker maker, object result):
    """The plan from the launches of the recorder."""
    cdef Plan plan = Plan()
    cdef int64_t i
    cdef dict made = {}
    cdef Storage storage
    if r.refused != NULL:
        raise NoPlan((<bytes>r.refused).decode())
    for i in range(r.nblocks):
        if is_touched(&r.blocks[i]):
            raise NoPlan(f"the body writes to a block of {r.blocks[i].nbytes} bytes itself")
    plan.result = describe(result, maker, made)
    plan.given, plan.held, plan.tables, plan.addresses = maker.given, [], [], []
    plan.made = [None] * len(made)
    if len(made) > MOST_STORAGES:
        raise NoPlan("there are too many results")
    plan.filled, plan.prepared = [], []
    plan.steps = <Step*>malloc(r.nsteps * sizeof(Step) + 1)
    plan.pointers = <Pointer*>malloc(r.npointers * sizeof(Pointer) + 1)
    plan.numbers = <int64_t*>malloc(r.nnumbers * 8 + 8)
    plan.flagged = <int8_t*>calloc(r.nsteps + 1, 1)
    if plan.steps == NULL or plan.pointers == NULL or plan.numbers == NULL or plan.flagged == NULL:
        raise MemoryError()
    if r.nsteps:
        memcpy(plan.steps, r.steps, r.nsteps * sizeof(Step))
    if r.nnumbers:
        memcpy(plan.numbers, r.numbers, r.nnumbers * 8)
    plan.nsteps, plan.npointers, plan.nnumbers = r.nsteps, r.npointers, r.nnumbers
    place_blocks(plan, r, maker, made)
    plan.writes = []
    for i in range(len(maker.storages)):
        storage = <Storage>maker.storages[i]
        if storage.version:
            plan.writes.append(((<tuple>maker.given[i])[0], storage.version))
    return plan


cdef int place_blocks(Plan plan, Recorder* r, Maker maker, dict made) except -1:
    """Turn the addresses of all launches into places."""
    cdef int64_t i, k, found, number, n = 0, flags = 0, at
    cdef Pointer* p
    cdef Block* block
    cdef Room* rooms = <Room*>calloc(r.nblocks + 1, sizeof(Room))
    cdef int64_t* room_of = <int64_t*>calloc(r.nblocks + 1, 8)  # one more than the number of its room
    cdef int64_t* offsets = <int64_t*>calloc(r.nblocks + 1, 8)
    cdef dict given = {<uintptr_t>(<Storage>maker.storages[i]).data: i for i in range(len(maker.storages))}
    cdef dict tables = {}, prepared = {}
    try:
        for i in range(r.nblocks):
            if <uintptr_t>r.blocks[i].data in made and r.blocks[i].purpose != FLAG:
                plan.made[made[<uintptr_t>r.blocks[i].data]] = r.blocks[i].nbytes
                if r.blocks[i].purpose == CONSTANT:
                    raise NoPlan("a table of the body is given back")
        if None in plan.made:
            raise NoPlan("a tensor of before the call is given back")
        for i in range(r.nsteps):
            if r.steps[i].npointers > MOST_POINTERS:
                raise NoPlan("a launch has too many operands")
            for k in range(r.steps[i].pointers, r.steps[i].pointers + r.steps[i].npointers):
                p = &plan.pointers[k]
                found = r.found[k]
                if found < 0:
                    if r.pointers[k] != NULL and not build.is_kernel(<uintptr_t>r.pointers[k]):
                        raise NoPlan("a kernel is given an address of the body's own")
                    p.place, p.index, p.offset = FIXED, 0, <int64_t>r.pointers[k]
                    continue
                block = &r.blocks[found]
                at = r.pointers[k] - block.data
                if block.purpose == FLAG:
                    plan.flagged[i] = True
                    if not room_of[found]:
                        room_of[found], offsets[found] = 1, flags
                        flags += (block.nbytes + 7) & -8
                    p.place, p.index, p.offset = SCRATCH, 0, offsets[found] + at
                elif block.purpose == HELD:
                    if not isinstance(<object>block.owner, Storage):
                        plan.tables.append(<object>block.owner)
                    elif not any([<object>block.owner is x for x in plan.held]):
                        plan.held.append(<object>block.owner)
                        plan.addresses.append(<uintptr_t>block.data)
                    p.place, p.index, p.offset = FIXED, 0, <int64_t>r.pointers[k]
                elif block.purpose == CONSTANT:
                    if found not in tables:
                        tables[found] = keep(plan, block)
                    p.place, p.index, p.offset = FIXED, 0, <int64_t>address_of(<Tensor>tables[found]) + at
                elif <uintptr_t>block.data in given:
                    p.place, p.index, p.offset = GIVEN, given[<uintptr_t>block.data], at
                elif <uintptr_t>block.data in made:
                    p.place, p.index, p.offset = MADE, made[<uintptr_t>block.data], at
                elif found in prepared:
                    p.place, p.index, p.offset = PREPARED, prepared[found], at
                else:
                    if (block.prepared and not room_of[found] and len(prepared) < MOST_PREPARED
                            and only_source(r, &r.steps[i], found, given, maker) >= 0):
                        prepared[found] = len(prepared)
                        plan.prepared.append((i, only_source(r, &r.steps[i], found, given, maker), block.nbytes))
                        p.place, p.index, p.offset = PREPARED, prepared[found], at
                        continue
                    if not room_of[found]:
                        rooms[n].block, rooms[n].first = found, i
                        rooms[n].nbytes = (block.nbytes + LINE) // LINE * LINE
                        if block.purpose == NUMBERS:
                            rooms[n].first = 0
                        n += 1
                        room_of[found] = n
                    rooms[room_of[found] - 1].last = i
                    p.place, p.index, p.offset = SCRATCH, found + 1, at   # the block for now
        plan.nflags = flags
        plan.scratch = arrange(rooms, n, (flags + LINE - 1) // LINE * LINE)
        for i in range(n):
            offsets[rooms[i].block] = rooms[i].offset
        for k in range(r.npointers):
            p = &plan.pointers[k]
            if p.place == SCRATCH and p.index:
                p.offset += offsets[p.index - 1]
                p.index = 0
        for i in range(r.nblocks):
            if r.blocks[i].purpose == NUMBERS:
                if <uintptr_t>r.blocks[i].data in made:
                    plan.filled.append((True, made[<uintptr_t>r.blocks[i].data], 0, keep(plan, &r.blocks[i])))
                elif room_of[i]:
                    plan.filled.append((False, 0, offsets[i], keep(plan, &r.blocks[i])))
    finally:
        free(rooms)
        free(room_of)
        free(offsets)
    return 0


cdef int64_t only_source(Recorder* r, Step* step, int64_t made, dict given, Maker maker) except -2:
    """The only argument that a launch reads to compute block ``made``, beside tables; -1 if it reads more."""
    cdef int64_t k, found, number, source = -1
    for k in range(step.pointers, step.pointers + step.npointers):
        found = r.found[k]
        if found < 0 or found == made or r.blocks[found].purpose == CONSTANT:
            continue
        number = given.get(<uintptr_t>r.blocks[found].data, -1)
        if number < 0 or source >= 0 and source != number or (<Storage>maker.storages[number]).version:
            return -1
        source = number
    return source


cdef Tensor keep(Plan plan, Block* block):
    """A copy of a table that the body filled, which lives as long as the plan."""
    cdef Tensor table
    cdef int before = swap_place(CPU_NUMBER)
    try:
        table = empty_tensor(U8, 1, &block.nbytes)
    finally:
        swap_place(before)
    memcpy(address_of(table), block.data, block.nbytes)
    plan.tables.append(table)
    return table


def count_prepared(Tensor t):
    """The number of kept blocks that plans have computed from the memory of ``t``."""
    return sum([type(x) is Ready for x in (t.storage.prepared or {}).values()])


# ---- plans of ops ----------------------------------------------------------------------------------------------------

cdef object call_planned(Op op, PyObject** bound):
    cdef int64_t words[MOST_WORDS]
    cdef PyObject* found[MOST_STORAGES]
    cdef Key key
    cdef int i
    cdef bytes name
    key.words, key.n, key.room, key.ntensors, key.tensors = words, 2, MOST_WORDS, 0, found
    words[0], words[1] = get_num_threads(), default_code()
    for i in range(op.nparams):
        if not add_argument(&key, bound[i]):
            return call_body(op, bound)
    name = PyBytes_FromStringAndSize(<char*>words, key.n * 8)
    known = op.plans.get(name)
    if known is None:
        if len(op.plans) >= MOST_KEPT:
            op.plans.clear()
        op.plans[name] = 1   # seen once
    elif known is 1:
        known = op.plans[name] = plan_of_body(op, bound)
    if type(known) is Plan:
        result = (<Plan>known).repeat([<object>found[i] for i in range(key.ntensors)])
        if result is not BAD:
            return result
    return call_body(op, bound)


cdef object plan_of_body(Op op, PyObject** bound):
    """The plan of the body, or the reason why there is none."""
    cdef list tensors = []
    cdef list args = [<object>bound[i] for i in range(op.nparams)]
    for x in args:
        collect(x, tensors)
    try:
        return record(op.run_bound, args, tensors)
    except RuntimeError as error:   # NoPlan, or an error of the body, which runs next and raises it
        return str(error)


set_planner(call_planned)
