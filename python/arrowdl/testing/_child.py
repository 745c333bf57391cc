"""The process of an isolated check: each case is written down before it begins."""

from __future__ import annotations

import faulthandler
import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any, TextIO

from arrowdl.testing._checks import CHECKS, guess_checks
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import OPENING, Sent, find_target, freeze_imported, quote, run_case


def main() -> None:
    """Run the check that the parent process sent, without the cases that it has done."""
    sent: Sent = pickle.loads(sys.stdin.buffer.read())
    sys.path[:] = sent.path
    with Path(sys.argv[-1]).open("w") as results:
        _answer(sent, results)
    # What libraries do at exit is not part of a case, and could end this process in its own way.
    os._exit(0)


def _answer(sent: Sent, results: TextIO) -> None:
    def write(**line: Any) -> None:
        print(json.dumps(line), file=results, flush=True)

    write(begin=OPENING)
    faulthandler.dump_traceback_later(sent.opening, exit=True)
    try:
        target, options, done = pickle.loads(sent.payload)
        target = find_target(target)
        if sent.check is None:
            write(guess=guess_checks(target))
            return
        subject = CHECKS[sent.check].open(target, **options)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an import may raise anything, SystemExit too
        write(refused=quote(error))
        return
    finally:
        faulthandler.cancel_dump_traceback_later()
    frozen_count = 0
    for case in CHECKS[sent.check].cases:
        if case.name in done:
            continue
        frozen_count = freeze_imported(frozen_count)
        recorder = Recorder()
        write(begin=case.name)
        faulthandler.dump_traceback_later(sent.timeout, exit=True)
        stop = run_case(case, subject, recorder)
        faulthandler.cancel_dump_traceback_later()
        cells = [
            (finding.rule.id, finding.severity, finding.case, finding.seen, finding.advice)
            for finding in recorder.findings
        ]
        write(end=case.name, findings=cells, checked=recorder.checked, stop=stop)
        if stop is not None:
            return
