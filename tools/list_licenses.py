"""Lists the licences of the wheel and the sdist: `make check-package`.

A wheel names the licences of all that is compiled into it, and has their texts; so has the sdist,
which builds the same. What lacks one is an error.
"""

from __future__ import annotations

import json
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from email.parser import Parser
from pathlib import Path, PurePosixPath


def find_problems(
    expression: str, parts: Mapping[str, str], files: Iterable[str], texts: Mapping[str, set[str]]
) -> list[str]:
    """What is missing: the licence of a part in the expression, or a licence's file in an archive.

    `parts` has the licence of each component, `texts` the names of the files of each archive.
    """
    named = set(expression.split(" AND "))
    problems = [
        f"{part} is {licence}, and License-Expression says {expression}"
        for part, licence in parts.items()
        if licence not in named
    ]
    problems += [f"no component is {licence}" for licence in sorted(named - {*parts.values()})]
    return problems + [
        f"{archive} has no {file}"
        for archive in texts
        for file in files
        if file not in texts[archive]
    ]


def read_wheel(wheel: Path) -> tuple[str, dict[str, str], list[str], set[str]]:
    """The expression, the licence of each component, the texts that are named and those it has."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name.partition(".dist-info/")[2]: name for name in archive.namelist()}
        metadata = Parser().parsestr(archive.read(names["METADATA"]).decode())
        sbom = json.loads(archive.read(names["sboms/arrowdl.cdx.json"]))
    parts = {}
    for part in [sbom["metadata"]["component"], *sbom["components"]]:
        (choice,) = part["licenses"]
        parts[f"{part['name']} {part['version']}"] = choice["license"]["id"]
    texts = {name.removeprefix("licenses/") for name in names if name.startswith("licenses/")}
    return metadata["License-Expression"], parts, metadata.get_all("License-File", []), texts


def main(wheel: Path, sdist: Path) -> int:
    expression, parts, files, texts = read_wheel(wheel)
    with tarfile.open(sdist) as archive:
        top = {str(PurePosixPath(*PurePosixPath(name).parts[1:])) for name in archive.getnames()}
    print(f"{wheel.name}: {expression}")
    for part, licence in parts.items():
        print(f"  {part}: {licence}")
    print(f"  texts: {', '.join(files)}")
    problems = find_problems(expression, parts, files, {wheel.name: texts, sdist.name: top})
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
