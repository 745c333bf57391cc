"""Runs the cases of a check, in this process or in one of its own that may crash."""

from __future__ import annotations

import gc
import importlib
import json
import pickle
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arrowdl.testing._report import Finding, Recorder, Report
from arrowdl.testing._rules import RULES

_Cell = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Case:
    """One thing that a check tries.

    Attributes
    ----------
    name : str
    rule : str
        The rule that is broken if the case crashes, hangs or raises what it does not expect.
    run : callable
        Takes the subject and a `Recorder`.
    """

    name: str
    rule: str
    run: Callable[[Any, Recorder], None]


@dataclass(frozen=True)
class Check:
    """A named list of cases.

    Attributes
    ----------
    name : str
    cases : tuple of Case
    open : callable
        Makes the subject of the cases from what the caller passed and its options.
    """

    name: str
    cases: tuple[Case, ...]
    open: Callable[..., Any]


def describe(target: Any) -> str:
    """Return what a report calls `target`: a name for functions and types, else its type."""
    if isinstance(target, str):
        return target
    named = hasattr(target, "__qualname__") or hasattr(target, "__name__")
    what = target if named else type(target)
    name = str(getattr(what, "__qualname__", "") or getattr(what, "__name__", "object"))
    if "pybind11" in name:
        name = name.rpartition(".")[2]
    module = getattr(what, "__module__", None)
    return name if module in (None, "builtins") else f"{module}.{name}"


def run_check(
    check: Check,
    target: Any,
    options: Mapping[str, Any],
    *,
    isolate: bool,
    timeout: float,
) -> Report:
    """Run all cases of `check` on `target`, in a process of its own if `isolate`."""
    if isolate:
        return _run_isolated(check, target, options, timeout)
    recorder = Recorder()
    subject = check.open(find_target(target), **options)
    with _quick_collections():
        for case in check.cases:
            run_case(case, subject, recorder)
    return recorder.report(check.name, describe(target))


@contextmanager
def _quick_collections() -> Iterator[None]:
    """Collect only garbage of the check: the objects of large libraries take long to look at."""
    if gc.get_freeze_count():  # the caller has done it
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def run_case(case: Case, subject: Any, recorder: Recorder) -> None:
    with recorder.trying(case.name, case.rule), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some producers warn of what a case has to try
        try:
            case.run(subject, recorder)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever the subject raises is what was found
            recorder.error(
                case.rule,
                f"raised {quote(error)}",
                "raise only what the specification says, or make the call work",
            )
    gc.collect()  # what a case left is released while the case is known


def quote(error: BaseException) -> str:
    text = str(error).splitlines()
    return f"{type(error).__name__}: {text[0][:200]}" if text else type(error).__name__


def forget_frames(error: BaseException) -> BaseException:
    """Return `error` without its frames, which would keep alive what their variables refer to."""
    link: BaseException | None = error
    while link is not None:
        link.__traceback__ = None
        link = link.__cause__ or link.__context__
    return error


def find_target(target: Any) -> Any:
    """Return the object of ``"module:object"``; anything else is returned as it is."""
    if not isinstance(target, str):
        return target
    module, colon, path = target.partition(":")
    if not colon or not module or not path:
        raise ValueError(f'"{target}" is not "module:object", such as "numpy:from_dlpack"')
    found = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


# ---------------------------------------------------------------------------
# In a process of its own


def _run_isolated(check: Check, target: Any, options: Mapping[str, Any], timeout: float) -> Report:
    try:
        pickle.dumps((target, dict(options)))
    except Exception as error:
        raise TypeError(
            f"isolate=True sends the object to another process, and it cannot be pickled ({error}):"
            ' pass "module:object", its name there'
        ) from error
    recorder = Recorder()
    done: list[str] = []
    while len(done) < len(check.cases):
        done += _run_child(check, target, options, timeout, done, recorder)
    return recorder.report(check.name, describe(target))


def _run_child(
    check: Check,
    target: Any,
    options: Mapping[str, Any],
    timeout: float,
    done: list[str],
    recorder: Recorder,
) -> Iterable[str]:
    """Run the cases that are not `done` until one crashes; return the names of those that ran."""
    inner = pickle.dumps((target, dict(options), done))
    payload = pickle.dumps((check.name, list(sys.path), timeout, inner))
    with tempfile.TemporaryDirectory(prefix="arrowdl-check-") as folder:
        results, errors = Path(folder) / "results", Path(folder) / "errors"
        with errors.open("wb") as stderr:
            child = subprocess.run(
                [sys.executable, "-c", _CHILD, str(results)],
                input=payload,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                check=False,
            )
        lines = results.read_text().splitlines() if results.exists() else []
        said = errors.read_text(errors="replace")
    ran, running = _read_results(lines, recorder)
    if len(done) + len(ran) == len(check.cases) and running is None:
        return ran
    why = _death(child.returncode, said, timeout)
    if running is None:
        raise RuntimeError(f"the process of the check {why}, outside of any case")
    rule = next(case.rule for case in check.cases if case.name == running)
    with recorder.trying(running):
        recorder.error(
            rule,
            f"the process {why}",
            "run the case under a debugger: it reads or frees what is not its own, or deadlocks",
        )
    return [*ran, running]


_CHILD = "from arrowdl.testing import _child; _child.main()"


def _read_results(lines: Iterable[str], recorder: Recorder) -> tuple[list[str], str | None]:
    """Add what the child wrote to `recorder`; return the cases that ended, and the one that did
    not."""
    ran: list[str] = []
    running = None
    for line in lines:
        entry = json.loads(line)
        if "begin" in entry:
            running = entry["begin"]
            continue
        running = None
        ran.append(entry["end"])
        recorder.checked += entry["checked"]
        cells: list[_Cell] = entry["findings"]
        recorder.findings += [
            Finding(RULES[rule], severity, case, seen, advice)  # type: ignore[arg-type]
            for rule, severity, case, seen, advice in cells
        ]
    return ran, running


def _death(code: int, said: str, timeout: float) -> str:
    if said.startswith("Timeout ("):  # faulthandler, which the child has asked to watch
        return f"did not end within {timeout:g} s"
    last = said.strip().splitlines()[-1:]
    words = f" ({last[0][:160]})" if last else ""
    if code >= 0:
        return f"ended with status {code}{words}"
    try:
        return f"was killed by {signal.Signals(-code).name}{words}"
    except ValueError:
        return f"was killed by signal {-code}{words}"
