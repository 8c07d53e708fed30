# Checks of ways to compile and link a program: its own code and the library's, with the random tester as the program.
# Read by `check`, which has the names and functions that are used here. shellcheck shell=bash
# disable=SC2034,SC2086,SC2154

case $name in
link-styles-*)
  # ways to compile and link a program: its own code and the library's, with the random tester as the program
  par
  # The runtime of 5.1.0 crashes by itself when several domains have several threads (boxroot/test/README.md).
  case $v in 4*|5.1.0) players='--threads 3';; *) players='--domains 2 --threads 2 --no-ephemerons';; esac
  order='unix.cmxa threads.cmxa'
  run "$prefix/bin/ocamlopt.opt" -g $(threads '') -c root.ml par.ml $model_ml
  style() { # style NAME CC FLAGS… -- FLAGS OF THE LINKER…
    local what=$1 cc=$2 flags=() f
    shift 2
    while [ "$1" != -- ]; do flags+=("$1"); shift; done
    shift
    lang=c accepts "$cc" "${flags[@]}" || { echo "- $cc does not know ${flags[*]}"; return; }
    run "$cc" -Wall -Wextra "${flags[@]}" -c "$src/all.c" -I"$include" -I"$where" -o lib.o
    for f in common/root_stubs model/model_stubs; do
      run "$cc" "${flags[@]}" -c "$test/$f.c" -I"$include" -I"$where" -o "$(basename $f).o"; done
    # shellcheck disable=SC2046
    run "$prefix/bin/ocamlopt.opt" -g $(threads "$order") root.cmx par.cmx ${model_ml//.ml/.cmx} lib.o root_stubs.o \
      model_stubs.o "$@" -o model \
      >linked.txt 2>&1 || fail "$what: $(cat linked.txt)"
    if grep -i warning linked.txt | grep -v 'statically linked applications'; then
      fail "$what: warnings of the linker"; fi
    # shellcheck disable=SC2086
    ./model --seed 4 --steps 1500 $players >out 2>&1 || fail "$what: exit code $?: $(tail -3 out)"
    echo "  $what: $cc ${flags[*]} $*"
  }
  cc=${name#link-styles-}
  command -v "$cc" || skip "no $cc"
  style 'not optimised' "$cc" -O0 -fPIC --
  style 'much optimised' "$cc" -O3 -fPIC --
  style 'position-independent executable' "$cc" -O2 -fPIE -- -ccopt -pie
  style 'executable at a fixed place' "$cc" -O2 -fno-pic -fno-pie -- -ccopt -no-pie
  style 'linker leaves out what is not used' "$cc" -O2 -ffunction-sections -fdata-sections -fPIC -- -ccopt \
    -Wl,--gc-sections
  style 'names hidden' "$cc" -O2 -fPIC -fvisibility=hidden --
  style 'no thread-local storage at fixed places' "$cc" -O2 -fPIC -DBOXROOT_TLS_DYNAMIC=1 --
  style 'other dialect of thread-local storage' "$cc" -O2 -fPIC -DBOXROOT_TLS_DYNAMIC=1 -mtls-dialect=gnu2 --
  style 'no common sections, no strict aliasing, stack protector' "$cc" -O2 -fPIC -fno-common -fno-strict-aliasing \
    -fstack-protector-strong --
  style 'static' "$cc" -O2 -- -ccopt -static
  case $cc in
    gcc) style 'optimised by the linker' "$cc" -O2 -fPIC -flto -- -cc "$cc" -ccopt '-flto -O2';;
    clang) if command -v ld.lld >/dev/null; then
      style 'optimised by the linker' "$cc" -O2 -fPIC -flto -- -cc "$cc" -ccopt '-flto -fuse-ld=lld'; fi;;
  esac;;
esac
