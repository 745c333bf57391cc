"""`flatten`: the value objects of a `Loader` as its `Options`."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from arrowdl.loader._checks import require_bool, require_choice, require_instance, require_int
from arrowdl.loader._options.functions import Functions
from arrowdl.loader._options.options import Options
from arrowdl.loader._options.sizes import BatchSizes, choose_splits
from arrowdl.loader._options.target import Target
from arrowdl.loader._settings.buckets import Buckets
from arrowdl.loader._settings.pack import Pack
from arrowdl.loader._settings.ranks import Ranks
from arrowdl.loader._settings.report import Report
from arrowdl.loader._settings.seed import Seed
from arrowdl.loader._settings.shuffle import Shuffle
from arrowdl.loader._settings.skip import Skip
from arrowdl.loader._settings.storage import Storage
from arrowdl.loader._settings.tokens import Tokens

Flat = dict[str, Any]
_RANKS, _STORAGE = Ranks(), Storage()  # what is left out


def flatten(
    *,
    batch_size: Any,
    batching: Any,
    ranks: Any,
    shuffle: Any,
    seed: Any,
    device: Any,
    framework: Any,
    progress: Any,
    on_error: Any,
    storage: Storage,
    writable: Any,
    transform: Any,
    transform_arrow: Any,
    **others: Any,
) -> Options:
    """Return the options of a `Loader`; `others` are options that stay as they are.

    Raises TypeError or ValueError if an option has a value that is not supported, or contradicts
    another one.
    """
    ranks, seed = read_ranks(ranks), read_seed(seed)
    order = _flatten_order(shuffle, batching)
    return Options(
        sizes=_make_sizes(batch_size, ranks, order.pop("bucket_by")),
        rank=ranks.rank,
        world_size=ranks.world_size,
        **order,
        seed=seed.number,
        functions=Functions(
            transform_arrow=transform_arrow, transform=transform, sets_seeds=seed.transforms
        ),
        target=_make_target(device, framework, writable),
        **_flatten_progress(progress),
        **flatten_errors(on_error),
        # A plan is of the source, and may be large: workers get these options.
        storage=storage if storage.plan is None else replace(storage, plan=None),
        **others,
    )


def read_ranks(ranks: Any) -> Ranks:
    """Return `ranks=`, which may be left out."""
    return _RANKS if ranks is None else require_instance("ranks", ranks, Ranks)


def read_storage(storage: Any) -> Storage:
    """Return `storage=`, which may be left out."""
    return _STORAGE if storage is None else require_instance("storage", storage, Storage)


def read_seed(seed: Any) -> Seed:
    """Return `seed=`, which may be a number."""
    return seed if isinstance(seed, Seed) else Seed(require_int("seed", seed))


def flatten_errors(on_error: Any) -> Flat:
    """Return `on_error=` as what happens, and the bound of rows that are skipped."""
    if isinstance(on_error, Skip):
        return {"on_error": "skip", "max_skipped_rows": on_error.max_rows}
    require_choice("on_error", on_error, ("raise", "skip"), " or arrowdl.Skip(...)")
    return {"on_error": on_error, "max_skipped_rows": None}


def split_size(size: Any) -> tuple[Any, int | None, str | None]:
    """Return a number of rows, a number of tokens and what counts these, of which some are None."""
    return (None, size.number, size.column) if isinstance(size, Tokens) else (size, None, None)


def _make_sizes(batch_size: Any, ranks: Ranks, bucket_by: str | None) -> BatchSizes:
    rows, tokens, column = split_size(batch_size)
    global_rows, global_tokens, global_column = split_size(ranks.global_batch_size)
    return BatchSizes(
        batch_size=rows,
        batch_tokens=tokens,
        global_batch_size=global_rows,
        global_batch_tokens=global_tokens,
        token_column=column or global_column,
        bucket_by=bucket_by,
        splits=choose_splits(ranks.splits, global_rows, global_tokens),
    )


def _flatten_order(shuffle: Any, batching: Any) -> Flat:
    shuffles = isinstance(shuffle, Shuffle) or require_bool(
        "shuffle", shuffle, " or arrowdl.Shuffle(...)"
    )
    size = shuffle.buffer_size if isinstance(shuffle, Shuffle) else "auto"
    if batching is None or isinstance(batching, Pack):
        return {"shuffle": shuffles, "buffer_size": size, "bucket_by": None, "pack": batching}
    buckets = require_instance("batching", batching, Buckets, "arrowdl.Pack(...) or ")
    window = buckets.window
    if "auto" not in (size, window) and size != window:
        raise ValueError(
            f"shuffle=Shuffle({size}), batching=Buckets(window={window}): the window is the "
            "shuffle buffer, give its size once"
        )
    return {
        "shuffle": shuffles,
        "buffer_size": size if window == "auto" else window,
        "bucket_by": buckets.column,
        "pack": None,
    }


def _make_target(device: Any, framework: Any, writable: Any) -> Target:
    """Return a sharding of JAX and pinned memory of torch apart from other devices."""
    is_sharding = _is_sharding(device)
    is_pinned = framework == "torch" and isinstance(device, str) and device == "cuda_host"
    return Target(
        framework=framework,
        device=None if is_sharding or is_pinned else device,
        sharding=device if is_sharding else None,
        pin_memory=is_pinned,
        writable=writable,
    )


def _is_sharding(device: Any) -> bool:
    """Whether `device` is a ``jax.sharding.Sharding``; JAX is not imported."""
    kind = getattr(sys.modules.get("jax.sharding"), "Sharding", None)
    return kind is not None and isinstance(device, kind)


def _flatten_progress(progress: Any) -> Flat:
    if not isinstance(progress, Report):
        bar = require_bool("progress", progress, " or arrowdl.Report(...)")
        return {"progress": bar, "report_every": None, "report": None}
    return {
        "progress": progress.bar,
        "report_every": progress.every,
        "report": progress.function,
    }
