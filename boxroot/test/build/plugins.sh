# Checks of plug-ins that are loaded late, unloaded, and loaded again: see late.ml, reload.c. Read by `check`, which has
# the names and functions that are used here. shellcheck shell=bash disable=SC2034,SC2086,SC2154

# late SOURCES…: ./late and late.cmxs
late() {
  run cc -O2 -g -DLATE_HOST=1 -c "$test/build/late_stubs.c" -I"$where" -o late-host.o
  side late a "$@" # late-lib.o, late-stubs.o
  run cc -O2 -g -fPIC "$@" -c "$test/build/late_stubs.c" -I"$include" -I"$where" -o late-acts.o
  cp "$test/build"/late*.ml .
  run "$prefix/bin/ocamlopt.opt" -g $dyn $(threads 'unix.cmxa threads.cmxa') dynlink.cmxa -linkall late_hook.ml \
    late.ml late-host.o -o late
  plugin late.cmxs late_side.ml late-{lib,stubs,acts}.o
  # the same with the library in the program, but unused until then
  sed 's/Dynlink.loadfile .*/()/' late.ml >late_main.ml
  run "$prefix/bin/ocamlopt.opt" -g $(threads 'unix.cmxa threads.cmxa') -linkall late_hook.ml late_main.ml \
    late_side.ml late-{host,lib,stubs,acts}.o -o late-linked
}

case $name in
plug-in-loaded-late)
  # the library comes when domains have ended, on threads that still run; or they end before its first use
  case $v in 4*) skip 'needs OCaml 5';; esac
  dyn='-I +dynlink'
  for flags in '' -DBOXROOT_DEBUG=1 -DBOXROOT_CONSERVATIVE=1; do
    late $flags
    for scenario in ended-before ends-before-use ends-after-load; do for how in 0 1; do
    for first in other deletion thread backup registered; do
      case $flags$first in -DBOXROOT_DEBUG=1deletion) continue;; esac # has no inline path
      for program in ./late ./late-linked; do
        FIRST=$first $program $scenario $how ./late.cmxs >out 2>&1 ||
          fail "$program $flags $scenario $how $first: exit code $?: $(tail -3 out)"
      done
    done; done; done
    for first in other thread registered; do
      THREADS=1000 FIRST=$first ./late ended-before 1 ./late.cmxs >out 2>&1 ||
        fail "beside 1000 threads, $flags $first: exit code $?: $(tail -3 out)"
    done
  done;;

plug-in-loaded-again)
  # torn down and unloaded: memory and mappings are given back; what others have wrapped stays
  [ -r /proc/self/maps ] || skip 'no /proc'
  cp "$root/outheap/tool/selftest/par${v%%.*}.ml" par.ml; cp "$test/build/reload.ml" .
  run cc -O2 -g -c "$test/build/reload.c" -I"$where" -o host.o
  run "$prefix/bin/ocamlopt.opt" -g $(threads 'unix.cmxa threads.cmxa') par.ml reload.ml host.o -cclib -ldl -o reload
  for flags in '' -DBOXROOT_DEBUG=1 -DBOXROOT_CONSERVATIVE=1; do
    run cc -O2 -g -fPIC $flags -c "$src/all.c" -I"$include" -I"$where" -o lib.o
    run cc -O2 -g -fPIC -DRELOAD_PLUGIN=1 $flags -c "$test/build/reload.c" -I"$include" -I"$where" -o plugin.o
    run cc -shared plugin.o lib.o -o plugin.so
    for scenario in again wrapped-0 wrapped-1 wrapped-2 exits; do
      case $v$flags$scenario in 5*CONSERVATIVE=1wrapped-1) continue;; esac # has no such hook
      MALLOC_ARENA_MAX=1 ./reload $scenario ./plugin.so >out 2>&1 ||
        fail "$flags $scenario: exit code $?: $(tail -3 out)"
      echo "  $flags $scenario: $(tail -1 out)"
    done
  done;;

leaks-of-plug-ins)
  # roots that objects with static storage duration own, in the program and in shared objects, are no leaks at exit
  cxx=$(cxx_compilers | head -1); [ -n "$cxx" ] || skip 'no C++ compiler'
  flags=-DBOXROOT_DEBUG=1
  run cc -O2 -g -fPIC $flags -c "$src/all.c" -I"$include" -I"$where" -o lib.o
  run "$cxx" -O2 -g -fPIC $flags -c "$test/build/leak_plugin.cpp" -I"$include" -I"$where" -o plugin.o
  echo 'external keep : string -> unit = "plugin_keep" let () = keep (String.make 3 (Char.chr 65))' >side.ml
  echo 'let () = Array.iteri (fun i f -> if i > 0 then Dynlink.loadfile f) Sys.argv' >host.ml
  case $v in 5*) dyn='-I +dynlink';; *) dyn=;; esac
  echo >empty.ml
  run "$prefix/bin/ocamlopt.opt" -shared empty.ml lib.o -o library.cmxs
  run "$prefix/bin/ocamlopt.opt" -shared side.ml plugin.o -cclib -lstdc++ -o apart.cmxs
  run "$prefix/bin/ocamlopt.opt" -shared side.ml plugin.o lib.o -cclib -lstdc++ -o together.cmxs
  run "$prefix/bin/ocamlopt.opt" $dyn dynlink.cmxa -linkall host.ml -o without
  run "$prefix/bin/ocamlopt.opt" $dyn dynlink.cmxa -linkall host.ml lib.o -o with
  run "$prefix/bin/ocamlopt.opt" side.ml plugin.o lib.o -cclib -lstdc++ -o program
  run cc -shared lib.o -o libroots.so
  run "$prefix/bin/ocamlopt.opt" side.ml plugin.o -ccopt "-L$PWD -Wl,-rpath,$PWD" -cclib -lroots \
    -cclib -lstdc++ -o linked
  for command in ./program ./linked './without ./together.cmxs' './with ./apart.cmxs' \
    './without ./library.cmxs ./apart.cmxs'; do
    BOXROOT_LEAKS=1 $command >out 2>&1 || fail "$command: exit code $?: $(tail -3 out)"
    if grep boxroot: out; then fail "$command: roots that ended at the exit are reported"; fi
    LEAK=1 BOXROOT_LEAKS=1 $command >out 2>&1 || fail "$command: exit code $?: $(tail -3 out)"
    grep '1 root is live at exit' out || fail "$command: no report: $(cat out)"
  done;;
esac
