"""A pyarrow table to PyTorch tensors, and a tensor back into the table."""

import arrowdl
import pyarrow as pa
import torch

table = pa.table(
    {
        "label": [0, 1, 1],
        "weight": [0.5, None, 1.5],
        "embedding": pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float32(), 2)),
    }
)

# A column is one tensor. A fixed-size list is a matrix, without a copy.
embedding = arrowdl.to_torch(table["embedding"])
shared = table["embedding"].chunk(0).values.buffers()[1].address == embedding.data_ptr()
print("embedding:", tuple(embedding.shape), embedding.dtype, "zero-copy:", shared)

# Nulls need a policy.
weight, valid = arrowdl.to_torch(table["weight"], nulls="mask")
print("weight:", weight[valid].tolist(), "valid:", valid.tolist())

# PyTorch's result as Arrow: the array keeps the tensor's memory alive.
score = torch.softmax(embedding @ torch.ones(2), dim=0)
table = table.append_column("score", pa.array(arrowdl.to_arrow_device(score)))
print(table.select(["label", "score"]).to_pylist())
