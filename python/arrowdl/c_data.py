"""Arrow's C structs at given addresses: for cffi, ctypes, R, Julia and other languages.

An import moves out of a struct and marks it released. An export fills a struct, whose new owner
calls ``release``. Addresses are integers.
"""

from arrowdl._core import (
    export_array,
    export_async_stream,
    export_device_array,
    export_device_stream,
    export_schema,
    export_stream,
    import_array,
    import_device_array,
    import_device_stream,
    import_schema,
    import_stream,
)

__all__ = [
    "export_array",
    "export_async_stream",
    "export_device_array",
    "export_device_stream",
    "export_schema",
    "export_stream",
    "import_array",
    "import_device_array",
    "import_device_stream",
    "import_schema",
    "import_stream",
]
