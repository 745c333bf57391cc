"""A state that resumes at the end of an epoch is named in a warning."""

from __future__ import annotations

import logging
from typing import Any

import arrowdl
import pyarrow as pa
import pytest

TABLE = pa.table({"id": range(10)})
WARNING = "the state was saved after the last batch of epoch 0: this iteration gives no batch"


def load(source: Any = TABLE, **options: Any) -> arrowdl.Loader:
    return arrowdl.Loader(source, 4, framework="numpy", **options)


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"num_workers": 2}], ids=str)
def test_the_end_of_an_epoch(options: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    loader = load(**options)
    for _ in loader:
        state = loader.state_dict()
    resumed = load(**options)
    resumed.load_state_dict(state)
    assert caplog.text == ""
    assert list(resumed) == []
    assert WARNING in caplog.text
    assert "and the next one reads epoch 1" in caplog.text
    assert resumed.epoch == 1
    caplog.clear()
    assert len(list(resumed)) == 3
    assert caplog.text == ""


@pytest.mark.parametrize("source", [TABLE, lambda: iter(TABLE.to_batches())])
def test_other_places_are_no_warning(source: Any, caplog: pytest.LogCaptureFixture) -> None:
    loader = load(source)
    states = [loader.state_dict()]
    for _ in loader:
        states.append(loader.state_dict())
    states = [*states[:-1], loader.state_dict()]
    for state in states:
        other = load(source)
        other.load_state_dict(state)
        assert list(other)
    empty = load(TABLE.slice(0, 0))
    empty.load_state_dict(empty.state_dict())
    assert list(empty) == []
    assert caplog.text == ""


def test_a_stream_at_its_end(caplog: pytest.LogCaptureFixture) -> None:
    loader = load(lambda: iter(TABLE.to_batches()))
    for _ in loader:
        state = loader.state_dict()
    loader.load_state_dict(state)
    with caplog.at_level(logging.WARNING):
        assert list(loader) == []
    assert WARNING in caplog.text


def test_workers_of_a_dataloader(caplog: pytest.LogCaptureFixture) -> None:
    """One of them has the last batch; no other one warns that it has none."""
    from torch.utils.data import DataLoader

    loader = load()
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    resumed = load()
    resumed.load_state_dict(state)
    assert len(list(DataLoader(resumed.torch_dataset(), batch_size=None))) == 1
    assert caplog.text == ""
