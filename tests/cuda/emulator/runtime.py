"""The loops around a translated kernel, and what its checks call, as LLVM's text.

Without barriers a launch is one loop over the threads. With them the threads of a warp run one after the other up to a
barrier or to something they do together (a shuffle, say); what they do together is done when all have come to it.
"""

from __future__ import annotations

import re

from .memory import SHARED, STATES

#: The words of the context, the struct that a launch and its threads share. All have 8 bytes.
_NAMES = (
    "LOW", "SIZE", "UNSHIFT", "DELTA", "SHARED", "SHARED_SIZE", "PARAMS", "STATES", "GLOBALS", "DYNAMIC",
    "GRID_X", "GRID_Y", "GRID_Z", "BLOCK_X", "BLOCK_Y", "BLOCK_Z", "CTA_X", "CTA_Y", "CTA_Z", "THREADS",
    "COUNT", "KIND", "LINE", "ADDRESS", "BYTES", "THREAD", "STATE", "PINNED", "PINNED_SIZE", "HOST", "HOST_COUNT",
    "WRITTEN", "LOCAL_FIRST", "LOCAL_LAST", "EPOCH", "OTHER", "ERROR", "RACE", "LAUNCH_EPOCH", "BLOCK_EPOCH",
    "WARP_EPOCH", "CELL", "REGION", "REGION_SIZE", "UNORDERED", "UNORDERED_COUNT",
    "TRACE", "TRACE_COUNT", "TRACE_MOST", "DIGEST",
)  # fmt: skip
FIELDS = {name: k for k, name in enumerate(_NAMES)}

#: What can go wrong, by number.
FAULTS = ("", "load", "store", "alignment", "branch", "trap", "barrier", "ended", "warp", "lane", "race")

# Flags of an access.
WRITE, GENERIC, ATOMIC, PURE, STRONG = 1, 2, 4, 8, 16

# Where memory that each thread or block has for itself shows in generic addresses.
PARAM_WINDOW, SHARED_WINDOW, LOCAL_WINDOW = 0x100000000000, 0x200000000000, 0x300000000000

# A thread's state: where it goes on, what it waits for, what it exchanges with its warp, its registers.
WAIT, EXCHANGE, SPILLS = 4, 8, 136

#: What threads do together, by number. 1: the thread has ended; 2: a barrier of the block.
_TOGETHER = (
    "warp", "shfl.up", "shfl.down", "shfl.bfly", "shfl.idx", "vote.all.pred", "vote.any.pred", "vote.uni.pred",
    "vote.ballot.b32", "redux.add.u32", "redux.add.s32", "redux.min.u32", "redux.max.u32", "redux.min.s32",
    "redux.max.s32", "redux.and.b32", "redux.or.b32", "redux.xor.b32",
    "ldmatrix", "ldmatrix.trans", "mma.f16", "mma.bf16",
)  # fmt: skip
BARRIER = 2
KINDS = {"done": 1, "barrier": BARRIER} | {name: 3 + k for k, name in enumerate(_TOGETHER)}

_CHECKS = """
define internal void @fault(ptr %ctx, i64 %kind, i64 %line, i64 %address, i64 %n, i64 %tid) cold noinline {
  put KIND %kind
  put LINE %line
  put ADDRESS %address
  put BYTES %n
  put THREAD %tid
  ret void
}

define internal void @touched(ptr %ctx, i64 %at, i64 %n) alwaysinline {
  %first = get LOCAL_FIRST
  %last = get LOCAL_LAST
  %end = add i64 %at, %n
  %a = call i64 @llvm.umin.i64(i64 %first, i64 %at)
  %b = call i64 @llvm.umax.i64(i64 %last, i64 %end)
  put LOCAL_FIRST %a
  put LOCAL_LAST %b
  ret void
}

define internal ptr @elsewhere(ptr %ctx, ptr %local, i64 %address, i64 %n, i64 %flags, i64 %line, i64 %tid) cold noinline {
  %low.bits = sub i64 %n, 1
  %odd = and i64 %address, %low.bits
  %crooked = icmp ne i64 %odd, 0
  br i1 %crooked, label %misaligned, label %aligned
misaligned:
  call void @fault(ptr %ctx, i64 3, i64 %line, i64 %address, i64 %n, i64 %tid)
  ret ptr null
aligned:
  %delta = get DELTA
  %pinned = get PINNED
  %pinned.size = get PINNED_SIZE
  %p.off = sub i64 %address, %pinned
  %p.in = icmp ult i64 %p.off, %pinned.size
  br i1 %p.in, label %here, label %generic
generic:
  %g = and i64 %flags, 2
  %is.generic = icmp ne i64 %g, 0
  br i1 %is.generic, label %windows, label %host
windows:
  %l.off = sub i64 %address, LOCAL_WINDOW
  %l.in = icmp ult i64 %l.off, LOCAL_SIZE
  br i1 %l.in, label %own, label %w2
own:
  %local.i = ptrtoint ptr %local to i64
  %own.at = add i64 %local.i, %l.off
  call void @touched(ptr %ctx, i64 %own.at, i64 %n)
  br label %here
w2:
  %s.size = get SHARED_SIZE
  %s.off = sub i64 %address, SHARED_WINDOW
  %s.in = icmp ult i64 %s.off, %s.size
  br i1 %s.in, label %block, label %w3
block:
  %s.base = get SHARED
  %s.at = add i64 %s.base, %s.off
  br label %here
w3:
  %m.off = sub i64 %address, PARAM_WINDOW
  %m.end = add i64 %m.off, %n
  %m.in = icmp ule i64 %m.end, PARAM_SIZE
  %w = and i64 %flags, 1
  %read = icmp eq i64 %w, 0
  %m.ok = and i1 %m.in, %read
  br i1 %m.ok, label %param, label %host
param:
  %written = get WRITTEN
  %written.p = inttoptr i64 %written to ptr
  put STATE %written
  %m.base = get PARAMS
  %m.at = add i64 %m.base, %m.off
  %m.p = inttoptr i64 %m.at to ptr
  ret ptr %m.p
here:
  %at = phi i64 [ %address, %aligned ], [ %own.at, %own ], [ %s.at, %block ]
  %state = add i64 %at, %delta
  put STATE %state
  %p = inttoptr i64 %at to ptr
  ret ptr %p
host:
  %table = get HOST
  %count = get HOST_COUNT
  %table.p = inttoptr i64 %table to ptr
  br label %next
next:
  %k = phi i64 [ 0, %host ], [ %k1, %more ]
  %over = icmp uge i64 %k, %count
  br i1 %over, label %nowhere, label %look
look:
  %two = shl i64 %k, 1
  %e.p = getelementptr i64, ptr %table.p, i64 %two
  %e = load i64, ptr %e.p
  %two1 = or i64 %two, 1
  %f.p = getelementptr i64, ptr %table.p, i64 %two1
  %f = load i64, ptr %f.p
  %h.off = sub i64 %address, %e
  %h.end = add i64 %h.off, %n
  %h.in = icmp ule i64 %h.end, %f
  br i1 %h.in, label %registered, label %more
more:
  %k1 = add i64 %k, 1
  br label %next
registered:
  %spare = get OTHER
  put STATE %spare
  %h.p = inttoptr i64 %address to ptr
  ret ptr %h.p
nowhere:
  %w.n = and i64 %flags, 1
  %kind = add i64 %w.n, 1
  call void @fault(ptr %ctx, i64 %kind, i64 %line, i64 %address, i64 %n, i64 %tid)
  ret ptr null
}
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""

# Sets where the block stands in the grid, and makes its shared memory fresh.
_BLOCK = """
define internal void @begin_block(ptr %ctx, i64 %b) {
  %gx = get GRID_X
  %gy = get GRID_Y
  %x = urem i64 %b, %gx
  %rest = udiv i64 %b, %gx
  %y = urem i64 %rest, %gy
  %z = udiv i64 %rest, %gy
  %epoch = get EPOCH
  %epoch1 = add i64 %epoch, 1
  put EPOCH %epoch1
  put BLOCK_EPOCH %epoch1
  DIGEST_CALL
  put CTA_X %x
  put CTA_Y %y
  put CTA_Z %z
  %size = get SHARED_SIZE
  %shared = get SHARED
  %delta = get DELTA
  %at = add i64 %shared, %delta
  %p = inttoptr i64 %at to ptr
  call void @llvm.memset.p0.i64(ptr %p, i8 1, i64 %size, i1 false)
  ret void
}
"""

# Who last wrote and who last read each byte, in two words: the epoch (a number that grows with every launch, block and
# barrier), how often the warp was joined in it, the thread, and three flags. A write's flag 2: it was atomic. A read's: 1,
# other lanes of the warp have read too; 2, other blocks; 4, other warps of the block.
_RACES = """
define internal i1 @unordered(ptr %ctx, i64 %s) {
entry:
  %count = get UNORDERED_COUNT
  %table = get UNORDERED
  %p = inttoptr i64 %table to ptr
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %look ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %look, label %no
look:
  %two = shl i64 %k, 1
  %two1 = or i64 %two, 1
  %a.p = getelementptr i64, ptr %p, i64 %two
  %b.p = getelementptr i64, ptr %p, i64 %two1
  %a = load i64, ptr %a.p
  %b = load i64, ptr %b.p
  %k1 = add i64 %k, 1
  %d = sub i64 %s, %a
  %e = sub i64 %b, %a
  %in = icmp ult i64 %d, %e
  br i1 %in, label %yes, label %next
no:
  ret i1 false
yes:
  ret i1 true
}

define internal i1 @conflict(ptr %ctx, i64 %cell, i64 %tid, i64 %launch, i1 %shared) {
entry:
  %s = lshr i64 %cell, 23
  %old = icmp ult i64 %s, %launch
  br i1 %old, label %launched, label %now
launched:
  br i1 %shared, label %no, label %before
before:
  %r = call i1 @unordered(ptr %ctx, i64 %s)
  ret i1 %r
now:
  %block = get BLOCK_EPOCH
  %other.block = icmp ult i64 %s, %block
  br i1 %other.block, label %yes, label %mine
mine:
  %epoch = get EPOCH
  %earlier = icmp ne i64 %s, %epoch
  br i1 %earlier, label %no, label %same
same:
  %m = and i64 %cell, 4
  %many = icmp ne i64 %m, 0
  br i1 %many, label %yes, label %one
one:
  %t.up = lshr i64 %cell, 3
  %t = and i64 %t.up, 1023
  %x = xor i64 %t, %tid
  %far = icmp uge i64 %x, 32
  br i1 %far, label %yes, label %near
near:
  %e.up = lshr i64 %cell, 13
  %e = and i64 %e.up, 1023
  %we = get WARP_EPOCH
  %joined = icmp ne i64 %e, %we
  br i1 %joined, label %no, label %last
last:
  %other = icmp ne i64 %x, 0
  %f = and i64 %cell, 1
  %lanes = icmp ne i64 %f, 0
  %r2 = or i1 %other, %lanes
  ret i1 %r2
no:
  ret i1 false
yes:
  ret i1 true
}

define internal i64 @reader(ptr %ctx, i64 %r, i64 %me, i64 %tid, i64 %launch) {
entry:
  %s = lshr i64 %r, 23
  %old = icmp ult i64 %s, %launch
  br i1 %old, label %alone, label %now
alone:
  ret i64 %me
now:
  %block = get BLOCK_EPOCH
  %other.block = icmp ult i64 %s, %block
  br i1 %other.block, label %blocks, label %mine
blocks:
  %v1 = or i64 %me, 2
  ret i64 %v1
mine:
  %epoch = get EPOCH
  %earlier = icmp ne i64 %s, %epoch
  br i1 %earlier, label %later, label %same
later:
  %k1 = and i64 %r, 2
  %v2 = or i64 %me, %k1
  ret i64 %v2
same:
  %t.up = lshr i64 %r, 3
  %t = and i64 %t.up, 1023
  %x = xor i64 %t, %tid
  %far = icmp uge i64 %x, 32
  %k2 = and i64 %r, 6
  %base = or i64 %me, %k2
  br i1 %far, label %warps, label %near
warps:
  %v3 = or i64 %base, 4
  ret i64 %v3
near:
  %e.up = lshr i64 %r, 13
  %e = and i64 %e.up, 1023
  %we = get WARP_EPOCH
  %joined = icmp ne i64 %e, %we
  br i1 %joined, label %fresh, label %last
fresh:
  ret i64 %base
last:
  %k3 = and i64 %r, 1
  %other = icmp ne i64 %x, 0
  %o = zext i1 %other to i64
  %l = or i64 %k3, %o
  %v4 = or i64 %base, %l
  ret i64 %v4
}

define internal i1 @race(ptr %ctx, ptr %hp, i64 %n, i64 %flags, i64 %tid) noinline {
entry:
  %at = ptrtoint ptr %hp to i64
  %region = get REGION
  %region.size = get REGION_SIZE
  %off = sub i64 %at, %region
  %in = icmp ult i64 %off, %region.size
  %states = get STATES
  %s.off = sub i64 %at, %states
  %own = icmp ult i64 %s.off, STATES_BYTES
  %not.own = xor i1 %own, true
  %kept = and i1 %in, %not.own
  br i1 %kept, label %begin, label %fine
begin:
  %base = get RACE
  %epoch = get EPOCH
  %we = get WARP_EPOCH
  %m1 = shl i64 %epoch, 23
  %m2 = shl i64 %we, 13
  %m3 = shl i64 %tid, 3
  %m4 = or i64 %m1, %m2
  %me = or i64 %m4, %m3
  %shared.at = get SHARED
  %shared.off = sub i64 %at, %shared.at
  %shared = icmp ult i64 %shared.off, SHARED_BYTES
  %launch.epoch = get LAUNCH_EPOCH
  %block.epoch = get BLOCK_EPOCH
  %launch = select i1 %shared, i64 %block.epoch, i64 %launch.epoch
  %w.f = and i64 %flags, 1
  %writes = icmp ne i64 %w.f, 0
  %a.f = and i64 %flags, 4
  %atomic = icmp ne i64 %a.f, 0
  %p.f = and i64 %flags, 8
  %pure = icmp ne i64 %p.f, 0
  %atomic.mark = select i1 %atomic, i64 2, i64 0
  %mark = or i64 %me, %atomic.mark
  br label %byte
byte:
  %k = phi i64 [ 0, %begin ], [ %k1, %next ]
  %b = add i64 %at, %k
  %b16 = shl i64 %b, 4
  %c = add i64 %base, %b16
  %w.p = inttoptr i64 %c to ptr
  %r.p = getelementptr i64, ptr %w.p, i64 1
  %w = load i64, ptr %w.p
  %r = load i64, ptr %r.p
  %w.hit = call i1 @conflict(ptr %ctx, i64 %w, i64 %tid, i64 %launch, i1 %shared)
  %w.mark = and i64 %w, 2
  %w.atomic = icmp ne i64 %w.mark, 0
  %both = and i1 %w.atomic, %atomic
  %not.both = xor i1 %both, true
  %w.bad = and i1 %w.hit, %not.both
  %w.s = lshr i64 %w, 23
  %w.now = icmp uge i64 %w.s, %launch
  %pure.bad = and i1 %w.now, %pure
  %bad1 = or i1 %w.bad, %pure.bad
  br i1 %bad1, label %wrong, label %second
second:
  br i1 %writes, label %write, label %read
write:
  %r.hit = call i1 @conflict(ptr %ctx, i64 %r, i64 %tid, i64 %launch, i1 %shared)
  %r.s = lshr i64 %r, 23
  %r.now = icmp uge i64 %r.s, %launch
  %r.mark = and i64 %r, 2
  %r.blocks = icmp ne i64 %r.mark, 0
  %r.many = and i1 %r.now, %r.blocks
  %r.bad = or i1 %r.hit, %r.many
  br i1 %r.bad, label %wrong, label %put
put:
  store i64 %mark, ptr %w.p
  br label %next
read:
  br i1 %atomic, label %next, label %note
note:
  %r.new = call i64 @reader(ptr %ctx, i64 %r, i64 %me, i64 %tid, i64 %launch)
  store i64 %r.new, ptr %r.p
  br label %next
next:
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %n
  br i1 %more, label %byte, label %fine
fine:
  ret i1 false
wrong:
  %cell = phi i64 [ %w, %byte ], [ %r, %write ]
  put CELL %cell
  ret i1 true
}
"""

# Notes an access: its address; and what it is, with the thread and the block.
_TRACE = """
define internal void @trace(ptr %ctx, i64 %address, i64 %what, i64 %tid) {
  %count = get TRACE_COUNT
  %trace = get TRACE
  %off = shl i64 %count, 4
  %at = add i64 %trace, %off
  %p = inttoptr i64 %at to ptr
  %q = getelementptr i64, ptr %p, i64 1
  %x = get CTA_X
  %y = get CTA_Y
  %z = get CTA_Z
  %gx = get GRID_X
  %gy = get GRID_Y
  %zy = mul i64 %z, %gy
  %yz = add i64 %y, %zy
  %yx = mul i64 %yz, %gx
  %b = add i64 %x, %yx
  %b.up = shl i64 %b, 40
  %t.up = shl i64 %tid, 30
  %w1 = or i64 %what, %t.up
  %w2 = or i64 %w1, %b.up
  store i64 %address, ptr %p
  store i64 %w2, ptr %q
  %most = get TRACE_MOST
  %count1 = add i64 %count, 1
  %last = sub i64 %most, 1
  %next = call i64 @llvm.umin.i64(i64 %count1, i64 %last)
  put TRACE_COUNT %next
  ret void
}

define internal void @digest(ptr %ctx) {
  %count = get TRACE_COUNT
  %most = get TRACE_MOST
  %half = lshr i64 %most, 1
  %full = icmp ugt i64 %count, %half
  br i1 %full, label %call, label %done
call:
  %f = get DIGEST
  %p = inttoptr i64 %f to ptr
  call void %p()
  br label %done
done:
  ret void
}
"""

_FREE = """
define i32 @launch(ptr %ctx, i64 %first, i64 %last) {
entry:
  %bx = get BLOCK_X
  %by = get BLOCK_Y
  %bz = get BLOCK_Z
  %states = get STATES
  %state = inttoptr i64 %states to ptr
  br label %block
block:
  %b = phi i64 [ %first, %entry ], [ %b1, %block.end ]
  %more = icmp ult i64 %b, %last
  br i1 %more, label %go, label %good
go:
  call void @begin_block(ptr %ctx, i64 %b)
  br label %thread
thread:
  %t = phi i64 [ 0, %go ], [ %t1, %carry ]
  %x = phi i64 [ 0, %go ], [ %x3, %carry ]
  %y = phi i64 [ 0, %go ], [ %y3, %carry ]
  %z = phi i64 [ 0, %go ], [ %z3, %carry ]
  %tx = trunc i64 %x to i32
  %ty = trunc i64 %y to i32
  %tz = trunc i64 %z to i32
  %r = call i32 @seg(ptr %ctx, ptr %state, i32 %tx, i32 %ty, i32 %tz, i64 %t, i32 0) alwaysinline
  %bad = icmp eq i32 %r, -2
  br i1 %bad, label %failed, label %next
next:
  RESET_LOCAL
  %t1 = add i64 %t, 1
  %x1 = add i64 %x, 1
  %xo = icmp eq i64 %x1, %bx
  %x3 = select i1 %xo, i64 0, i64 %x1
  %y1 = add i64 %y, 1
  %y2 = select i1 %xo, i64 %y1, i64 %y
  %yo = icmp eq i64 %y2, %by
  %y3 = select i1 %yo, i64 0, i64 %y2
  %z1 = add i64 %z, 1
  %z3 = select i1 %yo, i64 %z1, i64 %z
  br label %carry
carry:
  %on = icmp ult i64 %z3, %bz
  br i1 %on, label %thread, label %block.end
block.end:
  %b1 = add i64 %b, 1
  br label %block
good:
  ret i32 0
failed:
  ret i32 1
}
"""

_RESET = """
  %l.first = get LOCAL_FIRST
  %l.last = get LOCAL_LAST
  %l.any = icmp ult i64 %l.first, %l.last
  br i1 %l.any, label %wipe, label %wiped
wipe:
  %l.size = sub i64 %l.last, %l.first
  %l.delta = get DELTA
  %l.at = add i64 %l.first, %l.delta
  %l.p = inttoptr i64 %l.at to ptr
  call void @llvm.memset.p0.i64(ptr %l.p, i8 1, i64 %l.size, i1 false)
  put LOCAL_FIRST -1
  put LOCAL_LAST 0
  br label %wiped
wiped:
"""

_TOGETHER_TEXT = """
define i32 @launch(ptr %ctx, i64 %first, i64 %last) {
entry:
  %states = get STATES
  %state = inttoptr i64 %states to ptr
  %threads = get THREADS
  br label %block
block:
  %b = phi i64 [ %first, %entry ], [ %b1, %block.end ]
  %more = icmp ult i64 %b, %last
  br i1 %more, label %go, label %good
go:
  call void @begin_block(ptr %ctx, i64 %b)
  br label %fresh
fresh:
  %t = phi i64 [ 0, %go ], [ %t1, %fresh ]
  %off = mul i64 %t, STATE_SIZE
  %st = getelementptr i8, ptr %state, i64 %off
  store i64 0, ptr %st
  %local = getelementptr i8, ptr %st, i64 LOCAL_AT
  %delta = get DELTA
  %shadow = getelementptr i8, ptr %local, i64 %delta
  call void @llvm.memset.p0.i64(ptr %shadow, i8 1, i64 LOCAL_SIZE, i1 false)
  %t1 = add i64 %t, 1
  %t.on = icmp ult i64 %t1, %threads
  br i1 %t.on, label %fresh, label %round
round:
  br label %warp
warp:
  %w = phi i64 [ 0, %round ], [ %w1, %warp.end ]
  %w.off = mul i64 %w, STATE_SIZE
  %w.st = getelementptr i8, ptr %state, i64 %w.off
  %left = sub i64 %threads, %w
  %n = call i64 @llvm.umin.i64(i64 %left, i64 32)
  %r = call i32 @warp(ptr %ctx, ptr %w.st, i64 %w, i64 %n)
  %bad = icmp ne i32 %r, 0
  br i1 %bad, label %failed, label %warp.end
warp.end:
  %w1 = add i64 %w, 32
  %w.on = icmp ult i64 %w1, %threads
  br i1 %w.on, label %warp, label %meet
meet:                                             ; all threads are at a barrier or have ended
  %wait0.p = getelementptr i8, ptr %state, i64 4
  %wait0 = load i32, ptr %wait0.p
  br label %same
same:
  %s = phi i64 [ 0, %meet ], [ %s1, %same.next ]
  %s.off = mul i64 %s, STATE_SIZE
  %s.st = getelementptr i8, ptr %state, i64 %s.off
  %s.p = getelementptr i8, ptr %s.st, i64 4
  %s.wait = load i32, ptr %s.p
  %equal = icmp eq i32 %s.wait, %wait0
  br i1 %equal, label %same.next, label %apart
same.next:
  store i32 0, ptr %s.p
  %s1 = add i64 %s, 1
  %s.on = icmp ult i64 %s1, %threads
  br i1 %s.on, label %same, label %all
all:
  %epoch = get EPOCH
  %epoch1 = add i64 %epoch, 1
  put EPOCH %epoch1
  %ended = icmp eq i32 %wait0, 1
  br i1 %ended, label %block.end, label %round
apart:                                            ; some have ended, or wait at another barrier
  %a.ended = icmp eq i32 %s.wait, 1
  %b.ended = icmp eq i32 %wait0, 1
  %one.ended = or i1 %a.ended, %b.ended
  %kind = select i1 %one.ended, i64 7, i64 6
  %who = select i1 %a.ended, i32 %wait0, i32 %s.wait
  %line = call i64 @line_of(i32 %who)
  call void @fault(ptr %ctx, i64 %kind, i64 %line, i64 0, i64 0, i64 %s)
  ret i32 1
block.end:
  %b1 = add i64 %b, 1
  br label %block
good:
  ret i32 0
failed:
  ret i32 1
}

define internal i64 @line_of(i32 %wait) {
  %k = lshr i32 %wait, 8
  %p = getelementptr i64, ptr @lines, i32 %k
  %line = load i64, ptr %p
  ret i64 %line
}

define internal i32 @warp(ptr %ctx, ptr %st, i64 %w, i64 %n) {
entry:
  %bx = get BLOCK_X
  %by = get BLOCK_Y
  put WARP_EPOCH 0
  br label %again
again:
  br label %lane
lane:
  %l = phi i64 [ 0, %again ], [ %l1, %lane.next ]
  %off = mul i64 %l, STATE_SIZE
  %s = getelementptr i8, ptr %st, i64 %off
  %wait.p = getelementptr i8, ptr %s, i64 4
  %wait = load i32, ptr %wait.p
  %runs = icmp eq i32 %wait, 0
  br i1 %runs, label %run, label %lane.next
run:
  %resume = load i32, ptr %s
  %t = add i64 %w, %l
  %x = urem i64 %t, %bx
  %yz = udiv i64 %t, %bx
  %y = urem i64 %yz, %by
  %z = udiv i64 %yz, %by
  %tx = trunc i64 %x to i32
  %ty = trunc i64 %y to i32
  %tz = trunc i64 %z to i32
  %r = call i32 @seg(ptr %ctx, ptr %s, i32 %tx, i32 %ty, i32 %tz, i64 %t, i32 %resume)
  store i32 %r, ptr %wait.p
  %bad = icmp eq i32 %r, -2
  br i1 %bad, label %failed, label %lane.next
lane.next:
  %l1 = add i64 %l, 1
  %on = icmp ult i64 %l1, %n
  br i1 %on, label %lane, label %find
find:                                             ; a lane that waits for its warp
  %f = phi i64 [ 0, %lane.next ], [ %f1, %find.next ]
  %f.more = icmp ult i64 %f, %n
  br i1 %f.more, label %find.look, label %fine
find.look:
  %f.off = mul i64 %f, STATE_SIZE
  %f.s = getelementptr i8, ptr %st, i64 %f.off
  %f.p = getelementptr i8, ptr %f.s, i64 4
  %f.wait = load i32, ptr %f.p
  %f.kind = and i32 %f.wait, 255
  %f.found = icmp ugt i32 %f.kind, 2
  br i1 %f.found, label %found, label %find.next
find.next:
  %f1 = add i64 %f, 1
  br label %find
fine:
  ret i32 0
found:
  %m.p = getelementptr i8, ptr %f.s, i64 32
  %m = load i64, ptr %m.p
  %f.bit = shl i64 1, %f
  %f.in = and i64 %m, %f.bit
  %f.out = icmp eq i64 %f.in, 0
  br i1 %f.out, label %apart, label %gather
gather:                                           ; all lanes of the mask must have come, but those that have ended
  %g = phi i64 [ 0, %found ], [ %g1, %gather.next ]
  %mask = phi i64 [ 0, %found ], [ %mask1, %gather.next ]
  %g.bit = shl i64 1, %g
  %g.named = and i64 %m, %g.bit
  %g.skip = icmp eq i64 %g.named, 0
  br i1 %g.skip, label %gather.next, label %gather.look
gather.look:
  %g.off = mul i64 %g, STATE_SIZE
  %g.s = getelementptr i8, ptr %st, i64 %g.off
  %g.p = getelementptr i8, ptr %g.s, i64 4
  %g.wait = load i32, ptr %g.p
  %g.ended = icmp eq i32 %g.wait, 1
  br i1 %g.ended, label %gather.next, label %gather.live
gather.live:
  %gm.p = getelementptr i8, ptr %g.s, i64 32
  %gm = load i64, ptr %gm.p
  %same.wait = icmp eq i32 %g.wait, %f.wait
  %same.mask = icmp eq i64 %gm, %m
  %same = and i1 %same.wait, %same.mask
  br i1 %same, label %gather.take, label %apart
gather.take:
  %mask.more = or i64 %mask, %g.bit
  store i32 0, ptr %g.p
  br label %gather.next
gather.next:
  %mask1 = phi i64 [ %mask, %gather ], [ %mask, %gather.look ], [ %mask.more, %gather.take ]
  %g1 = add i64 %g, 1
  %g.on = icmp ult i64 %g1, %n
  br i1 %g.on, label %gather, label %do
do:
  %f.warp = icmp eq i32 %f.kind, 3
  br i1 %f.warp, label %join, label %do.it
join:                                             ; a barrier of the whole warp orders its accesses
  %n.bit = shl i64 1, %n
  %n.all = sub i64 %n.bit, 1
  %m.all = and i64 %m, %n.all
  %whole = icmp eq i64 %m.all, %n.all
  %we = get WARP_EPOCH
  %we1 = add i64 %we, 1
  %we2 = and i64 %we1, 1023
  %we3 = select i1 %whole, i64 %we2, i64 %we
  put WARP_EPOCH %we3
  br label %do.it
do.it:
  %lane.bad = call i64 @together(ptr %st, i64 %n, i64 %mask1, i32 %f.kind)
  %all.good = icmp eq i64 %lane.bad, -1
  br i1 %all.good, label %again, label %lane.fault
lane.fault:
  %line = call i64 @line_of(i32 %f.wait)
  %who = add i64 %w, %lane.bad
  call void @fault(ptr %ctx, i64 9, i64 %line, i64 0, i64 0, i64 %who)
  ret i32 1
apart:
  %who2 = phi i64 [ %f, %found ], [ %g, %gather.live ]
  %line2 = call i64 @line_of(i32 %f.wait)
  %who3 = add i64 %w, %who2
  call void @fault(ptr %ctx, i64 8, i64 %line2, i64 0, i64 0, i64 %who3)
  ret i32 1
failed:
  ret i32 1
}

define internal i64 @together(ptr %st, i64 %n, i64 %mask, i32 %kind) {
entry:
  %is.warp = icmp eq i32 %kind, 3
  br i1 %is.warp, label %good, label %sort
sort:
  %is.matrix = icmp uge i32 %kind, MATRICES
  br i1 %is.matrix, label %matrix, label %other
matrix:
  %matrix.bad = call i64 @matrices(ptr %st, i64 %mask, i32 %kind)
  ret i64 %matrix.bad
other:
  %is.shuffle = icmp ule i32 %kind, 7
  br i1 %is.shuffle, label %shuffle, label %fold
good:
  ret i64 -1
shuffle:
  %l = phi i64 [ 0, %other ], [ %l1, %s.next ]
  %l.bit = shl i64 1, %l
  %l.in = and i64 %mask, %l.bit
  %l.skip = icmp eq i64 %l.in, 0
  br i1 %l.skip, label %s.next, label %s.do
s.do:
  %off = mul i64 %l, STATE_SIZE
  %s = getelementptr i8, ptr %st, i64 %off
  %b.p = getelementptr i8, ptr %s, i64 16
  %b.all = load i64, ptr %b.p
  %b = and i64 %b.all, 31
  %c.p = getelementptr i8, ptr %s, i64 24
  %c.all = load i64, ptr %c.p
  %c = and i64 %c.all, 31
  %seg.high = lshr i64 %c.all, 8
  %seg = and i64 %seg.high, 31
  %seg.not = xor i64 %seg, 31
  %low = and i64 %l, %seg
  %c.part = and i64 %c, %seg.not
  %high = or i64 %low, %c.part
  %j.up = sub i64 %l, %b
  %p.up = icmp sge i64 %j.up, %high
  %j.down = add i64 %l, %b
  %p.down = icmp sle i64 %j.down, %high
  %j.fly = xor i64 %l, %b
  %p.fly = icmp sle i64 %j.fly, %high
  %b.part = and i64 %b, %seg.not
  %j.idx = or i64 %low, %b.part
  %p.idx = icmp sle i64 %j.idx, %high
  %is.up = icmp eq i32 %kind, 4
  %is.down = icmp eq i32 %kind, 5
  %is.fly = icmp eq i32 %kind, 6
  %j1 = select i1 %is.fly, i64 %j.fly, i64 %j.idx
  %p1 = select i1 %is.fly, i1 %p.fly, i1 %p.idx
  %j2 = select i1 %is.down, i64 %j.down, i64 %j1
  %p2 = select i1 %is.down, i1 %p.down, i1 %p1
  %j3 = select i1 %is.up, i64 %j.up, i64 %j2
  %p3 = select i1 %is.up, i1 %p.up, i1 %p2
  %j = select i1 %p3, i64 %j3, i64 %l
  %j.bit = shl i64 1, %j
  %j.in = and i64 %mask, %j.bit
  %j.out = icmp eq i64 %j.in, 0
  br i1 %j.out, label %bad, label %s.read
bad:                                              ; the lane that would be read does not take part
  ret i64 %l
s.read:
  %j.off = mul i64 %j, STATE_SIZE
  %j.s = getelementptr i8, ptr %st, i64 %j.off
  %j.p = getelementptr i8, ptr %j.s, i64 8
  %v = load i64, ptr %j.p
  %to = getelementptr i8, ptr %s, i64 72
  store i64 %v, ptr %to
  %p64 = zext i1 %p3 to i64
  %to2 = getelementptr i8, ptr %s, i64 80
  store i64 %p64, ptr %to2
  br label %s.next
s.next:
  %l1 = add i64 %l, 1
  %s.on = icmp ult i64 %l1, %n
  br i1 %s.on, label %shuffle, label %give
give:                                             ; results replace the operands when all have been read
  %q = phi i64 [ 0, %s.next ], [ %q1, %give ]
  %q.off = mul i64 %q, STATE_SIZE
  %q.s = getelementptr i8, ptr %st, i64 %q.off
  %q.from = getelementptr i8, ptr %q.s, i64 72
  %q.bit = shl i64 1, %q
  %q.in = and i64 %mask, %q.bit
  %q.mine = icmp ne i64 %q.in, 0
  %q.v = load i64, ptr %q.from
  %q.from2 = getelementptr i8, ptr %q.s, i64 80
  %q.v2 = load i64, ptr %q.from2
  %q.to = getelementptr i8, ptr %q.s, i64 8
  %q.to2 = getelementptr i8, ptr %q.s, i64 16
  %q.o = load i64, ptr %q.to
  %q.o2 = load i64, ptr %q.to2
  %q.w = select i1 %q.mine, i64 %q.v, i64 %q.o
  %q.w2 = select i1 %q.mine, i64 %q.v2, i64 %q.o2
  store i64 %q.w, ptr %q.to
  store i64 %q.w2, ptr %q.to2
  %q1 = add i64 %q, 1
  %q.on = icmp ult i64 %q1, %n
  br i1 %q.on, label %give, label %good
fold:
  %d = phi i64 [ 0, %other ], [ %d1, %f.next ]
  %sum = phi i32 [ 0, %other ], [ %sum1, %f.next ]
  %umin = phi i32 [ -1, %other ], [ %umin1, %f.next ]
  %umax = phi i32 [ 0, %other ], [ %umax1, %f.next ]
  %smin = phi i32 [ 2147483647, %other ], [ %smin1, %f.next ]
  %smax = phi i32 [ -2147483648, %other ], [ %smax1, %f.next ]
  %and = phi i32 [ -1, %other ], [ %and1, %f.next ]
  %or = phi i32 [ 0, %other ], [ %or1, %f.next ]
  %xor = phi i32 [ 0, %other ], [ %xor1, %f.next ]
  %ballot = phi i32 [ 0, %other ], [ %ballot1, %f.next ]
  %d.bit = shl i64 1, %d
  %d.in = and i64 %mask, %d.bit
  %d.skip = icmp eq i64 %d.in, 0
  br i1 %d.skip, label %f.next, label %f.do
f.do:
  %d.off = mul i64 %d, STATE_SIZE
  %d.s = getelementptr i8, ptr %st, i64 %d.off
  %d.p = getelementptr i8, ptr %d.s, i64 8
  %x = load i32, ptr %d.p
  %sum2 = add i32 %sum, %x
  %umin2 = call i32 @llvm.umin.i32(i32 %umin, i32 %x)
  %umax2 = call i32 @llvm.umax.i32(i32 %umax, i32 %x)
  %smin2 = call i32 @llvm.smin.i32(i32 %smin, i32 %x)
  %smax2 = call i32 @llvm.smax.i32(i32 %smax, i32 %x)
  %and2 = and i32 %and, %x
  %or2 = or i32 %or, %x
  %xor2 = xor i32 %xor, %x
  %yes = icmp ne i32 %x, 0
  %d.bit32 = trunc i64 %d.bit to i32
  %b.set = select i1 %yes, i32 %d.bit32, i32 0
  %ballot2 = or i32 %ballot, %b.set
  br label %f.next
f.next:
  %sum1 = phi i32 [ %sum, %fold ], [ %sum2, %f.do ]
  %umin1 = phi i32 [ %umin, %fold ], [ %umin2, %f.do ]
  %umax1 = phi i32 [ %umax, %fold ], [ %umax2, %f.do ]
  %smin1 = phi i32 [ %smin, %fold ], [ %smin2, %f.do ]
  %smax1 = phi i32 [ %smax, %fold ], [ %smax2, %f.do ]
  %and1 = phi i32 [ %and, %fold ], [ %and2, %f.do ]
  %or1 = phi i32 [ %or, %fold ], [ %or2, %f.do ]
  %xor1 = phi i32 [ %xor, %fold ], [ %xor2, %f.do ]
  %ballot1 = phi i32 [ %ballot, %fold ], [ %ballot2, %f.do ]
  %d1 = add i64 %d, 1
  %d.on = icmp ult i64 %d1, %n
  br i1 %d.on, label %fold, label %pick
pick:
  %mask32 = trunc i64 %mask to i32
  %all = icmp eq i32 %ballot1, %mask32
  %any = icmp ne i32 %ballot1, 0
  %none = xor i1 %any, true
  %uni = or i1 %all, %none
  %all32 = zext i1 %all to i32
  %any32 = zext i1 %any to i32
  %uni32 = zext i1 %uni to i32
  switch i32 %kind, label %hand [ PICKS ]
hand:
  %v.r = phi i32 [ 0, %pick ]
  br label %spread
spread:
  %r = phi i32 [ %v.r, %hand ] PICKED
  %r64 = zext i32 %r to i64
  br label %out
out:
  %o = phi i64 [ 0, %spread ], [ %o1, %o.next ]
  %o.bit = shl i64 1, %o
  %o.in = and i64 %mask, %o.bit
  %o.skip = icmp eq i64 %o.in, 0
  br i1 %o.skip, label %o.next, label %o.do
o.do:
  %o.off = mul i64 %o, STATE_SIZE
  %o.s = getelementptr i8, ptr %st, i64 %o.off
  %o.p = getelementptr i8, ptr %o.s, i64 8
  store i64 %r64, ptr %o.p
  br label %o.next
o.next:
  %o1 = add i64 %o, 1
  %o.on = icmp ult i64 %o1, %n
  br i1 %o.on, label %out, label %good
}
declare i32 @llvm.umin.i32(i32, i32)
declare i32 @llvm.umax.i32(i32, i32)
declare i32 @llvm.smin.i32(i32, i32)
declare i32 @llvm.smax.i32(i32, i32)
"""

# Matrices are the work of all lanes of a warp. What a lane has gets from offset 8 of its state, what it is given from 72.
# Of ``ldmatrix`` that is a row of 16 bytes, and a word of each of four matrices; of ``mma`` two words of the first row of
# A's numbers and so on, and four sums. Products are exact, and added one after the other, k upwards, each time rounded.
_MATRICES = """
define internal i64 @matrices(ptr %st, i64 %mask, i32 %kind) {
entry:
  %whole = icmp eq i64 %mask, 4294967295
  br i1 %whole, label %lane, label %part
part:
  %rest = xor i64 %mask, -1
  %missing = call i64 @llvm.cttz.i64(i64 %rest, i1 false)
  ret i64 %missing
lane:
  %l = phi i64 [ 0, %entry ], [ %l1, %lane.next ]
  %l.off = mul i64 %l, STATE_SIZE
  %s = getelementptr i8, ptr %st, i64 %l.off
  %group = lshr i64 %l, 2
  %in.group = and i64 %l, 3
  br label %item
item:
  %i = phi i64 [ 0, %lane ], [ %i1, %item.next ]
  %i8 = mul i64 %i, 8
  %to.off = add i64 %i8, 72
  %to = getelementptr i8, ptr %s, i64 %to.off
  switch i32 %kind, label %sum [ i32 LDMATRIX, label %plain
    i32 LDTRANS, label %turned ]
plain:                                            ; word l % 4 of row l / 4
  %p.lane = add i64 %i8, %group
  %p.off = mul i64 %p.lane, STATE_SIZE
  %p.s = getelementptr i8, ptr %st, i64 %p.off
  %p.at = mul i64 %in.group, 4
  %p.at8 = add i64 %p.at, 8
  %p.p = getelementptr i8, ptr %p.s, i64 %p.at8
  %p.word = load i32, ptr %p.p, align 4
  %p.wide = zext i32 %p.word to i64
  store i64 %p.wide, ptr %to
  br label %item.next
turned:                                           ; number l / 4 of the rows 2 (l % 4) and the next
  %t.row = mul i64 %in.group, 2
  %t.lane = add i64 %i8, %t.row
  %t.off = mul i64 %t.lane, STATE_SIZE
  %t.s = getelementptr i8, ptr %st, i64 %t.off
  %t.at = mul i64 %group, 2
  %t.at8 = add i64 %t.at, 8
  %t.p = getelementptr i8, ptr %t.s, i64 %t.at8
  %t.q = getelementptr i8, ptr %t.p, i64 STATE_SIZE
  %t.low = load i16, ptr %t.p, align 2
  %t.high = load i16, ptr %t.q, align 2
  %t.low64 = zext i16 %t.low to i64
  %t.high64 = zext i16 %t.high to i64
  %t.up = shl i64 %t.high64, 16
  %t.word = or i64 %t.up, %t.low64
  store i64 %t.word, ptr %to
  br label %item.next
sum:                                              ; row l / 4 and the eighth after it, columns 2 (l % 4) and the next
  %below = lshr i64 %i, 1
  %right = and i64 %i, 1
  %c.at = mul i64 %i, 4
  %c.at8 = add i64 %c.at, 40
  %c.p = getelementptr i8, ptr %s, i64 %c.at8
  %c = load float, ptr %c.p, align 4
  %col2 = mul i64 %in.group, 2
  %col = add i64 %col2, %right
  %a.first = mul i64 %group, 4
  %b.first = mul i64 %col, 4
  br label %step
step:
  %k = phi i64 [ 0, %sum ], [ %k1, %step.next ]
  %acc = phi float [ %c, %sum ], [ %acc1, %step.next ]
  %k.eighth = lshr i64 %k, 3
  %k.in = and i64 %k, 7
  %k.pair = lshr i64 %k.in, 1
  %k.half = and i64 %k, 1
  %k.byte = mul i64 %k.half, 2
  %a.lane = add i64 %a.first, %k.pair
  %a.off = mul i64 %a.lane, STATE_SIZE
  %a.s = getelementptr i8, ptr %st, i64 %a.off
  %a.reg2 = mul i64 %k.eighth, 2
  %a.reg = add i64 %a.reg2, %below
  %a.reg4 = mul i64 %a.reg, 4
  %a.at = add i64 %a.reg4, %k.byte
  %a.at8 = add i64 %a.at, 8
  %a.p = getelementptr i8, ptr %a.s, i64 %a.at8
  %b.lane = add i64 %b.first, %k.pair
  %b.off = mul i64 %b.lane, STATE_SIZE
  %b.s = getelementptr i8, ptr %st, i64 %b.off
  %b.reg4 = mul i64 %k.eighth, 4
  %b.at = add i64 %b.reg4, %k.byte
  %b.at8 = add i64 %b.at, 24
  %b.p = getelementptr i8, ptr %b.s, i64 %b.at8
  %is.half = icmp eq i32 %kind, MMAHALF
  br i1 %is.half, label %halves, label %brains
halves:
  %h.a = load half, ptr %a.p, align 2
  %h.b = load half, ptr %b.p, align 2
  %h.x = fpext half %h.a to float
  %h.y = fpext half %h.b to float
  br label %step.next
brains:
  %r.a = load i16, ptr %a.p, align 2
  %r.b = load i16, ptr %b.p, align 2
  %r.a32 = zext i16 %r.a to i32
  %r.b32 = zext i16 %r.b to i32
  %r.au = shl i32 %r.a32, 16
  %r.bu = shl i32 %r.b32, 16
  %r.x = bitcast i32 %r.au to float
  %r.y = bitcast i32 %r.bu to float
  br label %step.next
step.next:
  %x = phi float [ %h.x, %halves ], [ %r.x, %brains ]
  %y = phi float [ %h.y, %halves ], [ %r.y, %brains ]
  %acc1 = call float @llvm.fma.f32(float %x, float %y, float %acc)
  %k1 = add i64 %k, 1
  %k.on = icmp ult i64 %k1, 16
  br i1 %k.on, label %step, label %step.done
step.done:
  %nan = fcmp uno float %acc1, %acc1
  %bits = bitcast float %acc1 to i32
  %one = select i1 %nan, i32 2147483647, i32 %bits
  %one64 = zext i32 %one to i64
  store i64 %one64, ptr %to
  br label %item.next
item.next:
  %i1 = add i64 %i, 1
  %i.on = icmp ult i64 %i1, 4
  br i1 %i.on, label %item, label %lane.next
lane.next:
  %l1 = add i64 %l, 1
  %l.on = icmp ult i64 %l1, 32
  br i1 %l.on, label %lane, label %good
good:
  ret i64 -1
}
"""
_NO_MATRICES = "define internal i64 @matrices(ptr %st, i64 %mask, i32 %kind) {\n  ret i64 0\n}\n"

_FOLDS = {
    "vote.all.pred": "all32", "vote.any.pred": "any32", "vote.uni.pred": "uni32", "vote.ballot.b32": "ballot1",
    "redux.add.u32": "sum1", "redux.add.s32": "sum1", "redux.min.u32": "umin1", "redux.max.u32": "umax1",
    "redux.min.s32": "smin1", "redux.max.s32": "smax1", "redux.and.b32": "and1", "redux.or.b32": "or1",
    "redux.xor.b32": "xor1",
}  # fmt: skip
_FIELD = re.compile(r"^  (%[\w.]+) = get (\w+)|^  put (\w+) (\S+)", re.M)


def _expand(text: str) -> str:
    """``%x = get NAME`` and ``put NAME %x`` read and write a word of the context."""
    count = 0

    def field(m) -> str:
        nonlocal count
        count += 1
        p = f"  %field{count} = getelementptr i64, ptr %ctx, i64 {FIELDS[m[2] or m[3]]}\n"
        return p + (f"  {m[1]} = load i64, ptr %field{count}" if m[2] else f"  store i64 {m[4]}, ptr %field{count}")

    return _FIELD.sub(field, text)


def runtime(kernel) -> str:
    """What stands around ``@seg`` of a translated kernel: ``@launch(context, first block, last block)``."""
    text = _CHECKS + _BLOCK + {"full": _RACES, "count": _TRACE}.get(kernel.level, "")
    text = text.replace("  DIGEST_CALL\n", "  call void @digest(ptr %ctx)\n" if kernel.level == "count" else "")
    if kernel.points:
        picks = " ".join(f"i32 {KINDS[name]}, label %pick.{KINDS[name]}" for name in _FOLDS)
        arms = "".join(f"pick.{KINDS[name]}:\n  br label %spread\n" for name in _FOLDS)
        picked = "".join(f", [ %{v}, %pick.{KINDS[name]} ]" for name, v in _FOLDS.items())
        together = _TOGETHER_TEXT.replace("PICKS", picks).replace(" PICKED", picked)
        text += together.replace("hand:\n", arms + "hand:\n", 1)
        own = any(kernel.f.body[p].parts[0] in ("ldmatrix", "mma") for p in kernel.points)
        text += _MATRICES if own else _NO_MATRICES
        lines = ", ".join(f"i64 {n}" for n in [0, *(kernel.f.body[p].line for p in kernel.points)])
        text += f"@lines = internal constant [{len(kernel.points) + 1} x i64] [{lines}]\n"
    else:
        text += _FREE.replace("  RESET_LOCAL", _RESET if kernel.local_size else "")
    for name, value in (
        ("STATE_SIZE", kernel.state_size), ("LOCAL_AT", kernel.local_at), ("LOCAL_SIZE", kernel.local_size),
        ("STATES_BYTES", STATES), ("SHARED_BYTES", SHARED), ("PARAM_SIZE", kernel.param_size), ("PARAM_WINDOW", PARAM_WINDOW), ("SHARED_WINDOW", SHARED_WINDOW),
        ("LOCAL_WINDOW", LOCAL_WINDOW), ("MATRICES", KINDS["ldmatrix"]), ("LDMATRIX", KINDS["ldmatrix"]),
        ("LDTRANS", KINDS["ldmatrix.trans"]), ("MMAHALF", KINDS["mma.f16"]),
    ):  # fmt: skip
        text = re.sub(rf"\b{name}\b", str(value), text)
    return _expand(text)
