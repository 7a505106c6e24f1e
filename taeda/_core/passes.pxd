"""Backward passes that are repeated from their launches."""

# The gradients of a backward pass, repeated from the launches of one of the same form: one for each of `leaves`,
# which are filled in, as are `nodes`. None where the pass must run. `differentiate` is the engine's.
cdef list repeat_pass(list roots, list numbers, list grads, object differentiate, list nodes, list leaves)
