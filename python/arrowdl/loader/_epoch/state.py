"""Where a `Loader` stands in an epoch, and the state that says so."""

from __future__ import annotations

import reprlib
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from arrowdl.loader._epoch.sharding import Rest, Sharding, Stage, count_batches

STATE_VERSION = 1
_ORDER_KEYS = ("source", "seed", "shuffle", "buffer_size")
_TYPES: dict[str, tuple[type, ...]] = {
    "source": (str,),
    "seed": (int,),
    "shuffle": (bool,),
    "buffer_size": (int,),
    "epoch": (int,),
    "stages": (list, tuple),
}
KEYS = {"version", *_TYPES}
_MOST_ROWS = 2**62
_MOST_LEVELS = 30
# The numbers of a stage, and what they can be.
_LIMITS = (
    ("world_size", 1, 2**32),
    ("num_workers", 1, 2**16),
    ("batch_size", 1, 2**40),
    ("drop_last", 0, 1),
    ("batches", 0, 2**48),
)


@dataclass
class Position:
    """What was given out of an epoch, by any number of ranks and workers.

    Attributes
    ----------
    epoch : int
    stages : list of Stage
        What was read before the present one.
    sharding : Sharding, optional
        Of the present stage, once it has begun.
    batches : int
        That each rank has given out in the present stage.
    is_begun : bool
        Whether a batch was given out of what this is of now.
    token : str
        Of this object and its copies, in other processes too.
    """

    epoch: int = 0
    stages: list[Stage] = field(default_factory=list)
    sharding: Sharding | None = None
    batches: int = 0
    is_begun: bool = False
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    def begin(self, sharding: Sharding, may_go_on: bool = True) -> None:
        """Start a stage, or go on with the last one where the rows were dealt in the same way."""
        self.batches = 0
        if may_go_on and self.stages and self.stages[-1].sharding == sharding:
            self.batches = self.stages.pop().batches
        self.sharding = sharding

    def give(self, batches: int) -> None:
        """Note that each rank has given out `batches`."""
        self.batches = batches
        self.is_begun = True

    def for_next_reader(self) -> Position:
        """The same place, or the start of the epoch where somebody has read on from here."""
        return Position(self.epoch, [] if self.is_begun else self._list_stages())

    def to_state(self) -> dict[str, Any]:
        stages = [_to_list(stage) for stage in self._list_stages()]
        return {"epoch": self.epoch, "stages": stages}

    def _list_stages(self) -> list[Stage]:
        if self.sharding is None or not self.batches:
            return list(self.stages)
        return [*self.stages, Stage(self.sharding, self.batches)]

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Position:
        """Raise ValueError where `state` is not one of `to_state`."""
        for key, kinds in _TYPES.items():
            if type(state[key]) not in kinds:
                raise ValueError(_refuse(state, f"{key} is no {kinds[0].__name__}"))
        if not 0 <= state["epoch"] <= _MOST_ROWS:
            raise ValueError(_refuse(state, "epoch is none that there can be"))
        stages = state["stages"]
        for i, stage in enumerate(stages):
            if why := _why_no_stage(stage):
                raise ValueError(_refuse(state, f"stages[{i}] {why}"))
        if sum(size * rows * batches for size, _, rows, _, batches in stages) > _MOST_ROWS:
            raise ValueError(_refuse(state, "its stages have more rows than a source can have"))
        return cls(state["epoch"], [_to_stage(*stage) for stage in stages])

    def check_rows(self, rows: int) -> None:
        """Raise ValueError where more was given out than a source of `rows` rows has."""
        for i, stage in enumerate(self.stages):
            most = count_batches(len(Rest(rows, self.stages[:i])), stage.sharding)
            if stage.batches > most:
                raise ValueError(
                    f"not a state of this Loader: stages[{i}] says that each of "
                    f"{stage.sharding.world_size} ranks had {stage.batches} batches of "
                    f"{stage.sharding.batch_size} rows, and the source has {rows} rows, for {most}"
                )


def _why_no_stage(stage: Any) -> str:
    """What is wrong with a stage of a state; empty where nothing is."""
    if type(stage) not in (list, tuple) or len(stage) != len(_LIMITS):
        return f"is no list of {len(_LIMITS)} numbers"
    for number, (name, least, most) in zip(stage, _LIMITS, strict=True):
        if type(number) is not int or not least <= number <= most:
            return f"has {_show(number)} for {name}: expected an int of {least} to {most}"
    return ""


def _to_list(stage: Stage) -> list[int]:
    dealt = stage.sharding
    numbers = (
        dealt.world_size,
        dealt.num_workers,
        dealt.batch_size,
        dealt.drop_last,
        stage.batches,
    )
    return [int(number) for number in numbers]


def _to_stage(
    world_size: int, workers: int, batch_size: int, drop_last: int, batches: int
) -> Stage:
    return Stage(Sharding(world_size, workers, batch_size, bool(drop_last)), batches)


def find_state(state: Any) -> dict[str, Any]:
    """The state of a loader in `state`: itself, or what torchdata's StatefulDataLoader made of it.

    Each of its workers gives its own, which counts the batches of its rank up to its last one: the
    furthest is that of the rank.

    Raises
    ------
    ValueError
        There is none.
    """
    states = list(_find_states(state))
    if not states:
        raise ValueError(_refuse(state))
    if any(other[key] != states[0][key] for other in states for key in _ORDER_KEYS):
        raise ValueError(f"states of several Loaders: give the one of this. {_refuse(state)}")
    furthest: Mapping[str, Any] = max(states, key=_measure)
    found = dict(furthest)
    since = state.get("_steps_since_snapshot", 0)
    if type(since) is not int or not 0 <= since <= _MOST_ROWS:
        raise ValueError(_refuse(state, "_steps_since_snapshot counts no steps"))
    if since:
        if not found["stages"]:
            raise ValueError(
                "the state has no snapshot of the workers yet: make the StatefulDataLoader with "
                "snapshot_every_n_steps=1"
            )
        *before, last = found["stages"]
        found["stages"] = [*before, [*last[:-1], last[-1] + since]]
    return found


def _refuse(state: Any, why: str = "") -> str:
    reason = f" ({why})" if why else ""
    return f"not a state of a Loader of version {STATE_VERSION}{reason}: {_show(state)}"


def _show(state: Any) -> str:
    """The beginning of it, however deep it is and whether it contains itself or not."""
    short = reprlib.Repr()
    short.maxdict = short.maxlist = short.maxtuple = len(KEYS) + 1
    return short.repr(state)[:200]


def _find_states(state: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    if isinstance(state, Mapping):
        if depth > _MOST_LEVELS:
            raise ValueError(_refuse(state, f"more than {_MOST_LEVELS} levels, or without an end"))
        if _is_state(state):
            Position.from_state(state)  # raises for one that is damaged
            yield state
        else:
            for value in state.values():
                yield from _find_states(value, depth + 1)


def _is_state(state: Mapping[Any, Any]) -> bool:
    version = state.get("version")
    return type(version) is int and version == STATE_VERSION and set(state) >= KEYS


def _measure(state: Mapping[str, Any]) -> tuple[int, int, int]:
    stages = state["stages"]
    return state["epoch"], len(stages), stages[-1][-1] if stages else 0
