"""Makes the files that tests/independent.rs holds the metrics against.

Two tokenizers are trained by their own libraries on fixture texts (bpe.json by tokenizers,
unigram.model by sentencepiece), and expected.json gets what those libraries and others count and
compute: token counts by tokenizers and sentencepiece, Rényi efficiency by tokenization-scorer,
grapheme clusters by regex, sums, quantiles and the Gini coefficient by numpy, everything else by
the few lines below, which share nothing with the code that they check.

    pip install tokenizers==0.23.3 sentencepiece==0.2.3 tokenization-scorer==1.1.8 numpy regex
    python make.py            # writes expected.json; trains only what is missing
    python make.py --train    # trains anew as well
"""

import importlib.metadata
import io
import json
import math
import pathlib
import re
import sys

import numpy
import regex
import sentencepiece
import tokenization_scorer
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
CORPORA = HERE.parents[3] / "fixtures" / "corpora"
LANGUAGES = ["ar", "de", "en", "fi", "hi", "ko", "th", "vi", "zh-Hans"]
UNSPACED = ["th", "zh-Hans"]
TRAINED_ON = [f"parallel/udhr/{language}.txt" for language in LANGUAGES] + [
    "code/python/attrs.py",
    "generated/emoji.txt",
    "generated/arithmetic.txt",
]


def lines(path, most=10**9):
    """The lines of a fixture that are not empty; a carriage return is no line end of these."""
    text = (CORPORA / path).read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line][:most]


def train():
    texts = [line for path in TRAINED_ON for line in lines(path, 400)]
    if "--train" in sys.argv or not (HERE / "bpe.json").exists():
        bpe = tokenizers.Tokenizer(models.BPE())
        # Without splitting, so that tokens cross every kind of boundary.
        bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        bpe.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=2500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
        )
        bpe.train_from_iterator(texts, trainer)
        text = json.dumps(json.loads(bpe.to_str()), ensure_ascii=False, separators=(",", ":"))
        (HERE / "bpe.json").write_text(text + "\n", encoding="utf-8")
    if "--train" in sys.argv or not (HERE / "unigram.model").exists():
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=model,
            vocab_size=1400,
            model_type="unigram",
            byte_fallback=True,
            normalization_rule_name="identity",
            num_threads=1,
            minloglevel=2,
        )
        (HERE / "unigram.model").write_bytes(model.getvalue())


def byte_table():
    """The bytes that the letters of a byte-level vocabulary stand for."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    table = {chr(byte): byte for byte in shown}
    table.update({chr(256 + n): byte for n, byte in enumerate(hidden)})
    return table


TABLE = byte_table()


class Document:
    """A text, cut by the byte-level model: `ends` are offsets in bytes."""

    def __init__(self, bpe, text):
        self.text, self.raw = text, text.encode("utf-8")
        encoding = bpe.encode(text)
        self.ids = encoding.ids
        self.tokens = [bytes(TABLE[c] for c in token) for token in encoding.tokens]
        assert b"".join(self.tokens) == self.raw
        self.ends = numpy.cumsum([len(token) for token in self.tokens]).tolist()
        self.starts = [0, *self.ends[:-1]]

    def touching(self, start, end):
        """The numbers of the tokens that overlap a span of bytes."""
        return [i for i in range(len(self.tokens)) if self.starts[i] < end and self.ends[i] > start]

    def spans(self, pattern):
        """Byte spans of the matches of a pattern."""
        at = [0]
        for c in self.text:
            at.append(at[-1] + len(c.encode("utf-8")))
        return [(at[m.start()], at[m.end()], m) for m in regex.finditer(pattern, self.text)]


def splits_a_character(token):
    try:
        token.decode("utf-8")
        return False
    except UnicodeDecodeError:
        return True


# From the first to the last letter or number of a word, with the marks on it.
MARK = r"[\p{M}\u200c\u200d]"
CORE = rf"[\p{{Alphabetic}}\p{{N}}](?:\S*[\p{{Alphabetic}}\p{{N}}])?{MARK}*"


def crosses(token):
    """Whether text without its outer white space has letters or numbers, marks aside, and others."""
    inner = token.strip()
    kinds = set()
    for c in inner:
        if regex.match(r"\s", c):
            kinds.add("space")
        elif regex.match(r"[\p{Alphabetic}\p{N}]", c):
            kinds.add("word")
        elif not regex.match(MARK, c):
            kinds.add("other")
    return len(kinds) > 1


OPERATORS = (
    r">>>=|===|!==|\*\*=|<<=|>>=|\.\.\.|\.\.=|->|=>|::|==|!=|<=|>=|&&|\|\||<<|\+=|-=|\*=|/=|%="
    r"|&=|\|=|\^=|:=|<-|\+\+|\*\*|\|>|\.\."
)


def cut_of_number(document, start, end):
    inner = [e - start for e in document.ends if start < e < end]
    return end - start, tuple(inner)


def is_spaced(text):
    """Whether at most half of the letters are of scripts without spaces."""
    letters = regex.findall(r"\p{Alphabetic}", text)
    scripts = ["Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan"]
    unspaced = regex.compile("[" + "".join(rf"\p{{Script={name}}}" for name in scripts) + "]")
    return 2 * sum(bool(unspaced.match(c)) for c in letters) <= len(letters)


def measures(documents, vocab, costs, languages=None, code=False):
    tokens = sum(len(d.tokens) for d in documents)
    size = sum(len(d.raw) for d in documents)
    chars = sum(len(d.text) for d in documents)
    counts = numpy.bincount([i for d in documents for i in d.ids], minlength=vocab)
    lengths = [len(t) for d in documents for t in d.tokens]
    clusters = sum(len(regex.findall(r"\X", d.text)) for d in documents)
    text = "\n".join(" ".join(str(i) for i in d.ids) for d in documents)
    out = {
        "documents": len(documents),
        "bytes": size,
        "tokens": tokens,
        "tokens_of_documents": [len(d.tokens) for d in documents],
        "bytes_per_token": size / tokens,
        "chars_per_token": chars / tokens,
        "tokens_per_grapheme": tokens / clusters,
        "renyi_over_observed": tokenization_scorer.score(text, metric="renyi", power=2.5),
        "renyi_over_vocabulary": tokenization_scorer.score(
            text, metric="renyi", power=2.5, vocab=vocab
        ),
        "shannon_entropy_bits": tokenization_scorer.score(text, metric="shannon_entropy"),
        "vocab_use": numpy.count_nonzero(counts) / vocab,
        "length_quantiles": [
            int(numpy.quantile(lengths, q, method="inverted_cdf")) for q in (0.05, 0.5, 0.95, 1.0)
        ],
        "char_splitting_tokens": sum(splits_a_character(t) for d in documents for t in d.tokens)
        / tokens,
        "bits_per_byte": float(sum(costs[d.ids].sum() for d in documents)) / size,
    }
    languages = languages or ["en"] * len(documents)
    spaced = [d for d, l in zip(documents, languages) if l not in UNSPACED and is_spaced(d.text)]
    if spaced:
        words = sum(len(d.text.split()) for d in spaced)
        out["tokens_per_word"] = sum(len(d.tokens) for d in spaced) / words
        cores = [(d, start, end) for d in spaced for start, end, _ in d.spans(CORE)]
        single = sum(len(d.touching(start, end)) == 1 for d, start, end in cores)
        out["single_token_words"] = single / len(cores)
    whole = [t.decode("utf-8") for d in documents for t in d.tokens if not splits_a_character(t)]
    if len(whole) == tokens:
        out["crossing_tokens"] = sum(map(crosses, whole)) / tokens
    numbers = [
        cut_of_number(d, start, end) for d in documents for start, end, _ in d.spans(r"[0-9]{2,64}")
    ]
    if numbers:
        usual = {}
        for length, cut in numbers:
            usual.setdefault(length, []).append(cut)
        most = sum(max(cuts.count(c) for c in set(cuts)) for cuts in usual.values())
        out["digit_consistency"] = most / len(numbers)
        long = [(n, cut) for n, cut in numbers if n >= 4]
        right = [cut == tuple(sorted(n - k for k in range(3, n, 3))) for n, cut in long]
        if long:
            out["digit_alignment"] = sum(right) / len(long)
    emoji = [
        (d, start, end)
        for d in documents
        for start, end, match in d.spans(r"\X")
        if is_emoji(match.group())
    ]
    if emoji:
        touched = sum(len(d.touching(start, end)) for d, start, end in emoji)
        out["tokens_per_emoji"] = touched / len(emoji)
    if code:
        out.update(code_measures(documents, tokens))
    return out


def is_emoji(cluster):
    """Emoji and modifier sequences, keycaps and flags of UTS #51."""
    keycap = re.fullmatch(r"[0-9#*]\ufe0f?\u20e3", cluster)
    flag = re.fullmatch(r"[\U0001F1E6-\U0001F1FF]{2}", cluster)
    shown = regex.search(r"[\p{Emoji_Presentation}--\U0001F1E6-\U0001F1FF]", cluster, regex.V1)
    chosen = regex.search(r"\p{Emoji}\ufe0f", cluster)
    return bool(keycap or flag or shown or chosen)


def code_measures(documents, tokens):
    indents, touched, single, merged = 0, 0, 0, 0
    operators, whole, across = 0, 0, 0
    for d in documents:
        for start, end, _ in d.spans(r"(?m)^[ \t]+(?=[^ \t\r\n])"):
            over = d.touching(start, end)
            indents += 1
            touched += len(over)
            merged += d.ends[over[-1]] > end
            single += len(over) == 1 and d.ends[over[0]] == end
        for start, end, match in d.spans(rf"(?P<rule>([!%&*+\-./:<=>?^|~])\2{{3,}})|{OPERATORS}"):
            if match.group("rule"):
                continue
            operators += 1
            whole += len(d.touching(start, end)) == 1
        across += sum(
            bool(re.search(rb"[!%&*+\-./:<=>?^|~]", t) and re.search(rb"[0-9A-Za-z_]", t))
            for t in d.tokens
        )
    return {
        "tokens_per_indentation": touched / indents,
        "single_token_indentations": single / indents,
        "merged_indentations": merged / indents,
        "single_token_operators": whole / operators,
        "operator_crossing_tokens": across / tokens,
    }


def main():
    train()
    bpe = tokenizers.Tokenizer.from_file(str(HERE / "bpe.json"))
    vocab = bpe.get_vocab_size()
    parallel = {
        language: [Document(bpe, line) for line in lines(f"parallel/udhr/{language}.txt")]
        for language in LANGUAGES
    }
    # Bits: the distribution of the English text, with half a token more of each.
    seen = numpy.bincount([i for d in parallel["en"] for i in d.ids], minlength=vocab)
    costs = -numpy.log2((seen + 0.5) / (seen.sum() + vocab / 2))
    source = (CORPORA / "code/python/attrs.py").read_text(encoding="utf-8")
    source = source[: source.index("\n", 20000) + 1]
    groups = {
        language: measures(documents, vocab, costs, [language] * len(documents))
        for language, documents in parallel.items()
    }
    groups["code"] = measures([Document(bpe, source)], vocab, costs, code=True)
    for name in ["emoji", "arithmetic"]:
        documents = [Document(bpe, line) for line in lines(f"generated/{name}.txt", 300)]
        groups[name] = measures(documents, vocab, costs)
    sums = numpy.array([groups[language]["tokens"] for language in LANGUAGES], dtype=float)
    differences = numpy.abs(sums[:, None] - sums[None, :])
    unigram = sentencepiece.SentencePieceProcessor(model_file=str(HERE / "unigram.model"))
    expected = {
        "made_by": {
            name: importlib.metadata.version(name)
            for name in ["tokenizers", "sentencepiece", "tokenization-scorer", "numpy", "regex"]
        },
        "groups": groups,
        "premiums": dict(zip(LANGUAGES, sums / sums[LANGUAGES.index("en")])),
        "gini": float(differences.mean() / (2 * sums.mean())),
        "unigram_tokens": {
            language: [len(unigram.encode(line)) for line in lines(f"parallel/udhr/{language}.txt")]
            for language in LANGUAGES
        },
    }
    assert all(math.isfinite(x) for x in expected["premiums"].values())
    text = json.dumps(expected, ensure_ascii=False, indent=1)
    # Lists of counts on one line.
    text = re.sub(r"\[\s+((?:\d+,\s+)*\d+)\s+\]", lambda m: "[" + " ".join(m.group(1).split()) + "]", text)
    (HERE / "expected.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
