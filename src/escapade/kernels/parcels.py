"""Many arrays handed to compiled code as one.

Compiled code takes every array of a call over by itself, a quarter of a microsecond
each; where a step reads dozens, that is most of what it costs.  So what stays the same
for many calls is wrapped up once: a table says where each array lies in memory and how
large it is, and the call hands over the table alone.  Inside, :meth:`Layout.reader`
returns the same named tuples that the kernels take anyhow.

A table does not keep what it points to alive: :class:`Parcel` holds both.  Where
compilation is off there is no table, and the named tuples are handed over themselves.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from escapade.kernels.compilation import COMPILES
from escapade.typing import IntArray

__all__ = [
    "CHANNELS",
    "CODES",
    "FLAG",
    "INDICES",
    "INTEGER",
    "INTEGERS",
    "MASK",
    "NUMBER",
    "NUMBERS",
    "TABLE",
    "Layout",
    "Parcel",
]

NUMBERS = types.Array(types.float64, 1, "C")
TABLE = types.Array(types.float64, 2, "C")
INTEGERS = types.Array(types.int64, 1, "C")
INDICES = types.Array(types.int32, 1, "C")
CODES = types.Array(types.int8, 1, "C")
MASK = types.Array(types.boolean, 1, "C")
NUMBER, INTEGER, FLAG = types.float64, types.int64, types.boolean

_DTYPES = {
    types.float64: np.float64,
    types.int64: np.int64,
    types.int32: np.int32,
    types.int8: np.int8,
    types.boolean: np.bool_,
}

CHANNELS = "channels"
"""The one field whose type depends on the problem: a tuple as long as it has costs."""


class Layout:
    """How a named tuple lies in a table: what each field is, in their order.

    A field is an array or number of the kinds above, the channels, or another named
    tuple, for which its layout stands.
    """

    def __init__(self, made: Any, **fields: Any) -> None:
        if made._fields != tuple(fields):
            raise TypeError(f"expected the fields {made._fields}, found {(*fields,)}")
        self.made = made
        self.fields = fields
        # to look a Numba type up takes longer than all else in packing an array
        self._dtypes = [
            np.dtype(_DTYPES[kind.dtype]) if isinstance(kind, types.Array) else None
            for kind in fields.values()
        ]

    def typed(self, channels: Any) -> Any:
        """Return Numba's type of the tuple."""
        kinds = []
        for kind in self.fields.values():
            if isinstance(kind, Layout):
                kind = kind.typed(channels)
            kinds.append(channels if kind is CHANNELS else kind)
        named: Any = types.NamedTuple
        return named(kinds, self.made)

    def packed(self, content: Any) -> list[int]:
        """Return the table's numbers for one tuple."""
        row: list[int] = []
        for (name, kind), dtype, value in zip(
            self.fields.items(), self._dtypes, content, strict=True
        ):
            if dtype is not None:
                if not _fits(dtype, kind.ndim, value):
                    raise self._misfit(name, kind, value)
                row += [value.__array_interface__["data"][0], *value.shape]
            elif isinstance(kind, Layout):
                row += kind.packed(value)
            elif kind is NUMBER:
                row += struct.unpack("q", struct.pack("d", value))
            elif kind is not CHANNELS:
                row.append(int(value))
        return row

    def _misfit(self, name: str, kind: Any, value: Any) -> TypeError:
        found = getattr(value, "dtype", type(value).__name__)
        return TypeError(
            f"{self.made.__name__}.{name}: expected a contiguous array of {kind.dtype} "
            f"in {kind.ndim} dimensions, found {found} of shape {np.shape(value)}"
        )

    def reader(self) -> Callable[[Any, tuple[int, ...]], Any]:
        """Return what kernels call with a table and the channels, to get the tuple."""
        if not COMPILES:
            return lambda content, _: content

        def read(_: Any, table: Any, channels: Any) -> Any:
            made = self.typed(channels)

            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                array = context.make_array(signature.args[0])(context, builder, args[0])
                places = _Places(context, builder, array.data)
                return self._build(places, made, args[1])

            return made(table, channels), generate

        reading: Any = intrinsic(read)
        return cast(Callable[[Any, tuple[int, ...]], Any], reading)

    def _build(self, places: _Places, made: Any, channels: Any) -> Any:
        values = []
        for kind, typed in zip(self.fields.values(), made.types, strict=True):
            if isinstance(kind, Layout):
                values.append(kind._build(places, typed, channels))
            elif kind is CHANNELS:
                values.append(channels)
            else:
                values.append(places.take(typed))
        return places.context.make_tuple(places.builder, made, values)


class Parcel:
    """A named tuple of arrays, wrapped up for compiled code.

    Attributes
    ----------
    content
        The tuple.
    table
        What to hand over; it points into the arrays of ``content``.
    """

    __slots__ = ("content", "table")

    def __init__(self, layout: Layout, content: Any) -> None:
        self.content = content
        packed = layout.packed(content)
        table: IntArray = np.array(packed, dtype=np.int64)
        self.table: Any = table if COMPILES else content

    def __reduce__(self) -> Any:
        raise TypeError("a parcel points into memory, and cannot be copied")


class _Places:
    """Reads a table from its first place to its last, in generated code."""

    def __init__(self, context: Any, builder: Any, data: Any) -> None:
        self.context, self.builder = context, builder
        self._data, self._at = data, 0

    def take(self, kind: Any) -> Any:
        """Return the next number or array."""
        from numba.np import arrayobj  # heavy, and only to compile

        context, builder = self.context, self.builder
        first = self._next()
        if kind is FLAG:
            return builder.icmp_unsigned("!=", first, first.type(0))
        if kind is NUMBER:
            return builder.bitcast(first, context.get_value_type(kind))
        if not isinstance(kind, types.Array):
            return first
        array = context.make_array(kind)(context, builder)
        size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        itemsize = context.get_constant(types.intp, size)
        shape = [self._next() for _ in range(kind.ndim)]
        strides = [itemsize]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        lay_out: Any = arrayobj.populate_array
        lay_out(
            array,
            data=builder.inttoptr(first, array.data.type),
            shape=shape,
            strides=strides,
            itemsize=itemsize,
            meminfo=None,
        )
        return array._getvalue()

    def _next(self) -> Any:
        builder = self.builder
        place = builder.gep(
            self._data, [self.context.get_constant(types.intp, self._at)]
        )
        self._at += 1
        return builder.load(place)


def _fits(dtype: np.dtype[Any], ndim: int, value: Any) -> bool:
    """Tell whether an array is laid out as compiled code will read it."""
    if not isinstance(value, np.ndarray) or value.dtype != dtype or value.ndim != ndim:
        return False
    flags = value.flags
    return flags.c_contiguous and flags.aligned
