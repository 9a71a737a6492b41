# corgipile: `make demo` and `make test` are all that a newcomer needs; `make help` lists the rest.

# The PostgreSQL to build for and install into, of a major version that is a feature in Cargo.toml.
PG_CONFIG ?= /usr/lib/postgresql/15/bin/pg_config
# `make test PG=17`: with a PostgreSQL of another major version, which is fetched, and built, if need be.
PG ?=
# `make test TORCH=pypi`: with the newest torch of PyPI instead of Debian's.
TORCH ?=
# Put before the paths of `make install` and `make uninstall`, to build a package.
DESTDIR ?=
# Real data sets: `make test` and `make accuracy` look for them here; `make demo DATA=...` trains on one of them.
TEST_DATA := $(if $(DATA),$(DATA),../shared/data)

CARGO_TARGET_DIR ?= target
export PG_CONFIG CARGO_TARGET_DIR
# where rustup puts cargo if `make deps` has to install it
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)

ifneq ($(PG),)
PG_CONFIG := $(shell CARGO_TARGET_DIR=$(CARGO_TARGET_DIR) scripts/other-postgres $(PG))
CARGO_TARGET_DIR := $(CARGO_TARGET_DIR)/pg$(PG)
endif

LIBRARY := $(CARGO_TARGET_DIR)/release/libcorgipile.so
SOURCES = Cargo.toml Cargo.lock $(shell find src crates/*/src crates/*/Cargo.toml -type f)

.DEFAULT_GOAL := help
.PHONY: help deps build demo test soak bench accuracy study install uninstall installcheck reference lint clean

help: ## List the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 22

deps: ## Install what is missing from Debian's packages, and Rust if there is none
	@scripts/deps

build: deps ## Build the extension in release mode
	@scripts/build

demo: build ## Train on a label-clustered table without shuffling it (DATA=../shared/data: on real data)
	@scripts/with-postgres --library $(LIBRARY) -- demo/run $(DATA)

test: ## Test everything: pure crates, the extension in a real server (PG=17: of another major version), the Python package (TORCH=pypi: with PyPI's torch)
	@TORCH=$(TORCH) scripts/deps --python
	@TORCH=$(TORCH) CORGIPILE_DATA=$(TEST_DATA) scripts/test

soak: build ## Do the worst to a server for long, and write docs/results/faults.md: 200 faults of each kind (MOMENTS=..., SEED=...)
	@MOMENTS=$(MOMENTS) SEED=$(SEED) scripts/soak

bench: build ## Measure speed and write docs/results/speed.md (PARTS="epoch peers": these only)
	@scripts/deps --study
	@benches/run $(PARTS)

accuracy: build ## Compare accuracy with a full shuffle's on real data (DATA=../shared/data)
	@scripts/with-postgres --library $(LIBRARY) -- benches/accuracy/run $(TEST_DATA)

# Autovacuum and checkpoints would disturb what is timed.
study: ## Make docs/results again: tables and figures of all strategies (ONLY=..., SETS=..., QUICK=1: see benches/study/run)
	@scripts/deps --study
	@scripts/build
	@scripts/with-postgres --library $(LIBRARY) --set shared_buffers=2GB --set jit=off --set autovacuum=off \
	  --set max_wal_size=8GB -- env ONLY=$(ONLY) SETS=$(SETS) QUICK=$(QUICK) benches/study/run $(TEST_DATA)

# Not by way of `build`: `sudo make install` should find the library that was built without sudo.
install: $(LIBRARY) ## Install into the PostgreSQL of PG_CONFIG
	@scripts/install $(LIBRARY) "$(DESTDIR)$$($(PG_CONFIG) --pkglibdir)" "$(DESTDIR)$$($(PG_CONFIG) --sharedir)"

$(LIBRARY): $(SOURCES)
	@scripts/build

uninstall: ## Remove what `make install` installed
	@scripts/install --uninstall $(LIBRARY) "$(DESTDIR)$$($(PG_CONFIG) --pkglibdir)" "$(DESTDIR)$$($(PG_CONFIG) --sharedir)"

installcheck: ## Test what is installed in the PostgreSQL of PG_CONFIG, with a cluster of its own
	@CORGIPILE_DATA=$(TEST_DATA) scripts/test --installed

reference: ## Write the pages of docs/reference that come from the catalog and the errors
	@scripts/build --tests
	@scripts/with-postgres --library $(CARGO_TARGET_DIR)/pg_test/release/libcorgipile.so -- \
	  env CORGIPILE_WRITE_REFERENCE=1 cargo test -q -p corgipile-tests --test server pages_of_reference
	@scripts/reference-errors
	@scripts/reference-python

lint: ## Check formatting, the warnings of clippy, shellcheck and ruff, licences of crates, and the SQL with pgspot
	@scripts/deps --study
	@scripts/lint

clean: ## Remove everything that was built
	@rm -rf $(CARGO_TARGET_DIR)
