"""tools/list_protocols.py as a module."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_PATH = Path(__file__).resolve().parents[3] / "tools/list_protocols.py"
_SPEC = importlib.util.spec_from_file_location("list_protocols", _PATH)
assert _SPEC is not None
assert _SPEC.loader is not None
TABLE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(TABLE)
