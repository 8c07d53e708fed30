# Checks of OCaml in a shared object: see embedded.ml, load.c. Read by `check`, which has the names and functions that
# are used here. shellcheck shell=bash disable=SC2034,SC2086,SC2154

embedded_ml() { cp "$test/build/embedded.ml" .
  native=$("$prefix/bin/ocamlopt.opt" -config-var native_c_libraries) native+=' -lpthread -ldl'; }
embedded() { # embedded CC FILE.so FLAGS…
  local cc=$1 out=$2 std=
  shift 2
  case $cc in *++) std='-x c++';; esac
  # shellcheck disable=SC2086
  run "$cc" -O2 -fPIC "$@" $std -c "$test/build/embedded_stubs.c" -I"$include" -I"$where" -o stubs.o
  case $cc in *clang++) cc=clang;; *g++) cc=gcc;; esac
  run "$cc" -O2 -fPIC "$@" -c "$src/all.c" -I"$include" -I"$where" -o lib.o
  run "$prefix/bin/ocamlopt.opt" -output-complete-obj -runtime-variant _pic embedded.ml stubs.o lib.o -o complete.o
  # shellcheck disable=SC2086
  run "$cc" -shared complete.o -o "$out" $native
}
tls_bytes() { printf '%d' "$(readelf -lW "$1" | awk '$1 == "TLS" {print $6}')"; }
loads() { "$@" >out 2>&1 || fail "$*: exit code $?: $(cat out)"; }
# the loader says that there is no room
refused() {
  if "$@" >out 2>&1; then fail "$* loads"; fi
  grep 'static TLS' out || fail "$*: $(cat out)"
}

case $name in
embedded-in-shared-object)
  # OCaml, its code, stubs and library in a shared object that a program without OCaml loads: one in C, Python
  [ -e "$where/libasmrun_pic.a" ] || skip 'no libasmrun_pic.a'
  embedded_ml
  run cc -O1 "$test/build/load.c" -o load -ldl -lpthread
  for cc in $(c_compilers) $(cxx_compilers); do for tls in 0 1; do
    lib=emb-$(basename "$cc")-$tls.so
    embedded "$cc" "$lib" -DBOXROOT_TLS_DYNAMIC=$tls
    echo "  $lib: thread-local storage $(tls_bytes "$lib") bytes$(readelf -d "$lib" | grep -q STATIC_TLS &&
      echo ', static')"
    loads ./load embedded_work "./$lib"
    loads ./load -t embedded_work "./$lib"
    if command -v python3 >/dev/null; then
      loads python3 -c \
        "import ctypes,sys; lib = ctypes.CDLL('./$lib'); sys.exit(lib.embedded_work() or lib.embedded_work())"
      loads python3 -c "
import ctypes, sys, threading
lib, results = ctypes.CDLL('./$lib'), []
t = threading.Thread(target = lambda: results.append(lib.embedded_work()))
t.start(); t.join()
sys.exit(results != [0])"
    fi
  done; done
  command -v python3 >/dev/null || echo '- no python3';;

static-tls-used-up)
  # libraries loaded before have used up what the loader sets aside for thread-local storage at fixed places
  printf '#include <stdint.h>\n#ifndef __GLIBC__\n#error not glibc\n#endif\n' | cc -x c -fsyntax-only - 2>/dev/null ||
    skip 'about glibc'
  [ -e "$where/libasmrun_pic.a" ] || skip 'no libasmrun_pic.a'
  embedded_ml
  run cc -O1 "$test/build/load.c" -o load -ldl -lpthread
  echo 'static __thread char filler[SIZE] __attribute__((tls_model("initial-exec")));
    char *fill(void); char *fill(void) { return filler; }' >filler.c
  fillers=()
  for size in 512 64 8; do for i in 1 2 3 4 5 6 7 8; do
    cc -fPIC -shared -DSIZE=$size filler.c -o fill-$size-$i.so
    fillers+=("?./fill-$size-$i.so")
  done; done
  embedded cc fixed.so
  embedded cc dynamic.so -DBOXROOT_TLS_DYNAMIC=1
  for t in '' -t; do
    loads ./load $t embedded_work ./fixed.so
    refused ./load $t embedded_work "${fillers[@]}" ./fixed.so
    loads ./load $t embedded_work "${fillers[@]}" ./dynamic.so
  done
  # more of it, at the user's wish
  GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384 loads ./load embedded_work "${fillers[@]}" ./fixed.so
  # a plug-in of OCaml's in such a program: the runtime is in another shared object, which runs already, so that its own
  # thread-local words have got their places
  run cc -O2 -fPIC -c -DSTART_ONLY "$test/build/embedded_stubs.c" -I"$where" -o start.o
  cat >loader.ml <<'ML'
let () = try Dynlink.loadfile (Sys.getenv "PLUGIN")
  with Dynlink.Error e -> prerr_endline (Dynlink.error_message e); exit 3
ML
  case $v in 5*) dyn='-I +dynlink';; *) dyn=;; esac
  # shellcheck disable=SC2086
  run "$prefix/bin/ocamlopt.opt" $dyn -output-complete-obj -runtime-variant _pic \
    -linkall dynlink.cmxa loader.ml start.o -o loader-complete.o
  run cc -shared loader-complete.o -o loader.so $native
  for tls in 0 1; do
    run cc -O2 -fPIC -DWITHOUT_START -DBOXROOT_TLS_DYNAMIC=$tls -c "$test/build/embedded_stubs.c" -I"$include" \
      -I"$where" -o stubs.o
    run cc -O2 -fPIC -DBOXROOT_TLS_DYNAMIC=$tls -c "$src/all.c" -I"$include" -I"$where" -o lib.o
    run "$prefix/bin/ocamlopt.opt" -shared embedded.ml stubs.o lib.o -o plugin-$tls.cmxs
  done
  PLUGIN=plugin-1.cmxs loads ./load embedded_work ./loader.so
  PLUGIN=plugin-1.cmxs loads ./load embedded_work "${fillers[@]}" ./loader.so
  if PLUGIN=plugin-0.cmxs ./load embedded_work ./loader.so >out 2>&1; then
    echo '  a plug-in of such a program loads by default'
  else grep 'static TLS' out || fail "$(cat out)"; fi;;
esac
