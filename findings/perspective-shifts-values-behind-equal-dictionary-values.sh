#!/usr/bin/env bash
# perspective 5.6.1 reads a dictionary column whose dictionary has a value twice as other values, without an error: it
# keeps each value once, and looks the codes of the column up in what is left, where each code from the second of two
# equal values on is one too far. Arrow lets values repeat: it is enough to apply a function to the dictionary alone
# (texts in lower case), which is quick. A null in a dictionary is read as "".
# Guessed before the run: equal values are read right, and a null in the dictionary is null.
# Seen: ['rome', 'rome'] of the dictionary ['rome', 'rome', 'bern'] is read as ['rome', 'bern'], and ['a', null, 'c'] as
#       ['a', '', 'c']
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet perspective-python==5.6.1 pyarrow==26.0.1 polars==2.1.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'EOF'
import perspective
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc


def read(array):
    array.validate(full=True)
    assert pl.Series(array).to_list() == array.to_pylist()
    values = perspective.table(pa.table({"x": array})).view().to_columns()["x"]
    print(f"pyarrow and polars {array.to_pylist()}, perspective {values}")
    return values


cities = pa.array(["Rome", "ROME", "Bern"]).dictionary_encode()[:2]
assert read(cities) == cities.to_pylist() == ["Rome", "ROME"]
lower = pa.DictionaryArray.from_arrays(cities.indices, pc.utf8_lower(cities.dictionary))
assert lower.to_pylist() == ["rome", "rome"]
assert read(lower) == ["rome", "bern"]
assert read(lower.dictionary_decode()) == lower.to_pylist()
null = pa.DictionaryArray.from_arrays([0, 1, 2], ["a", None, "c"])
assert read(null) == ["a", "", "c"]
EOF
