# Checks of two libraries, or two copies, in one process: see two.ml. Read by `check`, which has the names and functions
# that are used here. shellcheck shell=bash disable=SC2034,SC2086,SC2154

rival=$(ls -d "${BOXROOT_RIVAL:-${CARGO_HOME:-$HOME/.cargo}/registry/src/}"*/ocaml-boxroot-sys-0.4.0/vendor/boxroot \
  2>/dev/null | head -1 || true)
two_ml() {
  local s
  cp "$test/build/two.ml" .; cp "$root/outheap/tool/selftest/par${v%%.*}.ml" par.ml
  for s in a b; do sed "s/SIDE/$s/g" "$test/build/side.ml.in" >side_$s.ml; done
  cat >host.ml <<'ML'
let () =
  List.iter (fun p -> if p <> "" then
    try Dynlink.loadfile p with Dynlink.Error e -> prerr_endline (Dynlink.error_message e); exit 1)
    (String.split_on_char ':' (Option.value (Sys.getenv_opt "PLUGINS") ~default:""));
  Two.main ()
ML
  case $v in 5*) dyn='-I +dynlink';; *) dyn=;; esac
}
# side NAME SIDE FLAGS…: NAME.o, one copy of the library and its stubs; NAME is a file name of any kind
side() {
  local name=$1 side=$2; shift 2
  run cc -O2 -g -fPIC "$@" -c "$src/all.c" -I"$include" -I"$where" -o "$name-lib.o"
  run cc -O2 -g -fPIC "$@" -DSIDE=$side -c "$test/build/side_stubs.c" -I"$include" -I"$where" -o "$name-stubs.o"
}
rival_side() {
  local name=$1 side=$2 f
  for f in boxroot ocaml_hooks platform; do
    run cc -w -O2 -g -fPIC -c "$rival/$f.c" -I"$rival" -I"$where" -o "$name-$f.o"; done
  run ld -r -o "$name-lib.o" "$name"-{boxroot,ocaml_hooks,platform}.o
  run cc -w -O2 -g -fPIC -DSIDE=$side -c "$test/build/side_stubs.c" -I"$rival" -I"$where" -o "$name-stubs.o"
}
# two_host OUT MODULES AND OBJECTS…: a program that can load plug-ins
two_host() {
  local out=$1; shift
  run "$prefix/bin/ocamlopt.opt" -g $dyn $(threads 'unix.cmxa threads.cmxa dynlink.cmxa') -linkall par.ml two.ml \
    "$@" host.ml -o "$out"
}
plugin() { local out=$1; shift; run "$prefix/bin/ocamlopt.opt" -g -shared "$@" -o "$out"; }
# scenarios COMMAND -- NAME…
play() {
  local command=() s
  while [ "$1" != -- ]; do command+=("$1"); shift; done
  shift
  for s in "$@"; do
    case $v-$s in 4*-domains*) continue;; esac
    env "${command[@]}" ${s/:/ } >out 2>&1 || fail "${command[*]} ${s/:/ }: exit code $?: $(tail -3 out)"
    echo "  ${command[*]} ${s/:/ }: $(tail -1 out)"
  done
}

case $name in
beside-0.4.0)
  # 0.4.0 and this library in one process, in one file or in several, loaded and set up in either order
  [ -n "$rival" ] || skip 'no sources of 0.4.0 here: cargo fetches them'
  # 0.4.0 accepts no other hooks on the master lock in front of its own
  case $v in 4*) s='late:b';; *) s='alone:ab alone:ba threads:ab domains-a:ba teardown-a:ab teardown-a:ba late:b';; esac
  two_ml
  side ours a; rival_side theirs b
  two_host one side_a.ml side_b.ml ours-{lib,stubs}.o theirs-{lib,stubs}.o
  play ./one -- $s
  two_host ours side_a.ml ours-{lib,stubs}.o
  plugin theirs.cmxs side_b.ml theirs-{lib,stubs}.o
  play PLUGINS=theirs.cmxs ./ours -- $s
  two_host theirs side_b.ml theirs-{lib,stubs}.o
  plugin ours.cmxs side_a.ml ours-{lib,stubs}.o
  play PLUGINS=ours.cmxs ./theirs -- $s
  two_host neither
  play PLUGINS=ours.cmxs:theirs.cmxs ./neither -- $s
  play PLUGINS=theirs.cmxs:ours.cmxs ./neither -- $s
  run cc -shared ours-{lib,stubs}.o -o libours.so
  run cc -shared theirs-{lib,stubs}.o -o libtheirs.so
  for order in 'ours theirs' 'theirs ours'; do
    two_host linked side_a.ml side_b.ml -ccopt "-L$PWD" $(for l in $order; do echo "-cclib -l$l"
    done) -ccopt "-Wl,-rpath,$PWD"
    play ./linked -- $s
  done;;

beside-0.4.0-bytecode)
  # as the toplevel has them: stub libraries that ocamlrun loads, whose names are visible to each other; and linked into
  # the runtime
  [ -n "$rival" ] || skip 'no sources of 0.4.0 here: cargo fetches them'
  case $v in 4*) s='late:b';; *) s='alone:ab alone:ba threads:ab domains-a:ba teardown-a:ab late:b';; esac
  two_ml; echo 'let () = Two.main ()' >main.ml
  side ours a; rival_side theirs b
  run cc -shared ours-{lib,stubs}.o -o dllours.so
  run cc -shared theirs-{lib,stubs}.o -o dlltheirs.so
  for order in 'ours theirs' 'theirs ours'; do
    run "$prefix/bin/ocamlc.opt" -g $(threads 'unix.cma threads.cma') $(for l in $order; do echo "-dllib -l$l"
    done) -dllpath "$PWD" \
      par.ml two.ml side_a.ml side_b.ml main.ml -o two.byte
    play "$prefix/bin/ocamlrun" ./two.byte -- $s
  done
  run "$prefix/bin/ocamlc.opt" -g -custom $(threads 'unix.cma threads.cma') par.ml two.ml side_a.ml side_b.ml main.ml \
    ours-{lib,stubs}.o theirs-{lib,stubs}.o -o two
  play ./two -- $s;;

two-copies)
  # two copies of this library that do not share names: they are hidden, or compiled with different switches, in one
  # file or in two
  two_ml
  side release a; side hidden b -fvisibility=hidden -DSHOWN='__attribute__((visibility("default")))'
  side checked b -DBOXROOT_DEBUG=1; side small b -DBOXROOT_POOL_CAPACITY=4; side pools b -DBOXROOT_POOL_LOG_SIZE=12
  all='alone:ab alone:ba threads:ab domains:ba teardown:ab teardown:ba late:a late:b'
  two_host release side_a.ml release-{lib,stubs}.o
  for other in hidden checked small pools; do
    plugin $other.cmxs side_b.ml $other-{lib,stubs}.o
    play PLUGINS=$other.cmxs ./release -- $all
  done
  two_host together side_a.ml side_b.ml release-{lib,stubs}.o checked-{lib,stubs}.o
  play ./together -- $all;;

two-copies-crossed)
  # two copies of the same version and switches, whose names bind to each other wholly, in part or not at all: roots of
  # one are used and ended through the other
  two_ml
  side release a; side again b; side hidden b -fvisibility=hidden -DSHOWN='__attribute__((visibility("default")))'
  s='crossed:ab crossed:ba crossed-idle:a crossed-storage:ab domains:ab threads:ba'
  two_host release side_a.ml release-{lib,stubs}.o
  plugin again.cmxs side_b.ml again-{lib,stubs}.o
  plugin symbolic.cmxs side_b.ml again-{lib,stubs}.o -ccopt -Wl,-Bsymbolic
  plugin functions.cmxs side_b.ml again-{lib,stubs}.o -ccopt -Wl,-Bsymbolic-functions
  plugin hidden.cmxs side_b.ml hidden-{lib,stubs}.o
  # as where a program exports only what a library that it links asked for
  for shared in setup 'create_slow cache' 'delete_slow modify_slow teardown' 'create delete setup status cache'; do
    { echo '{'; for n in $shared; do nm -g --defined-only again-lib.o | awk '{print $NF ";"}' |
      grep -E "_${n}(__program_[A-Za-z0-9_]*)?;"; done; echo '};'; } >list
    plugin "${shared%% *}.cmxs" side_b.ml again-{lib,stubs}.o -ccopt "-Wl,-Bsymbolic -Wl,--dynamic-list=$PWD/list"
  done
  for other in again symbolic functions hidden setup create_slow delete_slow create; do
    play PLUGINS=$other.cmxs ./release -- $s; done
  # the checked build tells that the root is not its own
  side checked a -DBOXROOT_DEBUG=1
  side checked-hidden b -DBOXROOT_DEBUG=1 -fvisibility=hidden -DSHOWN='__attribute__((visibility("default")))'
  two_host checked side_a.ml checked-{lib,stubs}.o
  plugin checked.cmxs side_b.ml checked-hidden-{lib,stubs}.o
  if PLUGINS=checked.cmxs ./checked crossed ab >out 2>&1; then fail 'the checked build does not tell'; fi
  grep 'not a root' out || fail "$(cat out)";;
esac
