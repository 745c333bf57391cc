"""For those who look for leaks."""

from arrowdl._core import live_objects

__all__ = ["live_objects"]
