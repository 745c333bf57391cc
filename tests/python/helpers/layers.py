"""Graphs of what depends on what (includes, symbols, imports), and the rules that layers set."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

Graph = dict[str, set[str]]

# ---------------------------------------------------------------------------
# The order of the layers, from the README that shows it


def read_layers(text: str, heading: str = "") -> dict[str, int]:
    """The rank of each name that opens a line of a list: its folders and files, from low to high.

    `heading` picks one section of the text. Names on one line are one layer.
    """
    if heading:
        text = re.split(rf"^## {re.escape(heading)}$", text, flags=re.M)[1].split("\n## ")[0]
    ranks = {}
    for rank, names in enumerate(re.findall(r"^- (`[^:]*`):", text, flags=re.M)):
        for name in re.findall(r"`([^`]+)`", names):
            assert name not in ranks, f"{name} is in two layers"
            ranks[name] = rank
    return ranks


def read_public_headers(text: str) -> dict[str, str]:
    """The folder of each public header, from the lines of cpp/src/README.md."""
    folders: dict[str, str] = {}
    for folder, rest in re.findall(r"^- `([^`]+)`:(.*)$", text, flags=re.M):
        for header in re.findall(r"`(\w+\.hpp)`", rest):
            assert header not in folders, f"{header} is in two layers"
            folders[header] = folder
    return folders


# ---------------------------------------------------------------------------
# Graphs


def includes(text: str) -> list[str]:
    return re.findall(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', text, re.MULTILINE)


def include_graph(texts: Mapping[str, str], roots: Iterable[str]) -> Graph:
    """What each file includes of the others. Files are named from the repository's root."""
    graph: Graph = {}
    for path, text in texts.items():
        bases = [*roots, str(PurePosixPath(path).parent)]
        graph[path] = set()
        for name in includes(text):
            candidates = [f"{base}/{name}" for base in bases]
            graph[path].update([file for file in candidates if file in texts][:1])
    return graph


def by_unit(graph: Graph) -> Graph:
    """The same between units: a header and a body of one name in one folder are one."""
    merged: Graph = defaultdict(set)
    for path, targets in graph.items():
        unit = path.rsplit(".", 1)[0]
        merged[unit] |= {target.rsplit(".", 1)[0] for target in targets} - {unit}
    return dict(merged)


def join_parts(graph: Graph, headers: set[str]) -> Graph:
    """The same with one class in several bodies as one unit: `x_y` without a header is of `x`."""

    def whole(unit: str) -> str:
        folder, name = unit.rsplit("/", 1)
        if unit in headers:
            return unit
        stems = [name.rsplit("_", n)[0] for n in range(1, name.count("_") + 1)]
        return next((f"{folder}/{stem}" for stem in stems if f"{folder}/{stem}" in headers), unit)

    joined: Graph = defaultdict(set)
    for unit, targets in graph.items():
        joined[whole(unit)] |= {whole(target) for target in targets} - {whole(unit)}
    return dict(joined)


def list_symbols(folder: Path) -> str:
    """What `nm` says of all object files below `folder`: one line a symbol, with its file."""
    objects = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*.o"))]
    command = ["nm", "-C", "-A", *objects]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def symbol_graph(listing: str) -> Graph:
    """Which object file needs a symbol that another defines. Inline (weak) ones do not count."""
    defined: dict[str, str] = {}
    needed: dict[str, set[str]] = {}
    for line in listing.splitlines():
        match = re.match(r"(\S+?)\.cpp\.o:(?:[0-9a-f]+)? +([A-Za-z]) (.*)", line)
        if match is None:
            continue
        file, kind, symbol = match.groups()
        needed.setdefault(file, set())
        if kind in "TDBR":
            defined.setdefault(symbol, file)
        elif kind == "U":
            needed[file].add(symbol)
    return {
        file: {defined[symbol] for symbol in symbols if symbol in defined} - {file}
        for file, symbols in needed.items()
    }


def module_name(path: str) -> str:
    """`arrowdl/loader/_stats.py` is `arrowdl.loader._stats`; a package is named as its folder."""
    return re.sub(r"(/__init__)?\.pyi?$", "", path).replace("/", ".")


def import_graph(texts: Mapping[str, str]) -> Graph:
    """Which module imports which: anywhere in its text, also for type checkers alone."""
    modules = {module_name(path) for path in texts}
    graph: Graph = {}
    for path, text in texts.items():
        name = module_name(path)
        package = name if path.endswith("/__init__.py") else name.rpartition(".")[0]
        found: set[str] = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                    base = ".".join([*parents, *filter(None, [base])])
                for alias in node.names:
                    submodule = f"{base}.{alias.name}"
                    found.add(submodule if submodule in modules else base)
        graph[name] = {module for module in found if module in modules} - {name}
    return graph


# ---------------------------------------------------------------------------
# Rules


def find_circles(graph: Graph) -> list[str]:
    """Each set of files that lead back to themselves, as the edges that do: "a -> b, b -> a"."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        pending = [start]
        while pending:
            new = graph.get(pending.pop(), set()) - seen
            seen |= new
            pending.extend(new)
        reached[start] = seen
    circles = {
        frozenset(other for other in seen if start in reached.get(other, set()))
        for start, seen in reached.items()
        if start in seen
    }
    return sorted(
        ", ".join(
            f"{file} -> {target}"
            for file in sorted(files)
            for target in sorted(graph[file] & files)
        )
        for files in circles
    )


def find_upward(graph: Graph, ranks: Mapping[str, int], layer_of: Mapping[str, str]) -> list[str]:
    """Each "a -> b" where the layer of b is above that of a."""
    return sorted(
        f"{file} -> {target}"
        for file, targets in graph.items()
        for target in targets
        if ranks[layer_of[target]] > ranks[layer_of[file]]
    )


def find_violations(
    graph: Graph,
    ranks: Mapping[str, int],
    layer_of: Mapping[str, str],
    open_edges: Iterable[str] = (),
) -> list[str]:
    """What breaks the rules of the layers: an edge that points up, a circle, a file in no layer.

    `open_edges` are known violations, "a -> b", which pass. One that has gone is reported too.
    """
    unplaced = [f"{file} is in no layer" for file in graph if layer_of[file] not in ranks]
    if unplaced:
        return unplaced
    known = set(open_edges)

    def without(edges: set[str]) -> Graph:
        return {
            file: {target for target in targets if f"{file} -> {target}" not in edges}
            for file, targets in graph.items()
        }

    def wrong(kept: Graph) -> list[str]:
        upward = [f"up: {edge}" for edge in find_upward(kept, ranks, layer_of)]
        return upward + [f"circle: {files}" for files in find_circles(kept)]

    found = wrong(without(known))
    for edge in sorted(known):
        file, _, target = edge.partition(" -> ")
        if target not in graph.get(file, set()) or (
            not found and not wrong(without(known - {edge}))
        ):
            found.append(f"open no more, take it out of OPEN: {edge}")
    return found
