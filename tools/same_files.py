"""Check that two wheels have the same files: python tools/same_files.py A.whl B.whl."""

import sys
from zipfile import ZipFile

first, second = (set(ZipFile(path).namelist()) for path in sys.argv[1:])
if first != second:
    sys.exit(f"only in one of the wheels {sys.argv[1:]}: {sorted(first ^ second)}")
