#!/usr/bin/env bash
# pyarrow casts list views to lists by taking their offsets as they are: the lists are not valid.
#
# Versions: pyarrow 26.0.1, Python 3.11, Linux.
# A list view has an offset and a size for each row, and rows may lie in any order. A list has one
# offset more than rows, which grow. `array.cast(pa.list_(...))` raises no error. Its result lacks
# the last offset if the width of the offsets stays, has wrong ones otherwise, and only
# validate(full=True) says so.
#
# Output:
#   list_view [[1, 2], [3, 4]] -> list: Offsets buffer size (bytes): 8 isn't large enough for length: 2 and offset: 0
#   list_view [[1, 2], [3, 4]] -> large_list: Offset invariant failure: non-monotonic offset at slot 2: 0 < 2
#   large_list_view [[1, 2], [3, 4]] -> list: Offset invariant failure: non-monotonic offset at slot 2: 0 < 2
#   large_list_view [[1, 2], [3, 4]] -> large_list: Offsets buffer size (bytes): 16 isn't large enough for length: 2 and offset: 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyarrow==26.0.1
cat > show.py <<'PYTHON'
import pyarrow as pa

for view in (pa.list_view, pa.large_list_view):
    array = pa.array([[1, 2], [3, 4]], view(pa.int32()))
    array.validate(full=True)
    for kind in (pa.list_, pa.large_list):
        cast = array.cast(kind(pa.int32()))
        try:
            cast.validate(full=True)
        except pa.ArrowInvalid as error:
            print(f"{view.__name__} {array.to_pylist()} -> {kind.__name__.rstrip('_')}: {error}")
        else:
            raise SystemExit(f"{array.type} is cast to a valid {cast.type} now")
PYTHON
venv/bin/python show.py
