# Shared by the scripts that build Coq with changes, in a copy of what `coq` built. They read it with `.` when they have
# set `ocaml` (a prefix), after tools/lib.sh.
# shellcheck shell=bash
changed=${BASH_SOURCE[0]}

# copied NAME STEPS: a name for the cache, and the number of calls of `step`. Sets stock, result, log, installed.
copied() {
  name=$1 all_steps=$2 steps=0
  stock=$("$here/bench/workloads/outheap/coq" "$ocaml") || exit
  result=$cache/$name/$("$ocaml/bin/ocamlopt" -version)
  mkdir -p "$cache/log"
  log=$cache/log/$name.log installed=$result/coq/_build/install/default
}

step() { # step COMMAND…
  steps=$((steps + 1))
  watched "building $name, step $steps of $all_steps ($1 ${2:-})" "$log" "$@" </dev/null ||
    die 1 "building $name failed at \`$*\`: $(grep -m1 Error "$log" || tail -1 "$log")"
}

# Replaces a line of a file, which must be there once.
replace() { # replace FILE LINE NEW
  [ "$(grep -cxF -- "$2" "$1")" = 1 ] || die 1 "$1 has no line, or several: $2"
  awk -v old="$2" -v new="$3" '$0 == old {$0 = new} {print}' "$1" >"$1.new" && mv "$1.new" "$1"
}

# A library of Coq's from folders of this repository: its C and OCaml files in one folder, and a file `dune`.
library() { # library COQ NAME FOLDER…
  local coq=$1 library=$2 f; shift 2
  mkdir -p "$coq/$library"
  for f in "$@"; do cp "$f"/*.[ch] "$f"/*.ml "$f"/*.mli "$coq/$library"; done
  cp "$here"/outheap/include/*.h "$coq/$library"
  cat >"$coq/$library/dune" <<DUNE
(library
 (name $library)
 (public_name coq-core.$library)
 (wrapped false)
 (foreign_stubs (language c) (names $(cd "$coq/$library" && printf '%s ' *.c | sed 's/\.c / /g'))
  (flags :standard -O2 -I .)))
DUNE
}

# Copies Coq with what is built of it, calls `change COQ`, and builds it again.
build_changed() { # build_changed WHAT
  local dune; dune=$("$tools/dune" --path)
  export OCAMLFIND_CONF=$result/findlib.conf
  PATH=$(dirname "$dune"):$ocaml/bin:$result/bin:$PATH
  say "building $(tail -1 "$stock/versions") with $1 (some ten minutes, once; log: $log)"
  rm -rf "$result"; mkdir -p "$result"; : >"$log"
  cp -a "$stock/." "$result/"
  sed -i "s|$stock|$result|g" "$result/findlib.conf" "$result/rules"
  rm -f "$result/.complete" "$result/.coq"
  change "$result/coq"
  cd "$result/coq" || exit
  step dune build -p coq-core -j "$jobs" --display=quiet
}

# Compiles a part of the library of Coq; extra words are for make.
compile_changed() { # compile_changed TARGET…
  export OCAMLPATH=$installed/lib:$result/lib OCAMLFIND_CONF=$result/findlib.conf
  cd "$result" || exit
  step make -f rules -j "$jobs" "$@"
}
