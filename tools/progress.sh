# Read by lib.sh and need: commands that take minutes, and say meanwhile how far they are.
# shellcheck shell=bash
PROGRESS_SECONDS=${BOXROOT_PROGRESS:-20} # from line to line

# progress_lines WHAT LOG LINES: a line now and then, until it is killed or this script has ended. It goes on when a
# signal has ended the script, so it looks; and it keeps none of the script's descriptors but the one that it writes to,
# since others wait until those are closed.
progress_lines() {
  local begin=$SECONDS now share='' sleeping=''
  trap '[ -z "$sleeping" ] || kill "$sleeping" 2>/dev/null; exit 0' TERM
  while :; do
    sleep "$PROGRESS_SECONDS" >/dev/null 2>&1 & sleeping=$!
    wait "$sleeping" || exit 0 # killed, or not a number of seconds
    kill -0 $$ 2>/dev/null || exit 0
    now=$((SECONDS - begin))
    if [ "$3" -gt 0 ] && [ -r "$2" ]; then
      share=$(($(wc -l <"$2") * 100 / $3)); share=", about $((share < 99 ? share : 99)) % done"
    fi
    printf '%s: %s: %d min %02d s%s\n' "$(basename "$0")" "$1" $((now / 60)) $((now % 60)) "$share" >&2
  done
}

# watched WHAT LOG LINES COMMAND…: runs the command with its output at the end of LOG, and says what it is doing every
# $PROGRESS_SECONDS. LINES: how many the log has in the end, more or less; 0: nobody knows. Exit code: the command's.
watched() {
  local what=$1 log=$2 lines=$3 ticker code=0; shift 3
  progress_lines "$what" "$log" "$lines" </dev/null >/dev/null 8>&- 9>&- &
  ticker=$!
  "$@" >>"$log" 2>&1 || code=$?
  kill "$ticker" 2>/dev/null || true; wait "$ticker" 2>/dev/null || true
  return $code
}

# locked FD FILE WHAT: holds the lock on FILE, which it opens as the descriptor FD (8 or 9), from now on; without flock,
# nothing. WHAT: what whoever holds it is doing.
locked() {
  eval "exec $1>\"\$2\""
  command -v flock >/dev/null || return 0
  flock -n "$1" && return
  printf '%s: waiting for another process: %s\n' "$(basename "$0")" "$3" >&2
  watched "waiting: $3" /dev/null 0 flock "$1"
}
