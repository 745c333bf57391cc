"""Where a `Loader` stands in an epoch, and the state that says so."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from arrowdl.loader._order import Sharding, Stage

STATE_VERSION = 1
_ORDER_KEYS = ("source", "seed", "shuffle", "buffer_rows")
KEYS = {"version", "source", "seed", "shuffle", "buffer_rows", "epoch", "stages"}


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
        try:
            position = cls(state["epoch"], [_to_stage(*stage) for stage in state["stages"]])
            numbers = [position.epoch, *(n for stage in state["stages"] for n in stage)]
            sizes = [
                n
                for world_size, workers, rows, *_ in state["stages"]
                for n in (world_size, workers, rows)
            ]
            if all(type(number) is int and number >= 0 for number in numbers) and all(sizes):
                return position
        except TypeError:
            pass
        raise ValueError(_refuse(state))


def _to_list(stage: Stage) -> list[int]:
    dealt = stage.sharding
    numbers = (dealt.world_size, dealt.workers, dealt.batch_size, dealt.drop_last, stage.batches)
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
    if since:
        if not found["stages"]:
            raise ValueError(
                "the state has no snapshot of the workers yet: make the StatefulDataLoader with "
                "snapshot_every_n_steps=1"
            )
        *before, last = found["stages"]
        found["stages"] = [*before, [*last[:-1], last[-1] + since]]
    return found


def _refuse(state: Any) -> str:
    return f"not a state of a Loader of version {STATE_VERSION}: {str(state)[:200]}"


def _find_states(state: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(state, Mapping):
        if state.get("version") == STATE_VERSION and set(state) >= KEYS:
            Position.from_state(state)  # raises for one that is damaged
            yield state
        else:
            for value in state.values():
                yield from _find_states(value)


def _measure(state: Mapping[str, Any]) -> tuple[int, int, int]:
    stages = state["stages"]
    return state["epoch"], len(stages), stages[-1][-1] if stages else 0
