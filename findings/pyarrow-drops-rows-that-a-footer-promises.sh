#!/bin/sh
# pyarrow ends a row group in silence where its column ends, or where the footer's number of rows ends.
#
# Versions: pyarrow 26.0.1; Python 3.11, Linux x86-64.
#
# A Parquet file says twice how many rows a row group has: in the footer (RowGroup.num_rows), and in its
# pages. If the two differ, because a writer or a repair tool went wrong, pyarrow's scanner and
# ParquetFile raise nothing:
#
# - The footer says more: the scan returns fewer rows than count_rows() and metadata.num_rows say. A
#   reader that plans by the footer (ranks, progress, resumes) waits for rows that never come.
# - The footer says fewer: the scan ends there, and the other values are never read, although the
#   column's own number of values in the same footer (num_values) shows that they are there.
# - One column has fewer values: a scan of this column alone is shorter than a scan of another one.
#   Only a scan of both raises.
#
# Seen:
#   footer 150 of 100: pyarrow counts 350, scans 300, reads 300
#   footer 60 of 100:  pyarrow counts 260, scans 260, reads 260, and num_values of the column is 100
#   x has 50 of 100:   pyarrow counts 250, scans 200 of x and 250 of y
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==26.0.1
cat > "$folder/run.py" <<'PYTHON'
import os
import struct
import sys

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

FOLDER = sys.argv[1]


class Reader:
    """Structs of Thrift's compact protocol, as Parquet's footers are: {field: (type, value)}."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        return self.data[self.at - count : self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def integer(self):
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def value(self, kind):
        if kind in (4, 5, 6):
            return self.integer()
        if kind in (3, 7):
            return self.take(1 if kind == 3 else 8)
        if kind == 8:
            return self.take(self.varint())
        if kind in (9, 10):
            head = self.take(1)[0]
            count = head >> 4 if head >> 4 < 15 else self.varint()
            is_bool = head & 15 in (1, 2)
            return head & 15, [self.take(1) if is_bool else self.value(head & 15) for _ in range(count)]
        return self.struct()

    def struct(self):
        fields, number = {}, 0
        while head := self.take(1)[0]:
            number = number + (head >> 4) if head >> 4 else self.integer()
            fields[number] = (head & 15, None if head & 15 in (1, 2) else self.value(head & 15))
        return fields


def varint(value):
    written = bytearray()
    while value >= 128:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])


def integer(value):
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def dump(kind, value):
    if kind in (4, 5, 6):
        return integer(value)
    if kind == 8:
        return varint(len(value)) + value
    if kind in (9, 10):
        items, values = value
        head = bytes([len(values) << 4 | items]) if len(values) < 15 else bytes([0xF0 | items]) + varint(len(values))
        return head + b"".join(own if items in (1, 2) else dump(items, own) for own in values)
    if kind == 12:
        written, last = b"", 0
        for number, (own, found) in sorted(value.items()):
            step = number - last
            written += bytes([step << 4 | own]) if 0 < step < 16 else bytes([own]) + integer(number)
            written += b"" if found is None else dump(own, found)
            last = number
        return written + b"\0"
    return value


def write(name, rows, change):
    """Write row groups of 100 rows, and change the footer; field 4 has the row groups."""
    path = os.path.join(FOLDER, name)
    table = pa.table({"x": range(rows), "y": [float(i) for i in range(rows)]})
    pq.write_table(table, path, row_group_size=100)
    data = open(path, "rb").read()
    (size,) = struct.unpack("<I", data[-8:-4])
    footer = Reader(data[-8 - size : -8]).struct()
    assert dump(12, footer) == data[-8 - size : -8]
    change(footer, footer[4][1][1])
    made = dump(12, footer)
    open(path, "wb").write(data[: -8 - size] + made + struct.pack("<I", len(made)) + b"PAR1")
    return path


def set_rows(rows):
    def change(footer, groups):
        footer[3] = (6, footer[3][1] + rows - groups[1][3][1])
        groups[1][3] = (6, rows)

    return change


def take_short(footer, groups):
    groups[1][1][1][1][0] = groups[2][1][1][1][0]  # x of the last row group, which has 50 rows


def count(path, columns=None):
    dataset = ds.dataset(path)
    scanned = sum(batch.num_rows for batch in dataset.to_batches(columns=columns))
    return dataset.count_rows(), scanned, pq.ParquetFile(path).read(columns).num_rows


more = write("more.parquet", 300, set_rows(150))
print("footer 150 of 100:", count(more))
assert count(more) == (350, 300, 300)

fewer = write("fewer.parquet", 300, set_rows(60))
values = pq.read_metadata(fewer).row_group(1).column(0).num_values
print("footer 60 of 100:", count(fewer), "num_values:", values)
assert count(fewer) == (260, 260, 260) and values == 100

short = write("short.parquet", 250, take_short)
print("x has 50 of 100:", count(short, ["x"]), "y:", count(short, ["y"]))
assert count(short, ["x"]) == (250, 200, 200)
assert count(short, ["y"]) == (250, 250, 250)
try:
    count(short)
except pa.ArrowInvalid as error:
    print("both columns:", error)
else:
    raise AssertionError("a scan of both columns raises")
PYTHON
"$folder/venv/bin/python" "$folder/run.py" "$folder"
