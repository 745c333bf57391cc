"""`Feed`: the tensors of a batch, as a `Loader` makes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from arrowdl import _core
from arrowdl.loader._batches.convert import can_convert_on_device, choose_converter
from arrowdl.loader._batches.pack import Message, pack


class Feed:
    """Makes the tensors of a batch, as a `Loader` does."""

    def __init__(
        self,
        *,
        stream: _core.DeviceStream,
        columns: str | list[str],
        framework: str,
        options: _core.ColumnOptions,
        device: _core.Device | None,
        is_written: bool,
    ) -> None:
        self.columns = columns
        self.names = [columns] if isinstance(columns, str) else columns
        on_host = _core.is_host_readable((stream.device_type, 0))
        is_copied = device is not None and device.type != stream.device_type
        self.device = device
        self._is_ahead = on_host and not is_copied
        to_host = device is None or _core.is_host_readable(device)
        schemas = [child for child in stream.schema.children if child.name in self.names]
        reads_on_host = options.stacks or options.casts
        can_convert = not reads_on_host and all(can_convert_on_device(schema) for schema in schemas)
        self._is_packed = on_host and not to_host and not can_convert
        access: dict[str, Any] = {}
        if is_written and not self._is_packed:
            access = {"_own": True} if is_copied else {"copy": True}
        self._convert = choose_converter(framework, options, access)

    def __call__(self, array: _core.DeviceArray) -> Callable[[], Any]:
        """Start the work on a batch; return what makes its tensors in the model's thread."""
        if isinstance(self.columns, str):
            part = array.field(self.columns)
        else:
            part = _core.make_struct(self.names, [array.field(name) for name in self.names])
        if self._is_packed:
            message = pack(self._convert(part), len(array), (0, 0), self.device)
            return partial(Message.read, message.to(self.device))
        if self.device is not None:
            part = part.to(self.device)
        if self._is_ahead:
            return _ConvertedTensor(self._convert(part))
        return partial(self._convert, part)


@dataclass
class _ConvertedTensor:
    """Gives tensors away, so that the model has the only reference."""

    tensors: Any

    def __call__(self) -> Any:
        tensors, self.tensors = self.tensors, None
        return tensors
