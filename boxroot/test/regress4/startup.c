/* SPDX-License-Identifier: MIT */
/* OCaml 4.14 started by a program in C, in surroundings that make it hard to tell whether this thread holds the lock:
   it does in all of them. The argument names the test. */
#include "../common/check.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <ucontext.h>

static value call(char const *name, int n, value a, value b)
{
  value const *f = caml_named_value(name);
  CHECK(f != NULL, "%s is not registered", name);
  return n == 1 ? caml_callback(*f, a) : caml_callback2(*f, a, b);
}

enum { ROOTS = 300 };

/* The caller holds the lock. */
static void use(char const *where)
{
  static boxroot r[ROOTS];
  for (int i = 0; i < ROOTS; i++) {
    r[i] = boxroot_create(call("text", 1, Val_int(i), 0));
    CHECK(r[i] != NULL, "%s: boxroot_create: %s", where, boxroot_error_string());
  }
  call("collect", 1, Val_unit, 0);
  for (int i = 0; i < ROOTS; i++) {
    CHECK(call("is_text", 2, boxroot_get(r[i]), Val_int(i)) == Val_true, "%s: root %d", where, i);
    CHECK(boxroot_modify(&r[i], Val_int(i)), "%s: boxroot_modify: %s", where, boxroot_error_string());
    boxroot_delete(r[i]);
  }
  CHECK(boxroot_setup(), "%s: boxroot_setup: %s", where, boxroot_error_string());
}

/* Called by OCaml: there is OCaml code on the stack. (The name is embed.ml's.) */
static char const *place;
value e_maker(value i) { return i; }
value e_owner(value i)
{
  use(place);
  return i;
}

static void use_in_turn(char const *where)
{
  place = where;
  for (int i = 0; i < 3; i++) {
    call("keep owners", 1, Val_int(1), 0);
    use(where);
    caml_enter_blocking_section();
    boxroot r = boxroot_create(Val_int(1));
    CHECK(r == NULL && errno == EPERM, "%s: boxroot_create succeeded in a blocking section", where);
    caml_leave_blocking_section();
  }
}

/* --- coroutines --------------------------------------------------------------------------------------------------- */

static ucontext_t outside, coroutine;
static char **arguments;
static void (*body)(void);

static void run(void) { body(); }

/* Runs f on a stack of our own. */
static void on_coroutine(void (*f)(void))
{
  enum { SIZE = 8 << 20 };
  static char *stack;
  if (stack == NULL) CHECK((stack = malloc(SIZE)) != NULL, "malloc");
  CHECK(getcontext(&coroutine) == 0, "getcontext");
  coroutine.uc_stack.ss_sp = stack;
  coroutine.uc_stack.ss_size = SIZE;
  coroutine.uc_link = &outside;
  body = f;
  makecontext(&coroutine, run, 0);
  CHECK(swapcontext(&outside, &coroutine) == 0, "swapcontext");
}

static void start(void) { caml_startup(arguments); }
static void start_and_use(void) { start(); use_in_turn("on a coroutine"); }
static void use_there(void) { use_in_turn("on a coroutine"); }

/* --- no /proc, no descriptors, a low limit ------------------------------------------------------------------------ */

static void hide_proc(void)
{
  char const *top = getenv("TMPDIR");
  char folder[4096];
  int n = snprintf(folder, sizeof folder, "%s/boxroot-XXXXXX", top != NULL && *top != 0 ? top : "/tmp");
  CHECK(n > 0 && (size_t)n < sizeof folder && mkdtemp(folder) != NULL, "mkdtemp: %s", folder);
  _Bool hidden = chroot(folder) == 0 || (unshare(CLONE_NEWUSER) == 0 && chroot(folder) == 0);
  if (!hidden || chdir("/") != 0) {
    puts("skipped: /proc cannot be hidden");
    fflush(stdout);
    _exit(TEST_SKIPPED);
  }
  CHECK(access("/proc/self/maps", R_OK) != 0, "/proc is there");
}

static void limit(int what, rlim_t n)
{
  struct rlimit l;
  CHECK(getrlimit(what, &l) == 0, "getrlimit");
  l.rlim_cur = n;
  CHECK(setrlimit(what, &l) == 0, "setrlimit");
}

enum { DEPTH = 1 << 20 };

/* The kernel does not let the stack grow beyond the limit: so it grows before. */
static __attribute__((noinline)) void grow(void)
{
  volatile char space[3 * DEPTH];
  for (int i = 3 * DEPTH - 1; i > 0; i -= 1024) space[i] = 1;
}

static __attribute__((noinline)) void deep(void)
{
  volatile char space[DEPTH];
  for (int i = 0; i < DEPTH; i += 1024) space[i] = 1;
  grow();
  limit(RLIMIT_STACK, 64 << 10);
  start();
  use_in_turn("below the limit of the stack");
  space[0] = 2;
}

int main(int argc, char **argv)
{
  (void)argc;
  char const *test = argv[1] == NULL ? "" : argv[1];
  arguments = argv;
  if (strcmp(test, "--list") == 0) {
    puts("plain\ncoroutine\ncoroutine-then-plain\ncoroutine-unused-then-plain\nplain-then-coroutine\nno-proc\n"
         "no-descriptors\nlow-limit");
  } else if (strcmp(test, "plain") == 0) {
    start();
    use_in_turn("plain");
  } else if (strcmp(test, "coroutine") == 0) {
    on_coroutine(start_and_use);
  } else if (strcmp(test, "coroutine-then-plain") == 0) {
    on_coroutine(start_and_use);
    use_in_turn("on the first stack again");
  } else if (strcmp(test, "coroutine-unused-then-plain") == 0) {
    on_coroutine(start);
    use_in_turn("on the first stack");
    on_coroutine(use_there);
  } else if (strcmp(test, "plain-then-coroutine") == 0) {
    start();
    on_coroutine(use_there);
    use_in_turn("on the first stack again");
  } else if (strcmp(test, "no-proc") == 0) {
    start();
    hide_proc();
    use_in_turn("without /proc");
  } else if (strcmp(test, "no-descriptors") == 0) {
    start();
    limit(RLIMIT_NOFILE, 0);
    use_in_turn("without file descriptors");
  } else if (strcmp(test, "low-limit") == 0) {
    deep();
  } else {
    return 2;
  }
  return 0;
}
