"""Layers are folders: what a file includes, calls and imports is in its layer or below it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from helpers import layers
from helpers.layers import find_violations

ROOT = Path(__file__).resolve().parents[3]
# Set by `make test-python`, which has built it; then its absence is an error.
BUILD = ROOT / os.environ.get("ARROWDL_BUILD", "build/dev")

# Known violations: the edges to remove, by graph. A removed one must leave this list.
OPEN: dict[str, set[str]] = {
    "includes": set(),
    "symbols": set(),
    "binding includes": set(),
    "binding symbols": set(),
    "imports": set(),
    "calls into Python": set(),
}


def read(*patterns: str) -> dict[str, str]:
    """The text of each file, by its path from the root."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for pattern in patterns
        for path in sorted(ROOT.glob(pattern))
    }


# ---------------------------------------------------------------------------
# The core

CORE_README = (ROOT / "cpp/src/README.md").read_text()
CORE_RANKS = layers.read_layers(CORE_README)
PUBLIC = layers.read_public_headers(CORE_README)


def core_layer(unit: str) -> str:
    """`cpp/src/util/json` is in `util/`; a public header is where the README says."""
    _, tree, rest = unit.split("/", 2)
    if tree == "include":
        return PUBLIC.get(rest.removeprefix("arrowdl/") + ".hpp", rest)
    return rest.split("/")[0] + "/"


def core_includes(texts: dict[str, str], open_edges: set[str]) -> list[str]:
    graph = layers.by_unit(layers.include_graph(texts, ["cpp/include", "cpp/src"]))
    return find_violations(
        graph, CORE_RANKS, {unit: core_layer(unit) for unit in graph}, open_edges
    )


CORE_TEXTS = read("cpp/include/**/*.hpp", "cpp/src/**/*.hpp", "cpp/src/**/*.cpp")


def test_the_readme_names_the_folders() -> None:
    assert {path.name + "/" for path in (ROOT / "cpp/src").iterdir() if path.is_dir()} == {
        *CORE_RANKS
    }
    assert {path.name for path in ROOT.glob("cpp/include/arrowdl/*.hpp")} == {*PUBLIC}


def test_public_headers_include_public_headers_only() -> None:
    graph = layers.include_graph(CORE_TEXTS, ["cpp/include", "cpp/src"])
    wrong = [
        f"{path} includes {target}, which is not installed"
        for path, targets in graph.items()
        for target in targets
        if path.startswith("cpp/include/") and not target.startswith("cpp/include/")
    ]
    assert wrong == []


def test_includes_of_the_core_point_down() -> None:
    assert core_includes(CORE_TEXTS, OPEN["includes"]) == []


@pytest.mark.parametrize(
    ("path", "line", "seen"),
    [
        ("cpp/src/util/json.cpp", '#include "memory/owned.hpp"', "up: cpp/src/util/json ->"),
        ("cpp/include/arrowdl/device.hpp", "#include <arrowdl/event.hpp>", "up: cpp/include/"),
        ("cpp/src/a/b.cpp", "", "cpp/src/a/b is in no layer"),
        ("cpp/include/arrowdl/new.hpp", "", "cpp/include/arrowdl/new is in no layer"),
        ("cpp/src/util/left.hpp", '#include "right.hpp"', "circle: cpp/src/util/left -> "),
    ],
)
def test_a_planted_include_is_seen(path: str, line: str, seen: str) -> None:
    planted = {
        **CORE_TEXTS,
        "cpp/src/memory/owned.hpp": "",
        "cpp/src/util/right.cpp": '#include "util/left.hpp"',
        "cpp/src/util/right.hpp": "",
    }
    planted[path] = planted.get(path, "") + f"\n{line}\n"
    found = core_includes(planted, OPEN["includes"])
    assert any(violation.startswith(seen) for violation in found), found


def listing_of(target: str) -> str:
    """`nm` of a target's object files, those of sources that are gone left out."""
    folder = BUILD / f"CMakeFiles/{target}.dir"
    if not any(folder.rglob("*.o")):
        missing = f"no object files in {folder}: `make build` makes them"
        assert "ARROWDL_BUILD" not in os.environ, missing
        pytest.skip(missing)
    lines = layers.list_symbols(folder).splitlines()
    sources = {name for name in {line.split(".o:")[0] for line in lines} if (ROOT / name).is_file()}
    assert sources, f"no object files in {folder}: `make build` makes them"
    return "\n".join(line for line in lines if line.split(".o:")[0] in sources)


def core_symbols(listing: str, open_edges: set[str]) -> list[str]:
    graph = layers.symbol_graph(listing)
    return find_violations(
        graph, CORE_RANKS, {unit: core_layer(unit) for unit in graph}, open_edges
    )


def test_symbols_of_the_core_point_down() -> None:
    listing = listing_of("arrowdl_core")
    assert set(layers.symbol_graph(listing)) == {
        path.removesuffix(".cpp") for path in CORE_TEXTS if path.endswith(".cpp")
    }
    assert core_symbols(listing, OPEN["symbols"]) == []


NM = """\
cpp/src/util/json.cpp.o:0000000000000010 T arrowdl::parse()
cpp/src/memory/owned.cpp.o:0000000000000010 T arrowdl::own()
cpp/src/memory/owned.cpp.o:                 U arrowdl::parse()
cpp/src/memory/pool.cpp.o:0000000000000010 T arrowdl::pool()
cpp/src/memory/pool.cpp.o:0000000000000020 W arrowdl::everywhere()
"""


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("cpp/src/memory/pool.cpp.o:                 U arrowdl::own()", []),
        ("cpp/src/util/json.cpp.o:                 U arrowdl::everywhere()", []),
        (
            "cpp/src/util/json.cpp.o:                 U arrowdl::pool()",
            ["up: cpp/src/util/json -> cpp/src/memory/pool"],
        ),
        (
            "cpp/src/memory/pool.cpp.o:                 U arrowdl::own()\n"
            "cpp/src/memory/owned.cpp.o:                 U arrowdl::pool()",
            [
                "circle: cpp/src/memory/owned -> cpp/src/memory/pool, "
                "cpp/src/memory/pool -> cpp/src/memory/owned"
            ],
        ),
    ],
)
def test_a_planted_symbol_is_seen(line: str, seen: list[str]) -> None:
    assert core_symbols(NM + line, set()) == seen


def test_an_open_violation_that_has_gone_is_seen() -> None:
    edge = "cpp/src/util/json -> cpp/src/memory/pool"
    line = "cpp/src/util/json.cpp.o:                 U arrowdl::pool()"
    assert core_symbols(NM + line, {edge}) == []
    assert core_symbols(NM, {edge}) == [f"open no more, take it out of OPEN: {edge}"]
    harmless = "cpp/src/memory/owned -> cpp/src/util/json"
    assert core_symbols(NM, {harmless}) == [f"open no more, take it out of OPEN: {harmless}"]


# ---------------------------------------------------------------------------
# The bindings

BINDING_RANKS = layers.read_layers((ROOT / "cpp/bindings/README.md").read_text())
BINDING_TEXTS = read("cpp/bindings/**/*.hpp", "cpp/bindings/**/*.cpp")


def binding_layer(unit: str) -> str:
    """`cpp/bindings/support/gil` is in `support/`, `cpp/bindings/module` is `module.cpp`."""
    folder, slash, _ = unit.removeprefix("cpp/bindings/").partition("/")
    return folder + "/" if slash else folder + ".cpp"


HEADERS = {path.rsplit(".", 1)[0] for path in BINDING_TEXTS if path.endswith(".hpp")}


def binding_includes(texts: dict[str, str], open_edges: set[str]) -> list[str]:
    graph = layers.by_unit(layers.include_graph(texts, ["cpp/bindings"]))
    graph = layers.join_parts(graph, HEADERS)
    layer_of = {unit: binding_layer(unit) for unit in graph}
    return find_violations(graph, BINDING_RANKS, layer_of, open_edges)


def test_includes_of_the_bindings_point_down() -> None:
    assert binding_includes(BINDING_TEXTS, OPEN["binding includes"]) == []


def test_a_planted_include_of_the_bindings_is_seen() -> None:
    planted = BINDING_TEXTS | {"cpp/bindings/support/new.cpp": '#include "classes/new.hpp"\n'}
    planted["cpp/bindings/classes/new.hpp"] = ""
    found = binding_includes(planted, OPEN["binding includes"])
    assert "up: cpp/bindings/support/new -> cpp/bindings/classes/new" in found


def binding_symbols(listing: str, open_edges: set[str]) -> list[str]:
    graph = layers.join_parts(layers.symbol_graph(listing), HEADERS)
    layer_of = {unit: binding_layer(unit) for unit in graph}
    return find_violations(graph, BINDING_RANKS, layer_of, open_edges)


def test_symbols_of_the_bindings_point_down() -> None:
    assert binding_symbols(listing_of("_core"), OPEN["binding symbols"]) == []


def test_a_planted_symbol_of_the_bindings_is_seen() -> None:
    listing = NM.replace("src/util", "bindings/support").replace("src/memory", "bindings/import")
    line = "cpp/bindings/support/json.cpp.o:                 U arrowdl::pool()"
    found = binding_symbols(listing + line, set())
    assert found == ["up: cpp/bindings/support/json -> cpp/bindings/import/pool"]


HOOKS = "cpp/bindings/support/python_hooks.cpp"


def calls_into_python(texts: dict[str, str]) -> set[str]:
    """The files that name a module of the package in a string: calls up into Python."""
    named = re.compile(r'"arrowdl\.[a-z_][\w.]*"')
    return {path for path, text in texts.items() if named.search(re.sub(r"//[^\n]*", "", text))}


def test_one_file_calls_up_into_python() -> None:
    assert calls_into_python(BINDING_TEXTS) - {HOOKS} == OPEN["calls into Python"]


def test_a_planted_call_into_python_is_seen() -> None:
    planted = {"cpp/bindings/new.cpp": 'py::module_::import("arrowdl._frameworks");'}
    assert calls_into_python(planted) == {"cpp/bindings/new.cpp"}


# ---------------------------------------------------------------------------
# Python

PYTHON_README = (ROOT / "python/README.md").read_text()
PYTHON_TEXTS = {
    path.removeprefix("python/"): text
    for path, text in read("python/arrowdl/**/*.py", "python/arrowdl/_core.pyi").items()
}


def python_ranks() -> dict[str, int]:
    """The layers of the package, with those of the loader in place of `loader/`."""
    package = layers.read_layers(PYTHON_README, "arrowdl")
    loader = layers.read_layers(PYTHON_README, "arrowdl.loader")
    step = 1 + max(loader.values())
    ranks = {name: rank * step for name, rank in package.items()}
    base = ranks.pop("loader/")
    return ranks | {f"loader/{name}": base + rank for name, rank in loader.items()}


PYTHON_RANKS = python_ranks()


def python_layer(module: str) -> str:
    """`arrowdl.loader._epoch.read` is in `loader/_epoch/`, `arrowdl` itself is `__init__`."""
    names = module.split(".")[1:]
    if names[:1] == ["loader"]:
        prefix, names = "loader/", names[1:]
    else:
        prefix = ""
    name = names[0] if names else "__init__"
    return next(
        (layer for layer in (prefix + name + "/", prefix + name) if layer in PYTHON_RANKS), module
    )


def python_imports(texts: dict[str, str], open_edges: set[str]) -> list[str]:
    graph = layers.import_graph(texts)
    layer_of = {module: python_layer(module) for module in graph}
    return find_violations(graph, PYTHON_RANKS, layer_of, open_edges)


def test_python_layers_are_modules_and_folders() -> None:
    """A name that is left in the README points readers to a file that is gone."""
    used = set(map(python_layer, layers.import_graph(PYTHON_TEXTS)))
    assert PYTHON_RANKS.keys() - used == set()


def test_imports_point_down() -> None:
    assert python_imports(PYTHON_TEXTS, OPEN["imports"]) == []


@pytest.mark.parametrize(
    ("path", "line", "seen"),
    [
        ("loader/_sources/base.py", "from arrowdl.loader._epoch import read", "up: "),
        ("loader/_sources/base.py", "from .._epoch.read import Order", "up: "),
        ("loader/_stats.py", "def f():\n    import arrowdl.loader._loader", "up: "),
        ("loader/_stats.py", "if TYPE_CHECKING:\n    from arrowdl.ray import Loader", "up: "),
        ("_doctor.py", "from arrowdl import to_torch", "up: "),
        ("_frameworks/torch.py", "import arrowdl.loader._stats", "up: "),
        ("_interchange/protocol.py", "from arrowdl._interchange import import_", "circle: "),
        (
            "loader/_sources/base.py",
            "from arrowdl.loader._open.source import open_source",
            "circle",
        ),
        ("new.py", "", "arrowdl.new is in no layer"),
        ("loader/new.py", "", "arrowdl.loader.new is in no layer"),
    ],
)
def test_a_planted_import_is_seen(path: str, line: str, seen: str) -> None:
    planted = dict(PYTHON_TEXTS)
    planted[f"arrowdl/{path}"] = planted.get(f"arrowdl/{path}", "") + f"\n{line}\n"
    found = python_imports(planted, OPEN["imports"])
    assert any(violation.startswith(seen) for violation in found), found
