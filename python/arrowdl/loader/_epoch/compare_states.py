"""`compare_states`: whether a state is of rows in the order of a Loader."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

from arrowdl.loader._epoch.state import SAMPLE, UNREAD
from arrowdl.loader._files.file_sample import compare_files

# What the items of steps, which `StepPlan.describe` makes, are to a user.
_STEPS = {
    "bucket_by": "batching=Buckets({})",
    "window": "Buckets.window={}",
    "global_batch_tokens": "{} tokens of all ranks",
    "global_batch_size": "{} rows of all ranks",
    "tokens": "Tokens(column={})",
    "max_length": "Padded.max_length={}",
    "pad_to_multiple": "Padded.multiple={}",
}
_FLAGS = {
    ("padded", True): "padded rows",
    ("padded", False): "rows without padding",
    ("drop_last", True): "drop_last=True",
    ("drop_last", False): "drop_last=False",
}


def compare_states(
    state: Mapping[str, Any],  # of `find_state`
    loader_state: Mapping[str, Any],  # the state of the Loader that is to go on
    *,
    is_mixed: bool,  # whether that Loader reads a mixture
) -> None:
    """Raise ValueError, which says what differs, if a state is of rows in another order."""
    is_alike = all(
        (state.get(key) is None) == (key not in loader_state) for key in ("steps", "pack")
    )
    if is_alike and state.get("splits") != loader_state.get("splits"):
        raise ValueError(
            f"the state is of Ranks.splits={state.get('splits')}, and this Loader has "
            f"Ranks.splits={loader_state.get('splits')}: its rows have another order, so that some "
            "would be lost or read twice. Make the Loader with the splits of the state; "
            "set_epoch starts an epoch with others"
        )
    if state.get("steps") != loader_state.get("steps"):
        theirs, ours = _list_differences(state.get("steps"), loader_state.get("steps"))
        _check_unread(state.get("steps"), loader_state.get("steps"))
        raise ValueError(
            f"the state is of steps of {theirs}, and this Loader has steps of {ours}: "
            "other rows were read. Make the Loader with the options of the state"
            f"{_advise_windows(state, loader_state)}; set_epoch starts an epoch with others"
        )
    if state.get("pack") != loader_state.get("pack"):
        _check_unread(state.get("pack"), loader_state.get("pack"))
        raise ValueError(
            f"the state is of {_show_pack(state.get('pack'))}, and this Loader has "
            f"{_show_pack(loader_state.get('pack'))}: its blocks have other tokens, so that some "
            "would be lost or read twice. Make the Loader with the Pack of the state"
        )
    if state["source"] != loader_state["source"]:
        _refuse_snapshot(state, loader_state)
    elif state.get(UNREAD) != loader_state.get(UNREAD):
        then, now = (one.get(UNREAD, "no rows") for one in (state, loader_state))
        raise ValueError(
            f"when the state was saved, the dictionaries of {then} could not be read, and now "
            f"it is {now}: codes have other meanings. Restore the files as they were then, or "
            "start an epoch with set_epoch, and give the values as vocabulary="
        )
    meanings = {"source": "dataset or stop=" if is_mixed else "dataset", "shuffle": "shuffle"}
    if loader_state["shuffle"]:
        meanings |= {"seed": "seed", "buffer_size": "Shuffle.buffer_size"}
    for key, meaning in meanings.items():
        if state[key] != loader_state[key]:
            then, now = (
                one[key] or "auto" if key == "buffer_size" else one[key]
                for one in (state, loader_state)
            )
            files = compare_files(state.get(SAMPLE), loader_state.get(SAMPLE, {}))
            raise ValueError(
                f"the state is of another {meaning} ({then!r}, here {now!r}): its "
                "rows have another order, so that some would be lost or read twice"
                f"{f'. {files}' if key == 'source' and files else ''}"
            )


def _refuse_snapshot(state: Mapping[str, Any], loader_state: Mapping[str, Any]) -> None:
    """Raise ValueError if the state is of another version of a table, or of another table."""
    theirs, ours = state.get("snapshot", ""), loader_state.get("snapshot", "")
    if isinstance(theirs, str) and theirs != ours:
        raise ValueError(
            f"the state is of {theirs or 'a source without versions'}, and this Loader reads "
            f"{ours or 'a source without versions'}: other rows were read. Open "
            "the version, or the revision, of the state to go on with its epoch; set_epoch "
            "starts an epoch of this one"
        )


def _check_unread(theirs: Any, ours: Any) -> None:
    """Raise ValueError if the lengths of other rows could not be read."""
    if not (isinstance(theirs, Mapping) and isinstance(ours, Mapping)):
        return
    then, now = (steps.get("unread", "no rows") for steps in (theirs, ours))
    if then != now:
        raise ValueError(
            f"when the state was saved, the lengths of {then} could not be read, and now it is "
            f"{now}: steps have other rows. Restore the files as they were then, or start an epoch "
            "with set_epoch"
        )


def _advise_windows(state: Mapping[str, Any], loader_state: Mapping[str, Any]) -> str:
    """Say where the windows of `Buckets` come from, if two Loaders have others."""
    theirs, ours = state.get("steps"), loader_state.get("steps")
    if not (isinstance(theirs, Mapping) and isinstance(ours, Mapping)):
        return ""
    if theirs.get("window") == ours.get("window"):
        return ""
    then, here = state["buffer_size"], loader_state["buffer_size"]
    if then == here:
        return ' (Buckets.window="auto" takes those of a state)'
    return (
        f" (the windows of Buckets follow from Shuffle.buffer_size, {then}, here {here}; "
        '"auto" takes those of a state)'
    )


def _list_differences(theirs: Any, ours: Any) -> tuple[str, str]:
    """Return what two descriptions of steps do not have in common, as texts."""

    def describe(steps: Any, other: Any) -> str:
        if not isinstance(steps, Mapping):
            return "a number of rows" if steps is None else reprlib.repr(steps)
        others = other if isinstance(other, Mapping) else {}
        items = [_show_step(k, v) for k, v in steps.items() if k not in others or others[k] != v]
        return ", ".join(filter(None, items)) or "nothing more"

    return describe(theirs, ours), describe(ours, theirs)


def _show_step(key: Any, value: Any) -> str:
    """Return an item of steps as a user writes it; empty for what is not given."""
    if value is None or key in ("padded", "drop_last"):
        return _FLAGS.get((key, bool(value)), "") if isinstance(key, str) else ""
    return _STEPS.get(key, f"{reprlib.repr(key)} {{}}").format(reprlib.repr(value))


def _show_pack(pack: Any) -> str:
    """Return what decides on blocks as a user writes it."""
    if not isinstance(pack, Mapping):
        return "no batching=Pack(...)" if pack is None else f"batching={reprlib.repr(pack)}"
    fields = ", ".join(f"{name}={reprlib.repr(value)}" for name, value in pack.items())
    return f"batching=Pack({fields})"
