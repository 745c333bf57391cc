"""What functions draw at random: the same for each run, resume and number of workers."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import arrowdl
import jax
import numpy as np
import pyarrow as pa
import pytest
import torch
from arrowdl.loader._batches.seeded import name_generator_device, seeded
from helpers import draws
from helpers.draws import list_draws
from helpers.options import group
from helpers.processes import run_python

TABLE = pa.table({"id": pa.array(range(48), pa.int32())})


def make(function: Any = draws.draw_legacy, **options: Any) -> arrowdl.Loader:
    given = {"global_batch_size": 4, "splits": 2, "framework": "numpy", "transform": function}
    return arrowdl.Loader(TABLE, **group(**{**given, "seed": 5, **options}))


def seed_all() -> None:
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)


def draw_all() -> list[float]:
    """Draw from the generators of this process; NumPy keeps a normal number for the next call."""
    torch_number = torch.rand(1).item()
    return [random.random(), random.gauss(), np.random.randn(), np.random.rand(), torch_number]


def test_draws_do_not_depend_on_the_number_of_workers() -> None:
    def read(num_workers: int, **options: Any) -> list[Any]:
        with make(draws.draw_both, num_workers=num_workers, **options) as loader:
            return [list_draws(loader) for _ in range(2)]

    first = read(0)
    assert first == read(0) == read(1) == read(2, shuffle=False)
    drawn = [row for epoch in first for batch in epoch for row in map(tuple, batch["drawn"])]
    assert len(set(drawn)) == 96  # each batch of each epoch draws other numbers


def test_torch_draws_the_same_in_a_worker() -> None:
    first, second = (make(draws.draw_torch, framework="torch", num_workers=i) for i in range(2))
    with second:
        assert list_draws(first) == list_draws(second)


def test_draws_are_those_of_the_steps_after_a_resume() -> None:
    function = draws.draw_both
    whole = list_draws(make(function))
    loader = make(function)
    batches = iter(loader)
    before = list_draws(next(batches) for _ in range(5))
    for num_workers in (0, 2):
        resumed = make(function, num_workers=num_workers)
        resumed.load_state_dict(loader.state_dict())
        with resumed:
            assert before + list_draws(resumed) == whole


def test_draws_without_splits_are_those_of_steps_too() -> None:
    options: dict[str, Any] = {"global_batch_size": None, "batch_size": 4, "splits": None}
    drawn = [batch["drawn"] for batch in list_draws(make(**options))]
    loader = make(**options)
    batches = iter(loader)
    before = list_draws(next(batches) for _ in range(3))
    with make(**options, num_workers=2) as resumed:
        resumed.load_state_dict(loader.state_dict())
        read = before + list_draws(resumed)
    assert [batch["drawn"] for batch in read] == drawn
    assert sorted(row for batch in read for row in batch["id"]) == list(range(48))


def test_ranks_and_seeds_draw_other_numbers() -> None:
    read = [
        list_draws(make(rank=rank, world_size=2, seed=seed))[0]["drawn"][0]
        for rank in range(2)
        for seed in (5, 6)
    ]
    assert len(set(map(tuple, read))) == 4


@pytest.mark.parametrize("draw_before", [0, 1])
def test_the_generators_of_the_training_are_put_back(draw_before: int) -> None:
    seed_all()
    plain = [draw_all() for _ in range(14)]
    seed_all()
    loader = make(draws.draw_torch, framework="torch")
    drawn = [draw_all() for _ in range(draw_before)]
    for _ in loader:
        drawn.append(draw_all())
    drawn += [draw_all() for _ in range(14 - len(drawn))]
    assert drawn == plain


def test_generators_are_put_back_after_errors_and_around_other_loaders() -> None:
    def nest(batch: Any) -> Any:
        before = draw_all()
        inner = list_draws(make(draws.draw_legacy))
        batch["drawn"] = np.array([*before, *draw_all(), *inner[0]["drawn"][0]])
        return batch

    def fail(batch: Any) -> Any:
        draw_all()
        raise ValueError("no")

    seed_all()
    plain = [draw_all() for _ in range(3)]
    seed_all()
    drawn = [draw_all()]
    nested = list_draws(make(nest))
    assert nested == list_draws(make(nest))
    drawn.append(draw_all())
    with pytest.raises(ValueError, match="no"):
        next(iter(make(fail)))
    assert [*drawn, draw_all()] == plain


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937])
def test_another_bit_generator_of_numpy_is_put_back(kind: Any) -> None:
    before = np.random.get_bit_generator()
    try:
        own = kind(3)
        np.random.set_bit_generator(own)
        first = np.random.randn()
        state = np.random.get_state(legacy=False)
        expected = [np.random.randn() for _ in range(3)]
        np.random.set_state(state)
        list_draws(make())
        assert np.random.get_bit_generator() is own
        assert [np.random.randn() for _ in range(3)] == expected
        assert first not in expected
    finally:
        np.random.set_bit_generator(before)


def test_a_function_may_seed_by_itself() -> None:
    def seed(batch: Any) -> Any:
        seed_all()
        batch["drawn"] = np.array(draw_all())
        return batch

    seed_all()
    expected = draw_all()
    assert {tuple(batch["drawn"]) for batch in list_draws(make(seed))} == {tuple(expected)}


def test_seeds_are_set_by_default_only() -> None:
    seed_all()
    first = list_draws(make(seed_transforms=False))
    second = list_draws(make(seed_transforms=False))
    assert first != second
    with pytest.raises(TypeError, match=r"Seed\.transforms"):
        make(seed_transforms=1)


def test_other_threads_leave_the_generators_alone() -> None:
    def read_in_thread(function: Callable[..., Any]) -> list[Any]:
        read: list[Any] = []
        thread = threading.Thread(target=lambda: read.extend(list_draws(make(function))))
        thread.start()
        thread.join()
        return read

    seed_all()
    assert read_in_thread(draws.draw_legacy) != list_draws(make())
    seed_all()
    first = read_in_thread(draws.draw_legacy)
    seed_all()
    assert read_in_thread(draws.draw_legacy) == first  # of the generators of the process
    assert read_in_thread(draws.draw_given) == list_draws(make(draws.draw_given))


def test_threads_get_generators_of_their_batch() -> None:
    def add(batch: Any, generator: Any) -> Any:
        batch["arrow"] = generator.random(len(batch["id"]))
        return batch

    read = [
        [list_draws(loader) for _ in range(2)]
        for num_threads in (0, 3)
        for loader in [make(draws.draw_given, num_threads=num_threads).map(add)]
    ]
    assert read[0] == read[1]
    assert all(batch["arrow"][0] != batch["drawn"][0][0] for batch in read[0][0])


def test_generators_are_of_the_framework() -> None:
    kinds: dict[str, Any] = {}

    def note(framework: str, batch: Any, generator: Any = None) -> Any:
        kinds[framework] = generator
        return batch

    for framework in ("torch", "jax", "numpy"):
        next(iter(make(partial(note, framework), framework=framework)))
    assert isinstance(kinds["torch"], torch.Generator)
    assert isinstance(kinds["numpy"], np.random.Generator)
    assert jax.dtypes.issubdtype(kinds["jax"].dtype, jax.dtypes.prng_key)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    next(iter(make(partial(note, "sharding"), framework="jax", sharding=sharding)))
    assert isinstance(kinds["sharding"], np.random.Generator)


def test_jax_draws_other_numbers_in_each_function_and_batch() -> None:
    def draw(batch: Any, generator: Any) -> Any:
        number = jax.random.uniform(generator).item()
        return {**batch, "drawn": [*batch.get("drawn", ()), number]}

    first, second = (list_draws(make(draw, framework="jax").map(draw)) for _ in range(2))
    assert first == second
    assert len({number for batch in first for number in batch["drawn"]}) == 24


def test_only_a_second_parameter_named_generator_gets_one() -> None:
    class Model(torch.nn.Module):
        def forward(self, batch: Any, generator: Any = None) -> Any:
            raise AssertionError("called by __call__, which has no such parameter")

        def __call__(self, batch: Any, *rest: Any) -> Any:
            assert not rest
            return batch

    def other(batch: Any, number: int = 3, generator: Any = None) -> Any:
        assert (number, generator) == (3, None)
        return batch

    def keyword(batch: Any, *, generator: Any = None) -> Any:
        assert generator is None
        return batch

    for function in (Model(), other, keyword, dict, partial(draws.draw_given, generator=Fixed())):
        assert len(list_draws(make(function))) == 12


class Fixed:
    def random(self, shape: Any) -> Any:
        return np.zeros(shape)


def test_transform_arrow_draws_by_the_seed_of_its_batch() -> None:
    read = []
    for options in ({"prefetch": 3}, {"prefetch": 0}, {"num_workers": 2}):
        loader = make(draws.draw_given, transform_arrow=draws.draw_arrow, **options)
        with loader:
            read.append(list_draws(loader))
    assert read[0] == read[1] == read[2]
    assert all(batch["arrow"][0] != batch["drawn"][0][0] for batch in read[0])


def test_legacy_draws_of_transform_arrow_repeat_where_nothing_else_draws() -> None:
    def read(**options: Any) -> list[Any]:
        with make(None, transform_arrow=draws.draw_arrow_legacy, **options) as loader:
            return list_draws(loader)

    seed_all()
    expected = draw_all()
    seed_all()
    first = read(prefetch=0)
    assert draw_all() == expected
    assert first == read(num_workers=2)


def test_filters_and_maps_draw_by_the_seed_of_their_batch() -> None:
    def read(num_workers: int) -> list[Any]:
        loader = make(None, num_workers=num_workers).filter(draws.is_drawn).map(draws.draw_given)
        with loader:
            kept = [(loader.valid_rows, batch) for batch in loader]
        return [(rows, *list_draws([batch])) for rows, batch in kept]

    first = read(0)
    assert first == read(2)
    assert {rows for rows, _ in first} == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("function", [draws.draw_legacy, draws.draw_given])
def test_rows_that_are_left_after_an_error_draw_the_same_in_each_run(function: Any) -> None:
    def fail(batch: Any) -> Any:
        if 6 in batch["id"]:
            raise ValueError("six")
        return batch

    first, second = (
        list_draws(make(function, on_error="skip", max_skipped_rows=48).map(fail)) for _ in range(2)
    )
    assert first == second


def test_mixtures_and_packs_draw_by_their_steps() -> None:
    lists = pa.table({"tokens": [[i] * (i % 5 + 1) for i in range(60)]})

    def draw(batch: Any, generator: Any) -> Any:
        batch["id"] = batch["tokens"]
        batch["drawn"] = generator.random(3) + random.random()
        return batch

    def mix() -> arrowdl.Loader:
        return arrowdl.Loader.mix(
            {"a": TABLE, "b": TABLE},
            weights={"a": 1, "b": 2},
            framework="numpy",
            transform=draws.draw_legacy,
            stop="repeat",
            seed=4,
            ranks=arrowdl.Ranks(global_batch_size=8),
        )

    def pack() -> arrowdl.Loader:
        packed = arrowdl.Pack("tokens", 8)
        options: dict[str, Any] = {"framework": "numpy", "transform": draw, "shuffle": True}
        return arrowdl.Loader(lists, 2, **group(pack=packed, **options))

    for build in (mix, pack):
        loader = build()
        batches = iter(loader)
        first = list_draws(next(batches) for _ in range(4))
        state = loader.state_dict()
        second = list_draws(next(batches) for _ in range(4))
        resumed = build()
        resumed.load_state_dict(state)
        batches = iter(resumed)
        assert list_draws(next(batches) for _ in range(4)) == second
        assert len({str(batch["drawn"]) for batch in first + second}) == 8


def test_a_map_dataset_draws_by_its_reads() -> None:
    def read() -> list[Any]:
        dataset = make(draws.draw_legacy, transform_arrow=draws.draw_arrow).map_dataset()
        return list_draws([dataset[[1, 2]], dataset[[1, 2]], dataset[3:4]])

    first = read()
    assert first == read()
    assert first[0]["drawn"] != first[1]["drawn"]
    assert first[0]["arrow"] != first[1]["arrow"]


WORKERS = f"""
import sys
sys.path.insert(0, {str(Path(draws.__file__).parents[1])!r})
import arrowdl, pyarrow, torch
from helpers import draws
from helpers.draws import list_draws

def make(function):
    table = pyarrow.table({{"id": pyarrow.array(range(24), pyarrow.int32())}})
    ranks = arrowdl.Ranks(global_batch_size=4, splits=2)
    return arrowdl.Loader(table, transform=function, framework="numpy", seed=5, ranks=ranks)

def load(dataset, num_workers, **options):
    method = "fork" if num_workers else None
    options = {{"multiprocessing_context": method, "batch_size": None, **options}}
    return torch.utils.data.DataLoader(dataset, num_workers=num_workers, **options)

for function in (draws.draw_legacy, draws.draw_given):
    expected = list_draws(make(function))
    for workers in (0, 1, 2):
        assert list_draws(load(make(function).torch_dataset(), workers)) == expected

def read(**options):
    torch.manual_seed(3)
    batches = load(make(draws.draw_given).map_dataset(), batch_size=8, **options)
    return [list_draws(batches) for _ in range(2)]

for options in ({{}}, {{"persistent_workers": True}}):
    first = read(num_workers=2, **options)
    assert first == read(num_workers=2, **options)
    drawn = {{str(batch["drawn"]) for epoch in first for batch in epoch}}
    assert len(drawn) == 6, drawn
"""


def test_workers_of_a_data_loader_draw_by_the_seed_of_the_loader_or_of_torch() -> None:
    run_python(WORKERS)


def test_generators_of_a_gpu_are_those_of_its_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a generator of the CPU in place of that of the second GPU."""
    of_gpu = torch.Generator()
    monkeypatch.setattr(torch.cuda, "default_generators", (None, of_gpu))
    device = arrowdl.Device("cuda", 1)

    def draw() -> float:
        return torch.rand(1, generator=of_gpu).item()

    of_gpu.manual_seed(3)
    expected = [draw(), draw()]
    of_gpu.manual_seed(3)
    drawn = [draw()]
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with seeded(1, device):
        first = draw()
    with seeded(1, device):
        assert draw() == first
    assert [*drawn, draw()] == expected
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    with seeded(1, device):
        assert draw() != first
    assert [name_generator_device(own) for own in (device, arrowdl.Device("cpu"), None)] == [
        "cuda:1",
        "cpu",
        "cpu",
    ]


def test_no_library_is_imported_for_seeds() -> None:
    code = """
import sys
from arrowdl.loader._batches.seeded import seeded
with seeded(1, None):
    pass
assert not {"numpy", "torch", "jax"} & set(sys.modules), set(sys.modules)
import numpy
with seeded(1, None):
    first = numpy.random.rand()
with seeded(1, None):
    assert numpy.random.rand() == first
"""
    run_python(code)


@pytest.mark.parametrize("seed", range(8))
def test_a_filter_that_draws_finds_a_row_for_later_functions(seed: int) -> None:
    """Each try has other draws: with one seed for all, some Loaders found no row that is kept."""

    def keep(batch: Any) -> Any:
        return np.random.rand(len(batch["id"])) < 0.2

    loader = arrowdl.Loader(TABLE, 4, framework="numpy", seed=seed)
    rows = [len(b["id"]) for b in loader.filter(keep).map(lambda batch: batch)]
    assert sum(rows) > 0
