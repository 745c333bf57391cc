"""What strangers see first: the index's page, licences, types, the command."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def load_tool(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LONG = load_tool("long_description")
PAGE = """
[a](docs/a.rst#part) and [`b`](./b), [web](https://example.com), [here](#part)
![plot](docs/plot.png)
```python
x = [1](2)
```
"""


def test_links_of_the_indexs_page_are_absolute() -> None:
    page = LONG.absolute_links(PAGE, "https://example.com/x/", "v1.2.3")
    assert page == PAGE.replace(
        "docs/a.rst", "https://example.com/x/blob/v1.2.3/docs/a.rst"
    ).replace("./b", "https://example.com/x/blob/v1.2.3/b").replace(
        "docs/plot.png", "https://example.com/x/raw/v1.2.3/docs/plot.png"
    )


def test_without_a_repository_no_relative_link_is_left() -> None:
    page = LONG.absolute_links(PAGE, "", "v1.2.3")
    expected = PAGE.replace("[a](docs/a.rst#part)", "a").replace("[`b`](./b)", "`b`")
    assert page == expected.replace("![plot](docs/plot.png)", "")


@pytest.mark.parametrize("repository", ["", "https://example.com/x"])
def test_the_page_of_this_readme(repository: str) -> None:
    project = {**PROJECT, "urls": {"Repository": repository} if repository else {}}
    page = LONG.dynamic_metadata("readme", {}, project)
    assert page["content-type"] == "text/markdown"
    prose = re.sub(r"^```.*?^```", "", page["text"], flags=re.MULTILINE | re.DOTALL)
    assert not re.search(r"\]\((?!https://)", prose)
    assert page["text"].count("```") == (ROOT / "README.md").read_text().count("```")
    links = re.findall(r"https://example.com/x/blob/v[\d.]+/([^)#]+)", prose)
    assert bool(links) == bool(repository)
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_links_of_the_readme_lead_to_files() -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", (ROOT / "README.md").read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_licence_of_pybind11_is_its_own() -> None:
    files = importlib.metadata.files("pybind11")
    assert files is not None
    (theirs,) = [file for file in files if file.name == "LICENSE"]
    assert (ROOT / "LICENSE-pybind11").read_text() == theirs.read_text()
    assert set(PROJECT["license-files"]) == {path.name for path in ROOT.glob("LICENSE*")} | {
        "NOTICE"
    }


@pytest.mark.parametrize(
    ("expression", "licence", "text", "problem"),
    [
        ("MIT", "MIT", "LICENSE", None),
        ("MIT", "Zlib", "LICENSE", "x 1 is Zlib, and License-Expression says MIT"),
        ("MIT AND Zlib", "MIT", "LICENSE", "no component is Zlib"),
        ("MIT", "MIT", "README.md", "a.whl has no LICENSE"),
    ],
)
def test_a_licence_that_is_missing_is_found(
    expression: str, licence: str, text: str, problem: str | None
) -> None:
    find = load_tool("list_licenses").find_problems
    found = find(expression, {"x 1": licence, "y 1": "MIT"}, ["LICENSE"], {"a.whl": {text}})
    assert found == ([] if problem is None else [problem])


def test_the_citation_is_of_this_project() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    (authors,) = PROJECT["authors"]
    assert f"  - name: {authors['name']}\n" in text
    assert "license: Apache-2.0\n" in text
    assert "\nversion:" not in text  # pyproject.toml has it
    assert ("\nrepository-code: " in text) == ("Repository" in PROJECT["urls"])
    keywords = re.search(r"^keywords: \[(.*)\]$", text, re.MULTILINE)
    assert keywords is not None
    assert keywords[1].split(", ") == PROJECT["keywords"]


def test_read_the_docs_finds_its_files() -> None:
    text = (ROOT / ".readthedocs.yaml").read_text()
    named = re.findall(r"(?:requirements|configuration): (\S+)", text)
    assert named == ["requirements/docs.txt", "docs/conf.py"]
    assert all((ROOT / name).is_file() for name in named)


@pytest.mark.parametrize(
    ("version_type", "title"), [("branch", "arrowdl after "), ("tag", "arrowdl "), ("", "arrowdl ")]
)
def test_the_documentation_names_its_version(
    version_type: str, title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The docs have the version of pyproject.toml; those of the branch, the version before it."""
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.setenv("READTHEDOCS_VERSION_TYPE", version_type)
    monkeypatch.setenv("READTHEDOCS_CANONICAL_URL", "https://example.com/en/stable/")
    settings = runpy.run_path(str(ROOT / "docs/conf.py"))
    assert settings["release"] == PROJECT["version"]
    assert settings["html_title"] == title + PROJECT["version"]
    assert settings["html_baseurl"] == "https://example.com/en/stable/"


def read_list(text: str, key: str) -> list[str]:
    """The plain items of a list of the recipe, which is YAML of a few forms."""
    found = re.search(rf"^( *){key}:\n((?:\1  +.*\n)+)", text, re.MULTILINE)
    assert found is not None, key
    return re.findall(rf"^{found[1]}  - (.*)$", found[2], re.MULTILINE)


def test_the_recipe_for_conda_forge_is_of_this_project() -> None:
    text = (ROOT / "recipe/recipe.yaml").read_text()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert f'\n  version: "{PROJECT["version"]}"\n' in text
    assert f'\n  summary: "{PROJECT["description"]}"\n' in text
    assert f"\n  license: {PROJECT['license']}\n" in text
    assert read_list(text, "license_file") == PROJECT["license-files"]
    assert ("\n  repository: " in text) == ("Repository" in PROJECT["urls"])
    # conda writes a space before the versions.
    needed = [
        re.sub(r"(?<=\w)(?=[<>=])", " ", name, count=1).replace("_", "-")
        for name in settings["build-system"]["requires"]
    ]
    requirements = text.partition("\nrequirements:\n")[2]
    assert read_list(requirements, "host") == ["python", *needed]
    assert read_list(requirements, "run") == ["python", *PROJECT.get("dependencies", [])]
    cmake = re.search(r"VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    assert cmake is not None
    assert f"cmake >={cmake[1].partition('...')[0]}" in read_list(requirements, "build")
    (tested,) = re.findall(r"- (tests/\S+)", text)
    assert f"python -I {tested}\n" in text
    assert (ROOT / tested).is_file()


def test_a_release_needs_a_section_of_the_changelog() -> None:
    notes = load_tool("rehearse_release").release_notes
    changelog = (
        "# Changelog\n\n## [0.2.0] - 2030-01-02\n\n- new\n\n## [0.1.0] - 2029-01-01\n\n- first\n"
    )
    assert notes("0.2.0", changelog) == "- new"
    assert notes("0.1.0", changelog) == "- first"
    for version in ("0.3.0", "0.1"):
        with pytest.raises(SystemExit, match="has no section"):
            notes(version, changelog)
    with pytest.raises(SystemExit, match="has no section"):
        notes("0.2.0", "## [0.2.0] - unreleased\n\n## [0.1.0] - x\n- first\n")
    assert notes(PROJECT["version"], (ROOT / "CHANGELOG.md").read_text())


def test_what_a_release_lacks_is_said() -> None:
    lacks = load_tool("rehearse_release").what_is_missing
    project = {"version": "0.2.0", "urls": {"Repository": "https://example.com/x"}}
    dated = "## [0.2.0] - 2030-01-02\n\n- new\n"
    page = {"a.md": "pip install arrowdl\n"}
    assert lacks(project, dated, page) == []
    (date,) = lacks(project, dated.replace("2030-01-02", "unreleased"), page)
    assert "the date of 0.2.0 in CHANGELOG.md" in date
    (address,) = lacks({**project, "urls": {}}, dated, page)
    assert "Repository in [project.urls]" in address
    for text in ("pip install .", "pip install arrowdl  # no release yet"):
        (command,) = lacks(project, dated, {"a.md": text})
        assert "`pip install arrowdl` in a.md" in command


def test_the_message_of_a_tag_keeps_its_headings(tmp_path: Path) -> None:
    """By default, git drops lines that begin with #."""
    tool = load_tool("rehearse_release")
    notes = "### Added\n\n- new\n\n### Fixed\n\n- old"
    assert tool.tag_message(tmp_path, "0.2.0", notes) == notes


def test_relative_links_of_the_indexs_page_are_found() -> None:
    tool = load_tool("rehearse_release")
    page = '<h2 id="here">x</h2><img src="{0}"><p><a href="{0}">a</a>'
    for link in ("https://example.com/x.svg", "#here"):
        assert tool.dead_links(page.format(link)) == []
    for link in ("docs/a.rst", "./x.svg", "#part", "http://example.com"):
        assert tool.dead_links(page.format(link)) == [link, link]


def test_the_wheels_of_a_release_are_of_the_pythons_that_are_named() -> None:
    """cibuildwheel's list, the classifiers and the workflow of the tests say the same."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    built = {re.sub(r"cp3(\d+)t?-\*", r"3.\1", name) for name in settings["build"]}
    prefix = "Programming Language :: Python :: 3."
    named = {name.rpartition(" ")[2] for name in PROJECT["classifiers"] if name.startswith(prefix)}
    tested = re.search(r"python: \[(.*)\]", (ROOT / ".github/workflows/test.yml").read_text())
    assert tested is not None
    assert built == named == set(re.findall(r'"(.+?)t?"', tested[1]))
    assert (ROOT / settings["test-command"].rpartition("{project}/")[2]).is_file()


@pytest.mark.slow
def test_every_public_type_is_known_to_pyright(tmp_path: Path) -> None:
    """Where no library is installed, too: types of theirs are Any or protocols."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    (site,) = tmp_path.glob("env/lib/python*/site-packages")
    shutil.copytree(ROOT / "python/arrowdl", site / "arrowdl")
    path = os.pathsep.join([str(tmp_path / "env/bin"), os.environ["PATH"]])
    command = [shutil.which("pyright") or Path(sys.executable).with_name("pyright")]
    command += ["--verifytypes", "arrowdl", "--ignoreexternal", "--outputjson"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found = json.loads(done.stdout[done.stdout.index("{") :])["typeCompleteness"]
    assert [part["name"] for part in found["symbols"] if not part["isTypeKnown"]] == []
    assert found["exportedSymbolCounts"]["withKnownType"] > 50
    assert found["completenessScore"] == 1
