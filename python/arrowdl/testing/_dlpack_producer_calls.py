"""The cases of `check_dlpack_producer` that are about its methods, capsules and versions."""

from __future__ import annotations

from arrowdl.testing._dlpack_producer import NEWEST, Producer, needs_tensor, outcome
from arrowdl.testing._managed import LEGACY, VERSIONED, Exported
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, quote


def _methods(producer: Producer, to: Recorder) -> None:
    array = producer.make()
    for name in ("__dlpack__", "__dlpack_device__"):
        to.expect(
            "dlpack-methods",
            callable(getattr(array, name, None)),
            f"{name} is missing",
            "add the method: consumers call both",
        )


def _keywords(producer: Producer, to: Recorder) -> None:
    """With None, which every edition of the standard takes for the default."""
    for name in ("stream", "max_version", "dl_device", "copy"):
        made = producer.try_export(**{name: None})
        lacks = isinstance(made, TypeError)
        to.expect(
            "dlpack-keywords",
            not lacks,
            f"{name}=None raises TypeError",
            "accept the keyword with None as its default"
            + ("" if name == "stream" else "; it is in the standard since 2023.12"),
            "error" if name == "stream" else "warning",
        )
        if isinstance(made, Exception) and not isinstance(made, TypeError | BufferError):
            to.error("dlpack-keywords", f"{name}=None raises {quote(made)}", "treat it as default")


def _names(producer: Producer, to: Recorder) -> None:
    for options in ({}, {"max_version": (1, 0)}, {"max_version": NEWEST}):
        made = producer.try_export(**options)
        if isinstance(made, Exported):
            to.expect(
                "dlpack-capsule-name",
                made.is_known,
                f'the capsule is named "{made.name}"',
                f'name it "{LEGACY}" or "{VERSIONED}"',
            )


def _legacy(producer: Producer, to: Recorder) -> None:
    made = producer.try_export()
    if isinstance(made, BufferError):
        to.expect("dlpack-legacy", True, "", "")
        return
    if isinstance(made, Exception):
        raise made
    to.expect(
        "dlpack-legacy",
        made.name != VERSIONED,
        "a versioned capsule, though no max_version was passed",
        "return a legacy capsule, or raise BufferError",
    )


def _versions(producer: Producer, to: Recorder) -> None:
    made = producer.try_export(max_version=NEWEST)
    if isinstance(made, TypeError):
        to.skip("dlpack-versioned", "max_version is not a keyword")
        return
    if isinstance(made, Exception):
        raise made
    to.expect(
        "dlpack-versioned",
        made.name != LEGACY,
        f"a legacy capsule for max_version={NEWEST}",
        "return DLManagedTensorVersioned: only it can say that memory is read-only or a copy",
        "warning",
    )
    newer = producer.try_export(max_version=(99, 0))
    to.expect(
        "dlpack-newer-consumer",
        isinstance(newer, Exported),
        f"max_version=(99, 0) raises {quote(newer) if isinstance(newer, Exception) else ''}",
        "compare max_version with your own version, and return your own",
    )
    older = producer.try_export(max_version=(0, 8))
    good = isinstance(older, BufferError) or (isinstance(older, Exported) and older.name == LEGACY)
    to.expect(
        "dlpack-old-consumer",
        good,
        "max_version=(0, 8) " + outcome(older),
        "return a legacy capsule or raise BufferError",
        "warning",
    )
    for options in ({"max_version": (1, 0)}, {"max_version": NEWEST}, {"max_version": (99, 0)}):
        made = producer.try_export(**options)
        if isinstance(made, Exported) and made.is_versioned:
            to.expect(
                "dlpack-version",
                made.version[0] == 1,
                f"the version is {made.version[0]}.{made.version[1]}",
                "set version to that of the dlpack.h that you compile with",
            )


CASES = (
    Case("methods", "dlpack-methods", _methods),
    Case("keywords", "dlpack-keywords", _keywords),
    Case("names", "dlpack-capsule-name", needs_tensor(_names)),
    Case("no max_version", "dlpack-legacy", _legacy),
    Case("versions", "dlpack-version", needs_tensor(_versions)),
)
