"""Trains with SentencePiece 0.2.3 and with `tok train --preset sentencepiece` on random texts, and compares pieces, order
and every bit of the scores. Usage: pip install sentencepiece==0.2.3 protobuf; python FILE TOK SEED TEXTS. A text on
which they differ is written into the current folder, its options are printed, and the program ends with 1.
"""
import collections, io, os, random, subprocess, sys, tempfile
import sentencepiece as spm
from sentencepiece import sentencepiece_model_pb2 as protocol
assert spm.__version__ == '0.2.3'
TOK, SEED, TEXTS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
R = random.Random(SEED)
COMMON = ['ab', 'abc', 'xyz', 'the', 'tion', 'er', ' ', ' ', ' ', 'б', 'д', '中', '文']
ODD = ['▁', '▁▁', '▅', '\0', '\t', '\x0b', '\r', '\u00a0', '\u3000', '\u2028', '\x85', '\ufeff', '\u200b', '\u200d', 'e\u0301', '\u0301',
       'ﬁ', '½', '①', 'Å', '한', '국', 'が', 'か\u3099', '\ufffd', '\x1f', '\x7f', '<s>', '</s>', '<unk>', '<pad>', '\u00ad', '🇩🇪', '👩‍🚀',
       '\u0e33', '\ufffe', '\U0010ffff', '  ', '   ', '1', '２', '漢', 'ー', 'ア', '#', '..', '\x01', 'Ⅳ', 'ß', 'İ']
OPTIONS = {'byte_fallback': True, 'split_digits': True, 'split_by_number': False, 'split_by_unicode_script': False,
           'character_coverage': 0.98, 'max_sentencepiece_length': 5, 'max_sentence_length': 60}
NAMES = {'max_sentencepiece_length': 'max-token-length'}


def text():
    alphabet = R.sample(COMMON, R.randint(3, 8)) + [' '] * 2
    if R.random() < 0.85:
        alphabet += R.sample(ODD, R.randint(1, 8))
    words = [''.join(R.choice(alphabet) for _ in range(R.randint(1, 5))) for _ in range(R.randint(5, 40))]
    lines = []
    for _ in range(R.randint(3, 60)):
        between = R.choice([' ', ' ', ' ', ''])
        lines.append(between.join(R.choice(words) for _ in range(R.randint(0, 8))))
    if R.random() < 0.2:
        lines.append(R.choice(lines) * 1000)
    if R.random() < 0.3:
        lines.insert(R.randint(0, len(lines)), 'a' * R.choice([40, 3000, 4191, 4192, 4193]))
    for _ in range(R.randint(0, 4)):
        lines.insert(R.randint(0, len(lines)), R.choice(['', ' ', '▁', '  ▁', '\r', '\t']))
    if R.random() < 0.3:
        lines.append(R.choice(lines))
    end = R.choice(['\n', '\n', '\n', '\r\n'])
    return end.join(lines) + (end if R.random() < 0.7 else '')


def pieces(model):
    return [(piece.piece, piece.score) for piece in protocol.ModelProto.FromString(model).pieces]


def theirs(path, algorithm, size, rules, options):
    model = io.BytesIO()
    try:
        spm.SentencePieceTrainer.train(input=path, model_writer=model, model_type=algorithm, vocab_size=size,
            hard_vocab_limit=False, normalization_rule_name=rules, minloglevel=3, **options)
    except Exception:  # It refuses.
        return None
    return pieces(model.getvalue())


def ours(path, out, algorithm, size, rules, options):
    names = {name: NAMES.get(name, name.replace('_', '-')) for name in options}
    flags = [f'--{names[name]}' if name == 'byte_fallback' else f'--{names[name]}={str(value).lower()}' for name, value in options.items()]
    arguments = ['train', algorithm, '--preset', 'sentencepiece', '--quiet', '--vocab-limit', 'soft', '--vocab-size', str(size),
                 '--normalizer', 'none' if rules == 'identity' else rules, path, '-o', out, *flags]
    if subprocess.run([TOK, *arguments], capture_output=True).returncode != 0:
        return None
    with open(out, 'rb') as file:
        return pieces(file.read())


def main():
    results = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, 'text.txt'), os.path.join(folder, 't.model')
        for i in range(TEXTS):
            data = text().encode()
            with open(path, 'wb') as file:
                file.write(data)
            algorithm = R.choice(['bpe', 'unigram'])
            rules = R.choice(['nmt_nfkc', 'nmt_nfkc', 'identity', 'nfkc'])
            options = {name: value for name, value in OPTIONS.items() if R.random() < 0.1}
            if 'split_by_unicode_script' in options:
                options.pop('split_by_number', None)
            size = R.choice([60, 100, 200]) + (256 if 'byte_fallback' in options else 0)
            task = (algorithm, size, rules, options)
            a, b = theirs(path, *task), ours(path, out, *task)
            if a is None:
                # It wants characters, and a vocabulary that they fit in.
                results['refused by SentencePiece'] += 1
                continue
            # Where the order of its hash table decides, its own runs differ.
            is_equal = a == b or any(theirs(path, *task) == b for _ in range(5))
            results['equal' if is_equal else 'different'] += 1
            if not is_equal:
                with open(f'different-{SEED}-{i}.txt', 'wb') as file:
                    file.write(data)
                print(i, *task, flush=True)
    print(dict(results))
    sys.exit(results['different'] > 0)


main()
