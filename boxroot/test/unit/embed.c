/* SPDX-License-Identifier: MIT */
/* OCaml embedded in a C program: before its start-up, after its shutdown, and at the end of the process. The argument
   names the test. */
#include "../common/check.h"
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/wait.h>

static value call(char const *name, int n, value a, value b)
{
  value const *f = caml_named_value(name);
  CHECK(f != NULL, "%s is not registered", name);
  return n == 1 ? caml_callback(*f, a) : caml_callback2(*f, a, b);
}

enum { ROOTS = 500 };
static boxroot roots[ROOTS];

static void make_roots(void)
{
  for (int i = 0; i < ROOTS; i++) {
    roots[i] = boxroot_create(call("text", 1, Val_int(i), 0));
    CHECK(roots[i] != NULL, "boxroot_create: %s", boxroot_error_string());
  }
  call("collect", 1, Val_unit, 0);
  for (int i = 0; i < ROOTS; i++)
    CHECK(call("is_text", 2, boxroot_get(roots[i]), Val_int(i)) == Val_true, "root %d", i);
}

static void delete_roots(int from, int step)
{
  for (int i = from; i < ROOTS; i += step) boxroot_delete(roots[i]);
}

/* --- custom blocks that own a root and die when OCaml shuts down -------------------------------------------------- */

static int owners_finalised;
static void finalise(value v)
{
  boxroot_delete(*(boxroot *)Data_custom_val(v));
  owners_finalised++;
}
static struct custom_operations operations = { "boxroot.test.embed",       finalise,
                                               custom_compare_default,     custom_hash_default,
                                               custom_serialize_default,   custom_deserialize_default,
                                               custom_compare_ext_default, custom_fixed_length_default };

value e_owner(value i)
{
  value v = caml_alloc_custom(&operations, sizeof(boxroot), 0, 1);
  boxroot r = boxroot_create(i);
  CHECK(r != NULL, "boxroot_create");
  *(boxroot *)Data_custom_val(v) = r;
  return v;
}

static void *delete_on_thread(void *unit)
{
  delete_roots(1, 2);
  return unit;
}

static void at_exit_deletes(void) { delete_roots(0, 1); }

/* --- after a shutdown that frees all of OCaml's memory ------------------------------------------------------------ */

/* What a finaliser does with roots while OCaml shuts down: creation works, and so does the rest. */
static int made_at_shutdown;
static void finalise_maker(value v)
{
  boxroot *r = (boxroot *)Data_custom_val(v), fresh = boxroot_create(Val_int(made_at_shutdown));
  if (fresh != NULL) {
    made_at_shutdown++;
    CHECK(boxroot_get(fresh) == Val_int(made_at_shutdown - 1), "a root of a finaliser");
    if (boxroot_modify(&fresh, Val_true)) CHECK(boxroot_get(fresh) == Val_true, "a modified root of a finaliser");
    if (made_at_shutdown % 2 == 0) boxroot_delete(fresh);
  }
  boxroot_delete(*r);
}
static struct custom_operations maker_operations = { "boxroot.test.maker",       finalise_maker,
                                                     custom_compare_default,     custom_hash_default,
                                                     custom_serialize_default,   custom_deserialize_default,
                                                     custom_compare_ext_default, custom_fixed_length_default };

value e_maker(value i)
{
  value v = caml_alloc_custom(&maker_operations, sizeof(boxroot), 0, 1);
  boxroot r = boxroot_create(i);
  CHECK(r != NULL, "boxroot_create");
  *(boxroot *)Data_custom_val(v) = r;
  return v;
}

static void expect_no_lock(char const *what, bool failed)
{
  CHECK(failed, "%s succeeds after the shutdown", what);
  CHECK(errno == EPERM, "%s: errno is %d after the shutdown", what, errno);
}

/* Up to 5.3 the runtime tells nobody that it shuts down: inline creations go on until the current pool has no free
   slot, and the library finds out. */
static void expect_no_creation(void)
{
  int n = 0;
  errno = 0;
  while (n < 100000 && boxroot_create(Val_int(n)) != NULL) n++;
  CHECK(n <= (OCAML_VERSION >= 50400 ? 0 : 2048), "%d roots were created after the shutdown", n);
  for (int i = 0; i < 1000; i++) {
    errno = 0;
    expect_no_lock("boxroot_create", boxroot_create(Val_int(i)) == NULL);
  }
}

static void expect_no_modification(void)
{
  for (int i = 0; i < ROOTS; i++) {
    boxroot r = roots[i];
    errno = 0;
    if (boxroot_modify(&r, Val_int(i))) CHECK(boxroot_get(r) == Val_int(i), "a modified root");
    else expect_no_lock("boxroot_modify", r == roots[i]);
  }
}

/* Like an object with static storage duration of C++: it ends when all other functions of the exit have run. */
static bool statics_own_roots;
__attribute__((destructor)) static void end_of_statics(void)
{
  if (!statics_own_roots) return;
  delete_roots(0, 2);
  expect_no_creation();
  delete_roots(1, 2);
  puts("statics ended");
}

static char const *const pooled[] = { "pooled-delete", "pooled-create",  "pooled-modify",   "pooled-handle",
                                      "pooled-setup",  "pooled-unused",  "pooled-teardown", "pooled-exit",
                                      "pooled-thread", "pooled-makers",  "pooled-fork" };

/* OCaml starts with an allocator that frees all at the end, and what is freed is overwritten. No other domain runs
   then: the runtime frees its stack while its thread unwinds it, and crashes in one of five runs. */
static int test_pooled(char const *test, char **argv)
{
#ifdef __GLIBC__
  mallopt(M_PERTURB, 165);
#endif
  if (strcmp(test, "pooled-exit") == 0) {
    setenv("OCAMLRUNPARAM", "c", 1);
    caml_startup(argv);
    make_roots();
    statics_own_roots = true;
    call("exit", 1, Val_int(0), 0);
    CHECK(0, "exit returned");
  }
  caml_startup_pooled(argv);
  if (strcmp(test, "pooled-unused") != 0) make_roots();
  if (strcmp(test, "pooled-makers") == 0) {
    call("keep makers", 1, Val_int(3000), 0);
    call("collect", 1, Val_unit, 0);
  }
  caml_shutdown();
  if (strcmp(test, "pooled-delete") == 0) {
    delete_roots(0, 1);
  } else if (strcmp(test, "pooled-create") == 0) {
    expect_no_creation();
    delete_roots(0, 1);
  } else if (strcmp(test, "pooled-modify") == 0) {
    expect_no_modification();
    delete_roots(0, 1);
  } else if (strcmp(test, "pooled-handle") == 0) {
    errno = 0;
    expect_no_lock("boxroot_domain_here", boxroot_domain_here() == NULL);
  } else if (strcmp(test, "pooled-setup") == 0) {
    errno = 0;
    expect_no_lock("boxroot_setup", !boxroot_setup());
  } else if (strcmp(test, "pooled-unused") == 0) {
    errno = 0;
    expect_no_lock("boxroot_create", boxroot_create(Val_int(1)) == NULL);
    CHECK(boxroot_status() == BOXROOT_NOT_SETUP, "status %d", boxroot_status());
    return 0;
  } else if (strcmp(test, "pooled-thread") == 0) {
    pthread_t t;
    CHECK(pthread_create(&t, NULL, delete_on_thread, NULL) == 0, "pthread_create");
    delete_roots(0, 2);
    pthread_join(t, NULL);
  } else if (strcmp(test, "pooled-fork") == 0) {
    int status;
    pid_t child = fork();
    CHECK(child >= 0, "fork");
    delete_roots(0, 1);
    if (child == 0) _exit(0);
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with status %d", status);
  } else if (strcmp(test, "pooled-makers") == 0) {
    /* from 5.0 to 5.3 the shutdown runs no finalisers */
    CHECK(made_at_shutdown > 0 || (OCAML5 && OCAML_VERSION < 50400), "no finaliser made a root");
    delete_roots(0, 1);
    expect_no_creation();
  }
  boxroot_teardown();
  CHECK(boxroot_status() == BOXROOT_TORE_DOWN, "status %d", boxroot_status());
  return 0;
}

static void expect_void(void)
{
  CHECK(boxroot_status() == BOXROOT_TORE_DOWN, "status %d", boxroot_status());
  CHECK(boxroot_create(Val_int(1)) == NULL, "boxroot_create after teardown");
}

int main(int argc, char **argv)
{
  (void)argc;
  char const *test = argv[1];
  if (strcmp(test, "--list") == 0) {
    puts("before-startup\nteardown-after-shutdown\ndelete-after-shutdown\nowners-at-shutdown\ndelete-at-exit\n"
         "teardown-never\ndelete-on-thread-after-shutdown\nteardown-before-shutdown");
    for (size_t i = 0; i < sizeof pooled / sizeof *pooled; i++) puts(pooled[i]);
    return 0;
  }
  if (strncmp(test, "pooled-", 7) == 0) return test_pooled(test, argv);
  if (strcmp(test, "before-startup") == 0) {
    CHECK(boxroot_status() == BOXROOT_NOT_SETUP, "status %d before anything", boxroot_status());
    if (OCAML5 || !TEST_RIVAL) {
      errno = 0;
      CHECK(boxroot_create(Val_int(1)) == NULL && errno == EPERM, "boxroot_create before the start of OCaml");
      errno = 0;
      CHECK(!boxroot_setup() && errno == EPERM, "boxroot_setup before the start of OCaml");
    }
    boxroot_teardown(); /* nothing to take down */
    CHECK(boxroot_status() == BOXROOT_NOT_SETUP, "teardown before setup leaves status %d", boxroot_status());
  }
  caml_startup(argv);
  CHECK(boxroot_setup(), "boxroot_setup: %s", boxroot_error_string());
  make_roots();
  if (strcmp(test, "before-startup") == 0) {
    delete_roots(0, 1);
  } else if (strcmp(test, "teardown-after-shutdown") == 0) {
    delete_roots(0, 3);
    caml_shutdown();
    boxroot_teardown();
    expect_void();
    delete_roots(1, 3);
  } else if (strcmp(test, "teardown-before-shutdown") == 0) {
    boxroot_teardown();
    expect_void();
    delete_roots(1, 3);
    caml_shutdown();
    boxroot_teardown();
    expect_void();
  } else if (strcmp(test, "delete-after-shutdown") == 0) {
    caml_shutdown();
    delete_roots(0, 1);
    boxroot_teardown();
    expect_void();
  } else if (strcmp(test, "owners-at-shutdown") == 0) {
    call("keep owners", 1, Val_int(300), 0);
    call("collect", 1, Val_unit, 0);
    caml_shutdown();
    delete_roots(0, 1);
    printf("%d owners finalised\n", owners_finalised);
    boxroot_teardown();
    expect_void();
  } else if (strcmp(test, "delete-at-exit") == 0) {
    atexit(at_exit_deletes);
    caml_shutdown();
    exit(0);
  } else if (strcmp(test, "delete-on-thread-after-shutdown") == 0) {
    pthread_t t;
    caml_shutdown();
    CHECK(pthread_create(&t, NULL, delete_on_thread, NULL) == 0, "pthread_create");
    delete_roots(0, 2);
    pthread_join(t, NULL);
    boxroot_teardown();
    expect_void();
  } else if (strcmp(test, "teardown-never") == 0) {
    delete_roots(0, 2);
  } else {
    return 2;
  }
  return 0;
}
