"""The architecture is a test: what may know what, and what the repository may hold."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CPP = [*ROOT.glob("cpp/**/*.hpp"), *ROOT.glob("cpp/**/*.cpp")]
CORE = [path for path in CPP if path.parts[len(ROOT.parts) + 1] != "bindings"]

# From the bottom up: a concern includes only what stands above it in this list. Files of
# cpp/src that no public header names (the verbs) may include all of it, but no circle.
LAYERS = [
    ["error", "version", "dlpack", "wait", "handles"],
    ["device", "dtype"],
    ["backend"],
    ["backends"],
    ["event"],
    ["deferred_release"],
    ["owned", "tensor_view"],
    ["schema"],
    ["device_array"],
    ["copy_policy", "order", "cast", "concatenate", "threads", "copy", "make_tensor"],
    ["to_arrow", "to_dlpack", "stream"],
    ["lists"],
]
LAYER = {concern: i for i, layer in enumerate(LAYERS) for concern in layer}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def includes(path: Path) -> list[str]:
    return re.findall(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', path.read_text(), re.MULTILINE)


def own_includes(path: Path) -> set[str]:
    """The files of this project that `path` includes, from the repository's root."""
    found = set()
    for name in includes(path):
        for base in (ROOT / "cpp/include", ROOT / "cpp/src", ROOT / "cpp/bindings", path.parent):
            if (base / name).is_file():
                found.add(relative((base / name).resolve()))
                break
    return found


def code(path: Path) -> str:
    """The text of a C++ file without its comments."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    return re.sub(r"//[^\n]*", "", text)


@pytest.mark.parametrize("path", CORE, ids=relative)
def test_the_core_knows_no_python(path: Path) -> None:
    forbidden = re.compile(r"^(Python\.h|pybind11/|cpython/|structmember\.h)")
    assert [name for name in includes(path) if forbidden.match(name)] == []
    assert not re.search(r"\bPy[A-Z]\w*_\w+\s*\(", code(path)), "calls the interpreter"


@pytest.mark.parametrize("path", CORE, ids=relative)
def test_the_core_knows_no_binding(path: Path) -> None:
    assert [name for name in own_includes(path) if name.startswith("cpp/bindings/")] == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("cpp/include/arrowdl/*.hpp")), ids=relative)
def test_public_headers_point_down(path: Path) -> None:
    assert path.stem in LAYER, "a new public header needs its place in LAYERS"
    for name in own_includes(path):
        assert name.startswith("cpp/include/"), f"{name} is not installed"
        assert LAYER[Path(name).stem] < LAYER[path.stem], f"{path.name} includes {name}"


def test_includes_form_no_circle() -> None:
    graph = {relative(path): own_includes(path) for path in CPP}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_bodies_of_a_layer_include_no_higher_layer() -> None:
    wrong = []
    for path in CORE:
        if path.suffix == ".cpp" and path.stem in LAYER:
            for name in own_includes(path):
                if LAYER.get(Path(name).stem, 0) > LAYER[path.stem]:
                    wrong.append(f"{relative(path)} includes {name}")
    assert wrong == []


CAPSULE_NAMES = re.compile(
    r'"(?:used_)?dltensor(?:_versioned)?"|"arrow_(?:schema|(?:device_)?array(?:_stream)?)"'
    r'|"dlpack_exchange_api"'
)


def test_one_place_knows_the_capsule_names() -> None:
    knowing = {relative(path) for path in CPP if CAPSULE_NAMES.search(code(path))}
    assert knowing <= {"cpp/bindings/support/capsule.cpp", "cpp/bindings/support/capsule.hpp"}


# What C calls back: slots of Arrow's and DLPack's structs, and capsule destructors.
SLOT = re.compile(
    r"(?:\.|->)(?:release|deleter|get_next|get_schema|get_last_error)\s*=\s*&?([\w:]+|\[)"
)


def test_callbacks_are_noexcept() -> None:
    wrong = []
    for path in CPP:
        text = code(path)
        for match in SLOT.finditer(text):
            name = match[1]
            if name == "nullptr":
                continue
            if name == "[":
                guarded = re.match(r"\[\]\s*\([^)]*\)\s*noexcept", text[match.start(1) :])
            else:
                function = re.escape(name.rsplit("::", 1)[-1])
                defined = re.search(rf"\b{function}\s*\([^)]*\)\s*(noexcept\s*)?\{{", text)
                # Not a function of this file: a slot copied from another struct.
                guarded = defined is None or defined[1] is not None
            if not guarded:
                wrong.append(f"{relative(path)}: {match[0]}")
    assert wrong == []


WAIT_HEADER = "cpp/include/arrowdl/wait.hpp"
ON_OWN_THREADS = {
    "cpp/src/stream/prefetch.cpp",
    "cpp/src/sync/release_thread.cpp",
    "cpp/src/util/parallel_for.cpp",
}
# What stops a thread, and the drivers' functions for it.
WAIT = re.compile(
    r"\bsleep_(?:for|until)\s*\(|\bbackend_?(?:\.|->)synchronize\s*\(|\.event_wait\s*\("
    r"|\bcalls_\.synchronize_stream\b"
)


def cut_out(opening: str, text: str) -> str:
    """`text` without what begins with `opening` and ends with its last bracket's partner."""
    while match := re.search(opening, text):
        depth, end = 1, match.end()
        while depth:
            depth += (text[end] in "({") - (text[end] in ")}")
            end += 1
        text = text[: match.start()] + text[end:]
    return text


def unguarded_waits(texts: dict[str, str]) -> list[str]:
    """Where the core waits without a `Waiting`, by whose guard the caller's locks are let go of."""
    everything = "\n".join(texts.values())
    conditions = "|".join(sorted(set(re.findall(r"\bcondition_variable (\w+);", everything))))
    threads = "|".join(sorted(set(re.findall(r"\bstd::thread (\w+)\b", everything))))
    direct = re.compile(rf"\b(?:{conditions})\.wait\w*\s*\(|\b(?:{threads})\.join\s*\(")
    wrong = []
    for name, text in texts.items():
        if name == WAIT_HEADER:
            continue
        if name not in ON_OWN_THREADS:
            wrong += re.findall(r"Waiting::\w+", text)
        # A backend's own `synchronize` is called by those that are looked at here.
        rest = cut_out(r"\bsynchronize\([^{;]*override \{", cut_out(r"\bwait_guarded\(", text))
        wrong += [f"{name}: {wait}" for wait in WAIT.findall(rest) + direct.findall(text)]
    return wrong


def test_the_core_waits_without_the_locks_of_its_callers() -> None:
    assert unguarded_waits({relative(path): code(path) for path in CORE}) == []


@pytest.mark.parametrize(
    "planted",
    [
        "std::condition_variable changed_; void f() { changed_.wait_for(lock, time); }",
        "std::thread worker_; void f() { worker_.join(); }",
        "void f() { std::this_thread::sleep_for(pause); }",
        "void f() { backend.synchronize(device, event); }",
        "void f() { wait_guarded([&](const Waiting&) { g(); });\n backend.synchronize(d, e); }",
        "void f() { Waiting::on_own_thread().sleep(pause); }",
    ],
)
def test_a_wait_with_a_lock_is_seen(planted: str) -> None:
    assert unguarded_waits({"cpp/src/planted.cpp": planted}) != []


# Where threads get the interpreter lock that may not have it, or not get it any more.
TAKES_THE_LOCK = re.compile(
    r"\bPyGILState_\w+|\bPyEval_(?:Save|Restore|Acquire)Thread\b|\bgil_scoped_acquire\b"
)


def test_one_place_takes_the_interpreter_lock() -> None:
    bindings = [path for path in CPP if path not in CORE]
    taking = {relative(path) for path in bindings if TAKES_THE_LOCK.search(code(path))}
    assert taking == {"cpp/bindings/support/gil.hpp"}


PYTHON = sorted(ROOT.glob("python/arrowdl/**/*.py"))


def imported_at_once(tree: ast.Module) -> set[str]:
    """Top-level modules that importing a module imports, TYPE_CHECKING blocks left out."""
    names: set[str] = set()
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(str(node.module).split(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend(node.orelse)
            continue
        pending.extend(ast.iter_child_nodes(node))
    return names


# Modules that hold a class of one framework; functions import them.
OF_A_FRAMEWORK = {
    "python/arrowdl/loader/_integrations/torch.py": "torch",
    "python/arrowdl/loader/_integrations/grain.py": "grain",
}


@pytest.mark.parametrize("path", PYTHON, ids=relative)
def test_importing_needs_the_standard_library_only(path: Path) -> None:
    tree = ast.parse(path.read_text())
    allowed = {"arrowdl", OF_A_FRAMEWORK.get(relative(path), "arrowdl")}
    assert imported_at_once(tree) - sys.stdlib_module_names - allowed == set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            module = f"python/{str(node.module).replace('.', '/')}.py"
            assert module not in OF_A_FRAMEWORK, "import it where it is used"


def test_python_layers_point_down() -> None:
    graph: dict[str, set[str]] = defaultdict(set)
    for path in PYTHON:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                names = [str(node.module)] if node.module else [a.name for a in node.names]
                graph[path.stem].update(name.split(".")[0] for name in names)
    graph.pop("__init__", None)
    TopologicalSorter(graph).prepare()
    for module in graph:
        assert "loader" not in graph[module], f"{module} knows the loader"


# ---------------------------------------------------------------------------
# What the repository may hold


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_names_no_registry_and_no_machine_path() -> None:
    registries = ["py" + r"pi\.org", "python" + "hosted", r"deb\.debian", r"registry\.npm" + "js"]
    machine = [rf"(?<![\w.}}\-/])/{name}/" for name in ("wo" + "rk", "ro" + "ot", "tm" + "p")]
    forbidden = re.compile("|".join(registries + machine))
    wrong = []
    for path in tracked():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        wrong += [f"{relative(path)}: {match[0]}" for match in forbidden.finditer(text)]
    assert wrong == []


def test_holds_no_third_party_source() -> None:
    foreign = re.compile(r"Licensed to the Apache Software Foundation|Copyright .*by Contributors")
    wrong = []
    for path in tracked():
        ours = path.resolve() == Path(__file__).resolve()
        source = path.suffix in {".c", ".h", ".hpp", ".cpp", ".py", ".cmake", ".in"}
        if source and not ours and foreign.search(path.read_text()):
            wrong.append(relative(path))
        assert path.suffix not in {".gz", ".zip", ".whl", ".so", ".a"}, relative(path)
    assert wrong == []
