"""Train on images and text in Parquet files; stop, and go on with another number of processes.

torchrun --nproc-per-node=2 examples/train_ddp.py data   # of train_ddp_data.py
"""

import argparse
from pathlib import Path

import arrowdl
import torch
import torch.distributed as dist
from tokenizers import Tokenizer
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("data", type=Path, help="the folder that train_ddp_data.py wrote")
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--tensorboard", metavar="FOLDER", help="needs: pip install tensorboard")
BATCH_SIZE, EVERY = 48, 10  # rows of a step on all ranks; steps between checkpoints


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Sequential(nn.Conv2d(3, 16, 5, 2), nn.AdaptiveMaxPool2d(1), nn.Flatten())
        self.read = nn.EmbeddingBag(32, 16, padding_idx=0)
        self.judge = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, image: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        return self.judge(torch.cat([self.look(image / 255 - 0.5), self.read(ids)], 1))


def make_loader(data: Path, split: str, device: torch.device) -> arrowdl.Loader:
    image = arrowdl.Image((32, 32), crop="random" if split == "train" else "center", threads=2)
    text = arrowdl.Tokenize(Tokenizer.from_file(f"{data}/tokenizer.json"), max_length=16)
    return arrowdl.Loader(
        data / split,
        ranks=arrowdl.Ranks(global_batch_size=BATCH_SIZE, splits=12),
        transform_arrow={"image": image, "text": text},
        ragged={"text": arrowdl.Padded(0, multiple=8)},
        shuffle=split == "train",
        pad_last=True,  # full batches, with a column "valid"
        device=device,
        progress=dist.get_rank() == 0 and arrowdl.Report(every=10, function=print),
    )


def measure(model: nn.Module, batch: dict, device: torch.device) -> torch.Tensor:
    with torch.autocast(device.type, torch.bfloat16):
        logits = model(batch["image"], batch["text"][0]).float()
    losses = nn.functional.cross_entropy(logits, batch["label"], reduction="none")
    right = logits.argmax(1) == batch["label"]
    return torch.stack([losses, right, torch.ones_like(losses)]) @ batch["valid"].float()  # sums


def main() -> None:
    args = parser.parse_args()
    dist.init_process_group()  # NCCL on GPUs, gloo on CPUs
    if torch.cuda.is_available():
        torch.cuda.set_device(dist.get_node_local_rank())
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train, test = (make_loader(args.data, split, device) for split in ("train", "test"))
    model = nn.parallel.DistributedDataParallel(Model().to(device))
    optimizer, step = torch.optim.AdamW(model.parameters(), 3e-3), 0
    path, parts = args.data / "checkpoint.pt", (model.module, optimizer, train)
    if path.exists():
        step, *states = torch.load(path, map_location=device)
        for part, state in zip(parts, states, strict=True):
            part.load_state_dict(state)
    if args.tensorboard and dist.get_rank() == 0:
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(args.tensorboard)

    def record(name: str, sums: torch.Tensor) -> None:
        dist.all_reduce(sums)
        if dist.get_rank() == 0:  # the state of one rank is that of all
            loss, right, rows = sums.tolist()
            print(f"step {step}, {name}: loss {loss / rows:.3f}, {right:.0f} of {rows:.0f} right")
            torch.save([step, *(part.state_dict() for part in parts)], path.with_suffix(".tmp"))
            path.with_suffix(".tmp").replace(path)
            if args.tensorboard:
                writer.add_scalar(f"loss/{name}", loss / rows, step)

    while train.epoch < args.epochs:
        for batch in train:
            sums = measure(model, batch, device)
            optimizer.zero_grad()
            (sums[0] * dist.get_world_size() / BATCH_SIZE).backward()  # DDP: the mean of ranks
            optimizer.step()
            step += 1
            if step % EVERY == 0:
                record("train", sums.detach())
        with torch.no_grad():
            record("test", sum(measure(model.module, batch, device) for batch in test))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
