"""The commands ``python -m arrowdl doctor`` and ``python -m arrowdl check``."""

import sys

from arrowdl import doctor

_USAGE = "usage: python -m arrowdl doctor | check module:object"

match sys.argv[1:]:
    case ["doctor"]:
        print(doctor())
    case ["check", *arguments]:
        from arrowdl.testing._command import main

        sys.exit(main(arguments))
    case _:
        print(_USAGE, file=sys.stderr)
        sys.exit(2)
