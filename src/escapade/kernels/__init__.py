"""Compiled loops: arrays in, arrays out, no validation.

Nothing here knows a model.  Every kernel names its array shapes in the first line of
its docstring and takes an output buffer where a caller would loop over it.  Kernels
compile on first use and are cached on disk; importing a module compiles nothing.
"""
