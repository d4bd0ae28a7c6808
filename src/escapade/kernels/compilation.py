"""The one way in which a kernel is compiled: cached, no Python objects, IEEE sums.

Reordering of sums (``fastmath``) stays off: a run must give the same bits on every
call.  ``NUMBA_DISABLE_JIT=1`` leaves the plain Python function in place, which is how
coverage of the kernels is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.extending import intrinsic

__all__ = [
    "COMPILES",
    "compiled",
    "compiled_parallel",
    "inlined",
    "natural",
    "pieces_of_work",
    "uncounted",
]

_STATES_WORTH_A_THREAD = 20_000
"""Below this many states a second thread costs more than it brings."""

_SETTINGS: Any = numba.config

COMPILES = not _SETTINGS.DISABLE_JIT
"""Whether kernels are compiled, or left as plain Python."""

_ASSUMES = ir.FunctionType(ir.VoidType(), [ir.IntType(1)])

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile ``function`` on first call, serial, with its machine code cached."""
    return cast(F, numba.njit(cache=True, error_model="numpy")(function))


def uncounted(function: F) -> F:
    """Compile ``function`` as :func:`compiled` does, but count no references.

    For kernels that others call at every step of a loop: counting who holds which
    array, call by call, can cost ten times what the kernel itself does.  Whoever calls
    holds the arrays meanwhile; so the kernel may neither allocate nor return an array,
    and what takes a random generator is called from a kernel that counts.
    """
    uncounting: Any = {"_nrt": False}  # an option that Numba's own types leave out
    return cast(F, numba.njit(cache=True, error_model="numpy", **uncounting)(function))


def inlined(function: F) -> F:
    """Compile ``function`` as :func:`uncounted` does, and into whoever calls it.

    A call hands every array over as seven numbers, so that calling a kernel which takes
    dozens of arrays, and looks at a few, costs more than it does.
    """
    inlining: Any = {"_nrt": False, "forceinline": True}
    return cast(F, numba.njit(cache=True, error_model="numpy", **inlining)(function))


def _assured(_: Any, number: Any) -> Any:
    """Return an intrinsic's signature, and its code: the number, and what is known."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        value = args[0]
        small = builder.icmp_unsigned(
            "<", value, value.type(1 << (value.type.width - 2))
        )
        assume = builder.module.declare_intrinsic("llvm.assume", (), _ASSUMES)
        builder.call(assume, [small])
        return value

    return number(number), generate


def _itself(number: int) -> int:
    return number


natural: Any = intrinsic(_assured) if COMPILES else _itself
"""``natural(i)``: ``i``, of which the compiler may take for granted that it is natural.

Numba counts negative indices from the end of an array, and asks at every access; where
it is told, it need not.
"""


def compiled_parallel(function: F) -> F:
    """Compile ``function`` on first call, with ``prange`` loops spread over threads."""
    return cast(F, numba.njit(cache=True, error_model="numpy", parallel=True)(function))


def pieces_of_work(n_states: int) -> int:
    """Return into how many pieces a sweep is cut: 1, or one a thread when it is large.

    Asking inside a kernel would switch its cache off, so callers ask here and pass the
    number in.
    """
    return 1 if n_states < _STATES_WORTH_A_THREAD else int(numba.get_num_threads())
