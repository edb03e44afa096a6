"""The text that explains an archive to whoever finds it, and how to check it without this program."""

LEAFLET = """\
Evidence of a suite run
=======================

This archive says what a suite of behavioural tests asked one or more AI agents, what they answered, and what checks and
judges said about the answers. It was written by Muster and signed with an Ed25519 key.

  run.json             the run: what was asked for, when, how it ended, what it cost
  suite.json           the suites and prompts, and where their texts stand
  prompts/             the system prompts under test
  cases.jsonl          every case with everything that was expected of it, one per line
  answers.jsonl        recorded answers, if such were scored instead of asking anybody
  calls.jsonl          every request with its reply: agents, judges, commands
  verdicts.jsonl       every result: status, score, checks, rubric items, judgements
  statistics.json      figures over the results
  environment.json     versions at the time of the run
  redaction.json       how many secrets were taken out of which file; a mark such as [redacted:jwt:1] stands in
                       their place, with the same number wherever the same secret stood
  public-key.pem       the key that belongs to the signature
  statement.dsse.json  an in-toto statement with the SHA-256 of all files above, in a signed DSSE envelope

All JSON is spelled with sorted names and without spaces. Nothing in here depends on when it was exported.

With Muster
-----------

  muster evidence verify FILE --public-key KEY.pub
  muster evidence rescore FILE

The first checks every byte of the archive. The second reads what judges and commands replied, does checks, scores and
figures again, and counts the verdicts against the cases. The key inside of the archive proves that nothing was changed
since it was signed. It does not prove who signed: for that, get the public key from the signer in another way.

By hand
-------

Unpack the archive, go into the folder, and run this with Python and its package "cryptography":

    import base64, hashlib, json, pathlib
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    envelope = json.loads(pathlib.Path("statement.dsse.json").read_bytes())
    kind, payload = envelope["payloadType"].encode(), base64.b64decode(envelope["payload"])
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    key = load_pem_public_key(pathlib.Path("public-key.pem").read_bytes())
    key.verify(base64.b64decode(envelope["signatures"][0]["sig"]), signed)
    for file in json.loads(payload)["subject"]:
        found = hashlib.sha256(pathlib.Path(file["name"]).read_bytes()).hexdigest()
        print("ok     " if found == file["digest"]["sha256"] else "CHANGED", file["name"])
"""
