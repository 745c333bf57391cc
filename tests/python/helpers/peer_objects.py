"""Objects of libraries that the environments of peers have, as `helpers.library_objects` lists."""

from __future__ import annotations

_TABLE = (
    "import pyarrow as pa, pyarrow.compute as pc, tempfile\n"
    "folder = tempfile.mkdtemp()\n"
    "table = pa.table({'x': [1, 2, 3], 's': ['a', None, 'c'], 'l': [[1.5], None, [2.5, 3.5]]})\n"
)

PEER_OBJECTS: dict[str, tuple[str, list[str]]] = {
    "lance": (
        f"{_TABLE}import lance, lance.arrow, lance.blob\n"
        "data = lance.write_dataset(table, folder + '/data.lance')\n"
        "tiny = lance.arrow.bfloat16_array([1.5, 2.5])",
        [
            "data",
            "data.scanner()",
            "data.scanner(columns=['x'], filter='x > 1')",
            "data.scanner().to_reader()",
            "data.to_table()",
            "data.to_batches()",
            "data.schema",
            "data.lance_schema",
            "data.get_fragments()",
            "data.get_fragments()[0]",
            "data.get_fragments()[0].scanner()",
            "data.get_fragments()[0].metadata",
            "data.take([0, 2])",
            "data.versions()",
            "data.stats",
            "data.tags",
            "data.optimize",
            "data.sql('select x from dataset').build()",
            "data.uri",
            "tiny",
            "lance.arrow.BFloat16(1.5)",
            "lance.LanceDataset",
            "lance.LanceFragment",
            "lance",
        ],
    ),
    "lancedb": (
        f"{_TABLE}import lancedb, lancedb.permutation\n"
        "connection = lancedb.connect(folder)\n"
        "vectors = pa.table({'x': [1, 2], 'vector': pa.array([[1.0, 2.0], [3.0, 4.0]],\n"
        "    pa.list_(pa.float32(), 2))})\n"
        "data = connection.create_table('t', vectors)",
        [
            "connection",
            "data",
            "data.schema",
            "data.to_arrow()",
            "data.to_lance()",
            "data.search([1.0, 2.0])",
            "data.search([1.0, 2.0]).to_arrow()",
            "data.search([1.0, 2.0]).to_batches()",
            "data.search()",
            "data.query() if hasattr(data, 'query') else data.search()",
            "lancedb.permutation.Permutation.identity(data)",
            "lancedb.permutation.permutation_builder(data)",
            "lancedb",
        ],
    ),
    "deltalake": (
        f"{_TABLE}import deltalake\n"
        "deltalake.write_deltalake(folder + '/t', table,\n"
        "    configuration={'delta.enableChangeDataFeed': 'true'})\n"
        "data = deltalake.DeltaTable(folder + '/t')",
        [
            "data",
            "data.schema()",
            "data.schema().fields[0]",
            "data.schema().to_arrow()",
            "data.to_pyarrow_dataset()",
            "data.to_pyarrow_table()",
            "data.get_add_actions()",
            "data.load_cdf()",
            "deltalake.QueryBuilder().register('t', data)",
            "deltalake.QueryBuilder().register('t', data).execute('select x from t')",
            "data.metadata()",
            "data.protocol()",
            "data.optimize",
            "data.file_uris()",
            "data.history()",
            "data.table_uri",
            "deltalake.DeltaTable",
            "deltalake",
        ],
    ),
    "pyiceberg": (
        f"{_TABLE}import pyiceberg, pyiceberg.catalog.sql, pyiceberg.expressions\n"
        "catalog = pyiceberg.catalog.sql.SqlCatalog('c', warehouse='file://' + folder,\n"
        "    uri='sqlite:///' + folder + '/c.db')\n"
        "catalog.create_namespace('n')\n"
        "data = catalog.create_table('n.t', table.schema)\n"
        "data.append(table)",
        [
            "catalog",
            "data",
            "data.scan()",
            "data.scan(row_filter='x > 1', selected_fields=('x',))",
            "data.scan().to_arrow()",
            "data.scan().to_arrow_batch_reader()",
            "list(data.scan().plan_files())",
            "list(data.scan().plan_files())[0]",
            "data.schema()",
            "data.schema().as_struct()",
            "data.metadata",
            "data.current_snapshot()",
            "data.inspect.files()",
            "data.inspect",
            "data.transaction()",
            "pyiceberg.expressions.GreaterThan('x', 1)",
            "pyiceberg",
        ],
    ),
    "vortex": (
        f"{_TABLE}import vortex, vortex.io\n"
        "path = folder + '/t.vortex'\n"
        "vortex.io.write(table, path)\n"
        "file = vortex.open(path)",
        [
            "vortex.array([1, 2, None])",
            "vortex.array(['a', 'b'])",
            "vortex.array(pa.array([[1], [2, 3]]))",
            "vortex.array(table)",
            "vortex.array(pa.array(['a', 'a']).dictionary_encode())",
            "vortex.compress(vortex.array([1, 1, 1]))",
            "vortex.array([1, 2]).dtype",
            "vortex.array([1, 2]).scalar_at(0)",
            "file",
            "file.dtype",
            "file.scan()",
            "file.to_arrow()",
            "file.to_dataset()",
            "file.to_dataset().scanner()",
            "file.to_polars() if hasattr(file, 'to_polars') else None",
            "file.to_repeated_scan() if hasattr(file, 'to_repeated_scan') else None",
            "vortex.expr.column('x') if hasattr(vortex, 'expr') else None",
            "vortex.Array",
            "vortex",
        ],
    ),
    "daft": (
        f"{_TABLE}import daft, numpy as np\nframe = daft.from_arrow(table)",
        [
            "frame",
            "frame.where(daft.col('x') > 1)",
            "frame.collect()",
            "frame.groupby('x')",
            "frame.schema()",
            "frame.to_arrow()",
            "frame.to_arrow_iter()",
            "frame.iter_partitions()",
            "frame.iter_rows()",
            "frame.to_torch_iter_dataset()",
            "frame.to_torch_map_dataset()",
            "daft.col('x')",
            "daft.Series.from_pylist([1, None])",
            "daft.Series.from_pylist(['a', None])",
            "daft.Series.from_pylist([np.zeros((2, 2)), np.ones((1, 3))])",
            "daft.Series.from_pylist([object()])",
            "daft.Series.from_arrow(pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)))"
            ".cast(daft.DataType.embedding(daft.DataType.float32(), 2))",
            "daft.DataType.int8()",
            "daft",
        ],
    ),
    "datasets": (
        f"{_TABLE}import datasets, numpy as np\n"
        "data = datasets.Dataset(table)\n"
        "arrays = datasets.Dataset.from_dict({'a': [[[1, 2], [3, 4]]]}, datasets.Features(\n"
        "    {'a': datasets.Array2D((2, 2), 'int32')}))",
        [
            "data",
            "data.data",
            "data.select([2, 0])",
            "data.with_format('torch')",
            "data.with_format('numpy')",
            "data.with_format('arrow')",
            "data['x']",
            "data[0]",
            "data[:2]",
            "data.features",
            "data.features['x']",
            "data.iter(2)",
            "data.to_iterable_dataset()",
            "data.to_iterable_dataset().with_format('torch')",
            "datasets.DatasetDict(train=data)",
            "datasets.IterableDatasetDict(train=data.to_iterable_dataset())",
            "datasets.Dataset.from_dict({})",
            "arrays",
            "arrays.data",
            "arrays.features['a']",
            "datasets.Image()",
            "datasets.Features(x=datasets.Value('int8'))",
            "datasets.NamedSplit('train')",
            "datasets.Dataset",
            "datasets",
        ],
    ),
    "datafusion": (
        f"{_TABLE}import datafusion\n"
        "context = datafusion.SessionContext()\n"
        "frame = context.from_arrow(table)",
        [
            "context",
            "frame",
            "frame.filter(datafusion.col('x') > 1)",
            "frame.schema()",
            "frame.to_arrow_table()",
            "frame.execute_stream()",
            "next(iter(frame.execute_stream()))",
            "frame.execute_stream_partitioned()",
            "frame.collect()",
            "frame.collect_partitioned()",
            "frame.logical_plan()",
            "frame.execution_plan()",
            "context.sql(\"select 1 as x, null as n, 'a' as s\")",
            "datafusion.col('x')",
            "datafusion.literal(1)",
            "datafusion",
        ],
    ),
    "ibis": (
        f"{_TABLE}import ibis\nexpression = ibis.memtable(table)",
        [
            "expression",
            "expression.filter(expression.x > 1)",
            "expression.x",
            "expression.x.sum()",
            "expression.group_by('x')",
            "expression.schema()",
            "expression.schema()['x']",
            "expression.to_pyarrow()",
            "expression.to_pyarrow_batches()",
            "ibis.literal(1)",
            "ibis.array([1, 2])",
            "ibis._",
            "ibis._.x",
            "ibis.table({'x': 'int64'}, name='t')",
            "ibis.duckdb.connect()",
            "ibis",
        ],
    ),
    "narwhals": (
        f"{_TABLE}import narwhals as nw, polars as pl, duckdb",
        [
            "nw.from_native(table)",
            "nw.from_native(pl.DataFrame({'x': [1, None]}))",
            "nw.from_native(pl.LazyFrame({'x': [1, None]}))",
            "nw.from_native(duckdb.sql('select 1 as x'))",
            "nw.from_native(table)['x']",
            "nw.from_native(pl.Series(['a']), series_only=True)",
            "nw.from_native(table).group_by('x')",
            "nw.from_native(table).schema",
            "nw.from_native(table).lazy()",
            "nw.col('x')",
            "nw.Int8()",
            "nw",
        ],
    ),
    "awkward": (
        f"{_TABLE}import awkward as ak, numpy as np",
        [
            "ak.Array([1, 2, 3])",
            "ak.Array([1, None, 3])",
            "ak.Array([[1], [], [2, 3]])",
            "ak.Array([{'x': 1}, {'x': 2}])",
            "ak.Array(['a', 'bc'])",
            "ak.Array([1, 'a', [2]])",
            "ak.Array([])",
            "ak.from_numpy(np.zeros((2, 3)), regulararray=True)",
            "ak.from_regular(ak.Array([[1], [2]]))",
            "ak.str.to_categorical(ak.Array(['a', 'a']))",
            "ak.Array([1, 2]).layout",
            "ak.Array([[1], [2, 3]]).layout",
            "ak.Array([1, 2]).type",
            "ak.to_arrow(ak.Array([[1], None]))",
            "ak.to_arrow(ak.Array([[1], None]), extensionarray=False)",
            "ak.to_arrow_table(ak.Array([{'x': 1}]))",
            "ak.ArrayBuilder()",
            "ak.Record({'x': 1})",
            "ak.Array",
            "ak",
        ],
    ),
    "geopandas": (
        f"{_TABLE}import geopandas, shapely, pandas as pd\n"
        "points = geopandas.points_from_xy([1, 2], [3, 4])\n"
        "frame = geopandas.GeoDataFrame({'x': [1, 2]}, geometry=points, crs='EPSG:4326')\n"
        "lines = geopandas.GeoSeries([shapely.LineString([(0, 0), (1, 1)]), None])",
        [
            "frame",
            "frame.geometry",
            "frame[['x']]",
            "frame.to_arrow()",
            "frame.to_arrow(geometry_encoding='geoarrow')",
            "frame.to_arrow(geometry_encoding='geoarrow', interleaved=False)",
            "lines",
            "lines.to_arrow()",
            "lines.to_arrow('geoarrow')",
            "geopandas.GeoDataFrame()",
            "geopandas.GeoSeries([])",
            "points",
            "frame.crs",
            "frame.sindex",
            "shapely.Point(1, 2)",
            "shapely.points([[1, 2]])",
            "shapely.STRtree([shapely.Point(1, 2)])",
            "geopandas",
        ],
    ),
    "chdb": (
        f"{_TABLE}import chdb, chdb.session\n"
        'query = "select number as x, toString(x) as s, [x] as l from numbers(3)"\n'
        "session = chdb.session.Session()",
        [
            "chdb.query(query, 'Arrow')",
            "chdb.query(query, 'ArrowStream')",
            "chdb.query(query, 'Parquet')",
            "chdb.query(query, 'ArrowTable')",
            "chdb.query(query, 'CSV')",
            "chdb.query(query, 'DataFrame')",
            "session",
            "session.query(query, 'Arrow')",
            "session.send_query(query, 'Arrow')",
            "chdb",
        ],
    ),
}
