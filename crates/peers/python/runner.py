"""Runs Python tokenizers for `crates/peers`: one JSON request a line on stdin, one JSON answer a line on stdout.

Requests and answers (an answer always has "ok"; if false, "error" says why):

{"op": "load", "peer": NAME, "model": {...}}
    -> {"ok": true, "version": "sentencepiece 0.2.3", "seconds": time to the first ids, "cpu": processor time of all threads}
{"op": "encode", "texts": [...], "offsets": false}
    -> {"ok": true, "ids": [[...], ...], "bytes": [[[begin, end], ...], ...] or null}
{"op": "decode", "ids": [[...], ...], "skip_special": true}
    -> {"ok": true, "texts": [...]}
{"op": "texts", "file": PATH}
    reads a UTF-8 text and cuts it into documents of about 2 KB, for "time" -> {"ok": true, "bytes": N, "documents": N}
{"op": "time", "what": "whole" | "documents" | "count" | "batch"}
    -> {"ok": true, "seconds": S, "cpu": S}   ("batch": the documents with two threads; "count": the whole text)
{"op": "memory"} -> {"ok": true, "peak": bytes, "now": bytes}
{"op": "train", "trainer": NAME, "algorithm": NAME, "file": PATH, "vocab": N, "out": PATH}
    -> {"ok": true, "version": ..., "seconds": S, "cpu": S, "tokens": [hex of the bytes of each merged token, in order]}
    of "bpe" the tokens are given; of the others (of `TRAINERS`) the file "out", which is a .model or a tokenizer.json as its ending says

An exception inside of a peer is an answer, not the end. What peers print goes to stderr.
"""

import json
import sys
import time

from adapters import load, train


def main():
    # Peers may write to stdout; the protocol keeps the real one to itself.
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr
    peer, text, documents = None, "", []
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            op = request["op"]
            if op == "load":
                clock = Clock()
                peer = load(request["peer"], request["model"])
                peer.ids("x")
                answer = {"version": peer.version, **clock.stop()}
            elif op == "encode":
                answer = encode(peer, request)
            elif op == "decode":
                skip = request["skip_special"]
                answer = {"texts": [peer.decode(ids, skip) for ids in request["ids"]]}
            elif op == "texts":
                with open(request["file"], encoding="utf-8", newline="") as file:
                    text = file.read()
                documents = cut(text)
                answer = {"bytes": len(text.encode()), "documents": len(documents)}
            elif op == "time":
                run = {
                    "whole": lambda: peer.raw(text),
                    "documents": lambda: [peer.raw(one) for one in documents] and None,
                    "count": lambda: peer.count(text),
                    "batch": lambda: peer.batch(documents),
                }[request["what"]]
                clock = Clock()
                result = run()
                answer = clock.stop()
                del result
            elif op == "memory":
                answer = memory()
            elif op == "train":
                answer = train(request, Clock)
            else:
                raise ValueError(f"unknown op {op!r}")
            answer["ok"] = True
        except BaseException as error:  # A panic of a Rust extension is no Exception.
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


class Clock:
    """Wall and processor time since it was made."""

    def __init__(self):
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def stop(self):
        return {"seconds": time.perf_counter() - self.wall, "cpu": time.process_time() - self.cpu}


def cut(text):
    """Documents of about 2 KB, at line ends where there are some: the same as speed/child.rs makes."""
    data, documents, start = text.encode(), [], 0
    while start < len(data):
        end = min(start + 2048, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1
        if end < len(data):
            line = data.rfind(b"\n", start, end)
            if line > start:
                end = line + 1
        documents.append(data[start:end].decode())
        start = end
    return documents


def memory():
    sizes = {}
    with open("/proc/self/status") as status:
        for line in status:
            name, _, rest = line.partition(":")
            if name in ("VmHWM", "VmRSS"):
                sizes[name] = int(rest.split()[0]) * 1024
    return {"peak": sizes["VmHWM"], "now": sizes["VmRSS"]}


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
