"""Images as Hugging Face datasets store them, structs {bytes, path}, decoded by `arrowdl.Image`.

An image is in `bytes`, or in the file at `path`; either may be null. The images are stripes, made
here; the model tells which way they run.
"""

import io
import tempfile
from pathlib import Path

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from PIL import Image
from torch import nn

SIZE = 32
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def draw_image(rng: np.random.Generator, label: int) -> bytes:
    """A JPEG of noisy stripes of some size: from left to right, or from top to bottom."""
    width, height = (int(n) for n in rng.integers(40, 80, 2))
    rows, columns = np.indices((height, width))
    stripes = 60 + 120 * ((columns if label else rows) // 8 % 2)
    pixels = stripes[..., None] + rng.integers(0, 60, (height, width, 3))
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "JPEG")
    return file.getvalue()


def write_images(folder: Path, rows: int = 400) -> str:
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 2, rows).tolist()
    images: list[dict[str, object]] = []
    for i, label in enumerate(labels):
        data = draw_image(rng, label)
        if i % 10:
            images.append({"bytes": data, "path": None if i % 3 else f"{i}.jpg"})
        else:  # not embedded
            path = folder / f"{i}.jpg"
            path.write_bytes(data)
            images.append({"bytes": None, "path": str(path)})
    table = pa.table({"image": pa.array(images, IMAGE), "label": labels})
    path = folder / "images.parquet"
    pq.write_table(table, path, row_group_size=100)
    return str(path)


def normalise(batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    return batch["image"] / 255 - 0.5, batch["label"]


def main(folder: Path) -> None:
    path = write_images(folder)
    decode = {"image": arrowdl.Image((SIZE, SIZE), flip=True)}
    loader = arrowdl.Loader(
        path, batch_size=32, shuffle=True, seed=1, transform_arrow=decode, transform=normalise
    )
    pixels, _ = next(iter(loader))
    print(f"{loader}: pixels {tuple(pixels.shape)}")
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=2),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 2),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    right = 0
    for _ in range(4):
        right = 0
        for pixels, label in loader:
            guess = model(pixels)
            loss = nn.functional.cross_entropy(guess, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int((guess.argmax(1) == label).sum())
    print(f"{right} of 400 right; learned: {right > 340}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(Path(made))
