"""Flat names of the Loader's options, for tables of them in tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import arrowdl

_RANKS = ("rank", "world_size", "global_batch_size", "splits")
_STORAGE = {
    "filesystem": "filesystem",
    "storage_options": "options",
    "retries": "retries",
    "cache": "cache",
    "cache_bytes": "cache_bytes",
    "plan": "plan",
    "memory_map": "memory_map",
    "decoder": "decoder",
}
_REPORT = {"progress": "bar", "report_every": "every", "report": "function"}
_PADDED = {"pad_value": "value", "max_length": "max_length", "pad_to_multiple": "multiple"}


def group(**flat: Any) -> dict[str, Any]:
    """Return options of a Loader, or of a mixture, with its value objects.

    Each field of an object may be given by a name of its own: ``group(splits=4, shuffle=True,
    buffer_size=8)`` is ``{"ranks": Ranks(splits=4), "shuffle": Shuffle(8)}``. Other options, and
    objects, stay as they are.
    """
    for make in (_make_tokens, _make_ranks, _make_order, _make_seed, _make_ragged, _make_rest):
        make(flat)
    return flat


def _take(flat: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {field: flat.pop(name) for name, field in names.items() if name in flat}


def _make_tokens(flat: dict[str, Any]) -> None:
    column = flat.pop("token_column", None)
    for name, target in (
        ("batch_tokens", "batch_size"),
        ("global_batch_tokens", "global_batch_size"),
    ):
        number = flat.pop(name, None)
        if number is not None:
            assert flat.get(target) is None, f"{target} and {name} are one option"
            flat[target] = arrowdl.Tokens(number, column=column)


def _make_ranks(flat: dict[str, Any]) -> None:
    fields = _take(flat, dict(zip(_RANKS, _RANKS, strict=True)))
    if fields:
        flat["ranks"] = replace(flat.get("ranks") or arrowdl.Ranks(), **fields)


def _make_order(flat: dict[str, Any]) -> None:
    size = flat.pop("buffer_size", "auto")
    bucket_by = flat.pop("bucket_by", None)
    pack = flat.pop("pack", None)
    if bucket_by is not None:
        assert pack is None, "blocks have one length"
        flat["batching"] = arrowdl.Buckets(bucket_by, window=size)
    elif size != "auto" and flat.get("shuffle") is True:
        flat["shuffle"] = arrowdl.Shuffle(size)
    if pack is not None:
        flat["batching"] = pack


def _make_seed(flat: dict[str, Any]) -> None:
    if "seed_transforms" in flat:
        flat["seed"] = arrowdl.Seed(flat.get("seed", 0), transforms=flat.pop("seed_transforms"))


def _make_ragged(flat: dict[str, Any]) -> None:
    fields = _take(flat, _PADDED)
    if not fields:
        return
    forms = flat.get("ragged")
    if isinstance(forms, Mapping):
        flat["ragged"] = {
            column: arrowdl.Padded(**_choose(fields, column)) if form == "padded" else form
            for column, form in forms.items()
        }
        return
    assert forms == "padded", "these are of padded rows"
    flat["ragged"] = arrowdl.Padded(**fields)


def _choose(fields: Mapping[str, Any], column: str) -> dict[str, Any]:
    """Return the fields of one column: mappings have those of several."""
    return {
        field: value.get(column, 0 if field == "value" else None)
        if isinstance(value, Mapping)
        else value
        for field, value in fields.items()
    }


def _make_rest(flat: dict[str, Any]) -> None:
    storage = _take(flat, _STORAGE)
    if storage:
        flat["storage"] = replace(flat.get("storage") or arrowdl.Storage(), **storage)
    if "max_skipped_rows" in flat:
        limit = flat.pop("max_skipped_rows")
        if limit is not None:
            assert flat.get("on_error") == "skip", "there is nothing to bound"
            flat["on_error"] = arrowdl.Skip(limit)
    if "report_every" in flat or "report" in flat:
        flat["progress"] = arrowdl.Report(**_take(flat, _REPORT))
    if flat.get("sharding") is not None:
        flat["device"] = flat.pop("sharding")
    if flat.pop("pin_memory", False):
        flat["device"] = "cuda_host"
    flat.pop("sharding", None)
