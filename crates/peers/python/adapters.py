"""How each Python peer is called.

`load(name, model)` gives an object with `version`, `ids(text)` (a list), and for times `raw(text)` (the peer's fastest form of
ids), `batch(texts)` with two threads and `count(text)`, the last two where the peer has them. SentencePiece also has
`ids_and_bytes(text)` and `decode(ids, skip_special)`.

`model` names what there is: "encoding" (cl100k_base ..) with its "tiktoken" ranks and "pattern", "json" (a tokenizer.json), "spm"
(a SentencePiece model). A peer takes what it can read.
"""

import base64
import json
import os
from importlib.metadata import version

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("RAYON_NUM_THREADS", "2")


class Peer:
    package = None

    def __init__(self, model):
        self.version = f"{self.package} {version(self.package)}"
        self.open(model)

    def raw(self, text):
        return self.ids(text)

    def batch(self, texts):
        raise NotImplementedError("has no batch")

    def count(self, text):
        raise NotImplementedError("has no count")


class Tiktoken(Peer):
    package = "tiktoken"

    def open(self, model):
        import tiktoken

        with open(model["tiktoken"], "rb") as file:
            ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in file)}
        self.encoding = tiktoken.Encoding("peer", pat_str=model["pattern"], mergeable_ranks=ranks, special_tokens={})
        self.ids = self.encoding.encode_ordinary
        self.raw = self.encoding.encode_to_numpy

    def batch(self, texts):
        return self.encoding.encode_ordinary_batch(texts, num_threads=2)


class Tokenizers(Peer):
    package = "tokenizers"

    def open(self, model):
        import tokenizers

        self.tokenizer = tokenizers.Tokenizer.from_file(model["json"])
        self.tokenizer.encode_special_tokens = True

    def ids(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def raw(self, text):
        # The only call that leaves offsets out.
        return self.tokenizer.encode_batch_fast([text], add_special_tokens=False)

    def batch(self, texts):
        return self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)


class SentencePiece(Peer):
    package = "sentencepiece"

    def open(self, model):
        import sentencepiece

        self.processor = sentencepiece.SentencePieceProcessor(model_file=model["spm"])
        self.ids = self.processor.encode_as_ids

    def batch(self, texts):
        return self.processor.encode(texts, num_threads=2)

    def ids_and_bytes(self, text):
        pieces = self.processor.encode(text, out_type="proto").pieces
        return [piece.id for piece in pieces], [[piece.begin, piece.end] for piece in pieces]

    def decode(self, ids, skip_special):
        return self.processor.decode(ids)


class Gigatoken(Peer):
    package = "gigatoken"

    def open(self, model):
        import gigatoken

        if "json" in model:
            self.tokenizer = gigatoken.Tokenizer(model["json"])
        else:
            self.tokenizer = gigatoken.Tokenizer.from_sentencepiece(model["spm"])
        self.raw = self.tokenizer.encode
        self.batch = self.tokenizer.encode_batch

    def ids(self, text):
        return self.tokenizer.encode(text).tolist()


class Fastokens(Peer):
    package = "fastokens"

    def open(self, model):
        import fastokens

        self.tokenizer = fastokens.Tokenizer.from_tiktoken(model["tiktoken"], encoding=model["encoding"])
        self.raw = self.tokenizer.encode_ordinary
        self.batch = self.tokenizer.encode_batch_flat

    def ids(self, text):
        return self.tokenizer.encode_ordinary(text).ids


class Splintr(Peer):
    package = "splintr-rs"

    def open(self, model):
        import splintr

        if "encoding" in model:
            self.tokenizer = splintr.Tokenizer.from_pretrained(model["encoding"])
            self.ids = self.tokenizer.encode_ordinary
            self.raw = self.tokenizer.encode_flat
        else:
            self.tokenizer = splintr.from_json(model["json"])
            self.ids = self.raw = getattr(self.tokenizer, "encode_raw", self.tokenizer.encode)
        self.batch = self.tokenizer.encode_batch


class Tokie(Peer):
    package = "tokie"

    def open(self, model):
        import tokie

        self.tokenizer = tokie.Tokenizer.from_json(model["json"])
        self.count = self.tokenizer.count_tokens

    def raw(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False)

    def ids(self, text):
        return self.raw(text).ids

    def batch(self, texts):
        return self.tokenizer.encode_batch_flat(texts, add_special_tokens=False)


class Quicktok(Peer):
    package = "quicktok-v1"

    def open(self, model):
        import quicktok

        self.tokenizer = quicktok.get_encoding(model["encoding"])
        self.ids = self.raw = self.tokenizer.encode_ordinary
        self.count = self.tokenizer.count
        self.batch = self.tokenizer.encode_batch


class Nanotoken(Peer):
    package = "nanotoken"

    def open(self, model):
        import nanotoken

        with open(model["json"], encoding="utf-8") as file:
            document = json.load(file)
        # It knows one decoder; ids do not depend on it.
        document["decoder"] = {"type": "WordPiece", "prefix": "##", "cleanup": True}
        self.tokenizer = nanotoken.WordPieceTokenizer.from_json(json.dumps(document))

    def ids(self, text):
        ids = list(self.tokenizer.encode(text))
        before, after = len(self.tokenizer.prefix_ids), len(self.tokenizer.suffix_ids)
        return ids[before : len(ids) - after]

    def raw(self, text):
        return self.tokenizer.encode(text)

    def batch(self, texts):
        return self.tokenizer.encode_batch(texts)


PEERS = {
    "tiktoken": Tiktoken,
    "tokenizers": Tokenizers,
    "sentencepiece": SentencePiece,
    "gigatoken": Gigatoken,
    "fastokens": Fastokens,
    "splintr-rs": Splintr,
    "tokie": Tokie,
    "quicktok-v1": Quicktok,
    "nanotoken": Nanotoken,
}


def load(name, model):
    return PEERS[name](model)


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def train(request, clock):
    """Trains; the time is of the call alone, which reads the text. `clock` starts one."""
    make = TRAINERS[request["trainer"], request["algorithm"]]
    tokens, times = make(request["file"], request["vocab"], request["out"], clock)
    package = request["trainer"]
    return {"version": f"{package} {version(package)}", "tokens": tokens, **times}


def bpe_tokenizers(path, vocab, _out, clock):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    level = pre_tokenizers.ByteLevel
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = level(add_prefix_space=False)
    options = trainers.BpeTrainer(
        vocab_size=vocab, initial_alphabet=level.alphabet(), show_progress=False, special_tokens=[]
    )
    running = clock()
    tokenizer.train([path], options)
    times = running.stop()
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [spelled(left) + spelled(right) for left, right in merges], times


def bpe_gigabpe(path, vocab, _out, clock):
    import gigabpe

    running = clock()
    _, merges = gigabpe.train_bpe([path], vocab, special_tokens=[], pretokenizer="bytelevel", threads=2)
    times = running.stop()
    return [spelled(left) + spelled(right) for left, right in merges], times


def bpe_rustbpe(path, vocab, _out, clock):
    import rustbpe

    tokenizer = rustbpe.Tokenizer()
    with open(path, encoding="utf-8", newline="\n") as lines:
        running = clock()
        tokenizer.train_from_iterator(lines, vocab, pattern=GPT2)
        times = running.stop()
    ranks = sorted(tokenizer.get_mergeable_ranks(), key=lambda pair: pair[1])
    return [bytes(token).hex() for token, rank in ranks if rank >= 256], times


def unigram_sentencepiece(path, vocab, out, clock):
    """On the terms of ours: white space is kept, and nothing but white space bounds a piece."""
    import sentencepiece

    running = clock()
    sentencepiece.SentencePieceTrainer.train(
        input=path,
        model_prefix=out.removesuffix(".model"),
        model_type="unigram",
        vocab_size=vocab,
        num_threads=2,
        max_sentence_length=1_000_000,
        remove_extra_whitespaces=False,
        split_by_unicode_script=False,
        split_by_number=False,
        minloglevel=2,
    )
    return None, running.stop()


def sentencepiece_preset(model_type):
    """With its defaults; 16 threads, because their number is part of what Unigram gives."""

    def train(path, vocab, out, clock):
        import sentencepiece

        running = clock()
        sentencepiece.SentencePieceTrainer.train(
            input=path,
            model_prefix=out.removesuffix(".model"),
            model_type=model_type,
            vocab_size=vocab,
            max_sentence_length=1_000_000,
            minloglevel=2,
        )
        return None, running.stop()

    return train


def unigram_tokenizers(path, vocab, out, clock):
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    options = trainers.UnigramTrainer(
        vocab_size=vocab,
        special_tokens=["<unk>", "<s>", "</s>"],
        unk_token="<unk>",
        show_progress=False,
        shrinking_factor=0.75,
        n_sub_iterations=2,
        max_piece_length=16,
    )
    running = clock()
    tokenizer.train([path], options)
    times = running.stop()
    tokenizer.save(out)
    return None, times


def wordpiece_tokenizers(path, vocab, out, clock):
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    options = trainers.WordPieceTrainer(vocab_size=vocab, special_tokens=["[UNK]"], show_progress=False)
    running = clock()
    tokenizer.train([path], options)
    times = running.stop()
    tokenizer.save(out)
    return None, times


TRAINERS = {
    ("tokenizers", "bpe"): bpe_tokenizers,
    ("gigabpe", "bpe"): bpe_gigabpe,
    ("rustbpe", "bpe"): bpe_rustbpe,
    ("sentencepiece", "unigram"): unigram_sentencepiece,
    ("sentencepiece", "unigram-preset"): sentencepiece_preset("unigram"),
    ("sentencepiece", "bpe-preset"): sentencepiece_preset("bpe"),
    ("tokenizers", "unigram"): unigram_tokenizers,
    ("tokenizers", "wordpiece"): wordpiece_tokenizers,
}


def spelled(token):
    """The hex of the bytes that a byte-level token spells."""
    return bytes(BYTES[c] for c in token).hex()


def _bytes():
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in kept]
    table = {chr(byte): byte for byte in kept}
    table.update({chr(0x100 + n): byte for n, byte in enumerate(others)})
    return table


BYTES = _bytes()
