"""Runs Python tokenizers for `crates/peers`: one JSON request a line on stdin, one JSON answer a line on stdout.

Requests and answers (an answer always has "ok"; if false, "error" says why):

{"op": "load", "peer": NAME, "model": {...}}
    -> {"ok": true, "version": "sentencepiece 0.2.3", "seconds": time to the first ids}
{"op": "encode", "texts": [...], "offsets": false}
    -> {"ok": true, "ids": [[...], ...], "bytes": [[[begin, end], ...], ...] or null}
{"op": "decode", "ids": [[...], ...], "skip_special": true}
    -> {"ok": true, "texts": [...]}

An exception inside of a peer is an answer, not the end. What peers print goes to stderr.
"""

import json
import sys
import time

from adapters import load


def main():
    # Peers may write to stdout; the protocol keeps the real one to itself.
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr
    peer = None
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            op = request["op"]
            if op == "load":
                start = time.perf_counter()
                peer = load(request["peer"], request["model"])
                peer.ids("x")
                answer = {"version": peer.version, "seconds": time.perf_counter() - start}
            elif op == "encode":
                answer = encode(peer, request)
            elif op == "decode":
                skip = request["skip_special"]
                answer = {"texts": [peer.decode(ids, skip) for ids in request["ids"]]}
            else:
                raise ValueError(f"unknown op {op!r}")
            answer["ok"] = True
        except BaseException as error:  # A panic of a Rust extension is no Exception.
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def encode(peer, request):
    ids, bytes = [], []
    for text in request["texts"]:
        if request.get("offsets"):
            one, spans = peer.ids_and_bytes(text)
            bytes.append(spans)
        else:
            one = peer.ids(text)
        ids.append([int(i) for i in one])
    return {"ids": ids, "bytes": bytes if request.get("offsets") else None}


if __name__ == "__main__":
    main()
