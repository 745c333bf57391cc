"""What to write in place of a keyword that a `Loader` does not have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypedDict

_POSITION = "ranks=Ranks(rank, world_size)"
_BATCH = "ranks=Ranks(global_batch_size=...)"
_TRANSFORM = "transform=, a function that is called with each batch"
_WORKERS = "num_workers="
_SAMPLER = "shuffle= and seed=, or Loader.map_dataset() for a sampler of your own"
_BUFFER = "shuffle=Shuffle(buffer_size=...)"
_PINNED = 'device="cuda", which copies through pinned memory, or device="cuda_host" to keep it'
_CACHE = "storage=Storage(cache=..., cache_bytes=...)"
_ENDS = "nothing: workers end with the Loader, or when an epoch is left early"

ADVICE: Mapping[str, str] = {
    # Fields of the value objects.
    "rank": _POSITION,
    "world_size": _POSITION,
    "global_batch_size": _BATCH,
    "splits": "ranks=Ranks(splits=...)",
    "tokens": "batch_size=Tokens(...)",
    "batch_tokens": "batch_size=Tokens(...)",
    "global_batch_tokens": "ranks=Ranks(global_batch_size=Tokens(...))",
    "token_column": "batch_size=Tokens(..., column=...)",
    "bucket_by": "batching=Buckets(...)",
    "buckets": "batching=Buckets(...)",
    "pack": "batching=Pack(...)",
    "buffer_size": f"{_BUFFER}, or batching=Buckets(..., window=...)",
    "seed_transforms": "seed=Seed(..., transforms=...)",
    "padded": "ragged=Padded(...)",
    "pad_value": "ragged=Padded(...)",
    "max_length": "ragged=Padded(max_length=...)",
    "pad_to_multiple": "ragged=Padded(multiple=...)",
    "pad_to_multiple_of": "ragged=Padded(multiple=...)",
    "skip": "on_error=Skip()",
    "max_skipped_rows": "on_error=Skip(max_rows=...)",
    "report": "progress=Report(every=..., function=...)",
    "report_every": "progress=Report(every=...)",
    "sharding": "device=, which takes a jax.sharding.Sharding",
    "pin_memory": _PINNED,
    "filesystem": "storage=Storage(filesystem=...)",
    "storage_options": "storage=Storage(options=...)",
    "retries": "storage=Storage(retries=Retries(...))",
    "cache": _CACHE,
    "cache_bytes": _CACHE,
    "plan": "storage=Storage(plan=...)",
    "memory_map": "storage=Storage(memory_map=...)",
    "decoder": "storage=Storage(decoder=...)",
    # torch
    "workers": _WORKERS,
    "sampler": _SAMPLER,
    "batch_sampler": _SAMPLER,
    "collate_fn": _TRANSFORM,
    "timeout": "storage=Storage(retries=Retries(deadline=...)), for reads of a store",
    "worker_init_fn": f"{_TRANSFORM}, in each worker too",
    "multiprocessing_context": "nothing: workers import the main module and get the source",
    "generator": "seed=",
    "prefetch_factor": "prefetch=",
    "persistent_workers": _ENDS,
    "pin_memory_device": _PINNED,
    "in_order": "nothing: batches keep their order",
    "num_replicas": _POSITION,
    # pyarrow
    "use_threads": "num_threads=, or pyarrow.set_cpu_count() for the decoder",
    "batch_readahead": "prefetch=",
    "fragment_readahead": "prefetch=",
    # Hugging Face
    "num_proc": _WORKERS,
    "format": "framework=",
    "streaming": "nothing: files are streamed",
    "data_files": "source, paths or globs",
    "drop_last_batch": "drop_last=",
    # MosaicML streaming
    "local": _CACHE,
    "remote": "source, a URL",
    "streams": "Loader.mix(sources, weights=...)",
    "proportion": "Loader.mix(sources, weights=...)",
    "shuffle_seed": "seed=",
    "shuffle_block_size": _BUFFER,
    "num_canonical_nodes": "ranks=Ranks(splits=...)",
    "predownload": "prefetch=",
    "cache_limit": _CACHE,
    "download_retry": "storage=Storage(retries=Retries(...))",
    "download_timeout": "storage=Storage(retries=Retries(deadline=...))",
    # Ray, petastorm, grain, tf.data
    "prefetch_batches": "prefetch=",
    "local_shuffle_buffer_size": _BUFFER,
    "local_shuffle_seed": "seed=",
    "dtypes": "dtype=",
    "cur_shard": _POSITION,
    "shard_count": _POSITION,
    "num_shards": _POSITION,
    "shard_index": _POSITION,
    "shard_options": _POSITION,
    "worker_count": _WORKERS,
    "workers_count": _WORKERS,
    "operations": "transform=, or Loader.map and Loader.filter",
    "drop_remainder": "drop_last=",
    "num_parallel_calls": "num_threads=",
}
"""What to write in place of keywords of other libraries, and of fields of the value objects."""


class NoOptions(TypedDict):
    """The keywords that a `Loader` takes beside its own: none, which type checkers know by this."""


def refuse_unknown(who: str, given: Iterable[str], ours: Iterable[str]) -> None:
    """Raise TypeError if keywords are `given`, with what to write in their place.

    Parameters
    ----------
    who : str
        The function that was called.
    given : iterable of str
        Keywords that it does not have.
    ours : iterable of str
        Those that it has.
    """
    told = [f"{name!r}: give {find_advice(name, ours)}" for name in given]
    if told:
        plural = "s" if len(told) > 1 else ""
        raise TypeError(f"{who}() got an unexpected keyword argument{plural} {'; '.join(told)}")


def find_advice(name: str, ours: Iterable[str]) -> str:
    """Return what to write in place of a keyword."""
    known = sorted(ours)
    if name in ADVICE:
        return ADVICE[name]
    close = get_close_matches(name, known, 1)
    return f"{close[0]}=" if close else f"one of {', '.join(f'{own}=' for own in known)}"
