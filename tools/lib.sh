# Shared by the scripts of this folder, which read it with `. "$(dirname "$0")/lib.sh"` under `set -u`.
# BUILD=FOLDER builds there instead of in _build/: the tree itself is never written to then.
# shellcheck shell=bash
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
here=$(dirname "$tools")
cache=${BOXROOT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/boxroot}
jobs=${JOBS:-$(nproc 2>/dev/null || echo 2)}
build=$here/_build
if [ -n "${BUILD:-}" ]; then mkdir -p "$BUILD" && build=$(cd "$BUILD" && pwd) || exit 2; fi

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
die() { local code=$1; shift; say "$*"; exit "$code"; }
# watched WHAT LOG COMMAND…: says what takes a while and where its output goes; that is added to LOG.
watched() { local what=$1 log=$2; shift 2; say "$what (output: $log)"; "$@" >>"$log" 2>&1; }
# locked FD FILE WHAT: holds the lock on FILE, which it opens as the descriptor FD (8 or 9), from now on; without flock,
# nothing. WHAT: what whoever holds it is doing.
locked() {
  eval "exec $1>\"\$2\""
  command -v flock >/dev/null || return 0
  flock -n "$1" || { say "waiting for another process: $3"; flock "$1"; }
}
usage() { sed -n '2,/^[^#]/p' "$0" | sed '$d; s/^# \{0,1\}//'; }
# need COMMAND…: installs the package of a command that is missing, if this user may. A compiler that the user chose is
# not replaced.
need() {
  local name
  for name in "$@"; do
    type -P "$name" >/dev/null && continue
    case $name in "${CC:-}"|"${CXX:-}") die 2 "there is no command $name (from CC or CXX)";; esac
    "$tools/need" "$name" >&2 || exit 1
  done
}

# have_cargo: is cargo recent enough for the crates and their clients? Installs Debian's when there is none.
have_cargo() {
  type -P cargo >/dev/null || PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
  "$tools/need" cargo >&2 || return
  local v; v=$(rustc --version | sed -nE 's/^rustc 1\.([0-9]+).*/\1/p')
  [ "${v:-0}" -ge 85 ] && return
  say "Rust 1.85 or later is needed, this is 1.${v:-?}: install it with rustup, or Debian's package cargo-web"
  return 1
}

# --- compilers -------------------------------------------------------------------------------------------------------

# ocaml_prefix [VERSION|PREFIX|'']: the prefix of a compiler, which is built first if necessary. Empty: the default one.
ocaml_prefix() {
  case ${1:-} in
    '') "$tools/toolchain" --default;;
    */*) [ -x "$1/bin/ocamlopt" ] || die 2 "no bin/ocamlopt in $1"; (cd "$1" && pwd);;
    *) "$tools/toolchain" "$1";;
  esac
}

# summary FILE: adds up the lines `N passed, N failed` of a file.
summary() {
  awk '/^[0-9]+ passed, [0-9]+ failed$/ {p += $1; f += $3} END {printf "%d passed, %d failed\n", p, f; exit f > 0}' "$1"
}

# --- Debian's source packages ----------------------------------------------------------------------------------------

# apt with package lists of its own for one suite of the archive; the system's are not touched. Set `suite` and
# `apt_dir` first. A mirror that has not been brought up to date for a while is as good: its lists are signed.
apt_private() { # apt_private apt-get|apt-cache ARGS…
  local tool=$1; shift
  "$tool" -q -o Dir::Etc::sourcelist="$apt_dir/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferencesparts=/dev/null \
    -o Dir::State::lists="$apt_dir/lists" -o Dir::Cache="$apt_dir/cache" -o APT::Sandbox::User="$(id -un)" \
    -o APT::Update::Error-Mode=any -o Acquire::Check-Valid-Until=false \
    -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 \
    -o APT::Get::List-Cleanup=0 -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
      "$@"
}
apt_mirror() { # the mirror of Debian that this machine's apt uses
  local mirror
  mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk '$1=="Debian"{print $2; exit}')
  [ -n "$mirror" ] || mirror=$(sed -nE 's/^(deb +(\[[^]]*\] +)?|URIs: +)([a-z+]+:[^ ]*debian\/?)( .*)?$/\3/p' \
    /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -1)
  [ -n "$mirror" ] || die 3 "apt on this machine names no Debian mirror"
  echo "$mirror"
}
apt_refresh() { # apt_refresh [deb|deb-src]: the lists of $suite
  type -P apt-get >/dev/null ||
    die 3 "this machine has no apt-get; only OCaml 4.14.0, 4.14.1, 5.1.0 and 5.3.0 (through npm) can be built here"
  local mirror key
  mirror=$(apt_mirror) || exit 3
  key=/usr/share/keyrings/debian-archive-keyring.gpg
  mkdir -p "$apt_dir/lists/partial" "$apt_dir/cache/archives/partial"
  printf '%s [signed-by=%s] %s %s main\n' "${1:-deb-src}" "$key" "$mirror" "$suite" >"$apt_dir/sources.list"
  : >"$apt_dir/update.log"
  watched "reading the package lists of Debian's $suite" "$apt_dir/update.log" apt_private apt-get update ||
    die 3 "cannot reach this machine's Debian mirror for the list of $suite: offline? See $apt_dir/update.log"
  touch "$apt_dir/refreshed"
}
# apt_binary PACKAGE VERSION FOLDER: the files of a binary package, unpacked into FOLDER.
apt_binary() {
  mkdir -p "$3"
  (cd "$3" && apt_private apt-get download "$1=$2" >apt.log 2>&1 && dpkg-deb -x "$1"_*.deb .) ||
    die 3 "apt-get cannot fetch $1 $2: offline? See $3/apt.log"
}
# apt_source PACKAGE VERSION FOLDER [PATTERN…]: the upstream sources, or what of them matches, unpacked into FOLDER.
apt_source() {
  local package=$1 version=$2 folder=$3; shift 3
  need xz
  local tmp=$folder.download; rm -rf "$tmp"; mkdir -p "$tmp" "$folder"
  (cd "$tmp" && apt_private apt-get source --tar-only --download-only "$package=$version" >apt.log 2>&1) ||
    die 3 "apt-get cannot fetch $package $version: offline? See $tmp/apt.log"
  local archive strip=1
  archive=$(find "$tmp" -name "${package}_*.orig.tar.*" ! -name '*.asc' | head -1)
  if tar tf "$archive" | awk -F/ 'NF == 1 {file = 1} END {exit !file}'; then strip=0; fi # no folder around all
  tar xf "$archive" -C "$folder" --strip-components=$strip --wildcards "$@" && rm -rf "$tmp"
}
