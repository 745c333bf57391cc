"""The data of train_ddp.py: Parquet files of images and captions, and a tokenizer.

python examples/train_ddp_data.py data
"""

import io
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers

WORDS = ["[PAD]", "[UNK]", "a", "photo", "of", "an", "image", "stripes", "that", "run", "as", "by"]
WORDS += ["rows", "columns"]


def draw_stripes(rng: np.random.Generator, columns: bool) -> bytes:
    """A JPEG of noisy stripes: columns, or rows."""
    height, width = rng.integers(40, 80, 2)
    across, along = np.indices((height, width))
    stripes = 60 + 120 * ((along if columns else across) // 8 % 2)
    pixels = stripes[..., None] + rng.integers(0, 60, (height, width, 3))
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "JPEG")
    return file.getvalue()


def make_rows(rng: np.random.Generator, first: int, rows: int) -> pa.Table:
    """Images with captions; the label is 1 where the caption says what the image shows."""
    columns, labels = rng.integers(0, 2, (2, rows))
    starts = rng.choice(["a photo of", "an image of stripes that run as", "stripes by"], rows)
    shown = np.where(columns == labels, "columns", "rows")
    return pa.table(
        {
            "id": np.arange(first, first + rows),
            "image": [draw_stripes(rng, bool(column)) for column in columns],
            "text": [f"{start} {word}" for start, word in zip(starts, shown, strict=True)],
            "label": labels,
        }
    )


def main(folder: Path, train_rows: int = 1_000, test_rows: int = 250) -> None:
    rng = np.random.default_rng(7)
    for name, rows, files in (("train", train_rows, 4), ("test", test_rows, 1)):
        (folder / name).mkdir(parents=True)
        for part, ids in enumerate(np.array_split(np.arange(rows), files)):
            table = make_rows(rng, int(ids[0]), len(ids))
            pq.write_table(table, folder / name / f"part-{part}.parquet", row_group_size=50)
    words = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    print(f"{train_rows} rows to train on, {test_rows} to test on, in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
