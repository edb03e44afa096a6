"""Serves a model with llama.cpp until standard input is closed; run by the Python of `.venv-llama`, knows no Muster."""

import json
import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path, params.model_alias = sys.argv[1], {"tiny"}
params.hostnames = ["127.0.0.1"]  # at any free port
params.n_ctx, params.n_parallel = int(sys.argv[2]), 1  # one place: a call that holds it keeps all others out
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.endpoint_slots = params.endpoint_metrics = True
server = xllamacpp.Server(params)
print(json.dumps({"address": server.listening_address}), flush=True)
sys.stdin.read()
