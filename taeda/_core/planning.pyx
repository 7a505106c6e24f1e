"""Making plans: of a function's call, and of ops, by the forms of their arguments.

`make_plan` calls a function on *stand-ins* of its arguments, tensors of the same form on the meta device, while a
recorder collects the launches. It turns their addresses into blocks and offsets. Only launches can be repeated. If the
body reads elements, calls LAPACK or writes to memory itself, `make_plan` returns the reason why there is no plan.

An op with ``planned=True`` in its stanza keeps its plans by the forms of its arguments (`call_planned`). At the first
call with a form its body runs, at the second it runs on the meta device, and then not again. See docs/notes/0014.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uintptr_t

from .devices cimport META_NUMBER, elsewhere, here, swap_place
from .linking cimport Linker, extent
from .memory cimport Storage, new_storage
from .plan cimport BAD, MOST_STORAGES, MOST_WORDS, Key, Plan, add_argument, at_hand, form_key, keep_at_hand
from .program cimport GIVEN, LINE, PREPARED, Form, Ready, prototype
from .recorder cimport (
    CONSTANT, Recorder, begin_recording, end_recording, find_block, free_recorder, is_observing, is_touched,
)
from .tensor cimport (
    CONJUGATES, NOTHING, Op, Tensor, alias_tensor, call_body, has_mode, set_planner, setting_word,
)

from ..kernels import build
from .memory import MetaValueError
from .pool import get_num_threads
from .program import NoPlan

cdef extern from "Python.h":
    PyObject** PySequence_Fast_ITEMS(object)

cdef enum:
    MOST_KEPT = 512          # plans of an op


cdef class PlanLinker(Linker):
    """The stand-ins of the arguments of a call; turns its launches into a plan."""

    cdef list stand_ins          # of the arguments, in order
    cdef list storages       # of the stand-ins
    cdef list before         # bytes in each storage before the first element of the tensor in `Program.given`
    cdef dict by_id          # stand-ins by the id of their tensor
    cdef dict blocks         # number of the block of a storage -> its number

    def __cinit__(self):
        self.program = Plan()
        self.stand_ins, self.storages, self.before, self.by_id, self.blocks = [], [], [], {}, {}

    cdef int add(self, list tensors) except -1:
        """Make the stand-ins, in storages of their own, with the same offsets and shared memory as the arguments."""
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
            self.given[id(storage)] = len(self.storages)
            self.storages.append(storage)
            self.program.given.append(index_of(tensors, first))
            self.before.append(before)
            for t in group:
                if id(t) not in self.by_id:
                    self.by_id[id(t)] = self.stand_in(t, storage, before + (t.raw - first.raw))
        for t in tensors:
            self.stand_ins.append(self.by_id[id(t)])
        return 0

    cdef Tensor stand_in(self, Tensor t, Storage storage, int64_t offset):
        cdef Tensor base = <Tensor>Tensor.__new__(Tensor)
        cdef Tensor made
        base.storage, base.raw, base.code = storage, storage.data, t.code
        base.holds, base.device_type = t.holds, 0
        made = alias_tensor(base, t.nd, t.sizes, t.strides, 0)
        made.raw = storage.data + offset
        made.holds, made.device_type = NOTHING, 1
        return made

    cdef object exchange(self, object x):
        """``x`` with stand-ins in place of its tensors."""
        if isinstance(x, Tensor):
            return self.by_id[id(x)]
        if type(x) is tuple:
            return tuple([self.exchange(y) for y in <tuple>x])
        if type(x) is list:
            return [self.exchange(y) for y in <list>x]
        return x


    # ---- the call ----------------------------------------------------------------------------------------------------
    cdef Plan finish(self, Recorder* r, object result):
        """The plan from the launches of the recorder."""
        cdef Plan plan = <Plan>self.program
        cdef int64_t i
        if r.refused != NULL:
            raise NoPlan((<bytes>r.refused).decode())
        for i in range(r.nblocks):
            if is_touched(&r.blocks[i]):
                raise NoPlan(f"the body writes to a block of {r.blocks[i].nbytes} bytes itself")
        for i in range(len(self.storages)):
            self.blocks[find_block(r, (<Storage>self.storages[i]).data)] = i
        plan.result = self.describe(r, result)
        self.link(r)
        self.writes = [(storage, (<Storage>storage).version) for storage in self.storages if (<Storage>storage).version]
        self.count_writes()
        return plan

    cdef object describe_tensor(self, Recorder* r, Tensor t):
        cdef Form form
        if id(t) in self.forms:
            return self.forms[id(t)]
        form = self.new_form(t)
        if t.holds == CONJUGATES:
            raise NoPlan("a conjugate view is given back")
        for i in range(len(self.stand_ins)):
            if self.stand_ins[i] is t:
                form.argument = i
                return form
        form.like, form.inference = prototype(t), t.inference
        if id(t.storage) in self.given:
            form.place, form.index = GIVEN, self.given[id(t.storage)]
            form.offset = t.raw - t.storage.data - <int64_t>self.before[form.index]
        else:
            self.place_made(r, form, t)
        return form

    cdef bint add_given(self, Recorder* r, int64_t found, char* address, char** slot) except -1:
        cdef int64_t number
        if found < 0:
            if not build.is_kernel(<uintptr_t>address):
                raise NoPlan("a kernel is given an address of the body's own")
            slot[0] = address
        elif found in self.blocks:
            number = self.blocks[found]
            self.patches.append((GIVEN, number, address - r.blocks[found].data - <int64_t>self.before[number],
                                 <uintptr_t>slot))
        else:
            return False
        return True

    cdef int prepare(self, Recorder* r, int64_t i, int64_t made) except -1:
        """If the launch reads one argument, beside tables, the block is kept with the argument's storage."""
        cdef int64_t k, found, number, source = -1
        for k in range(r.steps[i].pointers, r.steps[i].pointers + r.steps[i].npointers):
            found = r.found[k]
            if found < 0 or found == made or r.blocks[found].purpose == CONSTANT:
                continue
            number = self.blocks.get(found, -1)
            if number < 0 or source >= 0 and source != number or (<Storage>self.storages[number]).version:
                return 0
            source = number
        if source >= 0:
            self.ready[made] = PREPARED, len(self.ready)
            self.program.prepared.append((i, source, r.blocks[made].nbytes))
        return 0


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
    cdef PlanLinker linker = PlanLinker()
    cdef int before = swap_place(META_NUMBER)
    try:
        try:
            linker.add(tensors)
            result = function(*[linker.exchange(x) for x in args])
        except MetaValueError as error:
            raise NoPlan(str(error)) from error
        finally:
            swap_place(before)
        return linker.finish(recorder, result)
    finally:
        end_recording()
        free_recorder(recorder)


def count_prepared(Tensor t):
    """The number of kept blocks that plans have computed from the memory of ``t``."""
    return sum([type(x) is Ready for x in (t.storage.prepared or {}).values()])


# ---- plans of ops ----------------------------------------------------------------------------------------------------

cdef object call_planned(Op op, PyObject** bound):
    result = repeat_plan(op.plans, op.run_bound, bound, op.nparams)
    return call_body(op, bound) if result is BAD else result


cdef object repeat_plan(dict plans, object function, PyObject** args, int n):
    """The results of a call of ``function`` by its plan; BAD where there is none.

    ``plans`` has for each form of arguments 1 after the first call, and then a plan, or the reason why there is none.
    """
    cdef int64_t words[MOST_WORDS]
    cdef PyObject* found[MOST_STORAGES]
    cdef Key key
    cdef int i
    cdef bytes name
    key.words, key.n, key.room, key.ntensors, key.tensors = words, 2, MOST_WORDS, 0, found
    words[0], words[1] = get_num_threads(), setting_word()
    for i in range(n):
        if not add_argument(&key, args[i]):
            return BAD
    known = at_hand(&key, plans)
    if known is None:
        name = PyBytes_FromStringAndSize(<char*>words, key.n * 8)
        known = plans.get(name)
        if known is None:
            if len(plans) >= MOST_KEPT:
                plans.clear()
            plans[name] = 1   # seen once
        else:
            if known is 1:
                known = plans[name] = plan_or_reason(function, [<object>args[i] for i in range(n)])
            keep_at_hand(&key, plans, name, known)
    if type(known) is Plan:
        return (<Plan>known).repeat([<object>found[i] for i in range(key.ntensors)])
    return BAD


cdef object plan_or_reason(object function, list args):
    cdef list tensors = []
    for x in args:
        collect(x, tensors)
    try:
        return record(function, args, tensors)
    except NoPlan as error:
        return str(error)


set_planner(call_planned)


cdef class Planned:
    """A Python function of launches alone, which from the third call with arguments of one form on is not run: its
    launches are repeated."""

    cdef object function
    cdef dict plans

    def __init__(self, function):
        self.function, self.plans = function, {}

    def __call__(self, *args):
        result = BAD
        if not (has_mode() or elsewhere and (here() or is_observing())):
            result = repeat_plan(self.plans, self.function, PySequence_Fast_ITEMS(args), <int>len(args))
        return self.function(*args) if result is BAD else result

    def clear(self):
        """Forget the plans: the function would launch something else now."""
        self.plans.clear()
