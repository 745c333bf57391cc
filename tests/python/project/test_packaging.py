"""What a user installs: the wheel, the sdist, the C++ package inside."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import warnings
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]


def call(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    """A command without what this test's own environment would lend it."""
    lent = {"PYTHONPATH", "LD_PRELOAD", "CMAKE_PREFIX_PATH"}
    env = {name: value for name, value in os.environ.items() if name not in lent}
    env.update(options.pop("env", {}))  # type: ignore[call-overload]
    return subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=env,
        **options,  # type: ignore[call-overload]
    )


def run(*command: str | Path, **options: object) -> str:
    """Output of a command that has to succeed."""
    done = call(*command, **options)
    assert done.returncode == 0, done.stdout
    return done.stdout


def no_network() -> list[str]:
    """What to put before a command so that it has no network; a warning if nothing does."""
    for isolate in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        if shutil.which("unshare") and call(*isolate, "true").returncode == 0:
            return isolate
    message = "`unshare --net` is not permitted: only pip's index was off, not the network"
    warnings.warn(message, stacklevel=2)
    return []


THIRD_PARTY = ("nanoarrow", "dlpack")


def read_pin(package: str) -> re.Match[str]:
    """The package, version and hash that cmake/<package>.txt pins."""
    pin = re.fullmatch(
        r"(\S+)==(\S+) --hash=sha256:(\S+)\s*", (ROOT / f"cmake/{package}.txt").read_text()
    )
    assert pin is not None
    return pin


def bundle_of(package: str) -> str:
    """The archive of the sdist that has the sources."""
    pin = read_pin(package)
    return f"{pin[1]}-{pin[2]}-sources.tar.gz"


def build_sdist(folder: Path) -> Path:
    build = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    run(sys.executable, "-c", build, folder, cwd=ROOT)
    return next(folder.glob("arrowdl-*.tar.gz"))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as a user builds it, of the sdist; ARROWDL_WHEEL names one that is built."""
    if built := os.environ.get("ARROWDL_WHEEL"):
        return Path(built).resolve()
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", folder, build_sdist(folder))
    return next(folder.glob("arrowdl-*.whl"))


@pytest.fixture(scope="session")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin/python"
    run(python, "-m", "pip", "install", "--no-index", wheel)
    return python


@pytest.fixture(scope="session")
def installed(python: Path) -> Path:
    return Path(run(python, "-c", "import arrowdl; print(arrowdl.__path__[0])").strip())


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_sdist(tmp_path_factory.mktemp("sdist"))


LICENSES = {"LICENSE", "LICENSE-pybind11", "NOTICE"}


def test_wheel_is_small_and_whole(wheel: Path) -> None:
    assert wheel.stat().st_size < 5_000_000
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = {name.removeprefix("arrowdl/") for name in names if name.startswith("arrowdl/")}
    assert {
        "__init__.py",
        "_core.pyi",
        "py.typed",
        "include/arrowdl/to_dlpack.hpp",
        "include/dlpack/dlpack.h",
        "include/nanoarrow/nanoarrow.h",
        "lib/libarrowdl_core.a",
        "lib/cmake/arrowdl/arrowdlConfig.cmake",
    } <= package
    assert "include/arrowdl/version_macros.hpp" in package
    licenses = {Path(name).name for name in names if ".dist-info/licenses/" in name}
    assert licenses == LICENSES
    folders = {name.split("/")[0] for name in names}
    assert all(name == "arrowdl" or name.endswith(".dist-info") for name in folders), folders


def read_metadata(wheel: Path, name: str) -> str:
    """A file of the wheel's folder of metadata."""
    with zipfile.ZipFile(wheel) as archive:
        (path,) = [path for path in archive.namelist() if path.endswith(f".dist-info/{name}")]
        return archive.read(path).decode()


def test_wheel_needs_nothing_at_run_time(wheel: Path) -> None:
    metadata = Parser().parsestr(read_metadata(wheel, "METADATA"))
    assert metadata.get_all("Requires-Dist", []) == []
    assert metadata["License-Expression"] == "Apache-2.0 AND BSD-3-Clause"
    assert set(metadata.get_all("License-File", [])) == LICENSES
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Author"] == "The arrowdl authors"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert not re.search(r"\]\((?!https?://)", metadata.get_payload())


def test_the_wheels_sbom_lists_what_is_compiled_in(wheel: Path) -> None:
    text = read_metadata(wheel, "sboms/arrowdl.cdx.json")
    sbom = json.loads(text)
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    assert sbom["metadata"]["component"]["purl"] == f"pkg:pypi/arrowdl@{wheel.name.split('-')[1]}"
    parts = {part["bom-ref"]: part for part in sbom["components"]}
    pin = read_pin("nanoarrow")
    assert parts["nanoarrow"]["purl"] == f"pkg:pypi/nanoarrow@{pin[2]}"
    assert parts["nanoarrow"]["hashes"] == [{"alg": "SHA-256", "content": pin[3]}]
    with zipfile.ZipFile(wheel) as archive:
        header = archive.read("arrowdl/include/dlpack/dlpack.h")
    sha256 = hashlib.sha256(header).hexdigest()
    assert parts["dlpack"]["hashes"][0]["content"] == sha256
    pinned = (ROOT / "cmake/dlpack_sources.txt").read_text()
    assert pinned == f"{sha256}  dlpack/dlpack.h\n"
    assert re.fullmatch(r"3\.1\.\d+", parts["pybind11"]["version"])
    (root,) = sbom["dependencies"]
    assert root == {"ref": "arrowdl", "dependsOn": list(parts)}
    licenses = {part["licenses"][0]["license"]["id"] for part in parts.values()}
    expression = Parser().parsestr(read_metadata(wheel, "METADATA"))["License-Expression"]
    assert licenses == set(expression.split(" AND "))
    assert not re.search(r"timestamp|serialNumber|\d\d:\d\d", text)  # equal builds, equal files


def test_import_brings_in_no_framework_and_no_driver(python: Path) -> None:
    program = """
import json, sys
before = set(sys.modules)
import arrowdl
maps = open("/proc/self/maps").read() if sys.platform == "linux" else ""
print(json.dumps([sorted(set(sys.modules) - before), sorted(sys.modules), maps.split()]))
"""
    new, modules, maps = json.loads(run(python, "-I", "-c", program))
    third_party = {name.split(".")[0] for name in new} - sys.stdlib_module_names
    assert third_party == {"arrowdl"}
    # Modules that take longer to import than arrowdl, and its own that are not used yet.
    slow = {"asyncio", "contextlib", "dataclasses", "enum", "inspect", "re", "typing"}
    assert not slow & set(new)
    assert {name for name in new if name.startswith("arrowdl.")} == {
        "arrowdl._config",
        "arrowdl._core",
    }
    frameworks = {"torch", "jax", "numpy", "pyarrow", "polars", "tensorflow", "pandas"}
    assert not frameworks & set(modules)
    libraries = {Path(entry).name for entry in maps if ".so" in entry}
    driver = re.compile(r"lib(cuda|cudart|nvrtc|amdhip|hsa|sycl|ze_loader|OpenCL|arrow|torch)")
    assert [name for name in libraries if driver.match(name)] == []


def test_commands_work_without_any_library(python: Path) -> None:
    assert run(python, "-m", "arrowdl", "--version").startswith("arrowdl 0.")
    assert "doctor" in run(python, "-m", "arrowdl", "--help")
    report = run(python, "-m", "arrowdl", "doctor")
    assert "array libraries\n  none\n" in report
    assert "Arrow libraries\n  none\n" in report


def test_module_exports_its_init_function_only(installed: Path) -> None:
    module = next(installed.glob("_core.*.so"))
    symbols = [
        line.split()[-1]
        for line in run("nm", "-D", "--defined-only", "--extern-only", module).splitlines()
    ]
    assert symbols == ["PyInit__core"]


def test_module_needs_the_system_libraries_only(installed: Path) -> None:
    module = next(installed.glob("_core.*.so"))
    needed = re.findall(r"\(NEEDED\).*\[(.+?)\]", run("readelf", "-d", module))
    system = re.compile(r"(lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+)|ld-linux.*)\.so\.\d+")
    assert [name for name in needed if not system.fullmatch(name)] == []


def test_cpp_program_finds_and_uses_the_installed_package(installed: Path, tmp_path: Path) -> None:
    # site-packages is what scikit-build-core puts on CMake's path: no entry point needed.
    site_packages = installed.parent
    source = ROOT / "examples/cpp"
    run("cmake", "-S", source, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={site_packages}")
    run("cmake", "--build", tmp_path)
    assert "zero-copy: yes" in run(tmp_path / "round_trip")
    folder = installed / "lib/cmake/arrowdl"  # what `python -m arrowdl cmake-dir` prints
    found = run("cmake", "-S", source, "-B", tmp_path / "other", f"-Darrowdl_DIR={folder}")
    assert "Configuring done" in found


def test_symbols_of_the_static_library_have_the_version_of_the_abi(installed: Path) -> None:
    """Two versions share no symbol in a program; its source says `arrowdl::` alone."""
    macros = (installed / "include/arrowdl/version_macros.hpp").read_text()
    version = re.search(r'VERSION "(\d+)\.(\d+)', macros)
    assert version is not None
    abi = f"v{version[1]}_{version[2]}"
    assert f"#define ARROWDL_ABI {abi}\n" in macros
    listing = run(
        "nm", "-C", "--defined-only", "--extern-only", installed / "lib/libarrowdl_core.a"
    )
    symbols = re.findall(r"^\w+ [TDBR] (.*\barrowdl::.*)$", listing, flags=re.M)
    assert len(symbols) > 500
    assert [symbol for symbol in symbols if f"arrowdl::{abi}::" not in symbol] == []
    examples = [path.read_text() for path in (ROOT / "examples/cpp").glob("*.cpp")]
    assert examples
    assert not [text for text in examples if re.search(r"arrowdl::v\d|ARROWDL_ABI", text)]


def test_pkg_config_finds_the_installed_package(installed: Path, tmp_path: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    env = {"PKG_CONFIG_PATH": str(installed / "lib/pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "arrowdl", env=env).split()
    program = tmp_path / "round_trip"
    run("c++", "-std=c++17", ROOT / "examples/cpp/round_trip.cpp", "-o", program, *flags)
    assert "zero-copy: yes" in run(program)
    version = run("pkg-config", "--modversion", "arrowdl", env=env).strip()
    assert f'"{version}"' in (installed / "include/arrowdl/version_macros.hpp").read_text()


def test_another_project_takes_the_sdist_by_fetch_content(
    installed: Path, sdist: Path, tmp_path: Path
) -> None:
    """CMake makes all but our own object files: those of the wheel are linked."""
    example = (ROOT / "examples/cpp/CMakeLists.txt").read_text()
    fetch = f"""include(FetchContent)
FetchContent_Declare(arrowdl URL "{sdist}")
FetchContent_MakeAvailable(arrowdl)"""
    assert "find_package(arrowdl 0.1 REQUIRED)" in example
    project, build = tmp_path / "project", tmp_path / "build"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(
        example.replace("find_package(arrowdl 0.1 REQUIRED)", fetch)
    )
    shutil.copy(ROOT / "examples/cpp/round_trip.cpp", project)
    command: list[str | Path] = ["cmake", "-S", project, "-B", build, "-G", "Ninja"]
    command += [f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Release"]
    run(*no_network(), *command, env=OFFLINE)
    for library in installed.glob("lib/*.a"):
        shutil.copy(library, build / "_deps/arrowdl-build")
    commands = run("ninja", "-C", build, "-t", "commands", "round_trip").splitlines()
    own = [line for line in commands if re.search(r"-o \S*round_trip", line)]
    assert len(own) == 2  # compile the program, link it
    for line in own:
        run("sh", "-c", line, cwd=build)
    assert "zero-copy: yes" in run(build / "round_trip")
    assert not [line for line in commands if "pybind11" in line]
    run("cmake", "--install", build, "--prefix", tmp_path / "prefix")
    assert not (tmp_path / "prefix").exists()  # that project decides what it installs


@pytest.mark.parametrize("standard", ["c++17", "c++20", "c++2b"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_headers_compile_as_later_standards(
    installed: Path, compiler: str, standard: str, tmp_path: Path
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    include = installed / "include"
    names = sorted(path.relative_to(include) for path in include.glob("arrowdl/**/*.hpp"))
    assert len(names) > 20
    program = tmp_path / "all.cpp"
    program.write_text("".join(f"#include <{name}>\n" for name in names))
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    # nanoarrow's headers are in the same folder, and have warnings.
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours/arrowdl").symlink_to(include / "arrowdl")
    folders = ["-I", tmp_path / "ours", "-isystem", include]
    run(compiler, f"-std={standard}", "-fsyntax-only", *warnings, *folders, program)


def test_sdist_carries_what_a_build_needs(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    assert {*LICENSES, "README.md", "CMakeLists.txt", "pyproject.toml"} <= names
    bundled = {name for name in names if name.startswith("third_party/")}
    assert bundled == {f"third_party/{bundle_of(name)}" for name in THIRD_PARTY}
    assert not [name for name in names if name.startswith(("build/", ".venv", ".git/"))]


@pytest.mark.parametrize(("package", "bound"), [("nanoarrow", 200_000), ("dlpack", 10_000)])
def test_sdist_has_nothing_of_others_that_is_not_built(
    unpacked: Path, package: str, bound: int
) -> None:
    archive = unpacked / "third_party" / bundle_of(package)
    with tarfile.open(archive) as content:
        names = content.getnames()
        assert {member.mtime for member in content} == {0}  # equal sources, equal archives
    lines = (ROOT / f"cmake/{package}_sources.txt").read_text().splitlines()
    pinned = [line.split()[1] for line in lines]
    assert len(names) == len(pinned)
    assert all(name.endswith(f"/{path}") for name, path in zip(names, sorted(pinned), strict=True))
    used = (ROOT / f"cmake/{package}.cmake").read_text()
    used += (ROOT / "cmake/install.cmake").read_text()
    for name in names:
        folder, file = name.split("/")[-2:]
        assert f"/{file}" in used or (folder in {"common", "hpp"} and file[-2:] in {".h", "pp"})
    assert archive.stat().st_size < bound


OFFLINE = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}


@pytest.fixture
def unpacked(sdist: Path, tmp_path: Path) -> Path:
    """The tree of the sdist."""
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    return next(tmp_path.glob("arrowdl-*"))


def test_sdist_builds_without_a_network(unpacked: Path, tmp_path: Path) -> None:
    """Only what CMake does may need a network: the wheel that the tests use is the sdist's."""
    build = tmp_path / "build"
    command: list[str | Path] = ["cmake", "-S", unpacked, "-B", build, "-G", "Ninja"]
    command += [f"-DPython_EXECUTABLE={sys.executable}", "-DSKBUILD_PROJECT_NAME=arrowdl"]
    run(*no_network(), *command, env=OFFLINE)
    compiled = json.loads((build / "compile_commands.json").read_text())
    assert len(compiled) > 100
    assert [entry["file"] for entry in compiled if not Path(entry["file"]).exists()] == []
    run(*no_network(), "cmake", "--build", build, "--target", "arrowdl_nanoarrow", env=OFFLINE)


@pytest.mark.parametrize("root", [".", "subprojects/arrow-nanoarrow"])
def test_nanoarrow_is_taken_from_a_folder(unpacked: Path, tmp_path: Path, root: str) -> None:
    """An unpacked sdist of nanoarrow, or its C library alone, which a checkout looks like."""
    for package in THIRD_PARTY:
        archive = unpacked / "third_party" / bundle_of(package)
        with tarfile.open(archive) as content:
            content.extractall(tmp_path, filter="data")
        archive.unlink()
    nanoarrow = next(tmp_path.glob("nanoarrow-*")) / root
    build = tmp_path / "build"
    command: list[str | Path] = ["cmake", "-S", unpacked, "-B", build, "-DARROWDL_PYTHON=OFF"]
    command += [f"-DARROWDL_DLPACK_INCLUDE_DIR={tmp_path / 'tvm_ffi/include'}"]
    command += [f"-DFETCHCONTENT_SOURCE_DIR_NANOARROW={nanoarrow}"]
    command += ["-DCMAKE_DISABLE_FIND_PACKAGE_Python=ON"]  # an error if it is asked for
    run(*no_network(), *command, env=OFFLINE)
    compiled = [
        entry["file"] for entry in json.loads((build / "compile_commands.json").read_text())
    ]
    theirs = [Path(file) for file in compiled if file.endswith(".c")]
    assert len(theirs) == 5
    assert all(file.exists() and nanoarrow.resolve() in file.parents for file in theirs)
    assert not list(build.glob("_deps/nanoarrow-src/*"))
    check_devel_install(build, tmp_path)


def check_devel_install(build: Path, folder: Path) -> None:
    """Installs the C++ package, with libraries of one small file: the rest is looked at."""
    source = folder / "small.c"
    source.write_text("int small;\n")
    run("cc", "-c", source, cwd=folder)
    for name in ("arrowdl_core", "arrowdl_nanoarrow"):
        run("ar", "qcs", build / f"lib{name}.a", folder / "small.o")
    prefix = folder / "prefix"
    run("cmake", "--install", build, "--component", "devel", "--prefix", prefix)
    texts = {path.name: path.read_text() for path in prefix.glob("share/licenses/arrowdl/*")}
    assert set(texts) == {"LICENSE", "NOTICE", "arrowdl.cdx.json"}
    parts = {part["name"] for part in json.loads(texts["arrowdl.cdx.json"])["components"]}
    assert parts == {"nanoarrow", "dlpack"}  # no pybind11
    program = "#include <arrowdl/version.hpp>\nint version[] = {ARROWDL_VERSION_INT};\n"
    (folder / "version.cpp").write_text(program)
    run("c++", "-fsyntax-only", f"-I{prefix / 'include'}", folder / "version.cpp")


def test_a_big_endian_machine_is_refused(tmp_path: Path) -> None:
    """As CMake finds it out: `project()` sets the byte order."""
    found = tmp_path / "found.cmake"
    found.write_text("set(CMAKE_CXX_BYTE_ORDER BIG_ENDIAN)\n")
    command = ["cmake", "-S", ROOT, "-B", tmp_path / "build"]
    done = call(*command, f"-DCMAKE_PROJECT_arrowdl_INCLUDE={found}")
    assert done.returncode != 0
    assert "arrowdl supports little-endian machines only" in done.stdout


def make_foreign_archive(package: str, file: Path) -> None:
    """An archive that is sound and has what is looked for, but it is not the one."""
    name = "nanoarrow-{}/subprojects/arrow-nanoarrow/src/nanoarrow/common/array.c"
    name = name.format(read_pin("nanoarrow")[2]) if package == "nanoarrow" else DLPACK
    source = b"#error tampered with\n"
    file.parent.mkdir()
    if file.suffix == ".whl":
        with zipfile.ZipFile(file, "w") as wheel:
            wheel.writestr(name, source)
        return
    with tarfile.open(file, "w:gz") as content:
        for path in (name, f"{name.split('/')[0]}/PKG-INFO"):
            member = tarfile.TarInfo(path)
            member.size = len(source)
            content.addfile(member, io.BytesIO(source))


DLPACK = "tvm_ffi/include/dlpack/dlpack.h"


@pytest.mark.parametrize("route", ["extract a bundled", "bundle a present", "download"])
@pytest.mark.parametrize("package", THIRD_PARTY)
def test_other_sources_than_the_pinned_are_refused(
    package: str, route: str, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "cmake", tmp_path / "cmake")
    third_party = tmp_path / "third_party"
    elsewhere = tmp_path / "elsewhere"
    pin = read_pin(package)
    if route == "download":
        sdist, wheel = f"{pin[1]}-{pin[2]}.tar.gz", f"{pin[1].replace('-', '_')}-{pin[2]}-{TAG}.whl"
        archive = elsewhere / (sdist if package == "nanoarrow" else wheel)
    else:
        archive = third_party / bundle_of(package)
    make_foreign_archive(package, archive)
    out = third_party if route == "bundle a present" else tmp_path / "out"
    verb = "extract" if route == "download" else route.split()[0]
    command = [sys.executable, tmp_path / "cmake/fetch_sources.py", verb, package, out]
    done = call(*command, env={**OFFLINE, "PIP_FIND_LINKS": str(elsewhere)})
    assert done.returncode != 0
    refusal = "DO NOT MATCH THE HASHES" if route == "download" else "is not the file that"
    assert refusal in done.stdout
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


TAG = "cp311-cp311-manylinux_2_28_x86_64"


@pytest.mark.parametrize(
    ("package", "setting"),
    [
        ("nanoarrow", "FETCHCONTENT_SOURCE_DIR_NANOARROW"),
        ("dlpack", "ARROWDL_DLPACK_INCLUDE_DIR"),
    ],
)
def test_without_a_network_a_build_says_what_to_do(
    package: str, setting: str, tmp_path: Path
) -> None:
    """One line after those of pip; CMake reads the setting that it names."""
    shutil.copytree(ROOT / "cmake", tmp_path / "cmake")
    command = [sys.executable, tmp_path / "cmake/fetch_sources.py", "extract", package]
    done = call(*command, tmp_path / "out", env=OFFLINE)
    assert done.returncode != 0
    last = done.stdout.splitlines()[-1]
    assert last.startswith(f"pip cannot download {' '.join(read_pin(package).groups()[:2])}, ")
    assert "build arrowdl's source distribution" in last
    assert last.endswith(f"-D{setting}=DIR.")
    assert setting in (ROOT / "CMakeLists.txt").read_text()


PROBE = """
#include <Python.h>
PyMODINIT_FUNC PyInit__core() {
  static PyModuleDef definition{};
  definition.m_name = "_core";
  PyObject* module = PyModule_Create(&definition);
  PyModule_AddStringConstant(module, "answer", ANSWER);
  return module;
}
"""


def test_editable_install_rebuilds_on_import(unpacked: Path, tmp_path: Path) -> None:
    """Our pyproject.toml and CMake files, around a module that compiles in a second."""
    for source in unpacked.glob("cpp/**/*.cpp"):
        source.unlink()
    (unpacked / "cpp/src/core.cpp").write_text("int arrowdl_core() { return 0; }\n")
    shutil.rmtree(unpacked / "python/arrowdl")
    (unpacked / "python/arrowdl").mkdir()
    module = unpacked / "cpp/bindings/module.cpp"
    module.write_text(PROBE.replace("ANSWER", '"before"'))
    (unpacked / "python/arrowdl/__init__.py").write_text("from arrowdl._core import answer\n")

    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps"]
    run(*install, "--target", site, "-e", unpacked, env=OFFLINE)
    # -S: of site-packages only this folder, or the .pth file of our own install would be first.
    program = f"import site; site.addsitedir({str(site)!r}); import arrowdl; print(arrowdl.answer)"
    ask = [sys.executable, "-I", "-S", "-c", program]
    assert run(*ask).split()[-1] == "before"
    # cmake --install takes files of the same second for equal; the real module links for longer.
    built = max(path.stat().st_mtime for path in unpacked.glob("build/dev/_core.*.so"))
    time.sleep(max(0.0, built + 2 - time.time()))
    module.write_text(PROBE.replace("ANSWER", '"after"'))
    assert run(*ask).split()[-1] == "after"
