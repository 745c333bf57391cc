"""Counters that show leaks: live objects, releases that wait or were abandoned, staging bytes."""

from arrowdl._core import abandoned_releases, live_objects, pending_releases, staging_bytes

__all__ = ["abandoned_releases", "live_objects", "pending_releases", "staging_bytes"]
