"""Backward passes of small tensors, replayed from their launches."""

# The gradients of a backward pass, replayed from the launches of one of the same form: one for each of `leaves`. Fills
# in `leaves` and `nodes`. None if the pass must run. `differentiate` is the engine's.
cdef list repeat_pass(list roots, list numbers, list grads, object differentiate, list nodes, list leaves)
