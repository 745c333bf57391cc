"""One dictionary for a whole source, so that a code means the same in every batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from arrowdl import _core

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 4  # values that an error has of each


def has_dictionaries(schema: _core.Schema) -> bool:
    """Whether a field at any level is dictionary-encoded."""
    return schema.dictionary is not None or any(map(has_dictionaries, schema.children))


def are_same(one: pa.Array, other: pa.Array) -> bool:
    """Whether two dictionaries have the same values, of which NaN is the same as NaN."""
    import pyarrow as pa

    if one.equals(other):
        return True
    if one.type != other.type or not pa.types.is_floating(one.type):
        return False
    bits = pa.type_for_alias(f"int{one.type.bit_width}")
    return bool(one.view(bits).equals(other.view(bits)))


class Dictionaries:
    """The dictionaries of a source's first rows, which all others have to match.

    A tensor has the codes without the dictionary: if the dictionary changed between batches, the
    same code would have several meanings.
    """

    def __init__(
        self,
        *,
        # whether later rows may add values, which get codes of their own. Only where every rank
        # reads all rows in one order: two parts that add values may add others
        grows: bool = False,
    ) -> None:
        self._grows = grows
        self._dictionaries: dict[str, pa.Array] = {}

    def find(self, path: str) -> pa.Array | None:
        """Return the dictionary at `path`; None before the first rows."""
        return self._dictionaries.get(path)

    def check(self, array: _core.DeviceArray) -> None:
        """Raise ValueError unless each dictionary is that of the first array, or a prefix of it."""
        if len(array) == 0:  # it has no codes
            return
        for path, dictionary in find_dictionaries(array):
            before = self._dictionaries.get(path)
            if before is None or len(before) == 0:
                self._dictionaries[path] = dictionary
                continue
            common = min(len(before), len(dictionary))
            may_fit = self._grows or len(dictionary) <= len(before)
            if may_fit and are_same(before.slice(0, common), dictionary.slice(0, common)):
                self._dictionaries[path] = max(before, dictionary, key=len)
                continue
            raise ValueError(
                f'the dictionary of "{path}" changes between batches: its codes would mean '
                f"{_show(before)} in one batch and {_show(dictionary)} in another"
                f"{_show_difference(before, dictionary)}. Give every part of "
                "the source the same dictionary (as an enum, or pyarrow's unify_dictionaries() on "
                "a table), give all values as vocabulary=, or write the codes as integers"
            )


def check_dictionaries(
    stream: _core.DeviceStream, dictionaries: Dictionaries
) -> _core.DeviceStream:
    """Check each array of a stream against `dictionaries`."""

    def check(array: _core.DeviceArray) -> _core.DeviceArray:
        dictionaries.check(array)
        return array

    first = next(stream, None)
    if first is None:
        return stream
    return _core.from_arrow_stream(check(array) for arrays in ([first], stream) for array in arrays)


def find_dictionaries(array: _core.DeviceArray) -> Iterator[tuple[str, pa.Array]]:
    """Yield the dictionaries of `array` at any level, each with its path of names."""
    import pyarrow as pa

    return _find_dictionaries(pa.array(array.to("cpu")), "")


def _find_dictionaries(array: Any, path: str) -> Iterator[tuple[str, pa.Array]]:
    """Yield the dictionaries of `array` and its children, each with its path of names."""
    import pyarrow as pa

    if isinstance(array, pa.ExtensionArray):
        yield from _find_dictionaries(array.storage, path)
    elif isinstance(array, pa.DictionaryArray):
        yield path, array.dictionary
        yield from _find_dictionaries(array.dictionary, path)
    elif isinstance(array, pa.StructArray):
        for i, field in enumerate(array.type):
            yield from _find_dictionaries(array.field(i), f"{path}.{field.name}".lstrip("."))
    elif isinstance(array, pa.MapArray):
        yield from _find_dictionaries(array.keys, f"{path}.key")
        yield from _find_dictionaries(array.items, f"{path}.value")
    elif hasattr(array, "values"):
        yield from _find_dictionaries(array.values, path)


def _show_difference(one: pa.Array, other: pa.Array) -> str:
    """Name the first code that has two meanings, if it is one that `_show` leaves out."""
    for code in range(_SHOWN, min(len(one), len(other))):
        if not are_same(one.slice(code, 1), other.slice(code, 1)):
            values = f"{one[code].as_py()!r} and {other[code].as_py()!r}"
            return f" (code {code} is {values})" if are_same(one[:_SHOWN], other[:_SHOWN]) else ""
    return ""


def _show(dictionary: pa.Array) -> str:
    start = ", ".join(repr(value) for value in dictionary.slice(0, _SHOWN).to_pylist())
    return f"[{start}{', ...' if len(dictionary) > _SHOWN else ''}]"
