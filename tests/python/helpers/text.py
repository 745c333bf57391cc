"""Text, and tokenizers that know its words."""

from __future__ import annotations

import random
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

SPECIAL = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
_SYLLABLES = ["to", "be", "or", "not", "wen", "tion", "is", "the", "that", "é", "语"]


def make_texts(count: int, seed: int = 0) -> list[str]:
    """Texts of 0 to 30 words, some of them not ASCII."""
    draw = random.Random(seed)
    return [
        " ".join(
            "".join(draw.choices(_SYLLABLES, k=draw.randint(1, 3)))
            for _ in range(draw.randint(0, 30))
        )
        for _ in range(count)
    ]


def train() -> Any:
    """A tokenizer that adds "[CLS]" and "[SEP]", ids 1 and 2."""
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=80, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(make_texts(200), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return tokenizer


TOKENIZER = train()
