"""Errors of keywords that a `Loader` or a value object does not have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict

_NOT_NEEDED = "leave it out: "


def _name_alike(table: Mapping[str, str]) -> Mapping[str, str]:
    """Return what to write by each name, of a table that lists the names by what to write."""
    return {name: advice for advice, names in table.items() for name in names.split()}


ADVICE = _name_alike(
    {
        "ranks=Ranks(rank, world_size)": (
            "rank world_size num_replicas num_processes cur_shard shard_count num_shards "
            "shard_index shard_options"
        ),
        "ranks=Ranks(global_batch_size=...)": "global_batch_size",
        "ranks=Ranks(splits=...)": "splits num_canonical_nodes",
        "batch_size=Tokens(...)": "tokens batch_tokens max_tokens max_tokens_per_batch",
        "ranks=Ranks(global_batch_size=Tokens(...))": "global_batch_tokens",
        "batch_size=Tokens(..., column=...)": "token_column",
        "batching=Buckets(...)": "bucket_by buckets group_by_length",
        "batching=Pack(...)": "pack packing",
        "shuffle=Shuffle(buffer_size=...), or batching=Buckets(..., window=...)": "buffer_size",
        "seed=Seed(..., transforms=...)": "seed_transforms",
        "ragged=Padded(...)": "padded pad_value padding padding_value pad_token_id",
        "ragged=Padded(max_length=...)": "max_length truncation",
        "ragged=Padded(multiple=...)": "pad_to_multiple pad_to_multiple_of",
        "on_error=Skip()": "skip",
        "on_error=Skip(max_rows=...)": "max_skipped_rows",
        "progress=Report(every=..., function=...)": "report",
        "progress=Report(every=...)": "report_every",
        "device=, which takes a jax.sharding.Sharding": "sharding",
        'device="cuda", which copies through pinned memory, or device="cuda_host" to keep it': (
            "pin_memory pin_memory_device"
        ),
        "storage=Storage(filesystem=...)": "filesystem",
        "storage=Storage(options=...)": "storage_options",
        "storage=Storage(retries=Retries(...))": "retries download_retry",
        "storage=Storage(cache=..., cache_bytes=...)": (
            "cache cache_bytes cache_dir local cache_limit max_cache_size"
        ),
        'transform_arrow={"image": Image(...)}': "decode",
        'transform_arrow={"audio": Audio(sample_rate)}': "sample_rate sampling_rate",
        'transform_arrow={"text": Tokenize(tokenizer)}': "tokenize tokenizer processing_class",
        "storage=Storage(plan=...)": "plan",
        "storage=Storage(memory_map=...)": "memory_map",
        "storage=Storage(decoder=...)": "decoder",
        "Loader.mix(sources, weights=...)": "sources weights probabilities streams proportion",
        "Loader.mix(sources, weights, stop=...)": "stop stopping_strategy",
        "Loader.mix(sources, weights, origin=...)": "origin",
        "source, a path, table or dataset": "dataset data_source",
        "num_workers=": "workers num_proc worker_count workers_count",
        "shuffle= and seed=, or Loader.map_dataset() for a sampler of your own": (
            "sampler batch_sampler"
        ),
        "transform=, a function that is called with each batch": "collate collate_fn finalize_fn",
        "storage=Storage(retries=Retries(deadline=...)), for reads of a store": "timeout",
        "transform=, a function that is called with each batch, in each worker too": (
            "worker_init_fn"
        ),
        "leave it out: workers import the main module and get the source": (
            "multiprocessing_context"
        ),
        "seed=": "generator shuffle_seed local_shuffle_seed",
        "prefetch=": (
            "prefetch_factor batch_readahead fragment_readahead predownload max_pre_download "
            "prefetch_batches worker_buffer_size"
        ),
        "leave it out: workers end with the Loader, or when an epoch is left early": (
            "persistent_workers"
        ),
        "leave it out: batches keep their order": "in_order",
        "num_threads=, or pyarrow.set_cpu_count() for the decoder": "use_threads",
        "batch_size=": "batch_rows per_device_train_batch_size",
        "columns=": "schema remove_columns",
        "leave it out: the keys of folders are columns": "partitioning",
        "storage=Storage(...)": "fragment_scan_options",
        "leave it out: reads are joined and fetched ahead": "pre_buffer",
        "vocabulary=": "read_dictionary",
        "framework=": "format return_tensors batch_format",
        "source, a folder": "data_dir",
        "shuffle=Shuffle(buffer_size=...)": (
            "shuffle_buffer_size shuffle_block_size local_shuffle_buffer_size"
        ),
        "batching=Pack(..., lengths=...), batching=Buckets(column) or Tokens(..., column=...)": (
            "length_column length_column_name"
        ),
        "ragged=Padded(max_length=...), or batching=Pack(column, length)": "max_seq_length",
        "leave it out: files are streamed": "streaming",
        "source, paths or globs": "data_files",
        "drop_last=": "drop_last_batch drop_remainder",
        "source, a URL": "remote",
        "storage=Storage(retries=Retries(deadline=...))": "download_timeout",
        "shuffle=": "shuffle_algo",
        "batching=Buckets(...), or Loader.mix(sources, weights=...)": "batching_method",
        "source, a folder or URL": "input_dir",
        "dtype=": "dtypes",
        "transform=, or Loader.map and Loader.filter": "operations",
        "num_threads=": "num_parallel_calls",
        "num_threads= and prefetch=": "read_options",
    }
)
"""What to write in place of keywords of other libraries, and of fields of the value objects."""

OF_MIX = _name_alike(
    {
        "ranks=Ranks(global_batch_size=...), the rows of a step on all ranks together": (
            "batch_size batch_rows per_device_train_batch_size"
        ),
        "ranks=Ranks(global_batch_size=Tokens(...))": (
            "tokens batch_tokens max_tokens max_tokens_per_batch"
        ),
        "ranks=Ranks(global_batch_size=Tokens(..., column=...))": "token_column",
        "sources=, by their names": "source dataset datasets data_source",
        "sources= and weights=": "streams",
        "weights=": "proportion probabilities proportions ratios",
        "stop=": "stopping_strategy stop_criteria",
        "batching=Buckets(...)": "batching_method",
        "each Loader of the mixture its own Storage(plan=...)": "plan",
        "shuffle= and seed=": "sampler batch_sampler",
    }
)
"""What to write in a call of `Loader.mix` where that is not what `Loader` takes."""

LOADER = {
    *("batch_size", "batching", "columns", "device", "drop_last", "dtype", "filter", "framework"),
    *("nulls", "num_threads", "num_workers", "on_error", "pad_last", "prefetch", "progress"),
    *("ragged", "ranks", "seed", "shuffle", "stack", "storage", "transform", "transform_arrow"),
    *("vocabulary", "writable"),
}
"""The keywords of `Loader`, which are not fields of its value objects."""


class NoOptions(TypedDict):
    """The keywords that a `Loader` takes beside its own: none, which type checkers know by this."""


def refuse_unknown(names: Iterable[str], ours: Iterable[str]) -> None:
    """Raise TypeError if keywords are `names` that `Loader` does not have."""
    _refuse("Loader", {name: _advise(name, ADVICE, ours) for name in names})


def refuse_unknown_of_mix(names: Iterable[str], ours: Iterable[str]) -> None:
    """Raise TypeError if keywords are `names` that `Loader.mix` does not have."""
    table = {**ADVICE, **OF_MIX}
    _refuse("Loader.mix", {name: _advise(name, table, ours) for name in names})


def refuse_unknown_fields(kind: str, unknown: Iterable[str], fields: Iterable[str]) -> None:
    """Raise TypeError if keywords are `unknown` that the value object `kind` does not have."""
    names = list(fields)
    told = {name: _advise_field(kind, name, names) for name in unknown}
    _refuse(kind, told, f"; {kind} has {join_names(names)}")


def join_names(names: Iterable[str]) -> str:
    """Return keywords as they are written in calls."""
    return ", ".join(f"{name}=" for name in names)


def _refuse(who: str, told: Mapping[str, str], end: str = "") -> None:
    if told:
        what = "unexpected keyword arguments" if len(told) > 1 else "an unexpected keyword argument"
        texts = "; ".join(f"{name!r}: {text}" for name, text in told.items())
        raise TypeError(f"{who}() got {what} {texts}{end}")


def _advise(name: str, table: Mapping[str, str], ours: Iterable[str]) -> str:
    """Return what to write in place of a keyword."""
    if name in table:
        return table[name] if table[name].startswith(_NOT_NEEDED) else f"give {table[name]}"
    options = sorted(ours)
    close = _find_close(name, options)
    return f"give {close}=" if close else f"give one of {join_names(options)}"


def _advise_field(kind: str, name: str, fields: list[str]) -> str:
    """Return what to write in place of a field: one of the object, or what the Loader takes."""
    if name in LOADER:
        return f"it is an option of the Loader, give Loader({name}=...)"
    advice = ADVICE.get(name, _NOT_NEEDED)
    if not advice.startswith(_NOT_NEEDED) and f"{kind}(...)" not in advice:
        return f"give the Loader {advice}"
    close = _find_close(name, fields)
    return f"give {close}=" if close else "there is no such field"


def _find_close(name: str, names: list[str]) -> str | None:
    """Return the keyword that is spelled like `name`."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, names, 1)), None)
