"""What the files of the repository hold, and what they may not."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


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


# ---------------------------------------------------------------------------
# Every source file opens with a sentence


def lacks_an_opening(name: str, text: str) -> bool:
    """Whether a source file does not say in its first line what it is for."""
    if not text.strip():
        return False
    if name.endswith((".py", ".pyi")):
        opening = ast.get_docstring(ast.parse(text)) or ""
    elif name.endswith(".sh"):
        opening = "".join(re.findall(r"\A#!.*\n#(.*)", text))
    else:
        opening = "".join(re.findall(r"\A//(.*)", text))
    return not re.match(r"\s*[`_\w].*\s", opening + " ")


SOURCES = (".py", ".pyi", ".sh", ".hpp", ".cpp", ".cu")


def test_every_file_opens_with_a_sentence() -> None:
    lacking = [
        relative(path)
        for path in tracked()
        if path.suffix in SOURCES and lacks_an_opening(path.name, path.read_text())
    ]
    assert lacking == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "import os\n"),
        ("a.pyi", '""""""\n'),
        ("a.hpp", "#pragma once\n// Late.\n"),
        ("a.cpp", "//\n"),
        ("a.sh", "#!/usr/bin/env bash\nset -e\n"),
    ],
)
def test_a_planted_file_without_a_sentence_is_seen(name: str, text: str) -> None:
    assert lacks_an_opening(name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", '"""What it is for."""\nimport os\n'),
        ("a.hpp", "// What it is for.\n#pragma once\n"),
        ("a.sh", "#!/usr/bin/env bash\n# What it is for.\n"),
    ],
)
def test_a_file_with_a_sentence_passes(name: str, text: str) -> None:
    assert not lacks_an_opening(name, text)


# ---------------------------------------------------------------------------
# Commands and commits


TARGETS = ("asan", "asan ALL=1", "fuzz", "test-python SUITE=package", "test-gpu SANITIZE=1", "demo")


@pytest.mark.parametrize("target", TARGETS)
def test_files_that_make_names_exist(target: str) -> None:
    shown = subprocess.run(
        ["make", "-n", *target.split()], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in re.findall(r"(?<![\w./-])((?:tests|tools|examples|requirements)/[\w./-]+)", shown):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize(
    ("subject", "problem"),
    [
        ("Copy tensors that are not aligned", None),
        ("Merge branch of a very long name that a machine chose and that is fixed by now", None),
        ("x" * 73, "does not start with a capital letter"),
        ("Copy " + "x" * 68, "has 73 characters"),
        ("Copy tensors.", "ends with a period"),
        ("Added a test", "is not imperative"),
    ],
)
def test_subjects_of_commits(subject: str, problem: str | None, tmp_path: Path) -> None:
    message = tmp_path / "message"
    message.write_text(f"{subject}\n\nWhy.\n")
    command = [ROOT / "tools/check_subject.sh", message]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == (problem is not None)
    assert (problem or "") in done.stderr


def test_stages_say_what_failed_and_how_to_run_it(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("good:\n\t@true\nbad:\n\t@false\nlate:\n\t@echo no\n")
    command = [ROOT / "tools/stages.sh", "good", "bad", "late"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "== late" not in done.stdout
    assert re.search(r"== bad failed after \d+ s. To run it alone: make bad", done.stderr)
    done = subprocess.run(command[:2], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert re.search(r"\d+ s +\d+ s of processors  good\n +\d+ s  in all\n", done.stdout)


def test_a_compiler_that_is_not_there_is_no_failure() -> None:
    env = {**os.environ, "PYTHON": "true", "COMPILERS": "absent++"}
    command = [ROOT / "tools/test-compilers.sh"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\s*absent\+\+ +not on this machine\s*", done.stdout)


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("syntax", [["a.cpp", "c.cpp"], ["b.cpp", "d.cpp"]]),
        ("alone", [["a.cpp"], ["b.cpp"], ["c.cpp"], ["d.cpp"]]),
    ],
)
def test_files_whose_names_collide_are_checked_apart(
    check: str, expected: list[list[str]], tmp_path: Path
) -> None:
    texts = {
        "a.cpp": "namespace {\nint one(int x) {\n  return x;\n}\n}  // namespace\n",
        "b.cpp": "namespace {\nconstexpr int one = 1;\n}  // namespace\n",
        "c.cpp": "#define TWO one\n",
        "d.cpp": "#define TWO 2\nint one();\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    entries = [
        {
            "file": str(tmp_path / name),
            "command": f"ccache {sys.executable} -O3 -include x.hxx -o x -c {name}",
        }
        for name in texts
    ]
    (tmp_path / "compile_commands.json").write_text(json.dumps(entries))
    command = [sys.executable, ROOT / "tools/check_syntax.py", tmp_path, "2", check]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1  # Python knows no -fsyntax-only: what fails is seen
    groups = [
        re.findall(r"(\w\.cpp)", unit.read_text())
        for unit in sorted((tmp_path / "units").iterdir())
    ]
    assert groups == expected
    assert f"4 files in {len(expected)} units" in done.stdout


def run_setup(folder: Path, *, dpkg: bool, root: bool) -> subprocess.CompletedProcess[str]:
    """tools/setup-system.sh where g++ is installed and clang is not, with apt-get that fails."""
    scripts = {"id": f"echo {0 if root else 1000}", "apt-get": "echo no network >&2; exit 100"}
    if dpkg:
        scripts["dpkg-query"] = 'case "$*" in *g++) echo installed ;; esac'
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    for name in ("bash", "grep", "cat", "env", "flock"):
        (folder / name).symlink_to(str(shutil.which(name)))
    command = [ROOT / "tools/setup-system.sh", "g++", "clang"]
    return subprocess.run(
        command, env={"PATH": str(folder)}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("machine", "code", "said"),
    [
        ({"dpkg": True, "root": False}, 1, "apt-get install clang"),
        ({"dpkg": True, "root": True}, 1, "could not install clang"),
        ({"dpkg": False, "root": False}, 0, "g++ clang"),
    ],
    ids=["no root", "no network", "another system"],
)
def test_set_up_says_what_is_missing(
    machine: dict[str, bool], code: int, said: str, tmp_path: Path
) -> None:
    done = run_setup(tmp_path, **machine)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


# ---------------------------------------------------------------------------
# The rules of devices


def test_each_rule_of_devices_has_its_tests() -> None:
    text = (ROOT / "docs/internals/devices.rst").read_text()
    section = text.split("What real devices do\n")[1].split("On a machine with a GPU\n")[0]
    rules = re.split(r"^(?=\d+\. )", section, flags=re.M)[1:]
    assert [int(rule.partition(".")[0]) for rule in rules] == list(range(1, 22))
    sources = [
        path.read_text()
        for path in tracked()
        if relative(path).startswith("tests/") and path.suffix in {".py", ".cpp"}
    ]
    for rule in rules:
        tests = [
            one for one in re.findall(r"``(.+?)``", rule) if one.isidentifier() and len(one) > 12
        ]
        assert tests or "documented" in rule, rule
        for test in tests:
            defined = f"def {test}(", f", {test}) {{"
            assert any(one in source for source in sources for one in defined), test
