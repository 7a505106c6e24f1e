"""Versions of Python's dicts."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

cdef extern from *:
    """
    /* A number that every change of a dict changes, and that no other dict has (PEP 509); 0 if Python has none. */
    #if PY_VERSION_HEX < 0x030D0000
      #define taeda_dict_version(d) ((long long)((PyDictObject*)(d))->ma_version_tag)
    #else
      #define taeda_dict_version(d) 0LL
    #endif
    """
    int64_t dict_version "taeda_dict_version"(PyObject*) noexcept
