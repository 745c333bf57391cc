"""What to write in place of keywords that a `Loader` or a value object does not have."""

from __future__ import annotations

from collections.abc import Mapping

_POSITION = "ranks=Ranks(rank, world_size)"
_BATCH = "ranks=Ranks(global_batch_size=...)"
_TRANSFORM = "transform=, a function that is called with each batch"
_WORKERS = "num_workers="
_SAMPLER = "shuffle= and seed=, or Loader.map_dataset() for a sampler of your own"
_BUFFER = "shuffle=Shuffle(buffer_size=...)"
_PINNED = 'device="cuda", which copies through pinned memory, or device="cuda_host" to keep it'
_CACHE = "storage=Storage(cache=..., cache_bytes=...)"
_MIX = "Loader.mix(sources, weights=...)"
_LENGTHS = "batching=Pack(..., lengths=...), batching=Buckets(column) or Tokens(..., column=...)"
_FOLDERS = "nothing: the keys of folders are columns"
_TOKENIZE = 'transform_arrow={"text": Tokenize(tokenizer)}'
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
    "decode": 'transform_arrow={"image": Image(...)}',
    "tokenize": _TOKENIZE,
    "tokenizer": _TOKENIZE,
    "processing_class": _TOKENIZE,
    "plan": "storage=Storage(plan=...)",
    "memory_map": "storage=Storage(memory_map=...)",
    "decoder": "storage=Storage(decoder=...)",
    # Parameters of Loader.mix.
    "sources": _MIX,
    "weights": _MIX,
    "stop": "Loader.mix(sources, weights, stop=...)",
    "origin": "Loader.mix(sources, weights, origin=...)",
    # torch
    "dataset": "source, a path, table or dataset",
    "workers": _WORKERS,
    "sampler": _SAMPLER,
    "batch_sampler": _SAMPLER,
    "collate": _TRANSFORM,
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
    "batch_rows": "batch_size=",
    "schema": "columns=",
    "partitioning": _FOLDERS,
    "fragment_scan_options": "storage=Storage(...)",
    "pre_buffer": "nothing: reads are joined and fetched ahead",
    "read_dictionary": "vocabulary=",
    # Hugging Face
    "num_proc": _WORKERS,
    "num_processes": _POSITION,
    "format": "framework=",
    "return_tensors": "framework=",
    "data_dir": "source, a folder",
    "cache_dir": _CACHE,
    "shuffle_buffer_size": _BUFFER,
    "per_device_train_batch_size": "batch_size=",
    "group_by_length": "batching=Buckets(...)",
    "length_column": _LENGTHS,
    "length_column_name": _LENGTHS,
    "padding": "ragged=Padded(...)",
    "padding_value": "ragged=Padded(...)",
    "pad_token_id": "ragged=Padded(...)",
    "truncation": "ragged=Padded(max_length=...)",
    "max_seq_length": "ragged=Padded(max_length=...), or batching=Pack(column, length)",
    "packing": "batching=Pack(...)",
    "max_tokens": "batch_size=Tokens(...)",
    "max_tokens_per_batch": "batch_size=Tokens(...)",
    "probabilities": _MIX,
    "stopping_strategy": "Loader.mix(sources, weights, stop=...)",
    "remove_columns": "columns=",
    "streaming": "nothing: files are streamed",
    "data_files": "source, paths or globs",
    "drop_last_batch": "drop_last=",
    # MosaicML streaming
    "local": _CACHE,
    "remote": "source, a URL",
    "streams": _MIX,
    "proportion": _MIX,
    "shuffle_seed": "seed=",
    "shuffle_block_size": _BUFFER,
    "num_canonical_nodes": "ranks=Ranks(splits=...)",
    "predownload": "prefetch=",
    "cache_limit": _CACHE,
    "download_retry": "storage=Storage(retries=Retries(...))",
    "download_timeout": "storage=Storage(retries=Retries(deadline=...))",
    "shuffle_algo": "shuffle=",
    "batching_method": "batching=Buckets(...), or Loader.mix(sources, weights=...)",
    # LitData
    "input_dir": "source, a folder or URL",
    "max_cache_size": _CACHE,
    "max_pre_download": "prefetch=",
    # Ray, petastorm, grain, tf.data
    "prefetch_batches": "prefetch=",
    "local_shuffle_buffer_size": _BUFFER,
    "local_shuffle_seed": "seed=",
    "batch_format": "framework=",
    "data_source": "source, a path, table or dataset",
    "dtypes": "dtype=",
    "finalize_fn": _TRANSFORM,
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
    "read_options": "num_threads= and prefetch=",
    "worker_buffer_size": "prefetch=",
}
"""What to write in place of keywords of other libraries, and of fields of the value objects."""


_TOKENS = "ranks=Ranks(global_batch_size=Tokens(...))"
_ROWS = "ranks=Ranks(global_batch_size=...), the rows of a step on all ranks together"
OF_MIX: Mapping[str, str] = {
    "batch_size": _ROWS,
    "batch_rows": _ROWS,
    "per_device_train_batch_size": _ROWS,
    "tokens": _TOKENS,
    "batch_tokens": _TOKENS,
    "max_tokens": _TOKENS,
    "max_tokens_per_batch": _TOKENS,
    "token_column": "ranks=Ranks(global_batch_size=Tokens(..., column=...))",
    "source": "sources=, by their names",
    "dataset": "sources=, by their names",
    "datasets": "sources=, by their names",
    "data_source": "sources=, by their names",
    "streams": "sources= and weights=",
    "proportion": "weights=",
    "probabilities": "weights=",
    "proportions": "weights=",
    "ratios": "weights=",
    "stopping_strategy": "stop=",
    "stop_criteria": "stop=",
    "batching_method": "batching=Buckets(...)",
    "plan": "each Loader of the mixture its own Storage(plan=...)",
    "sampler": "shuffle= and seed=",
    "batch_sampler": "shuffle= and seed=",
}
"""What to write in a call of `Loader.mix` where that is not what `Loader` takes."""

LOADER = {
    *("batch_size", "batching", "columns", "device", "drop_last", "dtype", "filter", "framework"),
    *("nulls", "num_threads", "num_workers", "on_error", "pad_last", "prefetch", "progress"),
    *("ragged", "ranks", "seed", "shuffle", "stack", "storage", "transform", "transform_arrow"),
    *("vocabulary", "writable"),
}
"""The keywords of `Loader`, which are not fields of its value objects."""


def _name_alike(table: Mapping[str, str]) -> Mapping[str, str]:
    """Return what to write by each name, of a table that lists the names by what to write."""
    return {name: advice for advice, names in table.items() for name in names.split()}


_NO_SIDE = "nothing: the padding follows the values"
FIELDS: Mapping[str, Mapping[str, str]] = {
    kind: _name_alike(table)
    for kind, table in {
        "Buckets": {
            "column=": "bucket_by by key name column_name length_column length_column_name lengths",
            "window=": "buffer buffer_size bucket_size size rows window_size",
            "nothing: the rows of a window are sorted and cut into batches": (
                "boundaries bucket_boundaries bucket_batch_sizes num_buckets"
            ),
        },
        "Image": {
            "size=(height, width)": "crop_size height image_size img_size resize resolution shape "
            "target_size width",
            "mode=": "channels color_mode num_channels",
            "layout=": "channels_first channels_last data_format format memory_format",
            'dtype="float32"': "do_rescale normalize rescale rescale_factor",
            'crop="center"': "center_crop do_center_crop",
            'crop="random"': "random_crop random_resized_crop",
            "flip=": "hflip horizontal_flip random_flip random_horizontal_flip",
            "interpolation=": "antialias filter method resample",
            "backend=": "decoder library",
            "threads=": "num_threads num_workers workers",
            "nothing: images are upright": "apply_exif_orientation exif exif_transpose",
        },
        "Pack": {
            "column=": "name column_name input_ids text_column dataset_text_field tokens",
            "length=": "block_size context_length max_length max_seq_len max_seq_length seq_len "
            "seq_length sequence_length",
            "strategy=": "algorithm method packing_strategy",
            "pad_value=": "pad pad_id pad_token_id padding_value value",
            "buffer_size=": "buffer num_blocks window",
            "lengths=": "length_column length_column_name lengths_column",
            "long=": "overflow too_long truncate truncation",
            "aligned=": "align columns",
            "add=": "outputs position_ids return_position_ids",
            "nothing: all blocks have one length": "multiple pad_to_multiple pad_to_multiple_of",
        },
        "Padded": {
            "value=": "constant_values fill_value pad pad_id pad_token_id pad_value padding_value",
            "max_length=": "length max_len max_seq_len max_seq_length maxlen model_max_length "
            "truncate truncation",
            "multiple=": "align multiple_of pad_to_multiple pad_to_multiple_of",
            _NO_SIDE: "padding_side side",
        },
        "Ranks": {
            "world_size=": "count num_nodes num_processes num_ranks num_replicas num_shards size "
            "shard_count world",
            "rank=": "cur_shard index local_rank process_index replica shard shard_index",
            "global_batch_size=": "batch_size global_batch total_batch_size train_batch_size",
            "global_batch_size=Tokens(...)": "batch_tokens global_batch_tokens tokens",
            "splits=": "canonical_nodes num_canonical_nodes num_splits sequences",
            "rank= and world_size=": "group process_group",
        },
        "Report": {
            "every=": "freq interval log_every period report_every seconds",
            "function=": "callback fn func log logger report",
            "bar=": "progress progress_bar show tqdm",
        },
        "Retries": {
            "tries=, the first try included": "attempts download_retry max_attempts max_retries "
            "num_retries retries total",
            "deadline=": "connect_timeout download_timeout max_time read_timeout request_timeout "
            "timeout",
            "first_wait=": "backoff backoff_factor delay initial_backoff initial_wait wait",
            "most_wait=": "max_backoff max_delay max_wait",
        },
        "Seed": {
            "number=": "generator random_state seed value",
            "transforms=": "augment seed_transforms transform",
        },
        "Shuffle": {
            "buffer_size=": "block_size buffer local_shuffle_buffer_size num_rows rows "
            "shuffle_block_size shuffle_buffer_size size window",
        },
        "Skip": {"max_rows=": "limit max_errors max_skipped_rows most rows tolerance"},
        "Storage": {
            "filesystem=": "file_system fs",
            "options=": "client_kwargs config fs_kwargs s3_options storage_options",
            "options={name: value}": "access_key anon endpoint_override endpoint_url key region "
            "secret secret_key token",
            "cache=": "cache_dir cache_folder download_dir local local_cache",
            "cache_bytes=": "cache_limit cache_size max_bytes max_cache_size",
            "retries=Retries(tries=...)": "download_retry max_retries num_retries retry",
            "retries=Retries(deadline=...)": "download_timeout timeout",
            "memory_map=": "keep_in_memory memory_mapped mmap",
            "decoder=": "backend engine reader",
            "plan=": "file_plan index index_path manifest",
        },
        "Tokenize": {
            "tokenizer=": "encoding model name processing_class tokenizer_name",
            "max_length=": "length max_len max_seq_len max_seq_length model_max_length truncation",
            "add_special_tokens=": "add_bos add_bos_token add_eos add_eos_token special_tokens",
            "nothing: the Loader pads, Loader(ragged=Padded(...))": (
                "multiple pad_id pad_to_multiple_of pad_token_id pad_value padding"
            ),
            "nothing: Loader(framework=)": "return_tensors",
        },
        "Tokens": {
            "number=": "budget max_tokens num_tokens size token_budget tokens",
            "column=": "by column_name length_column length_column_name lengths token_column",
        },
    }.items()
}
"""For each value object what to write in place of names that it does not have."""
