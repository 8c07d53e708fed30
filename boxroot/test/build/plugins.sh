# Checks of plug-ins that are loaded late, unloaded, and loaded again: see late.ml, reload.c. Read by `check`, which has
# the names and functions that are used here. shellcheck shell=bash disable=SC2034,SC2086,SC2154

# late SOURCES…: ./late and late.cmxs
late() {
  run cc -O2 -g -DLATE_HOST=1 -c "$test/build/late_stubs.c" -I"$where" -o late-host.o
  side late a "$@" # late-lib.o, late-stubs.o
  run cc -O2 -g -fPIC "$@" -c "$test/build/late_stubs.c" -I"$include" -I"$where" -o late-acts.o
  cp "$test/build"/late*.ml .
  run "$prefix/bin/ocamlopt.opt" -g $dyn -I +unix unix.cmxa dynlink.cmxa -linkall late_hook.ml late.ml late-host.o \
    -o late
  plugin late.cmxs late_side.ml late-{lib,stubs,acts}.o
}

case $name in
plug-in-loaded-late)
  # the library comes when domains have ended, on threads that still run; or they end before its first use
  case $v in 4*) skip 'needs OCaml 5';; esac
  dyn='-I +dynlink'
  for flags in '' -DBOXROOT_DEBUG=1 -DBOXROOT_CONSERVATIVE=1; do
    late $flags
    for scenario in ended-before ends-before-use ends-after-load; do for how in 0 1; do for first in other thread; do
      FIRST=$first timeout 60 ./late $scenario $how ./late.cmxs >out 2>&1 ||
        fail "$flags $scenario $how $first: exit code $?: $(tail -3 out)"
    done; done; done
  done;;
esac
