# Checks of the library in a shared object, a plug-in, bytecode. Read by `check`, which has the names and functions that
# are used here. shellcheck shell=bash disable=SC2034,SC2086,SC2154

case $name in
shared-library)
  # the library in a shared object of its own; the runtime is in the program
  par; stubs -fPIC
  run cc -O2 -fPIC -shared "$src/all.c" -I"$include" -I"$where" -o libboxroot.so
  run "$prefix/bin/ocamlopt.opt" $(threads 'unix.cmxa threads.cmxa') root.ml par.ml hooks.ml \
    $unit_ml root_stubs.o hooks_stubs.o unit_stubs.o compat_040.o \
    -ccopt -Wl,-E -ccopt "-L$PWD" -cclib -lboxroot -ccopt "-Wl,-rpath,$PWD" -o unit
  for t in basics modification eperm teardown-then-setup hooks-after threads-before-first-use fork; do run ./unit $t
  done
  case $v in 5*) for t in first-is-a-domain passed-between-domains; do run ./unit $t; done;; esac;;

natural-dynlink)
  # the library arrives while the program runs, in a plug-in
  par; stubs -fPIC
  run cc -O2 -fPIC -c "$src/all.c" -I"$include" -I"$where" -o lib.o
  cat >plugin.ml <<'ML'
let () =
  let text i = string_of_int (i * 7919) in
  let roots = Array.init 3000 (fun i -> Root.create_or_fail (text i)) in
  Gc.full_major ();
  if Par.multicore then Par.join (Par.spawn (fun () -> Array.iteri (fun i r ->
    if i land 1 = 0 then (Root.delete r; roots.(i) <- Root.create_or_fail (text i))) roots));
  Gc.compact ();
  Array.iteri (fun i r -> if (Root.get r : string) <> text i then Root.fail "root %d" i) roots;
  Root.teardown ();
  print_endline "plug-in done"
ML
  run "$prefix/bin/ocamlopt.opt" -shared root.ml par.ml plugin.ml root_stubs.o lib.o -o plugin.cmxs
  echo 'let () = try Dynlink.loadfile "plugin.cmxs"; Gc.full_major ()
    with Dynlink.Error e -> prerr_endline (Dynlink.error_message e); exit 1' >host.ml
  case $v in 5*) dyn='-I +dynlink';; *) dyn=;; esac
  # shellcheck disable=SC2086
  run "$prefix/bin/ocamlopt.opt" $dyn -linkall dynlink.cmxa host.ml -o host -ccopt -Wl,-E
  out=$(./host 2>&1) || fail "$out"
  [ "$out" = 'plug-in done' ] || fail "$out";;

bytecode)
  par; stubs -fPIC
  run cc -O2 -fPIC -c "$src/all.c" -I"$include" -I"$where" -o lib.o
  run "$prefix/bin/ocamlc.opt" -g -custom $(threads 'unix.cma threads.cma') root.ml par.ml \
    $model_ml lib.o root_stubs.o model_stubs.o -o model
  run ./model --seed 4 --steps 3000
  run "$prefix/bin/ocamlc.opt" -g -custom $(threads 'unix.cma threads.cma') root.ml par.ml hooks.ml \
    $unit_ml lib.o root_stubs.o hooks_stubs.o unit_stubs.o compat_040.o -o unit
  for t in basics eperm teardown-then-setup hooks-before fork; do run ./unit $t; done;;

bytecode-dynamic)
  # as the toplevel loads it: a stub library beside ocamlrun
  par; stubs -fPIC
  run cc -O2 -fPIC -c "$src/all.c" -I"$include" -I"$where" -o lib.o
  run cc -shared lib.o root_stubs.o -o dllbxrtest.so
  cat >small.ml <<'ML'
let () =
  let roots = Array.init 1000 (fun i -> Root.create_or_fail (string_of_int i)) in
  Gc.full_major ();
  Array.iteri (fun i r -> if (Root.get r : string) <> string_of_int i then Root.fail "root %d" i) roots;
  Array.iter Root.delete roots;
  Gc.full_major ();
  print_endline "done"
ML
  run "$prefix/bin/ocamlc.opt" -dllib -lbxrtest -dllpath "$PWD" root.ml small.ml -o small.byte
  out=$("$prefix/bin/ocamlrun" ./small.byte 2>&1) || fail "$out"
  [ "$out" = done ] || fail "$out";;
esac
