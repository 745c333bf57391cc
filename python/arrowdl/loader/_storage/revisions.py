"""Revisions of Hugging Face's repositories: paths of a branch become those of its commit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from arrowdl.loader._storage.handlers import find_handler
from arrowdl.loader._storage.retries import Retries, call_with_retries
from arrowdl.loader._storage.stores import Store, StoresHandler

if TYPE_CHECKING:
    import pyarrow.fs as fs

_COMMIT = re.compile(r"[0-9a-f]{40}")
_KINDS = {"datasets/": "dataset", "spaces/": "space", "": "model"}
_PATH = re.compile(r"(?P<kind>datasets/|spaces/|)(?P<name>[^/@]+/[^/@]+)@(?P<commit>[0-9a-f]{40})/")


def pin_revisions(stores: Sequence[Store], paths: Sequence[str], retries: Retries) -> list[str]:
    """Return paths whose files stay the same, of those of Hugging Face's Hub: with the commit.

    A branch may move while a training reads, and a state has to name what was read.

    Parameters
    ----------
    stores : sequence of Store
    paths : sequence of str
        As `StoresHandler` takes them.
    retries : Retries
    """
    commits: dict[tuple[str, str, str], str | None] = {}
    pinned = []
    for path in paths:
        store = next((own for own in stores if own.has(path) and _find_hub(own)), None)
        if store is not None:
            what = f"finding the commit of {path!r}"
            pin = partial(_pin, _find_hub(store), path, commits)
            path = call_with_retries(retries, what, partial(store.secrets.guard, pin))
        pinned.append(path)
    return pinned


def _find_hub(store: Store) -> Any:
    """Return the HfFileSystem of a store; None if it has another one."""
    found = getattr(getattr(store.filesystem, "handler", None), "filesystem", None)
    modules = {kind.__module__.partition(".")[0] for kind in type(found).__mro__}
    return found if "huggingface_hub" in modules else None


def _pin(hub: Any, path: str, commits: dict[tuple[str, str, str], str | None]) -> str:
    resolved = hub.resolve_path(path)
    if not hasattr(resolved, "repo_id"):  # a bucket, which has no revisions
        return path
    key = resolved.repo_type, resolved.repo_id, resolved.revision
    if _COMMIT.fullmatch(resolved.revision):
        return path
    if key not in commits:
        from huggingface_hub import HfApi

        kind, name, revision = key
        api = HfApi(endpoint=hub.endpoint, token=hub.token)
        commits[key] = api.repo_info(name, repo_type=kind, revision=revision).sha
    if commits[key] is None:
        return path
    start = path[: path.index(resolved.repo_id)]
    inner = f"/{resolved.path_in_repo}" if resolved.path_in_repo else ""
    end = "/" if path.endswith("/") else ""
    return f"{start}{resolved.repo_id}@{commits[key]}{inner}{end}"


def name_revisions(filesystem: fs.FileSystem, paths: Iterable[str]) -> str:
    """Return the repositories of Hugging Face that paths are in, with their commits; or nothing."""
    handler = find_handler(filesystem)
    while handler is not None and not isinstance(handler, StoresHandler):
        handler = find_handler(handler.inner)
    stores = [] if handler is None else [own for own in handler.stores if _find_hub(own)]
    found: dict[str, None] = {}
    for path in paths if stores else ():
        store = next((own for own in stores if own.has(path)), None)
        match = None if store is None else _PATH.match(path[len("hf://") * bool(store.prefix) :])
        if match is not None:
            kind, name, commit = match.group("kind", "name", "commit")
            found[f"Hugging Face {_KINDS[kind]} {name!r}, revision {commit}"] = None
    return "; ".join(found)
