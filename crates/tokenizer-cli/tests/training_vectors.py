"""Writes fixtures/vectors/training.json: what SentencePiece 0.2.3 and subword-nmt 0.3.8 learn from
small texts, random ones and fixtures. Usage: pip install sentencepiece==0.2.3 subword-nmt==0.3.8 protobuf;
python FILE OUTPUT, in the root of the repository.
"""
import io, json, random, sys, tempfile
import sentencepiece as spm
from sentencepiece import sentencepiece_model_pb2 as protocol
from subword_nmt import learn_bpe
assert spm.__version__ == '0.2.3'
R = random.Random(20261130)
ALPHABETS = ['ab', 'abc', 'abcdefgh', 'aé漢か1', 'абвab12', 'a\u0301b\u0301c', 'ab１2.']
def text(alphabet, lines):
    out = []
    for _ in range(lines):
        words = [''.join(R.choice(alphabet) for _ in range(R.randint(1, R.choice([3, 6, 14])))) for _ in range(R.randint(1, 6))]
        out.append(' '.join(words))
    # Frequent words, as real text has them.
    words = ' '.join(out).split(' ')
    out += [' '.join(R.choice(words[:5]) for _ in range(4)) for _ in range(lines // 2)]
    return out
class Lines(list):
    """Lines that are read from a file: what comes from an iterator loses carriage returns at its end."""
def source(lines):
    if not isinstance(lines, Lines):
        return {'sentence_iterator': iter(lines)}
    FILE.seek(0)
    FILE.truncate()
    FILE.write(''.join(line + '\n' for line in lines).encode())
    FILE.flush()
    return {'input': FILE.name}
FILE = tempfile.NamedTemporaryFile(suffix='.txt')
def sentencepiece(lines, size, **options):
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(**source(lines), model_writer=model, model_type='bpe',
        vocab_size=size, hard_vocab_limit=False, normalization_rule_name='identity', minloglevel=3,
        num_threads=1, **options)
    p = spm.SentencePieceProcessor(model_proto=model.getvalue())
    return [p.id_to_piece(i) for i in range(p.get_piece_size())]
cases = []
OPTIONS = [{}, {}, {}, {'split_by_unicode_script': False}, {'split_by_number': False}, {'split_digits': True},
           {'max_sentencepiece_length': 4}, {'character_coverage': 0.98}, {'split_by_whitespace': False},
           {'user_defined_symbols': ['ab']}, {'byte_fallback': True}]
for i in range(44):
    lines = text(R.choice(ALPHABETS), R.choice([3, 6, 12]))
    options = OPTIONS[i % len(OPTIONS)]
    size = R.choice([40, 60, 120]) + (256 if 'byte_fallback' in options else 0)
    # Where it leaves the order open, runs differ: those are no cases.
    results = {tuple(sentencepiece(lines, size, **options)) for _ in range(3)}
    results.add(tuple(sentencepiece(list(reversed(lines)), size, **options)))
    if len(results) == 1:
        cases.append({'trainer': 'sentencepiece', 'text': lines, 'size': size, 'options': options, 'pieces': list(results.pop())})
print(len(cases), 'of 44', file=sys.stderr)
for i in range(20):
    lines = text(R.choice(ALPHABETS), R.choice([3, 6, 12]))
    least = R.choice([1, 2, 3])
    merges = R.choice([20, 60, 200])
    out = io.StringIO()
    sys.stderr = io.StringIO()  # It writes a bar.
    learn_bpe.learn_bpe([line + '\n' for line in lines], out, merges, least, num_workers=1)
    sys.stderr = sys.__stderr__
    cases.append({'trainer': 'subword-nmt', 'text': lines, 'size': merges, 'options': {'min_frequency': least}, 'pieces': out.getvalue().split('\n')[1:-1]})
def unigram(lines, size, **options):
    """With the default of 16 threads, which is part of the result."""
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(**source(lines), model_writer=model, model_type='unigram',
        vocab_size=size, hard_vocab_limit=False, normalization_rule_name='identity', minloglevel=3, **options)
    proto = protocol.ModelProto.FromString(model.getvalue())
    return {'pieces': [p.piece for p in proto.pieces], 'scores': [p.score for p in proto.pieces]}
OPTIONS += [{'control_symbols': ['ab']}, {'allow_whitespace_only_pieces': True}, {'shrinking_factor': 0.5}]
for i in range(42):
    # The last line is one that was not there before.
    lines = text(R.choice(ALPHABETS), R.choice([6, 12, 40])) + [f'{i} lines end here']
    options = OPTIONS[i % len(OPTIONS)]
    size = R.choice([40, 60, 120]) + (256 if 'byte_fallback' in options else 0)
    cases.append({'trainer': 'sentencepiece-unigram', 'text': lines, 'size': size, 'options': options, **unigram(lines, size, **options)})
for file, size in [('udhr/de', 400), ('udhr/th', 200), ('udhr/ja', 600), ('udhr/hi', 300), ('emoji-names/ko', 800)]:
    file = f'corpora/parallel/{file}.txt'
    lines = open(f'fixtures/{file}', encoding='utf-8').read().split('\n')
    cases.append({'trainer': 'sentencepiece-unigram', 'file': file, 'size': size, 'options': {}, **unigram(lines, size)})
for i in range(10):
    # The last line is a copy, and lines that are empty or become so move others: which one is last
    # decides seeds.
    lines = text(R.choice(ALPHABETS[1:3]), R.choice([6, 12, 40]))
    for _ in range(R.randint(0, 6)):
        lines.insert(R.randint(0, len(lines)), R.choice(['', ' ', '  ', '\t']))
    lines.append(R.choice(lines))
    size = R.choice([30, 40, 60])
    cases.append({'trainer': 'sentencepiece-unigram', 'text': lines, 'size': size, 'options': {}, **unigram(lines, size)})
ODD = ['▅', 'ab ▅ab', '▁', '▁▁ ab', 'ab▁', '\r', 'ab\r', '\t', 'ab ' * 20, 'é' * 25]
LIMITS = [{}, {'max_sentence_length': 40}, {'max_sentence_length': 49}, {'max_sentence_length': 50}]
for i in range(24):
    # Lines that are not read (the mark for unknown characters, too long), that become empty, that end in
    # a carriage return, that hold marks for spaces.
    lines = Lines(text(R.choice(ALPHABETS[:3]), R.choice([6, 12, 40])))
    for _ in range(R.randint(2, 8)):
        lines.insert(R.randint(0, len(lines)), R.choice(ODD))
    if i % 3 == 0:
        lines.append(R.choice(lines))
    options = LIMITS[i % len(LIMITS)]
    size = R.choice([30, 40, 60])
    cases.append({'trainer': 'sentencepiece-unigram', 'text': lines, 'size': size, 'options': options, **unigram(lines, size, **options)})
    results = {tuple(sentencepiece(lines, size, **options)) for _ in range(3)}
    results.add(tuple(sentencepiece(Lines(reversed(lines)), size, **options)))
    if len(results) == 1:
        cases.append({'trainer': 'sentencepiece', 'text': lines, 'size': size, 'options': options, 'pieces': list(results.pop())})
for trainer in ['sentencepiece', 'sentencepiece-unigram']:
    # By default lines of up to 4192 bytes are read.
    lines = ['abc ' * 20, 'x' + 'ya' * 2096, 'xy' * 2096, 'abc cab']
    learned = unigram(lines, 20) if trainer.endswith('unigram') else {'pieces': sentencepiece(lines, 20)}
    cases.append({'trainer': trainer, 'text': lines, 'size': 20, 'options': {}, **learned})
json.dump(cases, open(sys.argv[1], 'w'), ensure_ascii=False, indent=0)
