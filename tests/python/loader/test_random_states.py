"""Random damage to states: a Loader refuses it in one way, or goes on with each row once."""

from __future__ import annotations

import copy
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.parquet as pq
from helpers.options import group
from helpers.random_cases import check_cases

ROWS = 120
MANY = 400  # batches: more than any epoch has
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "tokens": pa.array([[row] * (row % 7 + 1) for row in range(ROWS)], pa.list_(pa.int64())),
    }
)
OTHER = TABLE.set_column(0, "id", pa.array(range(ROWS, 2 * ROWS), pa.int64()))

OWN_WEIGHTS = [[0, [1, 2]]]

# What a damaged state may have anywhere.
VALUES: list[Any] = [
    *(None, True, False, -1, 0, 1, 2, 7, 119, 120, 121, 2**31, 2**63, 2**64, 10**30, 0.5, -1.0),
    *(
        float("nan"),
        float("inf"),
        "",
        "x",
        "1",
        "\x00",
        b"x",
        [],
        [0],
        [[]],
        {},
        {"x": 1},
        (),
        set(),
    ),
    *([1, 1, 7, 0, 1], [[1, 1, 7, 0, 1]], {"version": 1}, object),
]


def make_kinds(folder: Path) -> dict[str, Callable[[], arrowdl.Loader]]:
    """Return what makes Loaders, by their kind."""
    path = folder / "a.parquet"
    pq.write_table(TABLE, path, row_group_size=16)
    options: dict[str, Any] = {"framework": "numpy", "ragged": "offsets", "seed": 3}
    mixed = {"weights": {"a": 1, "b": 2}, **options}
    sources = {"a": TABLE, "b": OTHER}
    pack = arrowdl.Pack("tokens", 16)
    splits = {"global_batch_size": 8, "splits": 4}
    tokens = {"global_batch_tokens": 24, "token_column": "tokens", "splits": 2}

    def load(source: Any = TABLE, **own: Any) -> Callable[[], arrowdl.Loader]:
        return lambda: arrowdl.Loader(source, **group(**own, **options))

    def mix(**own: Any) -> Callable[[], arrowdl.Loader]:
        return lambda: arrowdl.Loader.mix(sources, **group(**own, **mixed))

    return {
        "in order": load(batch_size=7),
        "shuffled": load(batch_size=7, shuffle=True, buffer_size=30),
        "auto": load(str(path), batch_size=7, shuffle=True),
        "skipping": load(str(path), batch_size=7, on_error="skip"),
        "splits": load(shuffle=True, **splits),
        "buckets": load(batch_size=8, bucket_by="tokens", shuffle=True),
        "tokens": load(shuffle=True, **tokens),
        "pack": load(pack=pack, **splits),
        "stream": load(TABLE.to_reader, batch_size=7),
        "shuffled stream": load(TABLE.to_reader, batch_size=7, shuffle=True, buffer_size=30),
        "mixture": mix(global_batch_size=8, shuffle=True),
        "endless": mix(stop="repeat", **splits),
        "mixed tokens": mix(**tokens),
        "mixed pack": mix(pack=pack, **splits),
    }


def list_places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the keys and indices that lead to each value of a state."""
    if isinstance(value, dict):
        below = value.items()
    elif isinstance(value, list):
        below = dict(enumerate(value)).items()
    else:
        return [place] if place else []
    found = [own for key, item in below for own in list_places(item, (*place, key))]
    return found + ([place] if place else [])


def damage(state: dict[str, Any], rng: random.Random) -> Any:
    """Change one to three values of a state."""
    made = copy.deepcopy(state)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list_places(made)
        if not places:
            return made
        *way, last = rng.choice(places)
        parent = made
        for key in way:
            parent = parent[key]
        _change(parent, last, rng)
    return made


def _change(parent: Any, key: Any, rng: random.Random) -> None:
    old = parent[key]
    kind = rng.choice(("value", "drop", "near", "near", "swap", "shape"))
    if kind == "value":
        parent[key] = copy.deepcopy(rng.choice(VALUES))
    elif kind == "drop":
        del parent[key]
    elif kind == "near" and type(old) is int:
        parent[key] = old + rng.choice((-8, -2, -1, 1, 2, 8, 1000))
    elif kind == "near" and isinstance(old, str) and old:
        place = rng.randrange(len(old))
        parent[key] = old[:place] + rng.choice("0af") + old[place + 1 :]
    elif kind == "near" and isinstance(old, bool):
        parent[key] = not old
    elif kind == "swap" and isinstance(parent, dict):
        other = rng.choice(list(parent))
        parent[key], parent[other] = parent[other], parent[key]
    elif kind == "shape" and isinstance(old, list):
        parent[key] = rng.choice((old * 2, old[:-1], old[::-1], [old], tuple(old)))
    else:
        parent[key] = [old]


def read(loader: arrowdl.Loader, most: int) -> list[int]:
    """Read the rows of an epoch, or the first ones of an endless mixture."""
    column = "tokens" if "pack" in loader.state_dict() else "id"
    batches = islice(loader, most)
    if column == "id":
        return [i for batch in batches for i in batch["id"].tolist()]
    return [i for batch in batches for i in batch["tokens"].ravel().tolist()]


def is_rest(found: list[int], whole: list[int], *, is_ordered: bool) -> bool:
    """Whether rows are some of an epoch, in its order if sequences are not read side by side."""
    if not is_ordered:
        return Counter(found) <= Counter(whole)
    rows = iter(whole)
    return all(row in rows for row in found)


class Case:
    """One kind of Loader, and states of it."""

    def __init__(self, make: Callable[[], arrowdl.Loader]) -> None:
        self.make = make
        self._epochs: dict[tuple[int, int], list[int]] = {}

    def list_states(self) -> list[dict[str, Any]]:
        loader = self.make()
        states = [loader.state_dict()]
        for _ in islice(loader, 5):
            states.append(loader.state_dict())
        loader.set_epoch(2)
        next(iter(loader))
        return [*states, loader.state_dict()]

    def read_epoch(self, epoch: int, buffer_size: int) -> list[int]:
        """Read an epoch from its start; a Loader takes the buffer of a state."""
        if (epoch, buffer_size) not in self._epochs:
            loader = self.make()
            start = {"epoch": epoch, "stages": [], "buffer_size": buffer_size}
            loader.load_state_dict({**loader.state_dict(), **start})
            self._epochs[epoch, buffer_size] = read(loader, 2 * MANY)
        return self._epochs[epoch, buffer_size]

    def check(self, state: Any) -> None:
        """Load a damaged state: it is refused, and nothing changes, or each row comes once."""
        loader = self.make()
        before = loader.state_dict()
        if why := refuse(loader, state):
            assert "state" in why
            assert len(why) < 1_000
            assert loader.state_dict() == before
            return
        loaded = loader.state_dict()
        whole = self.read_epoch(loader.epoch, loaded["buffer_size"])
        found = read(loader, MANY)
        if loaded.get("phases", OWN_WEIGHTS) != OWN_WEIGHTS:  # other rows were read before
            assert len(found) <= len(whole)
        else:
            assert is_rest(found, whole, is_ordered="splits" not in before), found


def refuse(loader: arrowdl.Loader, state: Any) -> str:
    """Load a state; return what the error says, empty if there is none."""
    try:
        loader.load_state_dict(state)
    except (ValueError, TypeError) as error:
        return str(error)
    return ""


def test_random_damage_to_states() -> None:
    with tempfile.TemporaryDirectory() as folder:
        cases = {name: Case(make) for name, make in make_kinds(Path(folder)).items()}
        states = {name: case.list_states() for name, case in cases.items()}

        def check(rng: random.Random) -> None:
            name = rng.choice(list(cases))
            given = rng.choice(states[name])
            state = damage(given, rng)
            if rng.random() < 0.2:
                state = damage({"a": [state], "_steps_since_snapshot": 0, "b": state}, rng)
            try:
                cases[name].check(state)
            except BaseException as error:
                error.add_note(f"of {name}: {state!r}"[:2_000])
                raise

        check_cases(check, 300)
