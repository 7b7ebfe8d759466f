# `make help` lists the targets. Two of them are the tour: `make quickstart` and `make test`.
SHELL := /bin/sh
BIN := .venv/bin
# A person gets a server that stays up; CI (or ONCE=1) gets one that ends when the pool runs.
ONCE ?= $(CI)
PYTEST_ARGS ?=
N ?= 1000
SERVER ?= embedded

.PHONY: help quickstart test check format types layers sizes manifests manifests-check envtest engine node-image e2e-docker engine-stop bench poolbench lock clean dev

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

quickstart: ## the main job: a Cluster and a pool of 3 Machines, Running, in one process
	@tools/bootstrap.sh run
	@$(BIN)/capi up examples/quickstart.yaml --wait $(if $(ONCE),--once --ephemeral,--data-dir .capi)

test: dev ## all tests that this machine can run
	@$(BIN)/python -m pytest -n 2 --dist loadgroup $(PYTEST_ARGS)

dev: ## the virtual environment with all development tools
	@tools/bootstrap.sh dev

check: dev ## lint, types, layers, sizes, generated files
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/basedpyright
	@$(BIN)/lint-imports
	@$(BIN)/python tools/sizes.py
	@$(MAKE) --no-print-directory manifests-check

format: dev ## format and fix what can be fixed
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

manifests: dev ## generate the CRDs from the Python types
	@$(BIN)/python tools/generate_crds.py

manifests-check: dev ## fail if the checked-in CRDs are stale
	@$(BIN)/python tools/generate_crds.py --check

envtest: ## build etcd and kube-apiserver into .envtest (needs Go >= 1.25)
	@tools/envtest/build.sh

engine: ## a Docker engine, made if there is none, and the images of the tests; prints the environment to use
	@tools/engine/images
	@tools/engine/start

node-image: ## the image of a real node on that engine (needs Go >= 1.25)
	@tools/nodeimage/build

e2e-docker: dev ## the tests on a Docker engine; PYTEST_ARGS narrows them
	@tools/engine/images
	@CAPI_REQUIRE_DOCKER=1 tools/engine/run $(BIN)/python -m pytest tests/docker $(PYTEST_ARGS)

engine-stop: ## end the engine that was made; its images stay
	@tools/engine/stop

bench: dev ## baseline: a pool of N=1000 in-memory Machines; prints a table and one JSON line
	@$(BIN)/python bench/pool.py --n $(N)

poolbench: dev ## N=1000 Machines of a neutral provider, `capi manager` on SERVER=embedded or real
	@$(BIN)/python bench/poolbench_on.py $(SERVER) --n $(N)

lock: dev ## resolve the dependencies anew
	@tools/lock.sh

clean: engine-stop ## remove what the targets above made (not your data directory)
	rm -rf .engine .venv .tools .envtest .mypy_cache .ruff_cache .pytest_cache .hypothesis
