"""Revisions of Hugging Face's repositories: paths of a branch become those of its commit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from arrowdl.loader._settings.retries import Retries
from arrowdl.loader._storage.handlers import find_handler
from arrowdl.loader._storage.retry_calls import call_with_retries
from arrowdl.loader._storage.stores import Store, StoresHandler

if TYPE_CHECKING:
    import pyarrow.fs as fs

_COMMIT = re.compile(r"[0-9a-f]{40}")
_KINDS = {"datasets/": "dataset", "spaces/": "space", "": "model"}
_PATH = re.compile(r"(?P<kind>datasets/|spaces/|)(?P<name>[^/@]+/[^/@]+)@(?P<commit>[0-9a-f]{40})/")
# As a user names them: "refs/convert/parquet" and "refs/pr/1" may have their slashes.
_NAMED = re.compile(
    r"(?P<kind>datasets/|spaces/|)(?P<name>[^/@]+/[^/@]+)"
    r"(?:@(?P<revision>refs/(?:convert|pr)/[^/]+|[^/]+))?(?:/|$)"
)
_DEFAULT = "main"


def _find_store(stores: Iterable[Store], path: str) -> Store | None:
    """Return the store of a path, if it is one of the Hub."""
    return next((store for store in stores if store.has(path) and _find_hub(store)), None)


def pin_revisions(
    stores: Sequence[Store],
    paths: Sequence[str],  # as `StoresHandler` takes them
    retries: Retries,
) -> list[str]:
    """Return paths whose files stay the same, of those of Hugging Face's Hub: with the commit.

    A branch may move while a training reads, and a state has to name what was read.
    """
    commits: dict[tuple[str, str, str], str | None] = {}
    pinned = []
    for path in paths:
        store = _find_store(stores, path)
        if store is not None:
            what = f"finding the commit of {path!r}"
            pin = partial(_pin, store, path, commits)
            path = call_with_retries(retries, what, partial(store.secrets.guard, pin))
        pinned.append(path)
    return pinned


def _find_hub(store: Store) -> Any:
    """Return the HfFileSystem of a store; None if it has another one."""
    filesystem = getattr(getattr(store.filesystem, "handler", None), "filesystem", None)
    modules = {kind.__module__.partition(".")[0] for kind in type(filesystem).__mro__}
    return filesystem if "huggingface_hub" in modules else None


def check_revisions(
    stores: Sequence[Store],  # see `pin_revisions`
    paths: Sequence[str],
    planned: Iterable[str],  # paths of the plan's files
    # see `Store`, that the plan was made of: they are what they were then
    revisions: Mapping[str, str],
    retries: Retries,  # a branch that the plan does not know is asked for
) -> None:
    """Raise ValueError if a path names another revision than that of a plan's files."""
    hubs = [store for store in stores if _find_hub(store)]
    planned_commits: dict[str, set[str]] = {}
    for match in (_match(_PATH, path) for path in planned) if hubs else ():
        if match is not None:
            planned_commits.setdefault(f"{match['kind']}{match['name']}", set()).add(
                match["commit"]
            )
    for store in hubs:
        store.revisions.update(revisions)
    for path in paths if planned_commits else ():
        hub, match = _find_store(stores, path), _match(_NAMED, path)
        if hub is None or match is None:
            continue
        kind, name = match.group("kind", "name")
        commits = planned_commits.get(f"{kind}{name}", set())
        revision = unquote(match["revision"] or _DEFAULT)
        commit: str | None = revisions.get(f"{kind}{name}@{revision}", revision)
        if commits and commit not in commits and not _COMMIT.fullmatch(revision):
            ask = partial(_ask_commit, _find_hub(hub), _KINDS[kind], name, revision)
            what = f"finding the commit of {path!r}"
            commit = call_with_retries(retries, what, partial(hub.secrets.guard, ask))
        if commits and commit not in commits:
            where = "" if commit in (revision, None) else f", which is at {commit}"
            of = " and ".join(sorted(commits))
            raise ValueError(
                f"the plan has revision {of} of the Hugging Face {_KINDS[kind]} {name!r}, and the "
                f"URL names {revision!r}{where}: give the URL of the plan's commit, "
                f"{kind}{name}@{min(commits)}, or make a new plan"
            )


def _match(pattern: re.Pattern[str], path: str) -> re.Match[str] | None:
    return pattern.match(path.removeprefix("hf://"))


def _ask_commit(hub: Any, kind: str, name: str, revision: str) -> str | None:
    from huggingface_hub import HfApi

    api = HfApi(endpoint=hub.endpoint, token=hub.token)
    commit: str | None = api.repo_info(name, repo_type=kind, revision=revision).sha
    return commit


def _pin(store: Store, path: str, commits: dict[tuple[str, str, str], str | None]) -> str:
    hub = _find_hub(store)
    resolved = hub.resolve_path(path)
    if not hasattr(resolved, "repo_id"):  # a bucket, which has no revisions
        return path
    key = resolved.repo_type, resolved.repo_id, resolved.revision
    if _COMMIT.fullmatch(resolved.revision):
        return path
    if key not in commits:
        commits[key] = _ask_commit(hub, *key)
    commit = commits[key]
    if commit is None:
        return path
    kind = next(prefix for prefix, name in _KINDS.items() if name == resolved.repo_type)
    store.revisions[f"{kind}{resolved.repo_id}@{resolved.revision}"] = commit
    start = path[: path.index(resolved.repo_id)]
    inner = f"/{resolved.path_in_repo}" if resolved.path_in_repo else ""
    end = "/" if path.endswith("/") else ""
    return f"{start}{resolved.repo_id}@{commit}{inner}{end}"


def _list_hubs(filesystem: fs.FileSystem) -> list[Store]:
    handler = find_handler(filesystem)
    while handler is not None and not isinstance(handler, StoresHandler):
        handler = find_handler(handler.inner)
    return [] if handler is None else [store for store in handler.stores if _find_hub(store)]


def list_revisions(filesystem: fs.FileSystem) -> dict[str, str]:
    """Return the revisions, as of `Store`, that the files of a file system are of."""
    return {
        name: commit for store in _list_hubs(filesystem) for name, commit in store.revisions.items()
    }


def name_revisions(filesystem: fs.FileSystem, paths: Iterable[str]) -> str:
    """Return the repositories of Hugging Face that paths are in, with their commits; or nothing."""
    stores = _list_hubs(filesystem)
    repositories: dict[str, None] = {}
    for path in paths if stores else ():
        store = next((candidate for candidate in stores if candidate.has(path)), None)
        match = None if store is None else _PATH.match(path[len("hf://") * bool(store.prefix) :])
        if match is not None:
            kind, name, commit = match.group("kind", "name", "commit")
            repositories[f"Hugging Face {_KINDS[kind]} {name!r}, revision {commit}"] = None
    return "; ".join(repositories)
