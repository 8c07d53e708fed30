# Checks of program and library that do not agree, versions of OCaml that are not known. Read by `check`, which has the
# names and functions that are used here. shellcheck shell=bash disable=SC2034,SC2086,SC2154

ocaml_number() { sed -n 's/^#define OCAML_VERSION //p' "$where/caml/version.h"; }
other_ocamls() { # numbers of other releases, of the same generation, whose runtimes differ from this one's
  local known='50100 50300 50401 50502'
  case $v in
    4*) known=41402;; 5.[012].*) known=${known#* };; 5.3*) known=${known/50300 };; 5.4*) known=${known/50401 };;
    *) known=${known% *};;
  esac
  echo "$known"
}
other_ocaml() { # other_ocaml NUMBER: fake/caml, the headers of this OCaml under the number of another release
  mkdir -p fake; cp -R "$where/caml" fake
  sed -E -i.bak "s/^(#define OCAML_VERSION) .*/\\1 $1/" fake/caml/version.h
}

case $name in
other-runtime)
  # program and library were compiled for one OCaml and are linked with the runtime of another: no root is made
  case $v in 4*) skip 'OCaml 4.14 is the only one of its kind';; esac
  cat >use.c <<'C'
#include <boxroot.h>
#include <errno.h>
#include <stdio.h>
value try(value v);
value try(value v)
{
  errno = 0;
  if (boxroot_setup() || errno != ENOTSUP || boxroot_create(v) != NULL || errno != ENOTSUP) puts("works");
  if (boxroot_status() != BOXROOT_NOT_SETUP) puts("is set up");
  puts(boxroot_error_string());
  return Val_unit;
}
C
  echo 'external f : string -> unit = "try"  let () = f "x"' >main.ml
  for number in $(other_ocamls); do
    other_ocaml "$number"
    for flags in '' -DBOXROOT_DEBUG=1; do
      for f in "$src/all.c" use.c; do
        run cc -O1 -DBOXROOT_CONSERVATIVE=1 $flags -c $f -I"$PWD/fake" -I"$include" -I"$where"; done
      # headers of a later one want names that an earlier runtime has not
      if ! "$prefix/bin/ocamlopt.opt" main.ml use.o all.o -o main >link.log 2>&1; then
        grep -q 'undefined reference' link.log || fail "$number: $(cat link.log)"
        continue
      fi
      said=$(./main)
      [[ $said == *compiled\ for\ OCaml* && $said != *works* && $said != *set\ up* ]] || fail "$number: $said"
    done
  done;;

mismatch-is-a-link-error)
  # The linker names the mistake, for every switch that program and library must agree on. What it says of the runtime,
  # which is not linked here, does not count.
  cat >user.c <<'C'
#include "boxroot.h"
#ifdef __cplusplus
extern "C"
#endif
value use(boxroot_domain d, value v);
value use(boxroot_domain d, value v)
{
  boxroot r = boxroot_create(v), s = boxroot_create_in(d, v);
  if (r && boxroot_modify(&r, 3)) v = boxroot_get(r) + *boxroot_get_ref(r);
  boxroot_delete(r);
  boxroot_delete_in(d, s);
  return v;
}
int main(void) { return (int)use(boxroot_domain_here(), 1); }
C
  library() { run cc -O2 -c "${@:2}" "$src/all.c" -I"$include" -I"$where" -o "$1"; }
  ours() { # ours LIBRARY CC FLAGS…: what the linker misses of ours
    "${@:2}" user.c -c -o user.o -I"$include" -I"$where" || fail "$*"
    "$2" user.o "$1" -Wl,--gc-sections -o linked >link.log 2>&1 || true
    grep -oE 'undefined (reference to|symbol:) [`'\'']?(bxr|boxroot)_[A-Za-z0-9_]*' link.log | sed 's/.*[ `'\'']//' |
      sort -u
  }
  agree() { echo "+ agree: $*"; local m; m=$(ours "$@"); [ -z "$m" ] || fail "$* misses $m"; }
  differ() { # differ WORD LIBRARY CC FLAGS…: it says WORD
    echo "+ differ: $*"
    local m; m=$(ours "${@:2}")
    [ -n "$m" ] || fail "${*:2} links"
    grep -Eq "__program_and_library_must_agree_on__(.*__)?$1(_|\$)" <<<"$m" || fail "${*:2} does not name $1: $m"
  }
  # Public functions with default switches have short names: where the compiler calls one instead of expanding it, the
  # message may not say why, but there is one.
  refuse() { echo "+ refuse: $*"; [ -n "$(ours "$@")" ] || fail "$* links"; }
  library release.o; library checked.o -DBOXROOT_DEBUG=1
  for cc in $(c_compilers) $(cxx_compilers); do
    case $cc in *++) lang='-x c++';; *) lang='-x c';; esac
    for o in -O2 -O0 '-O2 -fPIC -ffunction-sections' -Os '-O1 -fno-inline'; do
      case $o in -Os|*-fno-inline) without='refuse';; *) without='differ BOXROOT_DEBUG_0';; esac
      # shellcheck disable=SC2086
      {
        agree release.o "$cc" $lang $o; agree checked.o "$cc" $lang $o -DBOXROOT_DEBUG=1
        differ BOXROOT_DEBUG_1 release.o "$cc" $lang $o -DBOXROOT_DEBUG=1
        $without checked.o "$cc" $lang $o
      }
    done
  done
  for d in POOL_LOG_SIZE:12 POOL_CAPACITY:64 FORCE_REMOTE:1; do
    differ ${d%:*}_${d#*:} release.o cc -O2 -DBOXROOT_${d%:*}=${d#*:}
    differ ${d%:*}_${d#*:} checked.o cc -O0 -DBOXROOT_DEBUG=1 -DBOXROOT_${d%:*}=${d#*:}
    library other.o -DBOXROOT_${d%:*}=${d#*:}
    for o in -O2 -O0; do
      differ "${d%:*}_(14|1000000|0)" other.o cc $o; agree other.o cc $o -DBOXROOT_${d%:*}=${d#*:}
    done
  done
  library unsafe.o -DBOXROOT_THREAD_UNSAFE=1
  agree unsafe.o cc -O2 -DBOXROOT_THREAD_UNSAFE=1
  differ THREAD_UNSAFE_0 unsafe.o cc -O2; differ THREAD_UNSAFE_1 release.o cc -O2 -DBOXROOT_THREAD_UNSAFE=1
  # the version of OCaml: that of the headers for the program, another for the library
  other_ocaml "$(other_ocamls | cut -d' ' -f1)"
  run cc -O2 -DBOXROOT_CONSERVATIVE=1 -c "$src/all.c" -I"$PWD/fake" -I"$include" -I"$where" -o other.o
  for o in -O2 -O0; do differ "OCAML_$(ocaml_number)" other.o cc $o; done
  # What is a matter of the library alone.
  for d in BOXROOT_CONSERVATIVE=1 BOXROOT_STW_SCAN=1 BOXROOT_PACING=0 BOXROOT_TLS_DYNAMIC=1 BOXROOT_QUARANTINE=8; do
    library other.o -D$d; agree other.o cc -O2; agree release.o cc -O2 -D$d
  done
  # who only includes the header needs no library
  echo '#include "boxroot.h"' >unused.c
  for cc in $(c_compilers) $(cxx_compilers); do for o in -O0 -O2; do for d in 0 1; do
    case $cc in *++) lang='-x c++';; *) lang='-x c';; esac
    # shellcheck disable=SC2086
    run "$cc" $o $lang -DBOXROOT_DEBUG=$d -c unused.c -I"$include" -I"$where" -o unused.o
    if nm unused.o | grep -E 'bxr_|boxroot_'; then fail 'the header alone needs, or defines, something'; fi
  done; done; done;;

unknown-version)
  # The headers of this OCaml, but for the number of the version: what the library does with an OCaml that it was not
  # tested with.
  case $v in 4*) skip 'about OCaml 5';; esac
  mkdir fake; cp -R "$where/caml" fake/caml
  version() { # version NUMBER STRING EXTRA
    sed -E "s/^(#define OCAML_VERSION) .*/\\1 $1/; s/^(#define OCAML_VERSION_STRING) .*/\\1 \"$2\"/
      s/^(#define OCAML_VERSION_EXTRA) .*/\\1 \"$3\"/" \
      "$where/caml/version.h" >fake/caml/version.h
  }
  lib() { "$cc" -std=c11 -O1 -Wall -Wextra -isystem "$PWD/fake" -I"$include" -c "$src/all.c" "$@" -o out.o 2>messages; }
  refused() { # refused STRING FLAGS…
    if lib "${@:2}"; then fail "$cc compiles with $1 and ${*:2} without complaint"; fi
    grep -q "BOXROOT_CONSERVATIVE" messages || fail "$cc: $(cat messages)"
  }
  # all that the library may want of the runtime then
  known='caml_scan_roots_hook caml_domain_terminated_hook caml_domain_is_terminating'
  known+=' caml_num_domains_running caml_minor_heaps_start caml_minor_heaps_end caml_state'
  known+=' caml_locale caml_ml_domain_id' # weak: the library does without them
  known+=' caml_enter_global_barrier caml_stat_memdup caml_stat_calloc' # weak: only whether they are there counts
  known+=' caml_iterate_named_values caml_named_value' # public
  # Another number of this release, the one before all that are known, and two after them: of these the library uses no
  # weak arrays, of that one it does, by what these headers have.
  minor=${v#5.}; minor=${minor%%.*}
  own=$((50000 + minor * 100 + 9)):5.$minor.9
  for cc in $(c_compilers); do
    for number in 50000:5.0.0 "$own" 50600:5.6.0 60000:6.0.0; do
      version "${number%:*}" "${number#*:}" ''
      weak=
      if [ "$number" = "$own" ]; then
        weak='caml_alloc_shr_noexc caml_ephe_check_key caml_ephe_none caml_ephe_set_key caml_darken caml_gc_phase'
        weak+=' caml_ephe_set_data caml_ephe_check_data caml_ephe_await_key caml_ephe_locked caml_marking_started'
        weak+=' caml_scan_global_roots caml_globals' # for reports
      fi
      lib || fail "$cc does not compile with ${number#*:}: $(cat messages)"
      grep -q 'not tested with this version' messages || fail "$cc does not warn about ${number#*:}"
      wants=$(nm -u out.o | awk '{print $NF}' | grep '^caml_' | grep -vxF "$(tr ' ' '\n' <<<"$known $weak")" || true)
      [ -z "$wants" ] || fail "$cc: with ${number#*:} the library relies on $wants"
      lib -DBOXROOT_CONSERVATIVE=1 -Werror || fail "$cc, ${number#*:}, conservative by choice: $(cat messages)"
      [ ! -s messages ] || fail "$cc, ${number#*:}, conservative by choice: $(cat messages)"
      refused "${number#*:}" -DBOXROOT_CONSERVATIVE=0
    done
    # a version of that number which is not the release: a development snapshot, a variant
    version "$(sed -n 's/^#define OCAML_VERSION //p' "$where/caml/version.h")" "$v+variant" variant
    grep -q 'OCAML_VERSION_EXTRA "variant"' fake/caml/version.h || skip 'no OCAML_VERSION_EXTRA'
    refused "$v+variant"
    lib -DBOXROOT_CONSERVATIVE=1 || fail "$cc, $v+variant, conservative by choice: $(cat messages)"
  done
  # a program that knows nothing of it; the library says it in its statistics
  version "${own%:*}" "${own#*:}" ''; cc=cc; lib || fail "$(cat messages)"
  par; stubs -std=gnu11 -I"$PWD/fake"
  run "$prefix/bin/ocamlopt.opt" $(threads 'unix.cmxa threads.cmxa') root.ml par.ml hooks.ml \
    $unit_ml out.o root_stubs.o hooks_stubs.o unit_stubs.o compat_040.o -o unit
  for t in basics modification teardown-then-setup first-is-a-domain passed-between-domains statistics-printed; do
    run ./unit $t; done
  printf '#include <boxroot.h>\nvalue show(value v);\nvalue show(value v) { boxroot_print_stats(); return v; }\n' \
    >show.c
  echo 'external show : unit -> unit = "show"  let () = show ()' >show.ml
  run cc -c show.c -I"$include" -I"$where" -o show_stubs.o
  run "$prefix/bin/ocamlopt.opt" show.ml show_stubs.o out.o -o show
  ./show | grep "conservative with OCaml ${own#*:}, which it was not tested with" ||
    fail "the statistics do not say it: $(./show)"
  # no weak root where the runtime's weak arrays are not known
  version 50600 5.6.0 ''; lib || fail "$(cat messages)"
  printf '#include <stdio.h>\n#include <errno.h>\n#include <boxroot/weak.h>\nvalue weak(value v);\n' >weak.c
  printf 'value weak(value v) { if (boxroot_weak_create(v) || errno != ENOTSUP) puts("made");\n' >>weak.c
  printf '  puts(boxroot_error_string()); return v; }\n' >>weak.c
  echo 'external weak : string ref -> string ref = "weak"  let () = ignore (weak (ref "x"))' >use.ml
  run cc -c weak.c -I"$include" -I"$where" -o weak_stubs.o
  run "$prefix/bin/ocamlopt.opt" use.ml weak_stubs.o out.o -o use
  said=$(./use); [[ $said != made* && $said == *boxroot_weak_create*tested\ with* ]] || fail "weak roots: $said";;
esac
