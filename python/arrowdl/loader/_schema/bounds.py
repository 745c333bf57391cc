"""What of a filter leaves out row groups and files by their statistics, and nothing that it keeps.

pyarrow leaves them out by all of a filter, and takes bounds for those of all values. They are not:
statistics leave NaN out, and zeros of both signs have bounds of either sign. So a Loader gives
pyarrow conditions that are not narrower than its filter, whatever statistics do not tell, and asks
the filter itself of each row.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Iterator, Set
from typing import TYPE_CHECKING, Any, NamedTuple

from arrowdl.loader._schema.expressions import (
    Call,
    Field,
    Literal,
    Node,
    combine,
    list_fields,
    read_expression,
    split_conjunction,
)

if TYPE_CHECKING:
    import pyarrow as pa

_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
    "not_equal": "not_equal",
}
_OPERATORS = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
}
_NEGATED = {
    "less": "greater_equal",
    "less_equal": "greater",
    "greater": "less_equal",
    "greater_equal": "less",
    "equal": "not_equal",
    "not_equal": "equal",
}


def find_bounds(
    filter: Any,
    # of the columns whose statistics may be compared, with the types that these have
    schema: pa.Schema,
    *,
    counts_nulls: bool = True,  # whether statistics tell if there are nulls
) -> Any:
    """Return an expression that is true of each row that `filter` keeps, if not only of these.

    It consists of comparisons that statistics decide rightly; None if all rows may be kept.
    """
    tree = None if filter is None else read_expression(filter)
    try:
        return None if tree is None else _Bounds(schema, counts_nulls).find(tree)
    except RecursionError:  # a tree of a thousand levels
        return None


def find_partition_bounds(filter: Any, schema: pa.Schema, constants: Set[str]) -> Any:
    """As `find_bounds`, of files of which each has one value in `constants`, its directories.

    pyarrow decides by the values whatever the filter asks of them, but for those of floats: it
    takes files of 0.0 and -0.0 for files of one value.
    """
    import pyarrow as pa

    if filter is None:
        return None
    fields = [field for field in schema if field.name in constants]
    exact = {field.name for field in fields if not pa.types.is_floating(field.type)}
    parts = [part for part in split_conjunction(filter) if exact and _reads(part, exact)]
    bounds = find_bounds(filter, schema, counts_nulls=False)
    return combine([*parts, bounds] if bounds is not None else parts)


def _reads(part: Any, columns: Set[str]) -> bool:
    """Whether an expression needs no other columns."""
    tree = read_expression(part)
    return tree is not None and all(field.path[0] in columns for field in list_fields(tree))


class Partition(NamedTuple):
    """What a partition expression says of all rows of a file."""

    constants: set[str]  # the columns of which it says the one value, or that they are null
    expression: Any  # what says so
    has_ranges: bool  # whether it said more, such as a range, which need not hold for NaN


def read_partition(expression: Any) -> Partition:
    """Read a partition expression."""
    tree = read_expression(expression)
    if tree is None:
        return Partition(set(), expression, False)
    names = [_find_constant(node) for node in _flatten(tree)]
    constants = {name for name in names if name}
    if None not in names:
        return Partition(constants, expression, False)
    parts = [part for part in split_conjunction(expression) if _is_constant(part)]
    return Partition(constants, combine(parts), True)


def _flatten(tree: Node) -> Iterator[Node]:
    left = [tree]
    while left:
        match left.pop():
            case Call("and_kleene", arguments):
                left += arguments
            case node:
                yield node


def _find_constant(node: Node) -> str | None:
    """Return the column of which a part says the one value; "" if it says nothing."""
    match node:
        case Call("equal", (Field((name,)), Literal())) | Call("is_null", (Field((name,)),)):
            return name
        case Literal(value) if value.as_py() is True:
            return ""
    return None


def _is_constant(part: Any) -> bool:
    tree = read_expression(part)
    return tree is not None and bool(_find_constant(tree))


class _Bounds:
    """Finds the bounds of the parts of a filter."""

    def __init__(
        self,
        schema: pa.Schema,  # see `find_bounds`
        counts_nulls: bool,
    ) -> None:
        self._schema = schema
        self._counts_nulls = counts_nulls

    def find(self, node: Node, is_negated: bool = False) -> Any:
        """Return the bounds of the rows for which `node` is true, or false if `is_negated`."""
        match node:
            case Call("invert", (argument,)):
                return self.find(argument, not is_negated)
            case Call("and_kleene" | "or_kleene", arguments):
                return self._join(
                    node, [self.find(argument, is_negated) for argument in arguments], is_negated
                )
            case Call("is_in", (Field() as field,)) if not is_negated:
                return self._find_in(field, node)
            case Call("is_null" | "is_valid", (Field() as field,)):
                return self._find_nulls(field, node, is_negated)
            case Call(function, (Field() as field, Literal(value))) if function in _NEGATED:
                return self._compare(field, function, value, is_negated)
            case Call(function, (Literal(value), Field() as field)) if function in _NEGATED:
                return self._compare(field, _MIRRORED[function], value, is_negated)
            case Field():
                return self._compare(node, "equal", True, is_negated)
        return None

    def _join(self, node: Call, parts: list[Any], is_negated: bool) -> Any:
        """Join the bounds of the operands of an "and", or of an "or" if all operands have them."""
        # The negation of an "and" is the "or" of the negations, and the reverse.
        is_all = (node.function == "and_kleene") != is_negated
        if is_all:
            return combine([part for part in parts if part is not None])
        if any(part is None for part in parts):
            return None
        one, other = parts
        return one | other

    def _find_type(self, field: Field) -> pa.DataType | None:
        """Return the type of a column or field; None if there is none, or several."""
        import pyarrow as pa

        root, *names = field.path
        if self._schema.names.count(root) != 1:
            return None
        type = self._schema.field(root).type
        for name in names:
            if not pa.types.is_struct(type) or type.get_field_index(name) < 0:
                return None
            type = type.field(name).type
        return type

    def _find_nulls(self, field: Field, node: Call, is_negated: bool) -> Any:
        type = self._find_type(field)
        if type is None or _find_kind(type) is None:
            return None
        option = node.options.get("nan_is_null")
        if option is not None and option.as_py() and _find_kind(type) == "float":
            return None
        is_null = (node.function == "is_null") != is_negated
        return self._find_null(field) if is_null else _refer(field).is_valid()

    def _find_null(self, field: Field) -> Any:
        return _refer(field).is_null() if self._counts_nulls else None

    def _find_in(self, field: Field, node: Call) -> Any:
        type = self._find_type(field)
        values = node.options["value_set"].values
        if type is None or values is None or not _are_comparable(type, values.type):
            return None
        import pyarrow as pa

        present = values.drop_null()
        if _find_kind(type) == "float":
            condition = self._find_range(field, type, present.to_pylist())
        else:
            try:
                condition = _refer(field).isin(present.cast(type))
            except pa.ArrowException:
                return None
        if condition is None or len(present) == len(values):
            return condition
        null = self._find_null(field)
        return None if null is None else condition | null

    def _find_range(self, field: Field, type: pa.DataType, values: list[float]) -> Any:
        """Return the range of some numbers: pyarrow tells zeros of both signs apart in sets."""
        if not values or any(map(math.isnan, values)):
            return None
        low = self._compare_float(field, type, "greater_equal", min(values))
        high = self._compare_float(field, type, "less_equal", max(values))
        return None if low is None or high is None else low & high

    def _compare(self, field: Field, function: str, value: Any, is_negated: bool) -> Any:
        import pyarrow as pa

        scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value)
        type = self._find_type(field)
        if type is None or not scalar.is_valid or not _are_comparable(type, scalar.type):
            return None
        if _find_kind(type) == "float":
            return (
                None if is_negated else self._compare_float(field, type, function, scalar.as_py())
            )
        try:
            exact = scalar.cast(type)
        except pa.ArrowException:  # of no value of the column, or of another precision
            return None
        return _call(_NEGATED[function] if is_negated else function, field, exact)

    def _compare_float(self, field: Field, type: pa.DataType, function: str, value: float) -> Any:
        """Compare floats; NaN is in no statistics, and for it only "not equal" is true."""
        import pyarrow as pa

        if math.isnan(value) or function == "not_equal":
            return None
        if function == "equal":
            low = self._compare_float(field, type, "greater_equal", value)
            high = self._compare_float(field, type, "less_equal", value)
            return None if low is None or high is None else low & high
        bounds = _round(value, "<f" if pa.types.is_float32(type) else "<d")
        if bounds is None:
            return None
        low, high = bounds
        if low != high:  # pyarrow compares in either precision
            function = "greater_equal" if function.startswith("greater") else "less_equal"
        bound = low if function.startswith("greater") else high
        if bound == 0:  # for those who order -0.0 before 0.0
            bound = {"greater_equal": -0.0, "less_equal": 0.0}.get(function, bound)
        return _call(function, field, pa.scalar(bound, type))


def _round(value: float, format: str) -> tuple[float, float] | None:
    """Return the numbers of a precision on both sides of `value`, which are equal if it is one."""
    try:
        (near,) = struct.unpack(format, struct.pack(format, value))
    except OverflowError:
        return None
    if near == value:
        return near, near
    if format == "<d":
        return math.nextafter(near, -math.inf), math.nextafter(near, math.inf)
    step = abs(near) * 2**-22 + 2**-148
    return near - step, near + step


def _refer(field: Field) -> Any:
    import pyarrow.dataset as ds

    return ds.field(*field.path)


def _call(function: str, field: Field, value: Any) -> Any:
    reference: Any = _refer(field)
    if function == "not_equal":
        return (reference < value) | (reference > value)
    return _OPERATORS[function](reference, value)


def _find_kind(type: pa.DataType) -> str | None:
    """Return what types have in common whose values can be compared exactly; None for others."""
    from pyarrow import types  # without is_fixed_size_binary: see `read_statistics`

    kinds = {
        "int": types.is_integer,
        "float": lambda type: types.is_float32(type) or types.is_float64(type),
        "bool": types.is_boolean,
        "string": lambda type: types.is_string(type) or types.is_large_string(type),
        "binary": lambda type: types.is_binary(type) or types.is_large_binary(type),
        "decimal": types.is_decimal,
        "date": types.is_date32,
        "time": types.is_time,
        "timestamp": types.is_timestamp,
        "duration": types.is_duration,
    }
    return next((kind for kind, is_of in kinds.items() if is_of(type)), None)


def _are_comparable(type: pa.DataType, other: pa.DataType) -> bool:
    """Whether values of another type are compared with a column of `type` as its own are."""
    kind, other_kind = _find_kind(type), _find_kind(other)
    if kind is None or other_kind is None:
        return False
    if kind == other_kind == "timestamp":
        return (type.tz is None) == (other.tz is None)
    if kind == "timestamp":
        return other_kind == "date" and type.tz is None
    return kind == other_kind or (kind in ("float", "decimal") and other_kind == "int")
