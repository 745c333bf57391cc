"""For those who look for leaks."""

from arrowdl._core import live_objects, pending_releases

__all__ = ["live_objects", "pending_releases"]
