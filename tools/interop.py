"""Asks libraries what they do with DLPack and Arrow, and writes docs/interop/results.csv.

    python tools/interop.py NAME...             each in an environment of its own
    python tools/interop.py                     all of requirements/interop
    python tools/interop.py --writers [NAME...] whether the Loader reads the files that they write:
                                                docs/interop/writers.csv

The environments are made below --folder, a temporary one unless it is given, and removed unless
--keep is. The newest wheel in dist is installed there; without one, python/arrowdl of this checkout
is used as it is built. The libraries run in a process of their own: if it ends or hangs, that is
the answer, and another process asks the next question.
"""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "requirements/interop"
START_SECONDS, QUESTION_SECONDS = 300, 240


class Survey(NamedTuple):
    """What is asked of which libraries, and where the answers go."""

    results: Path
    header: list[str]
    find_pins: Callable[[str], Path]  # of a library
    names: list[str]


def find_survey(of_writers: bool) -> Survey:
    """Return the survey of writers of files, or that of DLPack and Arrow."""
    folder = ROOT / "docs/interop"
    if of_writers:
        from interop_writers import WRITERS, find_pins

        header = ["library", "version", "file", "kind", "answer"]
        return Survey(folder / "writers.csv", header, find_pins, sorted(WRITERS))
    header = ["library", "version", "direction", "question", "answer"]
    names = sorted(path.stem for path in PINS.glob("*.txt"))
    return Survey(folder / "results.csv", header, lambda name: PINS / f"{name}.txt", names)


# ---------------------------------------------------------------------------
# The process of a library


def answer(name: str, path: Path, done: list[list[str]], of_writers: bool) -> None:
    """Write a line before each question that is not done, and one with its answer."""
    from interop_libraries import TENSORS, find_distribution

    if of_writers:
        from interop_files import ask
        from interop_writers import find_distribution
    elif name in TENSORS:
        from interop_tensors import ask
    else:
        from interop_arrow import ask
    version = importlib.metadata.version(find_distribution(name))
    with path.open("a") as file:
        for direction, question, find in ask(name):
            if [direction, question] in done:
                continue
            print(json.dumps({"begin": [direction, question], "version": version}), file=file)
            file.flush()
            try:
                said = find()
            except BaseException as error:  # a library may raise anything
                said = f"{type(error).__name__}: {error}"
            print(json.dumps({"answer": shorten(said)}), file=file, flush=True)
    os._exit(0)  # what libraries do at exit is not asked


def shorten(said: str) -> str:
    """One line, without what differs from run to run."""
    line = " ".join(said.split())
    line = re.sub(r"0x[0-9a-f]+", "0x...", line)
    line = re.sub(r"\.\.\.x[0-9a-f]+", "...", line)  # cut by reprlib
    line = re.sub(r"(?<![\w.])/[\w.+-]+/\S+", "...", line)
    line = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27,}", "...", line)
    return line if len(line) <= 160 else line[:157].rpartition(" ")[0] + " ..."


# ---------------------------------------------------------------------------
# The process that asks


def run(
    name: str,
    python: Path,
    environment: dict[str, str],
    script: Path = Path(__file__),
    *,
    of_writers: bool = False,
) -> list[list[str]]:
    """Return the rows of a library."""
    rows: list[list[str]] = []
    done: list[list[str]] = []
    version = ""
    with tempfile.TemporaryDirectory() as folder:
        while True:
            path = Path(folder) / "answers"
            path.write_text("")
            known = Path(folder) / "done"  # longer than an argument may be
            known.write_text(json.dumps(done))
            command = [python, script, "--answer", name, path, known, *["--writers"] * of_writers]
            ended = _wait(command, path, environment, folder)
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            asked = [line for line in lines if "begin" in line]
            said = [line["answer"] for line in lines if "answer" in line]
            version = asked[0]["version"] if asked else version
            if len(said) < len(asked):
                said.append(ended)
            new = [[*line["begin"], text] for line, text in zip(asked, said, strict=True)]
            rows += [[name, version, *row] for row in new]
            done += [row[:2] for row in new]
            if ended == "ok":
                return rows
            if not new:
                raise RuntimeError(f"no question was asked: {ended}")


def _wait(command: list[Any], path: Path, environment: dict[str, str], folder: str) -> str:
    """Return "ok", or how the process ended."""
    with (Path(folder) / "output").open("w+") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output
        )
        size = 0
        limit = START_SECONDS
        while True:
            try:
                code = process.wait(limit)
                break
            except subprocess.TimeoutExpired:
                now = path.stat().st_size
                if now == size:
                    process.kill()
                    process.wait()
                    return "no answer in the time allowed"
                size, limit = now, QUESTION_SECONDS
        if code == 0:
            return "ok"
        if not path.stat().st_size:
            output.seek(0)
            return output.read()[-2000:]
        return "the process ends"


def make_environment(name: str, folder: Path, pins: Path) -> tuple[Path, dict[str, str]]:
    """Install a library's pins; return the interpreter and the variables of its processes."""
    place = folder / name
    python = place / "bin/python"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    # SYCL on the CPU device of the environment alone.
    environment["OCL_ICD_FILENAMES"] = str(place / "lib/libintelocl.so")
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    environment["RUST_BACKTRACE"] = "0"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-qq", "--no-compile"]
    subprocess.run([*pip, "-r", str(pins)], check=True)
    wheels = sorted((ROOT / "dist").glob("*.whl"))
    if wheels:
        subprocess.run([*pip, "--no-deps", "--force-reinstall", str(wheels[-1])], check=True)
    else:
        environment["PYTHONPATH"] = str(ROOT / "python")
    return python, environment


def read_results(path: Path) -> dict[str, list[list[str]]]:
    """Return the rows of a file by library."""
    rows: dict[str, list[list[str]]] = {}
    if path.exists():
        with path.open(newline="") as file:
            for row in list(csv.reader(file))[1:]:
                rows.setdefault(row[0], []).append(row)
    return rows


def write_results(path: Path, header: list[str], rows: dict[str, list[list[str]]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for name in sorted(rows):
            writer.writerows(rows[name])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="libraries, all by default")
    parser.add_argument("--writers", action="store_true", help="ask about files")
    parser.add_argument("--folder", type=Path, help="where the environments are made")
    parser.add_argument("--keep", action="store_true", help="keep the environments")
    arguments = parser.parse_args()
    survey = find_survey(arguments.writers)
    unknown = sorted(set(arguments.names) - set(survey.names))
    if unknown:
        parser.error(f"nothing is asked of {unknown}: there are {survey.names}")
    folder = arguments.folder or Path(tempfile.mkdtemp())
    failed = []
    for name in arguments.names or survey.names:
        try:
            python, environment = make_environment(name, folder, survey.find_pins(name))
            found = run(name, python, environment, of_writers=arguments.writers)
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            failed.append(name)
            print(f"{name}: {error}", flush=True)
        else:
            if arguments.writers:
                found = join_files(found)
            rows = read_results(survey.results) | {name: found}
            write_results(survey.results, survey.header, rows)
            print(f"{name}: {len(found)} rows", flush=True)
        finally:
            if not arguments.keep:
                shutil.rmtree(folder / name, ignore_errors=True)
    if not (arguments.folder or arguments.keep):
        shutil.rmtree(folder, ignore_errors=True)
    if failed:
        sys.exit(f"no rows were written for {', '.join(failed)}")


def join_files(rows: list[list[str]]) -> list[list[str]]:
    """Return a row for each kind and answer, with the files that have it: "all" if all have."""
    joined: dict[str, dict[str, list[list[str]]]] = {}
    for row in rows:
        joined.setdefault(row[3], {}).setdefault(row[4], []).append(row)
    found = []
    for kind, answers in joined.items():
        for said, some in answers.items():
            names = "all" if len(answers) == 1 else "; ".join(row[2] for row in some)
            found.append([*some[0][:2], names, kind, said])
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answer"]:
        asked_before = json.loads(Path(sys.argv[4]).read_text())
        answer(sys.argv[2], Path(sys.argv[3]), asked_before, "--writers" in sys.argv)
    else:
        main()
