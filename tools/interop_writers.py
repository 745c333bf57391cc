"""How tools/interop_files.py has each library write and read files: expressions in Python.

In them `x` is the module, `t` the pyarrow table to write, `path` where, `pa` pyarrow, `np` NumPy,
and `folder` a folder of the process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class File:
    """`write` of the table `t` at `path`, `read` of it, `open` for the Loader."""

    write: str
    read: str  # a pyarrow table, or an object with Arrow's stream protocol
    suffix: str = ".parquet"
    open: str = "path"
    is_stream: bool = False  # no filter, and no rows by their numbers


@dataclass(frozen=True)
class Writer:
    """A library, and the files that it writes by what is special to them."""

    module: str
    files: Mapping[str, File]
    setup: str = ""
    rows: int = 1200  # of a file: of two row groups, at least
    # the files of all kinds of columns, beside the first with each suffix
    whole: tuple[str, ...] = ()


def _make_files(write: str, read: str, options: Mapping[str, str], **more: str) -> dict[str, File]:
    """Return a file for each of `options`, which stand in the place of OPTIONS."""
    return {
        name: File(write.replace("OPTIONS", text), read, **more)  # type: ignore[arg-type]
        for name, text in options.items()
    }


_OPEN_STREAM = "lambda: pa.ipc.open_stream(path)"

_PYARROW_SETUP = """
import pyarrow.parquet as pq
def encode(t, numbers="", texts="", floats="", **options):
    chosen = {}
    for field in t.schema:
        type = field.type
        if pa.types.is_integer(type) or pa.types.is_temporal(type):
            chosen[field.name] = numbers
        elif pa.types.is_floating(type) or pa.types.is_fixed_size_binary(type):
            chosen[field.name] = floats
        elif pa.types.is_string(type) or pa.types.is_binary(type):
            chosen[field.name] = texts
    chosen = {name: encoding for name, encoding in chosen.items() if encoding}
    return dict(use_dictionary=False, column_encoding=chosen, **options)
def write_with_empty_groups(t, path):
    with pq.ParquetWriter(path, t.schema) as writer:
        for part in (t[:0], t[:1000], t[:0], t[1000:], t[:0]):
            writer.write_table(part)
def write_ipc(t, path, **options):
    with pa.ipc.new_file(path, t.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(t, 1000)
def write_stream(t, path, **options):
    with pa.ipc.new_stream(path, t.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(t, 1000)
def read_ipc(path):
    return pa.ipc.open_file(path).read_all()
"""

_FOLDER_OF_ICEBERG = """
c = x.load_catalog('c', type='sql', uri=f'sqlite:///{folder}/c.db', warehouse=f'file://{folder}')
c.create_namespace('n')
def write(t, path, **properties):
    i = c.create_table(name(path), t.schema, properties=properties)
    i.append(t)
def name(path):
    return 'n.t' + path.rsplit('/', 1)[1]
"""

_FASTPARQUET = """
import pandas as pd
KINDS = {
    **{getattr(pa, f"int{n}")(): getattr(pd, f"Int{n}Dtype")() for n in (8, 16, 32, 64)},
    **{getattr(pa, f"uint{n}")(): getattr(pd, f"UInt{n}Dtype")() for n in (8, 16, 32, 64)},
    pa.bool_(): pd.BooleanDtype(),
}
# It writes counts of these units as counts of others.
UNITS = {'int64': {'s': 'ms'}, 'int96': dict.fromkeys(('s', 'ms', 'us'), 'ns')}
def write(t, path, times='int64', **options):
    frame = t.to_pandas(types_mapper=KINDS.get)
    for name in frame.columns:
        if frame[name].dtype.kind == 'M':
            unit = frame[name].dt.unit
            frame[name] = frame[name].dt.as_unit(UNITS[times].get(unit, unit))
    x.write(path, frame, times=times, row_group_offsets=1000, write_index=False, **options)
def read(path):
    return pa.Table.from_pandas(x.ParquetFile(path).to_pandas(), preserve_index=False)
"""

_SPARK = """
import os, sys
os.environ['PYSPARK_PYTHON'] = sys.executable
spark = (
    x.SparkSession.builder.master('local[1]')
    .config('spark.driver.memory', '1g')
    .config('spark.ui.enabled', 'false')
    .config('spark.sql.session.timeZone', 'UTC')
    .config('spark.sql.warehouse.dir', folder + '/warehouse')
    .config('spark.sql.execution.arrow.pyspark.enabled', 'true')
    .getOrCreate()
)
spark.sparkContext.setLogLevel('OFF')
def write(t, path, timestamps, compression='snappy', legacy='false', **options):
    spark.conf.set('spark.sql.parquet.outputTimestampType', timestamps)
    spark.conf.set('spark.sql.parquet.writeLegacyFormat', legacy)
    writer = spark.createDataFrame(t).coalesce(1).write.option('compression', compression)
    for key, value in options.items():
        writer = writer.option('parquet.' + key.replace('_', '.'), value)
    writer.parquet(path)
"""

_HYPER = """
import pyarrow.parquet as pq
process = x.HyperProcess(x.Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU)
con = x.Connection(process.endpoint)
def write(t, path, kind):
    pq.write_table(t, path + '.given')
    copy(path + '.given', 'parquet', path, kind)
def copy(source, source_kind, path, kind):
    con.execute_command(f"COPY (SELECT * FROM external('{source}', FORMAT => '{source_kind}') "
                        f"ORDER BY id) TO '{path}' WITH (FORMAT '{kind}')")
def read(path):
    copy(path, 'parquet', path + '.read', 'arrowstream')
    return pa.ipc.open_stream(path + '.read').read_all()
"""

_LADYBUG = """
import importlib.util
con = x.Connection(x.Database())
def write(t, path, options):
    con.execute(f"COPY (LOAD FROM t RETURN *) TO '{path}'{options}")
def read(path):
    return con.execute(f"LOAD FROM '{path}' RETURN *").get_as_arrow()
"""

WRITERS = {
    "pyarrow": Writer(
        "pyarrow",
        whole=(
            "Parquet 2.6, pages 2.0, zstd, small pages",
            "Parquet 2.6, lz4, page index, no Arrow schema",
            "Parquet, empty row groups",
        ),
        setup=_PYARROW_SETUP,
        files={
            **_make_files(
                "pq.write_table(t, path, row_group_size=1000, OPTIONS)",
                # else it wraps INT96 around in nanoseconds
                "pq.ParquetFile(path, coerce_int96_timestamp_unit='us').read()",
                {
                    "Parquet 1.0": "version='1.0'",
                    "Parquet 2.4, pages 2.0, gzip": "version='2.4', data_page_version='2.0', "
                    "compression='gzip'",
                    "Parquet 2.6, pages 2.0, zstd, small pages": "data_page_version='2.0', "
                    "compression='zstd', data_page_size=512, write_batch_size=100",
                    "Parquet 2.6, plain, brotli, no statistics": "use_dictionary=False, "
                    "compression='brotli', write_statistics=False",
                    "Parquet 2.6, lz4, page index, no Arrow schema": "compression='lz4', "
                    "store_schema=False, write_page_index=True, use_compliant_nested_type=False",
                    "Parquet 2.6, DELTA_BINARY_PACKED, DELTA_BYTE_ARRAY": "**encode(t, "
                    "'DELTA_BINARY_PACKED', 'DELTA_BYTE_ARRAY')",
                    "Parquet 2.6, DELTA_LENGTH_BYTE_ARRAY, BYTE_STREAM_SPLIT": "**"
                    "encode(t, 'BYTE_STREAM_SPLIT', 'DELTA_LENGTH_BYTE_ARRAY', "
                    "'BYTE_STREAM_SPLIT'),"
                    " data_page_version='2.0'",
                    "Parquet 2.6, INT96, decimals as integers": "use_deprecated_int96_timestamps="
                    "True, store_decimal_as_integer=True",
                },
            ),
            "Parquet, empty row groups": File(
                "write_with_empty_groups(t, path)", "pq.ParquetFile(path).read()"
            ),
            **_make_files(
                "write_ipc(t, path, OPTIONS)",
                "read_ipc(path)",
                {
                    "IPC": "",
                    "IPC, zstd": "compression='zstd'",
                    "IPC, metadata V4": "metadata_version=pa.ipc.MetadataVersion.V4",
                },
                suffix=".arrow",
            ),
            "IPC stream, zstd": File(
                "write_stream(t, path, compression='zstd')",
                "pa.ipc.open_stream(path).read_all()",
                ".arrows",
                _OPEN_STREAM,
                is_stream=True,
            ),
        },
    ),
    "polars": Writer(
        "polars",
        files={
            **_make_files(
                "x.DataFrame(t).write_parquet(path, row_group_size=1000, OPTIONS)",
                "x.read_parquet(path)",
                {
                    "Parquet": "",
                    "Parquet, snappy, small pages, all statistics": "compression='snappy', "
                    "data_page_size=512, statistics='full'",
                    "Parquet, uncompressed, no statistics": "compression='uncompressed', "
                    "statistics=False",
                    "Parquet, brotli": "compression='brotli'",
                },
            ),
            "Parquet, streaming": File(
                "x.DataFrame(t).lazy().sink_parquet(path, row_group_size=1000)",
                "x.read_parquet(path)",
            ),
            **_make_files(
                "x.DataFrame(t).write_ipc(path, OPTIONS)",
                "x.read_ipc(path)",
                {
                    "IPC": "",
                    "IPC, zstd": "compression='zstd'",
                    "IPC, lz4, oldest types": "compression='lz4', "
                    "compat_level=x.CompatLevel.oldest()",
                },
                suffix=".arrow",
            ),
            "IPC stream": File(
                "x.DataFrame(t).write_ipc_stream(path)",
                "x.read_ipc_stream(path)",
                ".arrows",
                _OPEN_STREAM,
                is_stream=True,
            ),
        },
    ),
    "duckdb": Writer(
        "duckdb",
        whole=("Parquet v2",),
        rows=2200,  # its row groups are multiples of 2048 rows
        setup="con = x.connect()\ncon.sql(\"SET TimeZone = 'UTC'\")\n"
        "def write(t, path, options):\n    con.register('given', t)\n"
        "    con.sql(f\"COPY (SELECT * FROM given) TO '{path}' (FORMAT parquet, \"\n"
        "            f'ROW_GROUP_SIZE 2048{options})')\n",
        files=_make_files(
            "write(t, path, 'OPTIONS')",
            "con.sql(f\"SELECT * FROM '{path}'\").to_arrow_table()",
            {
                "Parquet v1": "",
                "Parquet v1, brotli": ", COMPRESSION brotli",
                "Parquet v1, lz4, no dictionaries": ", COMPRESSION lz4_raw, "
                "STRING_DICTIONARY_PAGE_SIZE_LIMIT 1, DICTIONARY_SIZE_LIMIT 1",
                "Parquet v2": ", PARQUET_VERSION v2",
                "Parquet v2, zstd": ", PARQUET_VERSION v2, COMPRESSION zstd",
                "Parquet v2, uncompressed, no dictionaries": ", PARQUET_VERSION v2, "
                "COMPRESSION uncompressed, DICTIONARY_SIZE_LIMIT 1",
            },
        ),
    ),
    "fastparquet": Writer(
        "fastparquet",
        setup=_FASTPARQUET,
        files={
            **_make_files(
                "write(t, path, OPTIONS)",
                "read(path)",
                {
                    "Parquet": "",
                    "Parquet, INT96, gzip": "times='int96', compression='GZIP'",
                    "Parquet, zstd": "compression='ZSTD'",
                    "Parquet, no statistics, brotli": "stats=False, compression='BROTLI'",
                },
            ),
            "Parquet, folder": File(
                "write(t, path, file_scheme='hive')",
                "read(path)",
                suffix="",
            ),
        },
    ),
    "arro3": Writer(
        "arro3.io",
        whole=("Parquet 2",),
        files={
            **_make_files(
                "x.write_parquet(t, path, max_row_group_size=1000, OPTIONS)",
                "x.read_parquet(path)",
                {
                    "Parquet 1": "writer_version='parquet_1_0'",
                    "Parquet 2": "writer_version='parquet_2_0'",
                    "Parquet 2, no dictionaries, zstd": "writer_version='parquet_2_0', "
                    "dictionary_enabled=False, compression='zstd(3)'",
                    "Parquet 1, no dictionaries, brotli": "writer_version='parquet_1_0', "
                    "dictionary_enabled=False, compression='brotli(3)'",
                    "Parquet 1, lz4_raw, small pages": "compression='lz4_raw', "
                    "data_page_row_count_limit=100, write_batch_size=50",
                    "Parquet 1, gzip, no Arrow schema": "compression='gzip(6)', "
                    "skip_arrow_metadata=True",
                },
            ),
            "IPC": File("x.write_ipc(t, path, compression=None)", "x.read_ipc(path)", ".arrow"),
            "IPC, zstd": File(
                "x.write_ipc(t, path, compression='zstd')", "x.read_ipc(path)", ".arrow"
            ),
            "IPC stream": File(
                "x.write_ipc_stream(t, path, compression=None)",
                "x.read_ipc_stream(path)",
                ".arrows",
                _OPEN_STREAM,
                is_stream=True,
            ),
        },
    ),
    "chdb": Writer(
        "chdb",
        setup="def write(tt, path, kind, settings=''):\n"
        "    x.query(f\"INSERT INTO FUNCTION file('{path}', {kind}) SELECT * FROM Python(tt) \"\n"
        "            f'ORDER BY id {settings}')\n"
        "def read(path, kind):\n"
        "    return pa.ipc.open_file(x.query(f\"SELECT * FROM file('{path}', {kind})\", 'Arrow')"
        ".bytes()).read_all()\n",
        files={
            **_make_files(
                "write(t, path, 'Parquet', 'SETTINGS output_format_parquet_row_group_size = 1000"
                "OPTIONS')",
                "read(path, 'Parquet')",
                {
                    "Parquet": "",
                    "Parquet 1.0, gzip": ", output_format_parquet_version = \\'1.0\\', "
                    "output_format_parquet_compression_method = \\'gzip\\'",
                    "Parquet, snappy, small pages": ", output_format_parquet_data_page_size = 512, "
                    "output_format_parquet_batch_size = 100, "
                    "output_format_parquet_compression_method = \\'snappy\\'",
                    "Parquet, brotli, no dictionaries": ", "
                    "output_format_parquet_max_dictionary_size = 0, "
                    "output_format_parquet_compression_method = \\'brotli\\'",
                },
            ),
            "IPC": File("write(t, path, 'Arrow')", "read(path, 'Arrow')", ".arrow"),
            "IPC stream": File(
                "write(t, path, 'ArrowStream')",
                "read(path, 'ArrowStream')",
                ".arrows",
                _OPEN_STREAM,
                is_stream=True,
            ),
        },
    ),
    "datafusion": Writer(
        "datafusion",
        whole=("Parquet 2.0", "Parquet 1.0, snappy, no Arrow schema"),
        setup="ctx = x.SessionContext(x.SessionConfig().with_target_partitions(1))\n",
        files=_make_files(
            "ctx.from_arrow(t).write_parquet_with_options(path, x.ParquetWriterOptions("
            "max_row_group_size=1000, OPTIONS))",
            "ctx.read_parquet(path)",
            {
                "Parquet 1.0": "",
                "Parquet 2.0": "writer_version='2.0'",
                "Parquet 2.0, no dictionaries, lz4_raw": "writer_version='2.0', "
                "dictionary_enabled=False, compression='lz4_raw'",
                "Parquet 1.0, snappy, no Arrow schema": "compression='snappy', "
                "skip_arrow_metadata=True, statistics_truncate_length=4",
                "Parquet 1.0, brotli, small pages, bloom filters": "compression='brotli(3)', "
                "data_page_row_count_limit=100, write_batch_size=50, bloom_filter_on_write=True",
            },
        ),
    ),
    "daft": Writer(
        "daft",
        files=_make_files(
            "x.from_arrow(t).write_parquet(path, single_file=True, OPTIONS)",
            "x.read_parquet(path).to_arrow()",
            {
                "Parquet": "",
                "Parquet, zstd": "compression='zstd'",
                "Parquet, lz4_raw": "compression='lz4_raw'",
            },
        ),
    ),
    "deltalake": Writer(
        "deltalake",
        files=_make_files(
            "x.write_deltalake(path, t, writer_properties=x.WriterProperties("
            "max_row_group_size=1000, OPTIONS))",
            "x.QueryBuilder().register('t', x.DeltaTable(path)).execute('SELECT * FROM t')",
            {"Delta": "", "Delta, zstd": "compression='ZSTD', compression_level=3"},
            suffix="",
            open="x.DeltaTable(path)",
        ),
    ),
    "pyiceberg": Writer(
        "pyiceberg.catalog",
        setup=_FOLDER_OF_ICEBERG,
        files=_make_files(
            "write(t, path, OPTIONS)",
            "c.load_table(name(path)).scan().to_arrow()",
            {
                "Iceberg": "",
                "Iceberg, small row groups": "**{'write.parquet.row-group-limit': '1000'}",
            },
            suffix="",
            open="c.load_table(name(path))",
        ),
    ),
    "lance": Writer(
        "lance",
        files=_make_files(
            "x.write_dataset(t, path, max_rows_per_file=1000, max_rows_per_group=500, OPTIONS)",
            "x.dataset(path).to_table()",
            {
                f"Lance {version}": f"data_storage_version='{version}'"
                for version in ("legacy", "2.0", "2.1", "2.2")
            },
            suffix="",
            open="x.dataset(path)",
        ),
    ),
    "nanoarrow": Writer(
        "nanoarrow.ipc",
        setup="import nanoarrow as na\n"
        "def write(t, path):\n"
        "    with x.StreamWriter.from_path(path) as writer:\n        writer.write_stream(t)\n",
        files={
            "IPC stream": File(
                "write(t, path)",
                "na.ArrayStream.from_path(path)",
                ".arrows",
                _OPEN_STREAM,
                is_stream=True,
            )
        },
    ),
    "hyper": Writer(
        "tableauhyperapi",
        setup=_HYPER,
        files={
            "Parquet": File("write(t, path, 'parquet')", "read(path)"),
            "IPC": File(
                "write(t, path, 'arrowfile')", "pa.ipc.open_file(path).read_all()", ".arrow"
            ),
            "IPC stream": File(
                "write(t, path, 'arrowstream')",
                "pa.ipc.open_stream(path).read_all()",
                ".arrows",
                _OPEN_STREAM,
                is_stream=True,
            ),
        },
    ),
    "ladybug": Writer(
        "real_ladybug",
        setup=_LADYBUG,
        files=_make_files(
            "write(t, path, OPTIONS)",
            "read(path)",
            {"Parquet": "''", "Parquet, zstd": "\" (compression='zstd')\""},
        ),
    ),
    "pyspark": Writer(
        "pyspark.sql",
        whole=("Parquet, pages 2.0, zstd",),
        setup=_SPARK,
        files=_make_files(
            "write(t, path, OPTIONS)",
            "spark.read.parquet(path).toArrow()",
            {
                "Parquet, INT96": "'INT96'",
                "Parquet, pages 2.0, zstd": "'TIMESTAMP_MICROS', 'zstd', "
                "writer_version='PARQUET_2_0'",
                "Parquet, pages 2.0, no dictionaries, lz4_raw": "'TIMESTAMP_MICROS', 'lz4_raw', "
                "writer_version='PARQUET_2_0', enable_dictionary='false', page_size=512",
                "Parquet, legacy, millis, gzip": "'TIMESTAMP_MILLIS', 'gzip', 'true'",
            },
            suffix="",
        ),
    ),
}

_PINS = Path(__file__).resolve().parents[1] / "requirements/interop"
_DISTRIBUTIONS = {
    "arro3": "arro3-io",
    "hyper": "tableauhyperapi",
    "ladybug": "real-ladybug",
    "lance": "pylance",
}


def find_pins(name: str) -> Path:
    """The file with what is installed for a library: its own as a writer, or that of all."""
    own = _PINS / f"writers/{name}.txt"
    return own if own.exists() else _PINS / f"{name}.txt"


def find_distribution(name: str) -> str:
    """The distribution whose version a row names."""
    return _DISTRIBUTIONS.get(name, name)
