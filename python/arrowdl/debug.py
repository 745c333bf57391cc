"""For those who look for leaks."""

from arrowdl._core import abandoned_releases, live_objects, pending_releases, staging_bytes

__all__ = ["abandoned_releases", "live_objects", "pending_releases", "staging_bytes"]
