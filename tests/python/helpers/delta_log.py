"""Delta Lake tables that deltalake does not write: logs and deletion vectors by hand."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable


def write_log(path: Path, fields: list[Any], adds: list[Any], **metadata: Any) -> DeltaTable:
    """Write the first entry of a table's log."""
    log = path / "_delta_log"
    log.mkdir()
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": metadata.pop("features"),
        "writerFeatures": [],
    }
    about = {
        "id": "0f0e0d0c-0000-4000-8000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        **metadata,
    }
    protocol["writerFeatures"] = protocol["readerFeatures"]
    actions: list[Any] = [{"protocol": protocol}, {"metaData": about}]
    for add in adds:
        size = (path / unquote(add["path"])).stat().st_size
        base = {"partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
        actions.append({"add": {**base, **add}})
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return DeltaTable(str(path))


def make_field(name: str, kind: Any, stored: str | None = None, number: int = 0) -> Any:
    mapping = {"delta.columnMapping.physicalName": stored, "delta.columnMapping.id": number}
    metadata = {} if stored is None else mapping
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def make_deletion_vector(rows: list[int]) -> dict[str, Any]:
    """Return the descriptor of an inline vector, as PROTOCOL.md of Delta Lake says."""
    from pyroaring import BitMap

    bitmap = BitMap(rows).serialize()
    data = struct.pack("<iqi", 1681511377, 1, 0) + bitmap
    data += b"\0" * (-len(data) % 4)
    alphabet = (
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    )
    base85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
    text = base64.b85encode(data).decode().translate(str.maketrans(base85, alphabet))
    size = 16 + len(bitmap)
    return {
        "storageType": "i",
        "pathOrInlineDv": text,
        "sizeInBytes": size,
        "cardinality": len(rows),
    }
