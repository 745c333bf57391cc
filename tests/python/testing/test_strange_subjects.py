"""A check never reports success that it did not see: subjects that end, hang or refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from arrowdl.testing import (
    Report,
    _run,
    check_arrow_producer,
    check_dlpack_consumer,
    check_dlpack_producer,
    check_exchange_api,
)
from arrowdl.testing._command import main
from helpers import strange
from helpers.processes import run_python


def _usage_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("what", ["exit", "leave", "hang"])
@pytest.mark.parametrize("as_", [[], ["--as", "dlpack-consumer"]])
def test_a_module_that_cannot_be_imported_is_2(
    what: str,
    as_: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ARROWDL_STRANGE", what)
    if what == "hang":
        monkeypatch.setattr(_run, "_OPENING_SECONDS", 1.0)
    says = {
        "exit": "SystemExit: 0",
        "leave": "the process ended with status 0",
        # A busy machine takes longer to start the process: then its parent's limit ends it.
        "hang": "the process did not end within ",
    }
    error = _usage_error(["helpers.strange:exits", "--timeout", "1", *as_], capsys)
    assert "cannot import helpers.strange:exits: " + says[what] in error


def test_a_process_ends_without_what_runs_at_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARROWDL_STRANGE", "hang at exit")
    report = check_dlpack_producer("helpers.strange:numbers", isolate=True, timeout=30)
    assert report.errors == ()


def test_a_process_that_lost_its_watch_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_run, "_CHILD", "import threading; threading.Event().wait()")
    monkeypatch.setattr(_run, "_OPENING_SECONDS", 0.1)
    with pytest.raises(RuntimeError, match=r"the process did not end within 0\.2 s"):
        _run.guess_isolated("helpers.strange:numbers", 0.1)


@pytest.mark.parametrize("isolate", [False, True])
def test_a_consumer_that_ends_the_process_is_an_error(isolate: bool) -> None:
    report = check_dlpack_consumer("helpers.strange:exits", isolate=isolate, timeout=30)
    assert "from-dlpack-reads" in {found.rule.id for found in report.errors}
    assert "raised SystemExit: 0" in {found.seen for found in report.errors}


def test_three_time_outs_in_a_row_end_a_check() -> None:
    report = check_dlpack_consumer("helpers.strange:never", isolate=True, timeout=0.2)
    assert [found.seen for found in report.errors] == ["the process did not end within 0.2 s"] * 3
    assert report.passed == ()
    whys = {found.seen for found in report.skipped}
    assert whys == {"not tried: 3 cases in a row did not end within 0.2 s"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["numpy:pi", "--as", "dlpack-producer"], "float has no __dlpack__"),
        (["helpers.strange:raises"], "OSError: no tensor today"),
        (["helpers.strange:raises", "--as", "dlpack-producer"], "OSError: no tensor today"),
        (["numpy:pi", "--timeout", "0"], "0 is not a number of seconds above 0"),
        (["numpy:pi", "--timeout", "nan"], "nan is not a number of seconds above 0"),
    ],
)
def test_wrong_usage_is_2(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in _usage_error(arguments, capsys)


def _is_one_error(report: Report) -> None:
    (found,) = report.errors
    assert found.seen == "the function that makes the object raised OSError: no array today"
    assert report.passed == ()
    assert {skipped.seen for skipped in report.skipped} == {
        "the function that makes the object raises"
    }


def test_what_the_subject_imports_is_not_looked_at_for_garbage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundred collections among the objects of torch take ten seconds."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    run_python("""
        import gc
        from arrowdl.testing import check_dlpack_producer
        from helpers import strange

        report = check_dlpack_producer(strange.imports_a_library)
        assert report.errors == (), str(report)
        assert strange.SIGHTS[0] and len(strange.SIGHTS) > 30
        assert gc.get_freeze_count() == 0
        gc.freeze()
        before = gc.get_freeze_count()
        assert check_dlpack_producer(strange.numbers).errors == ()
        assert before - 100 < gc.get_freeze_count() <= before
    """)
    report = check_dlpack_producer("helpers.strange:imports_a_library", isolate=True)
    assert report.errors == (), str(report)


@pytest.mark.parametrize("isolate", [False, True])
def test_a_factory_that_raises_is_one_error(isolate: bool) -> None:
    target = "helpers.strange:fails" if isolate else strange.fails
    _is_one_error(check_dlpack_producer(target, isolate=isolate))


def test_a_factory_that_raises_is_one_error_of_the_other_checks() -> None:
    _is_one_error(check_arrow_producer(strange.fails))
    _is_one_error(check_exchange_api(strange.fails))


def test_a_timeout_is_found_after_other_words() -> None:
    words = "a library says\nTimeout (0:00:01)!\nThread"
    child = f"import sys; sys.stderr.write({words!r}); sys.exit(1)"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_run, "_CHILD", child)
        with pytest.raises(RuntimeError, match="did not end within 5 s"):
            _run.guess_isolated("helpers.strange:numbers", 5)
