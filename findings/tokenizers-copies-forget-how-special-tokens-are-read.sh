#!/usr/bin/env bash
# A tokenizers 0.23.3 Tokenizer whose `encode_special_tokens` is True reads the text of a special token in a document as
# text, so that a document cannot end itself. A copy (pickle, copy.deepcopy, to_str) has False: a DataLoader's
# spawned worker gets a copy, and encodes other ids than the process that made the tokenizer, without a word.
# Seen: [4, 5, 3, 7, 6] before, [4, 1, 6] for each copy, where 1 is the id of the special token.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tokenizers==0.23.3
"$folder/venv/bin/python" - <<'EOF'
import copy
import pickle

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Punctuation, Sequence, Whitespace

words = {"[UNK]": 0, "<end>": 1, "end": 3, "a": 4, "<": 5, "b": 6, ">": 7}
tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
tokenizer.pre_tokenizer = Sequence([Whitespace(), Punctuation()])
tokenizer.add_special_tokens(["<end>"])
tokenizer.encode_special_tokens = True
text = "a <end> b"
ids = tokenizer.encode(text).ids
print(ids)
assert 1 not in ids
for copied in (
    pickle.loads(pickle.dumps(tokenizer)),
    copy.deepcopy(tokenizer),
    Tokenizer.from_str(tokenizer.to_str()),
):
    print(copied.encode(text).ids)
    assert copied.encode_special_tokens is False
    assert 1 in copied.encode(text).ids
EOF
