# The targets only call the scripts in tools/, which read the same variables. What is given on the command line reaches
# them by itself; others must not be set: dune installs elsewhere where DESTDIR is, even if it is empty.
#   OCAML=VERSION or OCAML=PREFIX chooses the compiler: 4.14.1, 5.3.0, newest, … or the folder where an OCaml is
#   installed. Without it, the ocamlfind or ocamlopt in PATH; if there is none, the newest OCaml 5, which is built once
#   and cached. BUILD=FOLDER builds there instead of in _build/. BOXROOT_INSTALL=no never calls apt-get to install what
#   is missing.
OCAML ?=
SECONDS ?= 3600
BUILD ?=
export OCAML BUILD

help:                         ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' Makefile | expand -t 18
	@echo 'OCAML=5.3.0 or OCAML=PREFIX chooses the compiler.'
build: ; @tools/build         ## the C library, static and shared, in _build/lib/
install: ; @tools/install     ## what `make build` makes, with files for CMake and pkg-config; PREFIX=…, DESTDIR=…
uninstall: ; @tools/install --uninstall      ## the reverse, with the same PREFIX and DESTDIR
amalgamation: ; @tools/amalgamate            ## the library as two files for a binding, in _build/amalgamation/
outheap: ; @tools/outheap "$(OCAML)"         ## the runtime variant for the compiler at hand, in _build/outheap/
test: ; @tools/test           ## what one compiler can test: 9 minutes
test-all: ; @tools/test --everything         ## every version of OCaml in every flavour: hours
test-timing: ; @tools/test --timing          ## what the clock decides: reported, never failed
fresh: ; @tools/fresh         ## this file's test and bench on a new Debian system, in a chroot; needs root
coverage: ; @tools/coverage   ## which lines of the C sources the tests reach
demo: ; @tools/demo "$(OCAML)"               ## a short program that uses roots, with statistics
bench: ; @tools/bench && tools/bench --suite rust       ## the quick benchmarks beside every rival: a table and a report
bench-outheap: ## the same for Outheap: marking, compaction, ocamlopt and Coq
	@tools/bench --suite outheap --only marking,structures,compaction,ocamlopt,coq
bench-regions: ## regions and hash-consing, beside the heap: an hour and a half
	@tools/bench --suite outheap --full --only regions,theories,hashcons,crowded,dictionary,coq\ images
bench-memory: ## memory that goes back without a call, beside the stock runtime: half an hour
	@tools/bench --suite outheap --full --only follow
bench-full: ; @tools/bench-full              ## for the record, all sizes and rivals, 5.5.2 and 4.14.1: hours; ROUNDS=…
stress: ; @tools/test --everything --stress $(SECONDS)   ## random tests with fresh seeds, in all flavours; SECONDS=3600
docs: ; @tools/docs           ## the documents as a site with search, in _build/docs/site/
lint: ; @tools/lint           ## warnings of every compiler, style, shell scripts
clean: ; @$(if $(BUILD),echo 'not removed: $(BUILD)',rm -rf _build)           ## remove everything that was built here
.PHONY: help build install uninstall amalgamation outheap test test-all test-timing fresh coverage demo bench \
  bench-outheap bench-regions bench-memory bench-full stress lint clean docs
