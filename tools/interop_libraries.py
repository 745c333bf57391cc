"""How tools/interop.py makes and takes data of each library: expressions in Python.

In them `x` is the module, `np` NumPy, `pa` pyarrow. A library without a part of a direction has no
expression for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class TensorLibrary:
    """`make` of a NumPy array `a`, `take` of `d` (an object with __dlpack__), `read` of `t`."""

    module: str
    make: str = "x.asarray(a)"
    take: str = "x.from_dlpack(d)"
    read: str = "t.tolist()"
    kind: str = "getattr(t, 'dtype', type(t).__name__)"
    written: str = "t"  # what a value is assigned to
    export: str = "t.__dlpack__(**options)"
    give: str = "t"  # what arrowdl takes
    raw: bool = False  # whether `take` takes capsules
    transposed: str = "t.T"
    read_only: str = ""  # a tensor that must not be written
    types: dict[str, str] = field(default_factory=dict)  # tensors of its own types
    setup: str = ""


TENSORS = {
    "numpy": TensorLibrary(
        "numpy",
        read_only="np.frombuffer(a.tobytes(), 'float32')",
        types={"datetime64": "np.zeros(2, 'datetime64[s]')", "str": "np.array(['a'])"},
    ),
    "torch": TensorLibrary(
        "torch",
        make="x.from_numpy(a.copy())",
        types={
            "bfloat16": "x.ones(2, dtype=x.bfloat16)",
            "float8_e4m3fn": "x.ones(2).to(x.float8_e4m3fn)",
            "float8_e8m0fnu": "x.ones(2).to(x.float8_e8m0fnu)",
            "complex32": "x.zeros(2, dtype=x.complex32)",
            "float4_e2m1fn_x2": "x.zeros(2, dtype=x.uint8).view(x.float4_e2m1fn_x2)",
            "requires_grad": "x.ones(2, requires_grad=True)",
            "conjugate": "x.ones(2, dtype=x.complex64).conj()",
            "negative bit": "x.ones(2, dtype=x.complex64).conj().imag",
            "sparse": "x.eye(2).to_sparse()",
        },
    ),
    "jax": TensorLibrary(
        "jax.numpy",
        make="x.asarray(a)",
        types={
            "bfloat16": "x.ones(2, dtype='bfloat16')",
            "float8_e4m3fn": "x.ones(2, dtype='float8_e4m3fn')",
            "float4_e2m1fn": "x.ones(2, dtype='float4_e2m1fn')",
            "int4": "x.ones(2, dtype='int4')",
            "key": "__import__('jax').random.key(0)",
        },
    ),
    "tvm-ffi": TensorLibrary(
        "tvm_ffi",
        make="x.from_dlpack(a)",
        read="np.from_dlpack(t).tolist()",
        written="np.from_dlpack(t)",
        transposed="x.from_dlpack(np.from_dlpack(t).T)",
    ),
    "mlx": TensorLibrary(
        "mlx.core",
        make="x.array(a)",
        take="x.array(d)",
        types={"bfloat16": "x.ones((2,), dtype=x.bfloat16)"},
    ),
    "dpnp": TensorLibrary(
        "dpnp",
        read="x.asnumpy(t).tolist()",
    ),
    "warp": TensorLibrary(
        "warp",
        make="x.array(a)",
        read="t.numpy().tolist()",
        written="t.numpy()",
        transposed="t.transpose()",
        setup="x.config.quiet = True; x.init()",
        types={"bfloat16": "x.zeros(2, dtype=x.bfloat16)", "vec3": "x.zeros(2, dtype=x.vec3)"},
    ),
    "drjit": TensorLibrary(
        "drjit.scalar",
        make="x.TensorXf(a)",
        take="x.TensorXf(d)",
        read="np.array(t).tolist()",
        types={
            "Array3f": "x.Array3f(1, 2, 3)",
            "Complex2f": "x.Complex2f(1, 2)",
            "Matrix2f": "x.Matrix2f(1)",
            "Bool": "x.ArrayXb([True, False])",
        },
    ),
    "onnxruntime": TensorLibrary(
        "onnxruntime",
        make="x.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(a))",
        take="x.OrtValue.from_dlpack(d)",
        kind="t.data_type()",
        read="t.numpy().tolist()",
        written="t.numpy()",
        setup="x.set_default_logger_severity(4)",
    ),
    "openvino": TensorLibrary(
        "openvino",
        make="",
        take="x.Tensor(np.from_dlpack(d), shared_memory=True)",
        read="t.data.tolist()",
        kind="t.element_type",
        written="t.data",
    ),
    "max": TensorLibrary(
        "max.driver",
        make="x.Buffer.from_numpy(a)",
        take="x.Buffer.from_dlpack(d)",
        read="t.to_numpy().tolist()",
        written="t.to_numpy()",
        transposed="x.Buffer.from_dlpack(t.to_numpy().T)",
    ),
    "kornia-rs": TensorLibrary(
        "kornia_rs.image",
        make="x.Image.from_dlpack(np.ascontiguousarray(a))",
        take="x.Image.from_dlpack(d)",
        read="t.numpy().tolist()",
        written="t.numpy()",
        transposed="x.Image.from_dlpack(t.numpy().T)",
        types={"uint8, 3 channels": "x.Image.from_dlpack(np.ones((2, 2, 3), 'uint8'))"},
    ),
    "tensorflow": TensorLibrary(
        "tensorflow",
        make="x.constant(a)",
        take="x.experimental.dlpack.from_dlpack(d)",
        read="t.numpy().tolist()",
        written="t.numpy()",
        raw=True,
        transposed="x.transpose(t)",
        types={"bfloat16": "x.ones(2, x.bfloat16)"},
    ),
    "paddle": TensorLibrary(
        "paddle",
        make="x.to_tensor(a)",
        types={
            "bfloat16": "x.ones([2], 'bfloat16')",
            "float8_e4m3fn": "x.ones([2]).astype('float8_e4m3fn')",
        },
    ),
    "mindspore": TensorLibrary(
        "mindspore",
        make="x.Tensor(np.ascontiguousarray(a))",
        read="t.asnumpy().tolist()",
        written="t.asnumpy()",
        export="x.to_dlpack(t)",
        give="x.to_dlpack(t)",
        raw=True,
        types={"bfloat16": "x.ops.ones(2, x.bfloat16)"},
    ),
    "iree": TensorLibrary(
        "iree.runtime",
        make="x.asdevicearray(dev, np.ascontiguousarray(a))",
        take="x.DeviceArray(dev, dev.from_dlpack_capsule(d))",
        read="t.to_host().tolist()",
        written="t.to_host()",
        export="dev.create_dlpack_capsule(t._buffer_view, 1, 0)",
        give="dev.create_dlpack_capsule(t._buffer_view, 1, 0)",
        raw=True,
        transposed="x.asdevicearray(dev, np.ascontiguousarray(t.to_host().T))",
        setup="dev = x.get_device('local-sync')",
    ),
    "decord": TensorLibrary(
        "decord",
        make="x.ndarray.array(np.ascontiguousarray(a))",
        take="x.ndarray.from_dlpack(d)",
        read="t.asnumpy().tolist()",
        kind="t.dtype",
        written="t.asnumpy()",
        export="t.to_dlpack()",
        give="t.to_dlpack()",
        raw=True,
        transposed="x.ndarray.array(np.ascontiguousarray(t.asnumpy().T))",
    ),
    "hidet": TensorLibrary(
        "hidet",
        make="x.asarray(np.ascontiguousarray(a))",
        read="t.numpy().tolist()",
        kind="t.dtype",
        written="t.numpy()",
        transposed="x.asarray(np.ascontiguousarray(t.numpy().T))",
        types={"bfloat16": "x.ones([2], dtype='bfloat16')"},
    ),
}


@dataclass(frozen=True)
class ArrowLibrary:
    """`take` of `s` (an object with Arrow's stream protocol), `give` of the result `r`."""

    module: str
    take: str = ""
    give: str = "r"  # an object with a protocol of Arrow, or a pyarrow table
    own: dict[str, str] = field(default_factory=dict)  # data of its own types
    setup: str = ""


_SQL = (
    "CREATE TABLE t (i INTEGER, r REAL, s TEXT, b BLOB, o BOOLEAN, d DATE, w DATETIME, m TIME);"
    "INSERT INTO t VALUES (1, 0.5, 'a', x'ff', 1, '2026-01-02', '2026-01-02 03:04:05', '01:02:03'),"
    "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
)
_SPARK = """
import os, sys
os.environ['PYSPARK_PYTHON'] = sys.executable
spark = (
    x.SparkSession.builder.master('local[1]')
    .config('spark.driver.memory', '1g')
    .config('spark.ui.enabled', 'false')
    .config('spark.sql.session.timeZone', 'UTC')
    .config('spark.sql.execution.arrow.pyspark.enabled', 'true')
    .getOrCreate()
)
spark.sparkContext.setLogLevel('OFF')
"""
_SAIL = """
import os
os.environ.setdefault('SPARK_HOME', '.')  # else the client may end the process
import pysail.spark, pyspark.sql
server = pysail.spark.SparkConnectServer()
server.start(background=True)
spark = pyspark.sql.SparkSession.builder.remote(
    f'sc://localhost:{server.listening_address[1]}'
).getOrCreate()
spark.conf.set('spark.sql.session.timeZone', 'UTC')
"""
_RAY = """
x.init(num_cpus=1, object_store_memory=10**8, include_dashboard=False, log_to_driver=False,
       logging_level='ERROR')
x.data.DataContext.get_current().enable_progress_bars = False
def run(table):
    return x.data.from_arrow(table).map_batches(lambda batch: batch, batch_format='pyarrow')
"""
_FOLDER = "import tempfile, uuid; folder = tempfile.mkdtemp()\n"
_BED = "chr1\\t10\\t20\\tx\\t5\\t+\\nchr1\\t30\\t40\\ty\\t0\\t-\\n"

LIBRARIES = {
    "pyarrow": ArrowLibrary("pyarrow", take="x.table(s)"),
    "polars": ArrowLibrary(
        "polars",
        take="x.DataFrame(s)",
        own={
            "Int128": "x.DataFrame({'x': x.Series([1], dtype=x.Int128)})",
            "Object": "x.DataFrame({'x': x.Series([object()], dtype=x.Object)})",
            "Enum": "x.DataFrame({'x': x.Series(['a'], dtype=x.Enum(['a', 'b']))})",
            "Categorical": "x.DataFrame({'x': x.Series(['a'], dtype=x.Categorical)})",
            "Decimal": "x.DataFrame({'x': x.Series(['1.5']).str.to_decimal(scale=1)})",
            "Array": "x.DataFrame({'x': x.Series([[1, 2], None], dtype=x.Array(x.Float32, 2))})",
            "Time": "x.DataFrame({'x': x.Series([0]).cast(x.Time)})",
            "Duration": "x.DataFrame({'x': x.Series([1]).cast(x.Duration('ms'))})",
            "LazyFrame": "x.LazyFrame({'x': [1]})",
        },
    ),
    "duckdb": ArrowLibrary(
        "duckdb",
        take="x.connect().from_arrow(s)",
        own={
            "HUGEINT": "x.sql('SELECT 1::HUGEINT AS x')",
            "UUID": "x.sql('SELECT uuid() AS x')",
            "BIT": "x.sql(\"SELECT '101'::BIT AS x\")",
            "UNION": "x.sql('SELECT union_value(a := 1) AS x')",
            "ENUM": "x.sql(\"SELECT 'a'::ENUM('a', 'b') AS x\")",
            "FLOAT[3]": "x.sql('SELECT [1, 2, 3]::FLOAT[3] AS x')",
            "FLOAT[]": "x.sql('SELECT [1, 2, 3]::FLOAT[] AS x')",
            "MAP": "x.sql(\"SELECT map {'a': 1} AS x\")",
            "TIMESTAMPTZ": "x.sql(\"SELECT '2026-01-01'::TIMESTAMPTZ AS x\")",
            "TIMETZ": "x.sql(\"SELECT '01:02:03+01'::TIMETZ AS x\")",
            "INTERVAL": "x.sql(\"SELECT INTERVAL '1 month' AS x\")",
            "BIGNUM": "x.sql('SELECT 1::BIGNUM AS x')",
            "DECIMAL(18, 3)": "x.sql('SELECT 1.5::DECIMAL(18, 3) AS x')",
            "VARIANT": "x.sql('SELECT 1::VARIANT AS x')",
        },
    ),
    "pandas": ArrowLibrary(
        "pandas",
        setup="import pandas as pd",
        take="x.from_pandas(pa.table(s).to_pandas(types_mapper=pd.ArrowDtype))",
        own={
            "str": "x.DataFrame({'x': ['a', None]})",
            "category": "x.DataFrame({'x': x.Categorical(['a', None])})",
            "period": "x.DataFrame({'x': x.period_range('2026', periods=2, freq='M')})",
            "interval": "x.DataFrame({'x': x.interval_range(0, 2)})",
            "complex": "x.DataFrame({'x': [1j]})",
            "Sparse": "x.DataFrame({'x': x.arrays.SparseArray([0, 1])})",
            "mixed objects": "x.DataFrame({'x': [1, 'a']})",
            "NaN in float64": "x.DataFrame({'x': [1.0, float('nan')]})",
            "NaN in Float64": "x.DataFrame({'x': x.array([1.0, None], 'Float64')})",
            "boolean": "x.DataFrame({'x': x.array([True, None], 'boolean')})",
            "datetime": "x.DataFrame({'x': x.to_datetime(['2026-01-01'])})",
            "timedelta": "x.DataFrame({'x': x.to_timedelta(['1s'])})",
            "Series": "x.Series([1, 2])",
        },
    ),
    "nanoarrow": ArrowLibrary("nanoarrow", take="x.Array(s)"),
    "arro3": ArrowLibrary("arro3.core", take="x.Table(s)"),
    "datafusion": ArrowLibrary(
        "datafusion",
        take="x.SessionContext().from_arrow(s)",
        own={
            "interval": "x.SessionContext().sql(\"SELECT INTERVAL '1 month' AS x\")",
            "array": "x.SessionContext().sql('SELECT [1, 2] AS x')",
            "map": "x.SessionContext().sql(\"SELECT MAP {'a': 1} AS x\")",
            "varchar": "x.SessionContext().sql(\"SELECT arrow_cast('a', 'Utf8View') AS x\")",
            "decimal": "x.SessionContext().sql('SELECT CAST(1.5 AS DECIMAL(10, 2)) AS x')",
        },
    ),
    "chdb": ArrowLibrary(
        "chdb",
        take="query(s)",
        setup="def query(tt):\n    return x.query('SELECT * FROM Python(tt)', 'Arrow')",
        own={
            kind: f"x.query(\"SELECT {sql} AS x\", 'Arrow')"
            for kind, sql in {
                "String": "'a'",
                "Nullable(String)": "toNullable('a')",
                "LowCardinality": "toLowCardinality('a')",
                "Array(Float32)": "[toFloat32(1)]",
                "UInt128": "toUInt128(1)",
                "UUID": "generateUUIDv4()",
                "DateTime('UTC')": "toDateTime('2026-01-01', 'UTC')",
                "DateTime64(3, 'UTC')": "toDateTime64('2026-01-01', 3, 'UTC')",
                "Enum8": "CAST('a' AS Enum8('a' = 1))",
                "Tuple": "tuple(1, 'a')",
                "Bool": "true",
                "Decimal": "toDecimal64(1.5, 2)",
                "BFloat16": "CAST(1.5, 'BFloat16')",
                "Date": "toDate('2026-01-01')",
                "Map": "map('a', 1)",
                "IPv4": "toIPv4('1.2.3.4')",
            }.items()
        },
    ),
    "awkward": ArrowLibrary(
        "awkward",
        take="x.from_arrow(pa.table(s))",
        give="x.to_arrow_table(r, extensionarray=False)",
        own={
            "RegularArray": "x.to_arrow(x.Array(np.ones((2, 3))), extensionarray=False)",
            "with its own types": "x.to_arrow(x.Array(np.ones((2, 3))))",
            "option in option": "x.to_arrow(x.Array([[1, None], None]), extensionarray=False)",
            "union": "x.to_arrow(x.Array([1, 'a']), extensionarray=False)",
        },
    ),
    "daft": ArrowLibrary(
        "daft",
        take="x.from_arrow(s)",
        own={
            "embedding": "x.from_pydict({'x': [np.ones(3, 'f4')]}).select(x.col('x').cast("
            "x.DataType.embedding(x.DataType.float32(), 3)))",
            "tensor": "x.from_pydict({'x': [np.ones((2, 2), 'f4')]})",
            "Python objects": "x.from_pydict({'x': [object()]})",
        },
    ),
    "ibis": ArrowLibrary("ibis", take="x.memtable(pa.table(s))"),
    "narwhals": ArrowLibrary(
        "narwhals",
        take="x.from_arrow(s, backend='polars')",
        own={"LazyFrame": "x.from_native(__import__('polars').LazyFrame({'x': [1]}))"},
    ),
    "deltalake": ArrowLibrary(
        "deltalake",
        setup=_FOLDER
        + "def store(s):\n    path = folder + '/' + uuid.uuid4().hex\n"
        + "    x.write_deltalake(path, s)\n    return x.DeltaTable(path)",
        take="store(s)",
        give="r.to_pyarrow_table()",
        own={
            "QueryBuilder": "x.QueryBuilder().register('t', store(pa.table({'x': ['a']})))"
            ".execute('SELECT * FROM t')"
        },
    ),
    "pyiceberg": ArrowLibrary(
        "pyiceberg.catalog",
        setup=_FOLDER
        + "c = x.load_catalog('c', type='sql', uri=f'sqlite:///{folder}/c.db',"
        + " warehouse=f'file://{folder}')\nc.create_namespace('n')\n"
        + "def store(s):\n    t = pa.table(s)\n"
        + "    i = c.create_table('n.t' + uuid.uuid4().hex, t.schema)\n"
        + "    i.append(t)\n    return i",
        take="store(s)",
        give="r.scan().to_arrow()",
        own={"batch reader": "store(pa.table({'x': ['a']})).scan().to_arrow_batch_reader()"},
    ),
    "vortex": ArrowLibrary("vortex", take="x.array(pa.table(s))", give="r.to_arrow_table()"),
    "lance": ArrowLibrary(
        "lance",
        setup=_FOLDER
        + "def store(s):\n"
        + "    return x.write_dataset(s, folder + '/' + uuid.uuid4().hex)",
        take="store(pa.table(s))",
        give="r.to_table()",
    ),
    "sedonadb": ArrowLibrary(
        "sedonadb",
        setup="con = x.connect()",
        take="con.create_data_frame(s)",
        own={
            "geometry": "con.sql('SELECT ST_Point(1, 2) AS x')",
            "geometry with SRID": "con.sql('SELECT ST_SetSRID(ST_Point(1, 2), 4326) AS x')",
            "geography": "con.sql('SELECT ST_GeogPoint(1, 2) AS x')",
        },
    ),
    "oxbow": ArrowLibrary(
        "oxbow",
        setup=_FOLDER + "path = folder + '/a.bed'\n" + f"open(path, 'w').write('{_BED}')",
        own={
            "BED, dataset": "x.from_bed(path, bed_schema='bed6').dataset().to_table()",
            "BED, batches": "next(iter(x.from_bed(path, bed_schema='bed6').batches()))",
            "BED, file": "x.from_bed(path, bed_schema='bed6')",
        },
    ),
    "pyogrio": ArrowLibrary(
        "pyogrio",
        setup=_FOLDER
        + "import geopandas, shapely\n"
        + "g = geopandas.GeoDataFrame({'n': [1, 2]}, geometry=[shapely.Point(1, 2), None],"
        + " crs='EPSG:4326')\n"
        + "def store(s):\n    path = folder + '/' + uuid.uuid4().hex + '.gpkg'\n"
        + "    x.write_arrow(s, path, driver='GPKG', geometry_type=None)\n"
        + "    return x.read_arrow(path)[1]",
        take="store(s)",
        own={
            "GeoDataFrame": "g",
            "to_arrow, WKB": "g.to_arrow()",
            "to_arrow, geoarrow": "g.to_arrow(geometry_encoding='geoarrow')",
            "to_arrow, separated": "g.to_arrow(geometry_encoding='geoarrow', interleaved=False)",
        },
    ),
    "tiledb": ArrowLibrary(
        "tiledb",
        setup=_FOLDER
        + "import pandas as pd\n"
        + "def store(**columns):\n    path = folder + '/' + uuid.uuid4().hex\n"
        + "    x.from_pandas(path, pd.DataFrame(columns), sparse=True)\n"
        + "    return x.open(path).query(return_arrow=True).df[:]",
        own={
            "int64": "store(x=[1, 2])",
            "str": "store(x=['a', 'bc'])",
            "bool": "store(x=[True, False])",
            "datetime": "store(x=pd.to_datetime(['2026-01-01', '2026-01-02']))",
        },
    ),
    "datasets": ArrowLibrary(
        "datasets",
        take="x.Dataset(pa.table(s))",
        give="r.with_format('arrow')[:]",
        own={
            "Dataset": "x.Dataset.from_dict({'x': [1]})",
            "Array2D": "x.Dataset.from_dict({'x': [[[1, 2], [3, 4]]]}, x.Features("
            "{'x': x.Array2D((2, 2), 'float32')})).with_format('arrow')[:]",
            "ClassLabel": "x.Dataset.from_dict({'x': [0, 1]}, x.Features("
            "{'x': x.ClassLabel(names=['a', 'b'])})).with_format('arrow')[:]",
        },
    ),
    "pantab": ArrowLibrary(
        "pantab",
        setup=_FOLDER
        + "def store(s):\n    path = folder + '/' + uuid.uuid4().hex + '.hyper'\n"
        + "    x.frame_to_hyper(s, path, table='t')\n"
        + "    return x.frame_from_hyper(path, table='t', return_type='pyarrow')",
        take="store(s)",
    ),
    "perspective": ArrowLibrary(
        "perspective",
        take="x.table(pa.table(s))",
        give="pa.ipc.open_stream(r.view().to_arrow()).read_all()",
        own={"date": "pa.ipc.open_stream(x.table({'x': 'date'}).view().to_arrow()).read_all()"},
    ),
    "rerun": ArrowLibrary(
        "rerun",
        own={
            part: f"p.{part}.as_arrow_array()"
            for part in ("positions", "colors", "radii", "labels")
        },
        setup="p = x.Points3D([[1, 2, 3]], colors=[0xFF], radii=[1.0], labels=['a'])",
    ),
    "adbc": ArrowLibrary(
        "adbc_driver_sqlite.dbapi",
        setup="import uuid; con = x.connect(); cursors = []\n"  # a stream reads from its cursor
        "def store(s):\n    cursor = con.cursor()\n    cursors.append(cursor)\n"
        "    name = 't' + uuid.uuid4().hex\n"
        "    cursor.adbc_ingest(name, s)\n"
        "    cursor.execute(f'SELECT * FROM {name}')\n    return cursor",
        take="store(s)",
        give="r.fetch_arrow()",
    ),
    "connectorx": ArrowLibrary(
        "connectorx",
        setup=_FOLDER
        + "import sqlite3\ncon = sqlite3.connect(folder + '/a.db')\n"
        + f'con.executescript("""{_SQL}""")\ncon.commit()\n'
        + "def query(sql, kind='arrow'):\n"
        + "    return x.read_sql(f'sqlite://{folder}/a.db', sql, return_type=kind)",
        own={
            **{
                kind: f"query('SELECT {name} AS x FROM t')"
                for kind, name in {
                    "INTEGER": "i",
                    "REAL": "r",
                    "TEXT": "s",
                    "BLOB": "b",
                    "BOOLEAN": "o",
                    "DATE": "d",
                    "DATETIME": "w",
                    "TIME": "m",
                    "integer expression": "i + 1",
                }.items()
            },
            "stream": "query('SELECT i AS x FROM t', 'arrow_stream')",
        },
    ),
    "dask": ArrowLibrary(
        "dask.dataframe",
        setup="import pandas as pd",
        take="x.from_pandas(pa.table(s).to_pandas(types_mapper=pd.ArrowDtype), npartitions=1)",
        give="r.compute()",
        own={"DataFrame": "x.from_pandas(pd.DataFrame({'x': [1, 2]}), npartitions=1)"},
    ),
    "fireducks": ArrowLibrary(
        "fireducks.pandas",
        setup="import pandas as pd",
        take="x.DataFrame(pa.table(s).to_pandas(types_mapper=pd.ArrowDtype))",
        own={
            "str": "x.DataFrame({'x': ['a', None]})",
            "NaN in float64": "x.DataFrame({'x': [1.0, float('nan')]})",
            "datetime": "x.DataFrame({'x': x.to_datetime(['2026-01-01'])})",
            "Series": "x.Series([1, 2])",
        },
    ),
    "ladybug": ArrowLibrary(
        "real_ladybug",
        setup="import importlib.util\ncon = x.Connection(x.Database(':memory:'))\n"
        "def query(tt):\n    return con.execute('LOAD FROM tt RETURN *')",
        take="query(pa.table(s))",
        give="r.get_as_arrow()",
        own={
            kind: f'con.execute("RETURN {sql} AS x").get_as_arrow()'
            for kind, sql in {
                "INT128": "CAST(1 AS INT128)",
                "UUID": "gen_random_uuid()",
                "DOUBLE[3]": "CAST([1.0, 2.0, 3.0] AS DOUBLE[3])",
                "MAP": "map([1], ['a'])",
                "INTERVAL": "interval('1 month')",
                "DECIMAL": "CAST(1.5 AS DECIMAL(10, 2))",
                "BLOB": "BLOB('ab')",
                "TIMESTAMP_TZ": "CAST('2026-01-01' AS TIMESTAMP_TZ)",
            }.items()
        },
    ),
    "lancedb": ArrowLibrary(
        "lancedb",
        setup=_FOLDER
        + "db = x.connect(folder)\n"
        + "def store(s):\n    return db.create_table('t' + uuid.uuid4().hex, s)",
        take="store(pa.table(s))",
        give="r.to_arrow()",
        own={
            "query": "store(pa.table({'x': [1, 2]})).search().to_arrow()",
            "query, batches": "store(pa.table({'x': [1, 2]})).search().to_batches()",
            "nearest": "store(pa.table({'x': pa.array([[1., 2.]], pa.list_(pa.float32(), 2))}))"
            ".search([1., 2.]).to_arrow()",
        },
    ),
    "modin": ArrowLibrary(
        "modin.pandas",
        setup="import os; os.environ['MODIN_ENGINE'] = 'Python'\n"
        "from modin.pandas.io import from_arrow",
        take="from_arrow(pa.table(s))",
        own={
            "int64": "x.DataFrame({'x': [1, 2]})",
            "str": "x.DataFrame({'x': ['a', None]})",
            "NaN in float64": "x.DataFrame({'x': [1.0, float('nan')]})",
            "category": "x.DataFrame({'x': x.Categorical(['a', None])})",
            "datetime": "x.DataFrame({'x': x.to_datetime(['2026-01-01'])})",
            "Series": "x.Series([1, 2])",
        },
    ),
    "pysail": ArrowLibrary(
        "pysail", setup=_SAIL, take="spark.createDataFrame(pa.table(s))", give="r.toArrow()"
    ),
    "ray": ArrowLibrary(
        "ray",
        setup="import ray.data" + _RAY,
        take="run(pa.table(s))",
        give="pa.concat_tables(x.get(r.to_arrow_refs()))",
        own={
            "range_tensor": "pa.concat_tables(x.get("
            "x.data.range_tensor(2, shape=(2, 2)).to_arrow_refs()))",
            "from_numpy": "pa.concat_tables(x.get("
            "x.data.from_numpy(np.ones((2, 3))).to_arrow_refs()))",
            "Python objects": "pa.concat_tables(x.get("
            "x.data.from_items([{'x': {1, 2}}]).to_arrow_refs()))",
        },
    ),
    "spark": ArrowLibrary(
        "pyspark.sql",
        setup=_SPARK,
        take="spark.createDataFrame(pa.table(s))",
        give="r.toArrow()",
        own={
            kind: f'spark.sql("SELECT {sql} AS x")'
            for kind, sql in {
                "BYTE": "1Y",
                "DECIMAL": "1.5BD",
                "INTERVAL": "INTERVAL '1' DAY",
                "MONTHS": "INTERVAL '1' MONTH",
                "TIMESTAMP": "TIMESTAMP '2026-01-01'",
                "TIMESTAMP_NTZ": "TIMESTAMP_NTZ '2026-01-01'",
                "TIME": "TIME '01:02:03'",
                "VARIANT": "parse_json('1')",
                "ARRAY": "array(1f, 2f)",
                "MAP": "map('a', 1)",
            }.items()
        },
    ),
}


def find_distribution(name: str) -> str:
    """The distribution whose version a row names: the one like the library, else the first."""
    text = (Path(__file__).resolve().parents[1] / f"requirements/interop/{name}.txt").read_text()
    pinned = re.findall(r"^([A-Za-z0-9_.-]+)", text, re.M)
    return min(pinned, key=lambda one: name not in one and DISTRIBUTIONS.get(name) != one)


DISTRIBUTIONS = {"lance": "pylance", "ladybug": "real-ladybug", "spark": "pyspark"}
