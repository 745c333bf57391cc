"""pyarrow lists to JAX segments, and bfloat16 back into Arrow."""

import arrowdl
import jax
import jax.numpy as jnp
import pyarrow as pa

# JAX has no ragged arrays: lists are their values and offsets.
baskets = pa.array([[1.5, 2.5], [], [4.0]], pa.list_(pa.float32()))
prices, offsets = arrowdl.to_jax(baskets)
rows = jnp.repeat(jnp.arange(3), jnp.diff(offsets), total_repeat_length=len(prices))
totals = jax.ops.segment_sum(prices, rows, num_segments=3)
print("totals:", totals.tolist())

# Or padded, with the lengths.
padded, lengths = arrowdl.to_jax(baskets, ragged="padded")
print("padded:", padded.tolist(), "lengths:", lengths.tolist())

# Arrow has no bfloat16: arrowdl exports it as an extension type and reads it again. pyarrow keeps
# the names of unknown extension types in fields, which the items of plain lists have.
predictions = {"logits": jnp.ones((3, 4), jnp.bfloat16)}
batch = pa.record_batch(arrowdl.to_arrow_device(predictions, layout="list"))
logits = arrowdl.to_jax(batch)["logits"]
print("logits:", arrowdl.from_arrow(batch)["logits"].type, "->", logits.dtype, logits.shape)
