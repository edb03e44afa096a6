# Every target prepares what it needs by itself; a fresh clone needs nothing but Python 3.11 and make.
BIN := .venv/bin
# Three for each core: many tests wait for a process, a server or a clock.
WORKERS = $(shell $(BIN)/python -c 'import os; print(4 * (os.cpu_count() or 1))')

# Every command that a test starts would compile the whole package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-postgres test-fleet test-claude test-llama test-node check check-pyright chaos bench docs

demo:          ## a real piece of work with no key: killed, resumed, proven; SERVE=1 then serves the page on its store
	@scripts/prepare
	@$(BIN)/muster demo $(if $(SERVE),--serve)

test:          ## the whole suite, with the short form of every crash proof
	@scripts/prepare postgresql redis chromium zsh fish
	scripts/in-memory $(BIN)/pytest --workers $(WORKERS) -m "not chaos and not claude and not llama and not node"

test-postgres: ## the tests of the engine with the store on a real PostgreSQL
	@scripts/prepare postgresql
	MUSTER_TEST_DATABASE=postgres scripts/in-memory $(BIN)/pytest --workers $(WORKERS) -m "not chaos and not claude" tests/engine

test-fleet:    ## the tests of the API against two servers and four workers, with a real PostgreSQL and Redis
	@scripts/prepare postgresql redis
	MUSTER_TEST_FLEET=1 scripts/in-memory $(BIN)/pytest --workers $(WORKERS) -m "not chaos and not claude and not node" tests/api

test-claude:   ## the real Claude Code against the rehearsal server; installs the extra, needs no key
	@scripts/prepare claude
	$(BIN)/pytest -m claude tests/claude --timeout 300

test-llama:    ## a real llama.cpp with a tiny model of random numbers; installs it, 100 MB, in an environment of its own
	@scripts/prepare llama
	$(BIN)/pytest -m llama tests/llama

test-node:     ## a Node program that puts a battle into the queue; installs the packages of the example
	@scripts/prepare redis node
	npm install --prefix examples/node-enqueue --no-audit --no-fund --no-package-lock
	$(BIN)/pytest tests/api/test_fleet.py -m node

check:         ## style and types
	@scripts/prepare
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2

check-pyright: ## that a second type checker agrees about a program of a user
	@scripts/prepare pyright
	$(BIN)/basedpyright --project tests/pyrightconfig.json

chaos:         ## the full proofs and all variants, an hour; kills at system calls need strace and the right to trace
	@scripts/prepare strace redis postgresql chromium
	$(BIN)/pytest -m "chaos or property" --hypothesis-profile full --timeout 900

bench:         ## speed and memory as ratios inside one run
	@scripts/prepare redis postgresql
	$(BIN)/python -m bench

docs:          ## the command reference, made from the code
	@scripts/prepare
	$(BIN)/python -m docs.build
