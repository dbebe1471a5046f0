"""How each Python peer is called. `load(name, model)` gives an object with `version` and `ids(text)`; where the peer can,
also `ids_and_bytes(text)`, `decode(ids, skip_special)`.

A model names files: {"spm": PATH} for a SentencePiece model.
"""

from importlib.metadata import version


class SentencePiece:
    def __init__(self, model):
        import sentencepiece

        self.version = "sentencepiece " + version("sentencepiece")
        self.processor = sentencepiece.SentencePieceProcessor(model_file=model["spm"])

    def ids(self, text):
        return self.processor.encode_as_ids(text)

    def ids_and_bytes(self, text):
        pieces = self.processor.encode(text, out_type="proto").pieces
        return [piece.id for piece in pieces], [[piece.begin, piece.end] for piece in pieces]

    def decode(self, ids, skip_special):
        return self.processor.decode(ids)


PEERS = {"sentencepiece": SentencePiece}


def load(name, model):
    return PEERS[name](model)
