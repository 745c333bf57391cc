"""The interface of a framework: what arrowdl calls to make its tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Framework:
    """The functions that make one framework's tensors.

    The operations (`unpack_bits` to `arrange`) run on the device of their arguments, where arrowdl
    has no kernels. They return new tensors and do not change their arguments.
    """

    # the class with the DLPack C exchange API, which is faster than `from_dlpack`. None without
    tensor_type: type | None = None
    # ``(producer)`` to a tensor that shares the memory; for frameworks without the exchange API
    from_dlpack: Callable[[Any], Any]
    # `from_dlpack` without its checks, for tensors of bools, numbers of 8 to 64 bits and complex
    # numbers on the CPU
    from_plain: Callable[[Any], Any] | None = None
    # `from_dlpack` for offsets and lengths, which may be narrowed to a type that holds them
    from_offsets: Callable[[Any], Any]
    # ``(values, offsets)`` to the framework's ragged tensor, or to the pair
    make_jagged: Callable[[Any, Any], Any]
    # ``(values, offsets, shapes, permutation)`` to tensors of varying shape, or to the first three.
    # `shapes` is (rows, dimensions); an empty `permutation` is the identity
    make_variable: Callable[[Any, Any, Any, list[int]], Any]
    # ``(bytes, offset, length, repeat)`` to a bool tensor of ``length * repeat``: the bits from
    # `offset` on, least significant first, each of them `repeat` times
    unpack_bits: Callable[[Any, int, int, int], Any]
    # ``(values, valid, item)`` to `values`, with `item` (0 or NaN) where `valid` is False
    fill: Callable[[Any, Any, float], Any]
    # ``(values)`` to a bool tensor of the same shape, True everywhere
    all_valid: Callable[[Any], Any]
    copy: Callable[[Any], Any]  # ``(values)`` to a copy in new memory of the same device
    # ``(values, shape, axes)`` to the flat `values` in `shape`, then with its axes in the order
    # `axes`
    arrange: Callable[[Any, list[int], list[int]], Any]
    # ``(tensor, name, id)`` to a copy of a CPU tensor on that device, in memory that the framework
    # allocates; for frameworks without the exchange API
    put: Callable[[Any, str, int], Any]
    # the alignment in bytes that CPU memory needs so that `from_dlpack` shares it. arrowdl copies
    # large tensors that are not aligned
    alignment: int = 1
    # the alignment in bytes of device memory that the framework can use. arrowdl copies tensors
    # that are not aligned, on their device
    device_alignment: int = 1
    # whether compiled functions take over the memory of arguments on a device (donation). A copy
    # that the caller asks for is then made by `copy`, in memory of the framework
    donates: bool = False
