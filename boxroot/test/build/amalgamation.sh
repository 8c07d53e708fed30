# Checks of the two files that tools/amalgamate writes: that they stand alone, that a binding is built with them by
# plain commands, and that it lives beside the library. Read by `check`, which has the names and functions that are used
# here. shellcheck shell=bash disable=SC2034,SC2086,SC2154

# vendored FOLDER: a binding as its author has it: its own files, and the two
vendored() {
  mkdir "$1"
  cp "$test"/build/binding{_stubs.c,.ml,_use.ml} "$1"
  run "$root/tools/amalgamate" "$1"
}
# says COMMAND…: it ends well, and says that its roots held
says() {
  "$@" >out 2>&1 || fail "$*: exit code $?: $(tail -3 out)"
  grep -qx 'binding: ok' out || fail "$*: $(tail -3 out)"
  echo "  $*: $(tail -1 out)"
}

case $name in
amalgamation)
  # the same bytes from anywhere; of ours nothing but boxroot.h; without warnings, in all builds
  vendored alone
  (cd / && env -i PATH="$PATH" TZ=Asia/Tokyo LC_ALL=C PYTHONHASHSEED=3 "$root/tools/amalgamate" "$OLDPWD/again")
  cmp alone/boxroot.c again/boxroot.c; cmp alone/boxroot.h again/boxroot.h
  grep -hE '^[[:blank:]]*#[[:blank:]]*include' alone/boxroot.[ch] | grep -vE '<(caml/)?[a-z_]+(\.h)?>' |
    grep -vE '<sys/[a-z]+\.h>' | sort -u >ours
  echo '#include "boxroot.h"' | cmp - ours || fail "includes: $(cat ours)"
  if grep -n 'outheap\.h' alone/boxroot.c | grep include; then fail "the header of Outheap is included"; fi
  cd alone; rm binding*
  for file in boxroot.c boxroot.h; do
    grep -q "^/\* Boxroot $("$root/tools/version"): " $file || fail "$file does not say its version"
    grep -q 'Permission is hereby granted' $file || fail "$file has no licence"
    for switch in $(sed -n 's/^#ifndef \(BOXROOT_[A-Z_]*\)$/\1/p' "$include/boxroot/config.h" | grep -v _CONFIG_H); do
      sed '/MIT License/q' $file | grep -q "^     $switch  *[a-z0-9]" || fail "$file does not explain $switch"; done
  done
  echo '#include "boxroot.h"' >header.c
  for cc in $(c_compilers); do for std in c11 gnu17; do
    accepts "$cc" -std=$std || { echo "- $cc has no $std"; continue; }
    for d in 0 1; do
      # gcc finds more when it optimises, once; clang as much when it only reads
      case $cc$std in *clang*|*gnu17) how=-fsyntax-only;; *) how='-c -O2 -fPIC -o out.o';; esac
      run "$cc" -std=$std -Wall -Wextra -Werror -DBOXROOT_DEBUG=$d -isystem "$where" boxroot.c $how
      run "$cc" -std=$std -Wall -Wextra -Werror -DBOXROOT_DEBUG=$d -isystem "$where" -fsyntax-only header.c
    done
  done; done
  # in C++, alone, after other headers, and where somebody wraps it
  printf '%s\n' '#include "boxroot.h"' '#include "boxroot.h"' \
    'boxroot_ptr::root f(value v); boxroot_ptr::root f(value v) {' \
    'BOXROOT_FRAME(g, 2); if (boxroot_local_create(&g, v) == nullptr) return boxroot_ptr::root();' \
    'return boxroot_ptr::root::try_create(v); }' >owner.cpp
  printf '%s\n' 'extern "C" {' '#include "boxroot.h"' '}' \
    'void f(boxroot_ptr::weak &); void f(boxroot_ptr::weak &w) { w.reset(); }' >wrapped.cpp
  printf '%s\n' '#define BOXROOT_WITHOUT_OWNERS' '#include "boxroot.h"' 'namespace boxroot_ptr { enum { root }; }' \
    >without.cpp
  lang="c++"
  for cc in $(cxx_compilers); do for std in c++11 c++20; do
    accepts "$cc" -std=$std || { echo "- $cc has no $std"; continue; }
    for f in owner wrapped without; do for d in 0 1; do
      run "$cc" -std=$std $strict -Wold-style-cast -DBOXROOT_DEBUG=$d -isystem "$where" -fsyntax-only $f.cpp
    done; done
  done; done;;

amalgamation-binding)
  # built in a folder that has nothing else of ours, by ocamlopt and ocamlc, and by ocamlfind where that can be had
  vendored binding; cd binding
  o=$prefix/bin/ocamlopt.opt b=$prefix/bin/ocamlc.opt
  for d in 0 1; do
    flags="-O2 -fPIC -DBOXROOT_DEBUG=$d"
    run "$o" -ccopt "$flags" boxroot.c binding_stubs.c binding.ml binding_use.ml -o native
    says ./native
    rm -f ./*.o ./*.cm*
    run "$b" -ccopt "$flags" -c boxroot.c; run "$b" -ccopt "$flags" -c binding_stubs.c
    run "$b" -custom boxroot.o binding_stubs.o binding.ml binding_use.ml -o bytecode
    says ./bytecode
    # as a library: an archive, a shared object for bytecode, and a plug-in
    run "$prefix/bin/ocamlmklib" -ocamlc "$b" -ocamlopt "$o" -o binding_stubs boxroot.o binding_stubs.o
    run "$b" -a binding.ml -dllib -lbinding_stubs -cclib -lbinding_stubs -o binding.cma
    run "$o" -a binding.ml -cclib -lbinding_stubs -o binding.cmxa
    run "$b" binding.cma binding_use.ml -o bytecode.bc
    says "$prefix/bin/ocamlrun" -I . bytecode.bc
    run "$o" -I . -ccopt -L. binding.cmxa binding_use.ml -o linked
    says ./linked
    run "$o" -shared -linkall -I . -ccopt -L. binding.cmxa -o binding.cmxs
    run "$o" -shared -I . binding_use.ml -o binding_use.cmxs
    echo 'let () = Dynlink.allow_unsafe_modules true; List.iter Dynlink.loadfile (List.tl (Array.to_list Sys.argv))' \
      >host.ml
    case $v in 5*) dyn='-I +dynlink';; *) dyn=;; esac
    run "$o" $dyn dynlink.cmxa -linkall host.ml -o host
    says ./host ./binding.cmxs ./binding_use.cmxs
    run "$b" $dyn dynlink.cma -linkall host.ml -o host.bc
    rm -f binding_use.cmo; run "$b" -c binding_use.ml
    CAML_LD_LIBRARY_PATH=. says "$prefix/bin/ocamlrun" host.bc ./binding.cma ./binding_use.cmo
    finder=$("$root/tools/findlib" "$prefix" 2>found) || { echo "- no ocamlfind: $(tail -1 found)"; continue; }
    printf '%s\n' 'version = "1"' 'archive(byte) = "binding.cma"' 'archive(native) = "binding.cmxa"' \
      'plugin(native) = "binding.cmxs"' >META
    rm -rf site; mkdir -p site/stublibs
    export OCAMLPATH=$PWD/site PATH=$prefix/bin:$PATH
    run "$finder" install -destdir "$PWD/site" -ldconf ignore binding META binding.{cma,cmxa,cmxs,a,cmi,cmx} \
      dllbinding_stubs.so libbinding_stubs.a
    mkdir user; cp binding_use.ml user; cd user
    run "$finder" ocamlopt -package binding -linkpkg binding_use.ml -o use
    says ./use
    export CAML_LD_LIBRARY_PATH=$OCAMLPATH/stublibs
    run "$finder" ocamlc -package binding -linkpkg binding_use.ml -o use.bc
    says "$prefix/bin/ocamlrun" use.bc
    unset CAML_LD_LIBRARY_PATH
    cd ..; rm -rf user site ./*.o ./*.a ./*.so ./*.cm*
  done;;

amalgamation-beside-library)
  # the library and a binding with a copy of its own, in one program and in a plug-in; two bindings with a copy each
  two_ml; vendored binding
  side library a
  run cc -O2 -g -fPIC -c binding/boxroot.c -I"$where" -o copy-lib.o
  run cc -O2 -g -fPIC -DSIDE=b -c "$test/build/side_stubs.c" -Ibinding -I"$where" -o copy-stubs.o
  run cc -O2 -g -fPIC -DBOXROOT_DEBUG=1 -c binding/boxroot.c -I"$where" -o checked-lib.o
  run cc -O2 -g -fPIC -DBOXROOT_DEBUG=1 -DSIDE=b -c "$test/build/side_stubs.c" -Ibinding -I"$where" \
    -o checked-stubs.o
  s='alone:ab alone:ba threads:ab domains:ba teardown:ab teardown:ba late:a late:b'
  # as archives, which is how bindings are linked: one of the two copies serves both, and which it is does not matter
  for l in library copy; do ar rcs lib$l.a $l-lib.o $l-stubs.o; done
  for order in 'library copy' 'copy library'; do
    two_host both side_a.ml side_b.ml -ccopt "-L$PWD" $(for l in $order; do echo "-cclib -l$l"; done)
    [ "$(nm both | grep -c ' boxroot_v[0-9]*_teardown$')" = 1 ] || fail 'two copies under one name'
    play ./both -- alone:ab alone:ba threads:ab domains:ba
  done
  # with other switches the names differ: two copies in one program
  two_host apart side_a.ml side_b.ml library-{lib,stubs}.o checked-{lib,stubs}.o
  play ./apart -- $s
  # a plug-in with a copy: bound to the program's library, or to its own
  two_host host side_a.ml library-{lib,stubs}.o
  plugin same.cmxs side_b.ml copy-{lib,stubs}.o
  plugin own.cmxs side_b.ml copy-{lib,stubs}.o -ccopt -Wl,-Bsymbolic
  plugin checked.cmxs side_b.ml checked-{lib,stubs}.o
  play PLUGINS=same.cmxs ./host -- alone:ab alone:ba threads:ab domains:ba
  play PLUGINS=own.cmxs ./host -- crossed:ab crossed:ba crossed-idle:a domains:ab threads:ba
  play PLUGINS=checked.cmxs ./host -- $s
  # plug-ins with a copy each, in a program without
  two_host neither
  plugin first.cmxs side_a.ml library-{lib,stubs}.o
  play PLUGINS=first.cmxs:own.cmxs ./neither -- crossed:ab domains:ab
  play PLUGINS=checked.cmxs:first.cmxs ./neither -- $s;;
esac
