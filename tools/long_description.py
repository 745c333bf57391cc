"""Makes the package index's page of README.md: the build backend calls it.

The index resolves no relative link. A link to a file becomes one to the file in the repository, at
the version's tag. Without `project.urls.Repository` in pyproject.toml it becomes its text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

README = Path(__file__).resolve().parents[1] / "README.md"
RELATIVE_LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>[^][]*)\]\((?!https?://|mailto:|#)(?P<target>[^()\s]+)\)"
)


def dynamic_metadata(
    field: str, settings: Mapping[str, Any], project: Mapping[str, Any]
) -> dict[str, str]:
    """Return the field `readme` of the project's metadata."""
    assert field == "readme"
    repository = project["urls"].get("Repository", "")
    text = absolute_links(README.read_text(encoding="utf-8"), repository, f"v{project['version']}")
    return {"text": text, "content-type": "text/markdown"}


def absolute_links(text: str, repository: str, tag: str) -> str:
    """Replace the relative links of Markdown outside of its code blocks."""

    def replace(match: re.Match[str]) -> str:
        image, target = match["image"], match["target"].removeprefix("./")
        if not repository:
            return "" if image else match["text"]
        kind = "raw" if image else "blob"
        return f"{image}[{match['text']}]({repository.rstrip('/')}/{kind}/{tag}/{target})"

    parts = re.split(r"(^```.*?^```)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        part if part.startswith("```") else RELATIVE_LINK.sub(replace, part) for part in parts
    )
