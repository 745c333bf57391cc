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
    """One thing that a check tries."""

    name: str
    # the rule that is broken if the case crashes, hangs or raises what it does not expect
    rule: str
    run: Callable[[Any, Recorder], None]  # takes the subject and a `Recorder`


@dataclass(frozen=True)
class Check:
    """A named list of cases."""

    name: str
    cases: tuple[Case, ...]
    # makes the subject of the cases from what the caller passed and its options
    open: Callable[..., Any]


class OpenError(RuntimeError):
    """What a check is about cannot be imported or used in the other process."""


class StopCheck(BaseException):
    """Raised by a case after which no other can be tried: not caught as what a subject raises."""

    def __init__(
        self,
        why: str,  # why the other cases are skipped
        seen: str | None = None,  # the error of this case; without them it is skipped too
        advice: str = "",
    ) -> None:
        super().__init__(why)
        self.why, self.seen, self.advice = why, seen, advice


def checked_factory(make: Callable[[], Any]) -> Callable[[], Any]:
    """Return `make`, whose exceptions end the check: they say nothing about the rules."""

    def checked() -> Any:
        try:
            return make()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever it raises, there is nothing to check
            raise StopCheck(
                "the function that makes the object raises",
                f"the function that makes the object raised {quote(error)}",
                "pass a function that takes no arguments and returns the object",
            ) from error

    return checked


def skip_where(
    find_reason: Callable[[Any], str | None], run: Callable[[Any, Recorder], None]
) -> Callable[[Any, Recorder], None]:
    """Return `run`, which is skipped for a subject with a reason against it."""

    def checked(subject: Any, to: Recorder) -> None:
        reason = find_reason(subject)
        if reason is None:
            run(subject, to)
        else:
            to.skip(reason)

    return checked


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
    check: Check, target: Any, options: Mapping[str, Any], *, isolate: bool, timeout: float
) -> Report:
    """Run all cases of `check` on `target`, in a process of its own if `isolate`."""
    if isolate:
        return _run_isolated(check, target, options, timeout)
    recorder = Recorder()
    subject = check.open(find_target(target), **options)
    with _quick_collections() as freezes:
        before = 0
        for index, case in enumerate(check.cases):
            if freezes:
                before = freeze_imported(before)
            stop = run_case(case, subject, recorder)
            if stop is not None:
                _skip(check.cases[index + 1 :], stop, recorder)
                break
    return recorder.report(check.name, describe(target))


@contextmanager
def _quick_collections() -> Iterator[bool]:
    """Say whether to freeze what is imported, which the end undoes; the caller may have done it."""
    if gc.get_freeze_count():
        yield False
        return
    try:
        yield True
    finally:
        gc.unfreeze()


def freeze_imported(before: int) -> int:
    """Collect only garbage of the check: the objects of large libraries take long to look at.

    The subject may import one when it is first called. Returns the number of modules, of which
    there were `before` when this was called last.
    """
    modules = len(sys.modules)
    if modules > before:
        gc.freeze()
    return modules


def _skip(cases: Iterable[Case], why: str, recorder: Recorder) -> None:
    for case in cases:
        with recorder.trying(case.name):
            recorder.skip(why, rule=case.rule)


def run_case(case: Case, subject: Any, recorder: Recorder) -> str | None:
    """Run one case; return why the cases after it cannot be tried, or None."""
    stop: str | None = None
    with recorder.trying(case.name, case.rule), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some producers warn of what a case has to try
        try:
            case.run(subject, recorder)
        except KeyboardInterrupt:
            raise
        except StopCheck as error:
            stop = error.why
            if error.seen is None:
                recorder.skip(error.why)
            else:
                recorder.error(error.seen, advice=error.advice)
        except BaseException as error:  # whatever the subject raises is what was found
            recorder.error(
                f"raised {quote(error)}",
                advice="raise only what the specification says, or make the call work",
            )
    gc.collect()  # what a case left is released while the case is known
    return stop


def quote(error: BaseException) -> str:
    text = str(error).splitlines()
    return f"{type(error).__name__}: {text[0][:200]}" if text else type(error).__name__


def outcome(result: Any) -> str:
    """Say what a call raised, by what it returned or the exception that was caught."""
    return f"raised {quote(result)}" if isinstance(result, Exception) else "raised nothing"


def outcome_of(raised: list[BaseException], otherwise: str = "raised nothing") -> str:
    """Say what threads raised."""
    return f"raised {quote(raised[0])}" if raised else otherwise


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
    value = importlib.import_module(module)
    for name in path.split("."):
        value = getattr(value, name)
    return value


# ---------------------------------------------------------------------------
# In a process of its own


OPENING = "opening"
_OPENING_SECONDS = 60.0  # at least: large libraries take long to import
_TIMEOUTS = 3


@dataclass(frozen=True)
class Sent:
    """What the process of a check is given."""

    check: str | None  # None to guess which checks fit
    path: list[str]
    opening: float  # seconds to import and open the target, and for each case
    timeout: float
    payload: bytes  # the target, the options and the names of the cases that are done, pickled


@dataclass
class _Ended:
    """How a process of a check ended."""

    lines: list[dict[str, Any]]
    why: str
    timed_out: bool


def guess_isolated(target: str, timeout: float) -> list[str]:
    """Return the names of the checks that fit `target`, which another process imports."""
    ended = _run_process(None, (target, {}, []), timeout, 0)
    _raise_if_not_open(ended, target)
    return list(ended.lines[-1]["guess"])


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
    timeouts = 0
    while len(done) < len(check.cases):
        left = [case for case in check.cases if case.name not in done]
        ended = _run_process(check.name, (target, dict(options), done), timeout, len(left))
        _raise_if_not_open(ended, target)
        ran, running, stop = _read_results(ended.lines, recorder)
        done += ran
        if stop is None and running is not None:
            _record_death(check, running, ended, recorder)
            timeouts = (0 if ran else timeouts) + 1 if ended.timed_out else 0
            done.append(running)
            if timeouts == _TIMEOUTS:
                stop = f"not tried: {_TIMEOUTS} cases in a row did not end within {timeout:g} s"
        elif stop is None and len(done) < len(check.cases):
            raise RuntimeError(f"the process of the check {ended.why}, outside of any case")
        if stop is not None:
            _skip([case for case in check.cases if case.name not in done], stop, recorder)
            break
    return recorder.report(check.name, describe(target))


def _run_process(
    check: str | None, inner: tuple[Any, dict[str, Any], list[str]], timeout: float, cases: int
) -> _Ended:
    opening = max(timeout, _OPENING_SECONDS)
    payload = pickle.dumps(Sent(check, list(sys.path), opening, timeout, pickle.dumps(inner)))
    # Each case has its own watch in the child; this one is for a child that lost it.
    whole = 2 * opening + cases * timeout
    code: int | None = None
    with tempfile.TemporaryDirectory(prefix="arrowdl-check-") as folder:
        results, errors = Path(folder) / "results", Path(folder) / "errors"
        with errors.open("wb") as stderr:
            try:
                code = subprocess.run(
                    [sys.executable, "-c", _CHILD, str(results)],
                    input=payload,
                    stdout=subprocess.DEVNULL,
                    stderr=stderr,
                    check=False,
                    timeout=whole,
                ).returncode
            except subprocess.TimeoutExpired:
                code = None
        text = results.read_text() if results.exists() else ""
        said = errors.read_text(errors="replace")
    # The last line has no end if the child was killed while it wrote.
    lines = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    if code is None:
        return _Ended(lines, f"did not end within {whole:g} s", True)
    limit = opening if lines and lines[-1] == {"begin": OPENING} else timeout
    timed_out = any(line.startswith("Timeout (") for line in said.splitlines())
    why = f"did not end within {limit:g} s" if timed_out else _death(code, said)
    return _Ended(lines, why, timed_out)


def _raise_if_not_open(ended: _Ended, target: Any) -> None:
    last = ended.lines[-1] if ended.lines else {}
    if "refused" in last:
        raise OpenError(f"cannot import {describe(target)}: {last['refused']}")
    if not last or last.get("begin") == OPENING:
        raise OpenError(f"cannot import {describe(target)}: the process {ended.why}")


def _record_death(check: Check, running: str, ended: _Ended, recorder: Recorder) -> None:
    rule = next(case.rule for case in check.cases if case.name == running)
    with recorder.trying(running):
        recorder.error(
            f"the process {ended.why}",
            rule=rule,
            advice="run the case under a debugger: it reads or frees what belongs to others, or "
            "deadlocks",
        )


_CHILD = "from arrowdl.testing import _child; _child.main()"


def _read_results(
    lines: Iterable[dict[str, Any]], recorder: Recorder
) -> tuple[list[str], str | None, str | None]:
    """Add what the child wrote to `recorder`; return the cases that ended, the one that did not,
    and why the others cannot be tried."""
    ran: list[str] = []
    running = stop = None
    for entry in lines:
        if "begin" in entry:
            running = None if entry["begin"] == OPENING else entry["begin"]
            continue
        running = None
        ran.append(entry["end"])
        stop = entry["stop"]
        recorder.checked += entry["checked"]
        cells: list[_Cell] = entry["findings"]
        recorder.findings += [
            Finding(RULES[rule], severity, case, seen, advice)  # type: ignore[arg-type]
            for rule, severity, case, seen, advice in cells
        ]
    return ran, running, stop


def _death(code: int, said: str) -> str:
    last = said.strip().splitlines()[-1:]
    words = f" ({last[0][:160]})" if last else ""
    if code >= 0:
        return f"ended with status {code}{words}"
    try:
        return f"was killed by {signal.Signals(-code).name}{words}"
    except ValueError:
        return f"was killed by signal {-code}{words}"
