# Read by the scripts `build` of this folder's bindings, after tools/lib.sh: a binding from Debian's source package and
# what it needs, as one dune workspace for each state, `before` and `after` the patch; Boxroot is an installed package.
# shellcheck shell=bash

# binding NAME PREFIX: sets $example, $ocaml, $version, $result and $log, and the environment of dune.
binding() {
  example=$bindings/$1
  ocaml=$(ocaml_prefix "$2")
  version=$("$ocaml/bin/ocamlopt" -version) result=$cache/bindings/$1-$version log=$cache/log/binding-$1-$version.log
  mkdir -p "$cache/log" "$cache/bindings"
  local dune; dune=$("$tools/dune" --path)
  export PATH=$ocaml/bin:$(dirname "$dune"):$PATH OCAMLPATH=$result/installed/lib OCAMLFIND_CONF=/dev/null
  unset OCAMLPARAM OCAMLRUNPARAM CAML_LD_LIBRARY_PATH
}

step() { # step WHAT COMMAND…
  local what=$1 from; shift
  : >>"$log"; from=$(($(wc -c <"$log") + 1)) # earlier steps wrote what comes before
  watched "$(basename "$example"): $what" "$log" "$@" </dev/null ||
    die 1 "$what failed at \`$*\`: $(reason "$from") (log: $log)"
}

reason() { # reason FROM: the first line that says what failed, in the log from this byte on, or the last one
  local said; said=$(tail -c +"$1" "$log")
  grep -m1 -E '^(Error|FAILED|Fatal error)|(^|: )(fatal )?error: ' <<<"$said" || tail -1 <<<"$said"
}

# sources SUITE PACKAGE [PATTERN…]: the upstream sources, or what of them matches, in $result/source/PACKAGE; their
# version goes into $result/versions.
sources() {
  local suite=$1 package=$2 found; local apt_dir=$cache/apt-$1; shift 2
  [ -n "$(find "$apt_dir/refreshed" -mtime -1 2>/dev/null)" ] || apt_refresh
  found=$(apt_private apt-cache showsrc "$package" | sed -n 's/^Version: //p' | sort -V | tail -1)
  [ -n "$found" ] || die 3 "Debian's $suite has no source package $package"
  apt_source "$package" "$found" "$result/source/$package" "$@"
  echo "$package $found" >>"$result/versions"
}


# names NAME…: libraries without code, since OCaml's own has what these gave to older versions of OCaml. In the current
# folder, as the next one.
names() {
  local name
  for name; do
    mkdir "$name"
    echo "(library (name ${name//-/_}) (public_name $name) (wrapped false))" >"$name/dune"
    echo "(package (name $name))" >>dune-project
  done
}

# configurator: dune's library for tests of the system, of the sources of dune.
configurator() {
  cp -a "$result/source/ocaml-dune/otherlibs/configurator/src" configurator
  cp -a "$result/source/ocaml-dune/vendor/csexp/src" csexp
  sed -i 's/stdune\.csexp/csexp/' csexp/dune
  printf '(package (name %s))\n' dune-configurator csexp dune >>dune-project
  echo '(deprecated_library_name (old_public_name dune.configurator) (new_public_name dune-configurator))' >>dune
}

# boxroot_package: Boxroot of this clone, installed into $result/installed as its users install it.
boxroot_package() {
  local folder=$result/boxroot
  mkdir -p "$folder"
  cp -a "$here/boxroot" "$folder/boxroot"
  printf '(lang dune 3.11)\n(name boxroot)\n(package (name boxroot))\n' >"$folder/dune-project"
  cd "$folder"
  step 'building Boxroot' dune build -p boxroot @install
  step 'installing Boxroot' dune install -p boxroot --prefix "$result/installed"
}

# once FUNCTION FILE…: calls FUNCTION in an empty $result unless that was done from the same FILEs, and prints $result.
once() {
  local make=$1 digest; shift
  digest=$( (cat "$@"; find "$here/boxroot/src" "$here/boxroot/include" -type f | sort | xargs cat) | md5sum)
  if [ "$(cat "$result/.complete" 2>/dev/null)" != "$digest" ]; then
    locked 9 "$cache/lock.$(basename "$result")" "$(basename "$example") is being built"
    if [ "$(cat "$result/.complete" 2>/dev/null)" != "$digest" ]; then
      say "building $(basename "$example") with OCaml $version (log: $log)"
      rm -rf "$result"; mkdir -p "$result/source" "$result/installed"; : >"$log"
      "$make"
      echo "$digest" >"$result/.complete"
    fi
    exec 9>&-
  fi
  echo "$result"
}
