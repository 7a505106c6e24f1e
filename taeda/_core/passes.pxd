"""Backward passes of small tensors, replayed from their launches."""

# The gradients of a backward pass, one for each of `leaves`, replayed from the launches of an earlier pass of the same
# form. Fills in `leaves` and `nodes`. None if the pass must run. `differentiate` is the engine's.
cdef list repeat_pass(list roots, list numbers, list grads, object differentiate, list nodes, list leaves)
