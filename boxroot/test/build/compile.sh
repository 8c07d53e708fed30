# Checks of how the header and the library compile: standards, switches, names. Read by `check`, which has the names and
# functions that are used here. shellcheck shell=bash disable=SC2034,SC2086,SC2154

case $name in
plain-command)
  mkdir p; ln -s "$root/boxroot" p/boxroot; cd p
  out=$(PATH=$prefix/bin:$PATH sh -c 'cc -c boxroot/src/all.c -Iboxroot/include -I"$(ocamlc -where)" -o ../all.o' \
    2>&1) || fail "$out"
  [ -z "$out" ] || fail "warnings: $out";;

header-in-c)
  printf '#include "boxroot.h"\n' >alone.c
  printf '%s\n' '#include <caml/mlvalues.h>' '#include <caml/alloc.h>' '#include "boxroot.h"' \
    'boxroot f(value v); boxroot f(value v) { return boxroot_create(v); }' >after.c
  printf '%s\n' '#define CAML_NAME_SPACE' '#define CAML_INTERNALS' '#include "boxroot.h"' '#include "boxroot.h"' \
    '#include <caml/minor_gc.h>' >internals.c
  printf '%s\n' '#include <boxroot/frame.h>' 'value f(value v); value f(value v) { BOXROOT_FRAME(f, 3);' \
    'boxroot_local l = boxroot_local_create(&f, v); if (l == NULL) return v;' \
    'boxroot_local_set(l, *boxroot_local_ref(l));' \
    '{ BOXROOT_FRAME(g, 1); boxroot_frame_close(&g); } return boxroot_local_get(l); }' >frame.c
  printf '%s\n' '#include <boxroot/weak.h>' 'bool f(value *v); bool f(value *v) {' \
    'boxroot_weak w = boxroot_weak_create(*v); if (w == NULL) return false;' \
    'boxroot r = boxroot_weak_upgrade(w); if (r != NULL) boxroot_delete(r);' \
    'bool there = boxroot_weak_get(w, v); boxroot_weak_delete(w); return there; }' >weak.c
  printf '%s\n' '#include <boxroot/ephemeral.h>' 'bool f(value *v); bool f(value *v) {' \
    'boxroot_ephemeral e = boxroot_ephemeral_create(*v, *v); if (e == NULL) return false;' \
    'bool there = boxroot_ephemeral_get(e, v) && boxroot_ephemeral_get_key(e, v);' \
    'boxroot_ephemeral_delete(e); return there; }' >ephemeral.c
  printf '%s\n' '#include <boxroot/wide.h>' 'bool f(value *v); bool f(value *v) {' \
    'boxroot_wide w = boxroot_wide_create(2, v); if (w == NULL || !boxroot_wide_modify(&w, 1, *v)) return false;' \
    'bool same = boxroot_wide_get(w, 0) == *boxroot_wide_ref(w, 1); boxroot_wide_delete(w); boxroot r[2];' \
    'if (boxroot_create_all(2, v, r)) boxroot_delete_all(2, r);' 'return same; }' >wide.c
  for cc in $(c_compilers); do for std in c11 gnu11 c17 gnu17 c2x; do
    accepts "$cc" -std=$std || { echo "- $cc has no $std"; continue; }
    for f in alone after internals frame weak ephemeral wide; do for d in 0 1; do
      run "$cc" -std=$std $strict -DBOXROOT_DEBUG=$d -isystem "$where" -I"$include" -fsyntax-only $f.c
    done; done
  done; done;;

header-in-c++)
  lang="c++"
  [ -n "$(cxx_compilers)" ] || skip 'no C++ compiler'
  printf '#include "boxroot.h"\n' >alone.cpp
  printf '%s\n' '#include <caml/mlvalues.h>' '#include <vector>' '#include "boxroot.h"' \
    'namespace x { bool f(boxroot &r, value v) { return boxroot_modify(&r, v); } }' >after.cpp
  printf '#include <vector>\nextern "C" {\n#include "boxroot.h"\n}\n' >wrapped.cpp
  printf '%s\n' '#include <boxroot/boxroot.hpp>' 'boxroot_ptr::root f(value v);' \
    'boxroot_ptr::root f(value v) { auto r = boxroot_ptr::root::try_create(v); r.try_set(r.get()); return r; }' \
    'void g(boxroot r); void g(boxroot r) { boxroot_delete_in(boxroot_domain_here(), r); }' >owner.cpp
  printf '%s\n' '#include <boxroot/frame.h>' 'value f(value v);' \
    'value f(value v) { BOXROOT_FRAME(f, 3); boxroot_local l = boxroot_local_create(&f, v);' \
    'if (l == nullptr) return v;' 'boxroot_local_set(l, *boxroot_local_ref(l)); return boxroot_local_get(l); }' \
    >frame.cpp
  printf '%s\n' '#include <boxroot/weak.h>' 'bool f(value *v);' \
    'bool f(value *v) { boxroot_weak w = boxroot_weak_create(*v); if (w == nullptr) return false;' \
    'boxroot r = boxroot_weak_upgrade(w); if (r != nullptr) boxroot_delete(r);' \
    'bool there = boxroot_weak_get(w, v); boxroot_weak_delete(w); return there; }' >weak.cpp
  printf '%s\n' '#include <boxroot/ephemeral.h>' 'bool f(value *v);' \
    'bool f(value *v) { boxroot_ephemeral e = boxroot_ephemeral_create(*v, *v); if (e == nullptr) return false;' \
    'bool there = boxroot_ephemeral_get(e, v) && boxroot_ephemeral_get_key(e, v);' \
    'boxroot_ephemeral_delete(e); return there; }' >ephemeral.cpp
  printf '%s\n' '#include <boxroot/wide.h>' 'bool f(value *v);' \
    'bool f(value *v) { boxroot_wide w = boxroot_wide_create(2, v);' \
    'if (w == nullptr || !boxroot_wide_modify(&w, 1, *v)) return false;' \
    'bool same = boxroot_wide_get(w, 0) == *boxroot_wide_ref(w, 1); boxroot_wide_delete(w); return same; }' >wide.cpp
  for cc in $(cxx_compilers); do for std in c++11 c++14 c++17 c++20 c++23; do
    accepts "$cc" -std=$std || { echo "- $cc has no $std"; continue; }
    files='alone owner'
    case $std in c++11|c++23) files+=' after wrapped frame weak ephemeral wide';; esac
    for f in $files; do for d in 0 1; do
      run "$cc" -std=$std $strict -Wold-style-cast -DBOXROOT_DEBUG=$d -isystem "$where" -I"$include" -fsyntax-only \
        $f.cpp
    done; done
    case $std in c++11|c++20) run "$cc" -std=$std -Wall -Wextra -Werror -isystem "$where" -I"$include" -fsyntax-only \
      "$test/unit/cxx.cpp";; esac
  done; done;;

unused-without-ocaml)
  # a program that is linked with the library, uses nothing of it, and has no OCaml, as tests of Rust crates can be: all
  # that its start and end reach of the library must link and run
  echo 'int main(void) { return 0; }' >main.c
  printf '%s\n' '#define CAML_INTERNALS' '#include <caml/mlvalues.h>' '#include <caml/domain.h>' \
    'void *other_state(void); void *other_state(void) { return Caml_state; }' >other.c
  for cc in $(c_compilers); do for d in 0 1; do for pic in '' -fPIC; do
    run "$cc" -O2 $pic -DBOXROOT_DEBUG=$d -ffunction-sections -fdata-sections -c "$src/all.c" -I"$where" -I"$include" \
      -o lib.o
    run "$cc" -O2 $pic -ffunction-sections -c other.c -I"$where" -o other.o
    for linker in bfd gold lld; do
      "$cc" -fuse-ld=$linker main.c -o plain 2>/dev/null || { echo "- $cc has no $linker"; continue; }
      # alone, and beside another library that names the state, as the crate ocaml-sys does, in what is dropped as well
      for with in '' other.o; do
        run "$cc" -fuse-ld=$linker -Wl,--gc-sections main.c lib.o $with -lm -o main
        ./main || fail "$cc $linker -DBOXROOT_DEBUG=$d $pic $with"
      done
    done
  done; done; done;;

old-inline)
  # -std=gnu89 and -fgnu89-inline give `inline` another meaning: two objects, and the library, must link all the same
  printf '%s\n' '#include <boxroot.h>' 'value F(value v);' 'value F(value v) {' \
    'boxroot r = boxroot_create(v); boxroot_domain d = boxroot_domain_here(); value x = boxroot_get(r);' \
    'if (!boxroot_modify(&r, *boxroot_get_ref(r))) return x;' \
    'boxroot_delete(r); r = boxroot_create_in(d, v); boxroot_delete_in(d, r); return x; }' >user.c
  echo 'external f : string -> string = "f" external g : string -> string = "g"
    let () = assert (f "f" = "f" && g "g" = "g")' >main.ml
  printf '#include <boxroot/%s.h>\n' frame weak ephemeral storage wide >others.c
  printf '%s\n' 'value f(value v);' 'value f(value v) { BOXROOT_FRAME(f, 3);' \
    'return boxroot_local_get(boxroot_local_create(&f, v)); }' >>others.c
  for cc in $(c_compilers); do for o in -O0 -O2 '-O2 -DBOXROOT_DEBUG=1'; do
    for std in -std=gnu89 '-std=gnu11 -fgnu89-inline'; do
      run "$cc" $std $o -Wall -Werror -fsyntax-only others.c -isystem "$where" -I"$include"; done
    run "$cc" -std=gnu11 $o -c "$src/all.c" -I"$where" -I"$include" -o lib.o
    run "$cc" -std=gnu11 -fgnu89-inline $o -c "$src/all.c" -I"$where" -I"$include" -o lib-89.o
    for std in -std=gnu89 '-std=gnu11 -fgnu89-inline' -std=gnu11; do
      for f in f g; do
        run "$cc" $std $o -DF=$f -Wall -Werror -c user.c -isystem "$where" -I"$include" -o $f.o; done
      for library in lib lib-89; do
        run "$prefix/bin/ocamlopt.opt" main.ml f.o g.o $library.o -o main
        ./main || fail "$cc $std $o, $library"
      done
    done
  done; done;;

library-in-c)
  compile() { run "$1" -std=$2 $3 -Wall -Wextra -Werror -isystem "$where" -I"$include" "$src/all.c" ${4:-}; }
  for cc in $(c_compilers); do
    for std in c11 gnu11 c17 c2x; do
      if accepts "$cc" -std=$std; then compile "$cc" $std -fsyntax-only; else echo "- $cc has no $std"; fi
    done
    for o in -O0 -O2 -O3; do compile "$cc" c11 $o "-c -o out.o"; done
  done;;

library-switches)
  for cc in $(c_compilers); do
    for d in BOXROOT_DEBUG=1 BOXROOT_STW_SCAN=1 BOXROOT_CONSERVATIVE=1 'BOXROOT_CONSERVATIVE=1 -DBOXROOT_DEBUG=1' \
      BOXROOT_FORCE_REMOTE=1 BOXROOT_THREAD_UNSAFE=1 BOXROOT_PACING=0 BOXROOT_POOL_CAPACITY=4 \
             BOXROOT_POOL_CAPACITY=2 BOXROOT_POOL_LOG_SIZE=12 BOXROOT_POOL_LOG_SIZE=13 BOXROOT_POOL_LOG_SIZE=15 \
             'BOXROOT_DEBUG=1 -DBOXROOT_STW_SCAN=1 -DBOXROOT_FORCE_REMOTE=1' \
               'BOXROOT_DEBUG=1 -DBOXROOT_THREAD_UNSAFE=1'; do
      # gcc finds more when it optimises, clang as much when it only reads
      case $cc in *clang) how=-fsyntax-only;; *) how='-c -O1 -o out.o';; esac
      # shellcheck disable=SC2086
      run "$cc" -std=c11 -Wall -Wextra -Werror -D$d -isystem "$where" -I"$include" "$src/all.c" $how
    done
  done;;

library-elsewhere)
  # with another C library, and for another processor, against the headers of this OCaml
  found=
  for cc in musl-gcc aarch64-linux-gnu-gcc; do
    command -v $cc || { echo "- no $cc"; continue; }
    found=$found$cc
    for d in 0 1; do
      run $cc -std=c11 -O2 -fPIC -Wall -Wextra -Werror -DBOXROOT_DEBUG=$d -isystem "$where" -I"$include" \
        -c "$src/all.c" -o "$cc.o"
    done
  done
  [ -n "$found" ] || skip 'neither musl-gcc nor aarch64-linux-gnu-gcc';;

position-independent)
  for cc in $(c_compilers); do
    run "$cc" -O2 -fPIC -Wall -Wextra -Werror -isystem "$where" -I"$include" -shared "$src/all.c" -o lib.so
    # text relocations would forbid loading
    if command -v readelf >/dev/null && readelf -d lib.so | grep -q TEXTREL; then fail "$cc: text relocations"; fi
  done;;

exported-names)
  for d in 0 1; do
    run cc -O2 -DBOXROOT_DEBUG=$d -I"$where" -I"$include" -c "$src/all.c" -o out$d.o
    bad=$(nm -g --defined-only out$d.o | awk '{print $NF}' | grep -Ev '^boxroot_v[0-9]+_' || true)
    [ -z "$bad" ] || fail "names that another version or library may have: $bad"
  done
  [ -z "$(nm -g --defined-only out0.o out1.o | awk 'NF == 3 {print $3}' | sort | uniq -d)" ] ||
    fail 'the release and the checked library share names'
  for s in create get get_ref delete modify setup teardown status error_string print_stats get_stats report_roots \
    create_in delete_in domain_here; do
    nm -g --defined-only out0.o | grep -q " boxroot_v[0-9]*_$s\$" ||
      fail "boxroot_$s is not exported (other languages need it)"
  done;;

no-undefined-behaviour)
  # a release build takes no assertion for granted
  cc -E -DBOXROOT_DEBUG=0 -I"$where" -I"$include" "$src/all.c" >all.i
  awk '/^# [0-9]+ "/ {ours = $3 ~ /boxroot\/(src|include)/} ours' all.i >ours.i
  [ -s ours.i ] || fail 'nothing of ours?'
  if grep -n -E '__builtin_unreachable|__builtin_assume|__assume' ours.i; then
    fail 'an assertion turns into undefined behaviour'; fi;;

inline-functions)
  # several units that include the header and do not inline
  par; stubs -O1 -fno-inline -std=c11 -D_GNU_SOURCE
  nm -u root_stubs.o | grep -q ' boxroot_v[0-9]*_create$' || fail 'boxroot_create is inline all the same'
  run cc -O1 -fno-inline -c "$src/all.c" -I"$include" -I"$where" -o lib.o
  run "$prefix/bin/ocamlopt.opt" $(threads 'unix.cmxa threads.cmxa') root.ml par.ml hooks.ml \
    $unit_ml lib.o root_stubs.o hooks_stubs.o unit_stubs.o compat_040.o -o unit
  run ./unit basics; run ./unit compat-0.4.0;;
esac
