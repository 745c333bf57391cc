"""`Position`: where a `Loader` is in an epoch, and the state dict that says so."""

from __future__ import annotations

import reprlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arrowdl.loader._epoch.sharding import Sharding, Stage, count_batches, count_left
from arrowdl.loader._mixture.schedule import MOST_WEIGHT, Phase

STATE_VERSION = 1
UNREAD = "unread_dictionaries"
SAMPLE = "sample"  # of the files, for errors
_ORDER_KEYS = ("source", "seed", "shuffle", "buffer_size", "splits", "steps", "pack", UNREAD)
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
# The numbers of a stage, and their limits.
_LIMITS = (
    ("world_size", 1, 2**32),
    ("num_workers", 1, 2**16),
    ("batch_size", 1, 2**40),
    ("drop_last", 0, 1),
    ("batches", 0, 2**48),
)
_MOST_SPLITS = 2**32
_MOST_BUFFER = 2**32
_MOST_TOKENS = 2**44  # of an endless mixture, whose steps are counted one by one: a day or more
_SPLIT_LIMITS = (("global_batch_size", 1, _MOST_ROWS), ("batches", 0, 2**48))


@dataclass
class Position:
    """What was read of an epoch, by any number of ranks and workers."""

    epoch: int = 0
    stages: list[Stage] = field(default_factory=list)  # what was read before the current stage
    sharding: Sharding | None = None  # of the current stage; None before it has begun
    batches: int = 0  # batches that each rank has returned in the current stage
    is_begun: bool = False  # whether a batch was returned since this object was made
    phases: list[Phase] = field(default_factory=list)  # of a mixture: the weights of this epoch
    # identifies this object and its copies, in other processes too
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    def begin(self, sharding: Sharding, may_go_on: bool = True) -> None:
        """Start a stage, or go on with the last one if it has the same sharding."""
        self.batches = 0
        if may_go_on and self.stages and self.stages[-1].sharding == sharding.meaning:
            self.batches = self.stages.pop().batches
        self.sharding = sharding

    def give(self, batches: int) -> None:
        """Note that each rank has returned `batches` batches of the stage."""
        self.batches = batches
        self.is_begun = True

    def for_next_reader(self) -> Position:
        """Return the same position, or the start of the epoch if a reader has moved this one."""
        if self.is_begun:
            return Position(self.epoch)
        return Position(self.epoch, self.list_stages(), phases=self.phases)

    def count_steps(self) -> list[tuple[int, int]]:
        """List the steps that were read with splits, and the rows of each, of all ranks."""
        stages = self.list_stages()
        return [(stage.batches, stage.sharding.global_batch_size) for stage in stages]

    def count_rows(self) -> int:
        """Count the rows of each sequence that were read with splits."""
        stages = self.list_stages()
        splits = stages[0].sharding.splits if stages else None
        return sum(count * rows for count, rows in self.count_steps()) // (splits or 1)

    def to_state(self) -> dict[str, Any]:
        """Return epoch and stages, of JSON types."""
        stages = [_to_list(stage) for stage in self.list_stages()]
        place: dict[str, Any] = {"epoch": self.epoch, "stages": stages}
        if self.phases:
            place["phases"] = [[phase.row, list(phase.weights)] for phase in self.phases]
        return place

    def list_stages(self) -> list[Stage]:
        """List what was read, the present stage included."""
        if self.sharding is None:
            return list(self.stages)
        sharding = self.sharding.meaning
        # Without batches the stage says one thing only: an earlier one of the same sharding is not
        # this one. The first of several workers may have returned a batch, and counts turns from
        # here.
        is_told = self.batches or (self.stages and self.stages[-1].sharding == sharding)
        return [*self.stages, Stage(sharding, self.batches)] if is_told else list(self.stages)

    @classmethod
    def at(cls, place: Mapping[str, Any], splits: int | None, *, is_tokens: bool) -> Position:
        """Return the position of `to_state`, which this package made: it is not checked."""
        phases = [Phase(row, tuple(weights)) for row, weights in place.get("phases", ())]
        stages = [_to_stage(stage, splits, is_tokens=is_tokens) for stage in place["stages"]]
        return cls(place["epoch"], stages, phases=phases)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Position:
        """Return the position of a state dict.

        Raises ValueError if it is damaged: an item has another type, or a number is out of range.
        """
        for key, kinds in _TYPES.items():
            if type(state[key]) not in kinds:
                raise ValueError(_refuse(state, f"{key} is not of type {kinds[0].__name__}"))
        if not 0 <= state["epoch"] <= _MOST_ROWS:
            raise ValueError(_refuse(state, "epoch is out of range"))
        if not 0 <= state["buffer_size"] < _MOST_BUFFER:  # 0: of a stream, that fits
            raise ValueError(_refuse(state, "buffer_size is out of range"))
        splits = state.get("splits")
        if splits is not None and (type(splits) is not int or not 1 <= splits <= _MOST_SPLITS):
            raise ValueError(_refuse(state, f"splits is not an int of 1 to {_MOST_SPLITS}"))
        steps = state.get("steps")
        is_tokens = isinstance(steps, Mapping) and "tokens" in steps
        if is_tokens and splits is None:
            raise ValueError(_refuse(state, "steps of tokens have splits"))
        for i, stage in enumerate(state["stages"]):
            if why := _why_no_stage(stage, splits, is_tokens=is_tokens):
                raise ValueError(_refuse(state, f"stages[{i}] {why}"))
        if why := _why_no_phases(state.get("phases", [])):
            raise ValueError(_refuse(state, f"phases {why}"))
        position = cls.at(state, splits, is_tokens=is_tokens)
        sizes = (stage.batches * stage.sharding.global_batch_size for stage in position.stages)
        if sum(sizes) > _MOST_ROWS:
            raise ValueError(_refuse(state, "its stages have more rows than a source can have"))
        return position

    def check_tokens(
        self,
        block: int,  # tokens of a row, for steps of a number of rows
    ) -> None:
        """Raise ValueError if an endless mixture has had more tokens than any training reads."""
        tokens = 0
        for stage in self.stages:
            sharding = stage.sharding
            tokens += stage.batches * (sharding.tokens or sharding.global_batch_size * block)
        if tokens > _MOST_TOKENS:
            raise ValueError(
                f"not a state of this Loader: its stages {list(map(_to_list, self.stages))} "
                f"have {tokens} tokens, and a mixture without end has at most {_MOST_TOKENS}"
            )

    def check_rows(self, rows: int) -> None:
        """Raise ValueError if the stages have more batches than a source of `rows` rows."""
        left = rows
        for i, stage in enumerate(self.stages):
            most = count_batches(left, stage.sharding)
            if stage.batches > most:
                raise ValueError(
                    f"not a state of this Loader: stages[{i}] says that {_describe(stage)}, and "
                    f"the source has {rows} rows, for {most}"
                )
            left = count_left(left, stage)


def _describe(stage: Stage) -> str:
    sharding = stage.sharding
    if sharding.splits is not None:
        return f"the ranks had {stage.batches} global batches of {sharding.global_batch_size} rows"
    return (
        f"each of {sharding.world_size} ranks had {stage.batches} batches of "
        f"{sharding.batch_size} rows"
    )


def _why_no_stage(stage: Any, splits: int | None, *, is_tokens: bool) -> str:
    """Say what is wrong with a stage of a state; empty if nothing is."""
    limits = _LIMITS if splits is None else _SPLIT_LIMITS
    if type(stage) not in (list, tuple) or len(stage) != len(limits):
        return f"is not a list of {len(limits)} numbers"
    for number, (name, least, most) in zip(stage, limits, strict=True):
        if type(number) is not int or not least <= number <= most:
            return f"has {_show(number)} for {name}: expected an int of {least} to {most}"
    if splits is not None and not is_tokens and stage[0] % splits:
        return f"has {stage[0]} for global_batch_size: no multiple of splits={splits}"
    return ""


def _why_no_phases(phases: Any) -> str:
    """Say what is wrong with the phases of a state; empty if nothing is."""
    if type(phases) not in (list, tuple):
        return "is not a list"
    row = -1
    for phase in phases:
        if type(phase) not in (list, tuple) or len(phase) != 2 or type(phase[1]) is not list:
            return f"has {_show(phase)}: expected a row and a list of weights"
        if type(phase[0]) is not int or not row < phase[0] <= _MOST_ROWS or (row < 0 < phase[0]):
            return f"has {_show(phase[0])} for a row: rows ascend from 0"
        if not all(type(weight) is int and weight >= 0 for weight in phase[1]):
            return f"has {_show(phase[1])} for weights: expected numbers of 0 or more"
        if not 0 < sum(phase[1]) <= MOST_WEIGHT or len(phase[1]) != len(phases[0][1]):
            return f"has {_show(phase[1])} for weights: expected one for each source"
        row = phase[0]
    return ""


def _to_list(stage: Stage) -> list[int]:
    sharding = stage.sharding
    if sharding.splits is not None:
        return [sharding.tokens or sharding.global_batch_size, stage.batches]
    numbers = (
        sharding.world_size,
        sharding.num_workers,
        sharding.batch_size,
        sharding.drop_last,
        stage.batches,
    )
    return [int(number) for number in numbers]


def _to_stage(numbers: Sequence[int], splits: int | None, *, is_tokens: bool) -> Stage:
    if is_tokens:
        tokens, batches = numbers
        return Stage(Sharding(1, 1, 0, False, splits, tokens), batches)
    if splits is not None:
        global_batch_size, batches = numbers
        return Stage(Sharding(1, 1, global_batch_size, False, splits), batches)
    world_size, num_workers, batch_size, drop_last, batches = numbers
    return Stage(Sharding(world_size, num_workers, batch_size, bool(drop_last)), batches)


def find_state(state: Any) -> dict[str, Any]:
    """Return the state of a loader: `state` itself, or one that StatefulDataLoader saved in it.

    Each worker of a StatefulDataLoader saves its own state, which counts the batches of its rank up
    to its last one. The one with the most batches is the state of the rank.

    Raises ValueError if it has no state of a loader, a damaged one, or those of several loaders.
    """
    states = list(_find_states(state))
    if not states:
        raise ValueError(_refuse(state))
    if any(other.get(key) != states[0].get(key) for other in states for key in _ORDER_KEYS):
        raise ValueError(f"states of several Loaders: give the state of this one. {_refuse(state)}")
    furthest: Mapping[str, Any] = max(states, key=_measure)
    loader_state = dict(furthest)
    since = state.get("_steps_since_snapshot", 0)
    if type(since) is not int or not 0 <= since <= _MOST_ROWS:
        raise ValueError(_refuse(state, "_steps_since_snapshot is not a number of steps"))
    if since:
        if not loader_state["stages"]:
            raise ValueError(
                "the state has no snapshot of the workers yet: make the StatefulDataLoader with "
                "snapshot_every_n_steps=1"
            )
        *before, last = loader_state["stages"]
        loader_state["stages"] = [*before, [*last[:-1], last[-1] + since]]
    return loader_state


def _refuse(state: Any, why: str = "") -> str:
    reason = f" ({why})" if why else ""
    return f"not a state of a Loader of version {STATE_VERSION}{reason}: {_show(state)}"


def _show(state: Any) -> str:
    """Return the beginning of a state's repr, also of one that is deep or contains itself."""
    short = reprlib.Repr()
    short.maxdict = short.maxlist = short.maxtuple = len(KEYS) + 1
    return short.repr(state)[:200]


def _find_states(state: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    if isinstance(state, Mapping):
        if depth > _MOST_LEVELS:
            raise ValueError(_refuse(state, f"more than {_MOST_LEVELS} levels, or endless"))
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
