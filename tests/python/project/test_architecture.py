"""What the code may know and call: the rules that layers do not show (test_layers.py)."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CPP = [*ROOT.glob("cpp/**/*.hpp"), *ROOT.glob("cpp/**/*.cpp")]
CORE = [path for path in CPP if path.parts[len(ROOT.parts) + 1] != "bindings"]


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


CAPSULE_NAMES = re.compile(
    r'"(?:used_)?dltensor(?:_versioned)?"|"arrow_(?:schema|(?:device_)?array(?:_stream)?)"'
    r'|"dlpack_exchange_api"'
)


def outside_the_abi(text: str) -> bool:
    """Whether a core file opens `arrowdl` without the version of the ABI."""
    return re.search(r"^namespace arrowdl\b", text, flags=re.M) is not None


def test_the_core_is_in_the_namespace_of_its_abi() -> None:
    texts = {relative(path): path.read_text() for path in CPP if "bindings" not in path.parts}
    assert [path for path, text in texts.items() if outside_the_abi(text)] == []
    for path, text in texts.items():
        begun, ended = (text.count(f"\nARROWDL_{word}_NAMESPACE\n") for word in ("BEGIN", "END"))
        assert begun == ended, path
    assert outside_the_abi("#pragma once\n\nnamespace arrowdl {\n")


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
    "cpp/src/stream/export_async_stream.cpp",
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
    assert taking == {"cpp/bindings/support/gil.hpp", "cpp/bindings/support/gil.cpp"}


# With the headers of glibc 2.38, these are symbols that an older one lacks: `__isoc23_strtol`.
READS_NUMBERS = re.compile(
    r"\b(?:strto(?:u?ll?|u?max|f|d)|v?[fs]?scanf|ato(?:i|ll?|f)|sto(?:i|u?ll?))\("
)


def test_numbers_are_read_without_functions_of_a_new_glibc() -> None:
    assert [relative(path) for path in CPP if READS_NUMBERS.search(code(path))] == []


PYTHON = sorted(ROOT.glob("python/arrowdl/**/*.py"))


MADE_BY_THE_FIRST_CALL = re.compile(
    r"^[ \t]+static (?:const )?(?:Parameters<|py::|PyObject\*)[^;{]*[=({]", re.MULTILINE
)


def test_no_first_call_makes_python_objects_of_all_calls() -> None:
    """The C++ runtime's lock around a static variable of a function knows no interpreter: without
    a GIL, threads that wait for it stop the garbage collector. `support/names.hpp` says what to do.
    """
    assert MADE_BY_THE_FIRST_CALL.search('  static PyObject* const name = interned("x");')
    assert MADE_BY_THE_FIRST_CALL.search('    static const Parameters<1> parameters("f", {"x"});')
    bindings = [path for path in CPP if path not in CORE]
    found = {relative(path): MADE_BY_THE_FIRST_CALL.findall(code(path)) for path in bindings}
    assert {path: lines for path, lines in found.items() if lines} == {}


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


SHARED = {"__init__", "allocators", "interface", "numpy_like", "threads"}
# Modules that import one framework, by path; other modules import them in functions.
OF_A_FRAMEWORK = {
    **{
        relative(path): path.stem
        for path in PYTHON
        if path.parent.name == "_frameworks" and path.stem not in SHARED
    },
    "python/arrowdl/loader/_integrations/torch.py": "torch",
    "python/arrowdl/_commands/torch_rows.py": "torch",
    "python/arrowdl/loader/_integrations/grain.py": "grain",
    # Subclasses of pyarrow's handlers of file systems.
    **{
        f"python/arrowdl/loader/_storage/{stem}.py": "pyarrow"
        for stem in (
            *("cached", "fetch_ahead", "fetch_file", "fetch_handler", "footers", "fsspec_files"),
            *("handlers", "held_ranges", "pinned", "retrying_handler", "revisions", "stores"),
            "unit_ranges",
        )
    },
}


@pytest.mark.parametrize("path", PYTHON, ids=relative)
def test_importing_needs_the_standard_library_only(path: Path) -> None:
    tree = ast.parse(path.read_text())
    allowed = {"arrowdl", OF_A_FRAMEWORK.get(relative(path), "arrowdl")}
    assert imported_at_once(tree) - sys.stdlib_module_names - allowed == set()
    own = OF_A_FRAMEWORK.get(relative(path))
    others = {module for module, framework in OF_A_FRAMEWORK.items() if framework != own}
    assert not modules_at_once(tree) & others, "import it where it is used"


def modules_at_once(tree: ast.Module) -> set[str]:
    """Paths that the top level of a module may import, of modules and of names in them."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
            names.add(str(node.module))
    return {f"python/{name.replace('.', '/')}.py" for name in names}


@pytest.mark.parametrize(
    "planted",
    [
        "from arrowdl._frameworks.torch import FRAMEWORK",
        "from arrowdl._frameworks import interface, torch",
        "import arrowdl._frameworks.torch",
    ],
)
def test_a_planted_import_of_a_framework_is_seen(planted: str) -> None:
    assert modules_at_once(ast.parse(planted)) & OF_A_FRAMEWORK.keys()
