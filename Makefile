# corgipile: `make demo` and `make test` are all that a newcomer needs; `make help` lists the rest.

# The pg_config of the PostgreSQL to build for and install into. Default: the distribution's own (scripts/pg-config).
PG_CONFIG ?=
# `make test PG=17`: with a PostgreSQL of another major version, which is fetched, and built, if need be.
PG ?=
# `make test TORCH=pypi`: with the newest torch of PyPI instead of Debian's.
TORCH ?=
# Put before the paths of `make install` and `make uninstall`, to build a package.
DESTDIR ?=
# Real data sets: `make test` and `make accuracy` look for them here.
TEST_DATA := $(if $(DATA),$(DATA),../shared/data)

CARGO_TARGET_DIR ?= target
# Names of targets have no blanks, for make.
ifneq ($(words $(CARGO_TARGET_DIR)),1)
$(error CARGO_TARGET_DIR is '$(CARGO_TARGET_DIR)': it must be a path without blanks)
endif
# A relative one would be below this source tree.
ifneq ($(filter-out /%,$(firstword $(DESTDIR))),)
$(error DESTDIR is '$(DESTDIR)': it must be an absolute path)
endif
export PG_CONFIG CARGO_TARGET_DIR
# where rustup puts cargo if `make deps` has to install it
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)

# Packages are of the PostgreSQL that Debian's packages have, and take PG=17 for that.
ifneq ($(and $(PG),$(filter-out deb image,$(or $(MAKECMDGOALS),help))),)
PG_CONFIG := $(shell CARGO_TARGET_DIR=$(CARGO_TARGET_DIR) scripts/other-postgres $(PG))
ifneq ($(.SHELLSTATUS),0)
$(error there is no PostgreSQL $(PG), see above)
endif
# where `make test` has what is the same for all versions
export COMMON_TARGET_DIR := $(CARGO_TARGET_DIR)
CARGO_TARGET_DIR := $(CARGO_TARGET_DIR)/pg$(PG)
endif

LIBRARY := $(CARGO_TARGET_DIR)/release/libcorgipile.so
TEST_LIBRARY := $(CARGO_TARGET_DIR)/debug/libcorgipile.so
SOURCES = Cargo.toml Cargo.lock $(shell find src crates/*/src crates/*/Cargo.toml -type f)

.DEFAULT_GOAL := help
.PHONY: all help deps build demo check test test-all test-extensions pgrx-test python wheel architectures miri soak bench accuracy study results docs install uninstall installcheck deb deb-test rpm dist image release fresh reference lint clean

help: ## List the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 22

deps: ## Install what is missing from the distribution's packages, and Rust if it is missing
	@scripts/deps

build: deps ## Build the extension in release mode, to install and to measure
	@scripts/build --release

# With the build of the tests, which takes a fraction of the time of a release build; its epochs take longer.
demo: deps ## Train on a sorted table in four orders, and see what each costs and gives
	@scripts/build
	@scripts/with-postgres --library $(TEST_LIBRARY) -- demo/run

check: deps ## For each edit: formatting, clippy, unit tests of the pure crates, and a few tests in a server
	@scripts/check

test: ## Test everything: pure crates, the extension in a real server (PG=17: another version), the Python package (TORCH=pypi: with PyPI's torch)
	@TORCH=$(TORCH) scripts/deps --python
	@PG=$(PG) TORCH=$(TORCH) CORGIPILE_DATA=$(TEST_DATA) scripts/test

test-all: export CORGIPILE_FULL := 1
test-all: test ## All of `make test`, with every sample in full, and what takes too long for it: cargo pgrx, other versions, other clients

test-extensions: deps ## Test the extension in a server that has preloaded all other extensions it has (PG=17-extensions: one that has many; TESTS=...)
	@CORGIPILE_DATA=$(TEST_DATA) scripts/test-extensions $(TESTS)

pgrx-test: deps ## Try cargo pgrx install and cargo pgrx test with a private copy of PostgreSQL
	@scripts/pgrx

python: deps ## Test the Python package only (TORCH=pypi: with PyPI's torch)
	@TORCH=$(TORCH) scripts/deps --python
	@scripts/build
	@scripts/with-postgres --library $(TEST_LIBRARY) -- env TORCH=$(TORCH) scripts/python-test

wheel: deps ## Build the wheels of the Python package into target/wheels: corgipile, corgipile-loader and corgipile-joader
	@scripts/deps --python
	@scripts/wheel

architectures: build ## Run the tests of the pure crates as 64-bit ARM and as the oldest x86-64 would, and a server as the latter (PARTS="baseline server")
	@scripts/architectures $(PARTS)

miri: ## Run the unit tests of crates allocation and simd under Miri, where nightly Rust has it
	@scripts/miri

soak: build ## Do the worst to a server for long, and write target/results/faults.md: 200 faults of each kind (MOMENTS=..., SEED=...)
	@MOMENTS=$(MOMENTS) SEED=$(SEED) scripts/soak

bench: build ## Measure speed and write docs/results/speed.md (PARTS="epoch peers": these only)
	@scripts/deps --study
	@benches/run $(PARTS)

accuracy: build ## Compare accuracy with a full shuffle's on real data (DATA=../shared/data)
	@scripts/with-postgres --library $(LIBRARY) -- benches/accuracy/run $(TEST_DATA)

# Autovacuum and checkpoints would disturb what is timed.
study: ## Measure all strategies, and write the pages of docs/results and the CSV files of target/results (ONLY=..., SETS=..., QUICK=1: see benches/study/run)
	@scripts/deps --study
	@scripts/build --release
	@scripts/with-postgres --library $(LIBRARY) --set shared_buffers=2GB --set jit=off --set autovacuum=off \
	  --set max_wal_size=8GB -- env ONLY=$(ONLY) SETS=$(SETS) QUICK=$(QUICK) benches/study/run $(TEST_DATA)

results: ## Pack what docs/results has and what was measured here (target/results), to publish with a release
	@scripts/results

# What PGXN's client calls first. It installs nothing, as `build` may.
all: $(LIBRARY)

# Not by way of `build`: `sudo make install` should find the library that was built without sudo.
install: $(LIBRARY) ## Install into the PostgreSQL of PG_CONFIG
	@pg_config=$$(scripts/pg-config) && \
	  scripts/install --major "$$(scripts/pg-config --major)" $(LIBRARY) \
	  "$(DESTDIR)$$("$$pg_config" --pkglibdir)" "$(DESTDIR)$$("$$pg_config" --sharedir)"

$(LIBRARY): $(SOURCES)
	@scripts/build --release

uninstall: ## Remove what `make install` installed
	@pg_config=$$(scripts/pg-config) && scripts/install --uninstall \
	  "$(DESTDIR)$$("$$pg_config" --pkglibdir)" "$(DESTDIR)$$("$$pg_config" --sharedir)"

installcheck: ## Test what is installed in the PostgreSQL of PG_CONFIG, with a cluster of its own (TESTS=...: whose names have this)
	@PG=$(PG) CORGIPILE_DATA=$(TEST_DATA) scripts/test --installed $(TESTS)

deb: deps ## Build Debian packages, for each PostgreSQL that has its headers here, into target/deb (PG=17: for this one)
	@scripts/deb $(PG)

deb-test: ## Install, upgrade and purge the packages of `make deb` on a machine of their own
	@scripts/deb-test

rpm: deps ## Build an RPM package for the PostgreSQL of PG_CONFIG into target/rpm (PG=17: for another version)
	@scripts/rpm

dist: ## Make the zip for PGXN, in target/dist
	@scripts/dist

image: ## Build the container image of packaging/Containerfile, or try its steps where no builder is
	@PG=$(PG) scripts/image $(SUITE)

release: ## Check that everything is ready for a release, run all tests, build all packages, and say what to publish
	@scripts/release

fresh: ## Try `make demo` and `make test` on a fresh machine: SUITE=bookworm, trixie, ... (WHO=root or user, DO=demo: these only)
	@scripts/fresh "$(SUITE)" $(or $(WHO),both) $(DO)

docs: ## Make the site of the documents in target/docs/site, and check its links
	@scripts/docs

reference: ## Write the pages of docs/reference that come from the catalog and the errors
	@scripts/build
	@scripts/with-postgres --library $(TEST_LIBRARY) -- \
	  env CORGIPILE_WRITE_REFERENCE=1 cargo test -q -p corgipile-tests --test server pages_of_reference
	@scripts/reference-errors
	@scripts/reference-python

lint: ## Check formatting, the warnings of clippy, shellcheck and ruff, licences of crates, and the SQL with pgspot
	@scripts/deps --study
	@scripts/lint

clean: ## Remove everything that was built
	@scripts/clean
