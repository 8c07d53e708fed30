# OCAML=VERSION or OCAML=PREFIX chooses the compiler: 4.14.1, 5.3.0, 5.4.1, newest, or a prefix. Without it, ocamlfind or ocamlopt in
# PATH, else the newest OCaml 5, built and cached. OCAML=all: the tests run on every version.
OCAML ?=
SECONDS ?= 3600
export OCAML

help:      ## this list
	@sed -nE 's/^([a-z]+): .*## (.*)/make \1\t\2/p' Makefile | expand -t 14
build: ; @tools/build    ## compile the library (static and shared) into _build/
test: ; @tools/test      ## all tests, in minutes once the compilers are there
bench: ; @tools/bench    ## the quick benchmarks beside every rival, with a table and a report
demo: ; @tools/demo      ## a short program that uses roots, with statistics
stress: ; @tools/stress $(SECONDS)   ## random tests with fresh seeds, SECONDS=3600
lint: ; @tools/lint      ## warnings, style, shell scripts
clean: ; rm -rf _build   ## remove everything that was built here
.PHONY: help build test bench demo stress lint clean
