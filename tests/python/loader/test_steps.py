"""`fill_steps`: how many rows fit into a step; and plans of steps that end with an error."""

from __future__ import annotations

import itertools
import pickle
import random
import signal
import threading
from typing import Any

import arrowdl
import pyarrow as pa
import pytest
from arrowdl.loader._epoch.steps import fill_steps
from arrowdl.loader._epoch.token_counts import TokenCounts
from helpers.random_cases import check_cases


def fill(sequences: list[list[int]], most: int, cut: int, *, is_padded: bool) -> list[int]:
    chunks = [
        [pa.array(rows[start : start + cut], pa.int64()) for rows in sequences]
        for start in range(0, len(sequences[0]), cut)
    ]
    return list(fill_steps(chunks, most, is_padded=is_padded))


def fill_plainly(sequences: list[list[int]], most: int, *, is_padded: bool) -> list[int]:
    sizes, start, rows = [], 0, len(sequences[0])
    while start < rows:
        count = 1
        while start + count < rows:
            taken = [own[start : start + count + 1] for own in sequences]
            tokens = max(map(max, taken)) * (count + 1) if is_padded else max(map(sum, taken))
            if tokens > most:
                break
            count += 1
        sizes.append(count)
        start += count
    return sizes


@pytest.mark.parametrize("cut", [1, 2, 3, 100])
def test_sums_and_widths(cut: int) -> None:
    rows = [[3, 1, 4, 1, 5, 9, 2, 6]]
    assert fill(rows, 9, cut, is_padded=False) == [4, 1, 1, 2]
    assert fill(rows, 9, cut, is_padded=True) == [2, 2, 1, 1, 1, 1]
    rows.append([1, 1, 1, 9, 1, 1, 1, 1])
    assert fill(rows, 9, cut, is_padded=False) == [3, 1, 1, 1, 2]
    assert fill([[]], 9, cut, is_padded=False) == []


def check(draw: random.Random) -> None:
    count, rows, longest = draw.randrange(1, 5), draw.randrange(60), draw.choice([2, 9, 30])
    sequences = [[draw.randrange(longest + 1) for _ in range(rows)] for _ in range(count)]
    most, cut = draw.randrange(longest, 6 * longest), draw.choice([1, 2, 7, 20, 100])
    for is_padded in (False, True):
        expected = fill_plainly(sequences, most, is_padded=is_padded)
        assert fill(sequences, most, cut, is_padded=is_padded) == expected


def test_random_steps_are_those_of_a_plain_loop() -> None:
    check_cases(check, 150)


def test_an_interrupt_in_the_plan_costs_no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a notebook: the cell that was interrupted runs again, and reads the whole epoch."""
    monkeypatch.setattr("arrowdl.loader._epoch.plan_tokens._CHUNK_ROWS", 16)
    table = pa.table({"id": range(200), "n": [1 + i % 5 for i in range(200)]})

    def make() -> arrowdl.Loader:
        return arrowdl.Loader(table, batch_size=arrowdl.Tokens(16, column="n"), framework="numpy")

    count, calls = TokenCounts.count, iter(range(100))

    def interrupt(counts: TokenCounts, rows: object) -> pa.Array:
        if next(calls) == 3:
            raise KeyboardInterrupt
        return count(counts, rows)

    expected = [batch["id"].tolist() for batch in make()]
    monkeypatch.setattr(TokenCounts, "count", interrupt)
    loader = make()
    with pytest.raises(KeyboardInterrupt):
        list(loader)
    assert [batch["id"].tolist() for batch in loader] == expected
    assert loader.epoch == 1


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs signals of Unix")
@pytest.mark.parametrize("stop", ["first", "repeat"])
def test_a_signal_handler_saves_a_state_while_steps_are_planned(
    monkeypatch: pytest.MonkeyPatch, stop: Any
) -> None:
    """As before a preemption: it runs in the thread that plans, whose lock it cannot wait for."""
    monkeypatch.setattr("arrowdl.loader._epoch.plan_tokens._CHUNK_ROWS", 16)
    monkeypatch.setattr("arrowdl.loader._epoch.plan_tokens._ENDLESS_ROWS", 16)
    table = pa.table({"id": range(200), "n": [1 + i % 5 for i in range(200)]})

    def make() -> arrowdl.Loader:
        weights = {0: {"a": 1, "b": 2}, 6: {"a": 2, "b": 1}}
        sources = {"a": table, "b": table}
        return arrowdl.Loader.mix(
            sources,
            ranks=arrowdl.Ranks(global_batch_size=arrowdl.Tokens(64, column="n"), splits=2),
            weights=weights,
            stop=stop,
            framework="numpy",
        )

    def read(loader: arrowdl.Loader, steps: int) -> list[list[int]]:
        return [batch["id"].tolist() for _, batch in zip(range(steps), loader, strict=False)]

    expected = read(make(), 12)
    count, states, calls = TokenCounts.count, [], itertools.count()

    def count_tokens(counts: TokenCounts, rows: Any) -> pa.Array:
        if next(calls) % 3 == 0 and threading.current_thread() is threading.main_thread():
            monkeypatch.setattr(TokenCounts, "count", count)  # the handler is not interrupted
            signal.raise_signal(signal.SIGUSR1)
            monkeypatch.setattr(TokenCounts, "count", count_tokens)
        return count(counts, rows)

    first = make()
    assert read(first, 4) == expected[:4]
    loader = make()
    loader.load_state_dict(first.state_dict())
    loader = pickle.loads(pickle.dumps(loader))  # which has planned nothing yet
    before = signal.signal(signal.SIGUSR1, lambda *_: states.append(loader.state_dict()))
    try:
        monkeypatch.setattr(TokenCounts, "count", count_tokens)
        assert read(loader, 8) == expected[4:]
    finally:
        signal.signal(signal.SIGUSR1, before)
        monkeypatch.setattr(TokenCounts, "count", count)
    assert states
    for state in states:
        resumed = make()
        resumed.load_state_dict(state)
        done = sum(step for _, step in state["stages"])
        assert read(resumed, 12 - done) == expected[done:]
