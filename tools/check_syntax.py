"""Checks the syntax, types and warnings of all C++ files of a build folder, without compiling them.

    check_syntax.py FOLDER JOBS syntax|alone

Most of a file's time goes to the headers, so files are checked as one where no names of their
anonymous namespaces collide: a tenth of the time of a build. A name that two such files give to
different things of the library is an error, too, which no compiler sees in one file alone.
With `alone`, each file is checked by itself: only then is it an error to lack an #include.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def files_of(entry: dict[str, str]) -> list[str]:
    """The file that a command compiles, or those of a unity build."""
    file = Path(entry["file"])
    if not file.name.startswith("unity_"):
        return [str(file)]
    return re.findall(r'^#include "([^"]+)"$', file.read_text(), flags=re.M)


def flags_of(entry: dict[str, str]) -> tuple[str, ...]:
    """The command without file names, optimisation and precompiled headers."""
    words = iter(shlex.split(entry["command"]))
    kept = []
    for word in words:
        if word in ("-include", "-o", "-c", "-Xclang"):
            next(words)
        elif not re.match(r"-O|-g\d?$|-fpch-|-Winvalid-pch|.*\bccache$", word):
            kept.append(word)
    return tuple(kept)


def own_names(text: str) -> set[str]:
    """The names that a file declares for itself, and some more: macros, anonymous namespaces."""
    names = set(re.findall(r"^#\s*define (\w+)", text, flags=re.M))
    for block in re.findall(r"^namespace \{$(.*?)^\}  // namespace$", text, flags=re.M | re.S):
        for line in re.findall(r"^\w.*", block, flags=re.M):
            names.update(re.findall(r"(\w+)\s*(?:[(=\[{;]|$)", line))
            names.update(re.findall(r"(?:struct|class|enum|using) (\w+)", line))
    return names - {"TEST", "TEST_F", "TEST_P", "const", "noexcept", "static_assert"}


def pack(files: list[str]) -> list[list[str]]:
    """Puts each file into the first group whose files have other names."""
    groups: list[tuple[list[str], set[str]]] = []
    for file in files:
        names = own_names(Path(file).read_text())
        for group, taken in groups:
            if not names & taken:
                group.append(file)
                taken |= names
                break
        else:
            groups.append(([file], names))
    return [group for group, _ in groups]


def main(folder: Path, jobs: int, *, alone: bool) -> int:
    units = folder / "units"
    units.mkdir(exist_ok=True)
    by_flags: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        if Path(entry["file"]).suffix in (".cpp", ".cxx"):
            by_flags[flags_of(entry)] += files_of(entry)
    commands = []
    for flags, files in by_flags.items():
        for group in [[file] for file in files] if alone else pack(sorted(files)):
            unit = units / f"{len(commands)}.cpp"
            unit.write_text("".join(f'#include "{file}"\n' for file in group))
            commands.append([*flags, "-fsyntax-only", str(unit)])
    with ThreadPoolExecutor(jobs) as pool:
        codes = list(pool.map(lambda command: subprocess.run(command).returncode, commands))
    print(f"{sum(map(len, by_flags.values()))} files in {len(commands)} units")
    return int(any(codes))


if __name__ == "__main__":
    folder, jobs, check = sys.argv[1:]
    sys.exit(main(Path(folder).resolve(), int(jobs), alone=check == "alone"))
