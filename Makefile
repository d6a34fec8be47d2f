# Everything a person types. `make help` lists it; each target sets up what it needs by itself.
SHELL := /bin/sh
NODE := .deps/bin/node
BIN := node_modules/.bin

PAGES ?= 50
PARALLEL ?= 16
FORMAT ?= dual
SITE ?= https://books.toscrape.com/
OUTPUT ?= runs
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo scrape test test-unit test-fast check types lint format bench stack reference package audit sbom chaos clean

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\n  make scrape PAGES=10 PARALLEL=4 FORMAT=csv OUTPUT=out SITE=http://localhost:4100/ ARGS="--arg details=true"\n'

setup: ## bring Node 24 (if needed) and the locked packages into this folder
	@scripts/setup.sh

demo: setup ## scrape the bundled book shop on this machine, misbehaving pages included
	@$(NODE) scripts/demo.ts

scrape: setup ## scrape books: PAGES PARALLEL FORMAT OUTPUT SITE ARGS
	@bin/sluice run books --site "$(SITE)" --arg pages=$(PAGES) --concurrency $(PARALLEL) --format $(FORMAT) --out "$(OUTPUT)" $(ARGS)

test: check ## everything: types, lint, generated docs, all tests on real servers (brought along if missing)
	@$(NODE) scripts/test.ts

test-unit: setup ## the tests beside the code that need no server, browser or second process (about a minute)
	@$(NODE) scripts/test.ts --unit

test-fast: setup ## the tests alone, without those whose server this machine does not have
	@$(NODE) scripts/test.ts --fast

check: setup types lint reference ## types, lint and generated docs only

types: setup
	@$(BIN)/tsc -p . --checkers 2 --incremental --tsBuildInfoFile .deps/types.tsbuildinfo

lint: setup
	@$(BIN)/biome check --error-on-warnings .

reference: setup
	@$(NODE) scripts/reference.ts --check
	@$(NODE) scripts/dashboards.ts --check

format: setup ## put the code into house style
	@$(BIN)/biome check --write .

bench: setup ## speed and memory on this machine, as JSON
	@$(NODE) bench/run-all.ts

chaos: setup ## seeded faults on every engine, nothing may be lost or doubled: SEED MINUTES ENGINES=sqlite,redis
	@SEED="$(SEED)" MINUTES="$(MINUTES)" ENGINES="$(ENGINES)" $(NODE) --disable-warning=ExperimentalWarning scripts/chaos.ts

stack: setup ## docker-compose.yml as processes of this machine, and a job through it: QUEUE BOOKS RPS WORKERS KEEP=1
	@QUEUE="$(QUEUE)" BOOKS="$(BOOKS)" RPS="$(RPS)" WORKERS="$(WORKERS)" KEEP="$(KEEP)" $(NODE) --disable-warning=ExperimentalWarning scripts/stack.ts

package: setup ## the package for npm, sluice-VERSION.tgz: compiled, with types
	@npm pack

audit: setup ## known weaknesses in the packages, where the registry answers
	@$(NODE) scripts/audit.ts

sbom: setup ## write sbom.json: every package a user gets (CycloneDX)
	@$(NODE) scripts/sbom.ts sbom.json

clean: ## remove what make made (runs stay)
	rm -rf .deps node_modules
