/* SPDX-License-Identifier: MIT */
/* OCaml embedded in a C program: before its start-up, after its shutdown, and at the end of the process. The argument
   names the test. */
#include "../common/check.h"

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
    return 0;
  }
  if (strcmp(test, "before-startup") == 0) {
    CHECK(boxroot_status() == BOXROOT_NOT_SETUP, "status %d before anything", boxroot_status());
    if (OCAML5) {
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
    if (!TEST_CHECKED) delete_roots(1, 3);
  } else if (strcmp(test, "teardown-before-shutdown") == 0) {
    boxroot_teardown();
    expect_void();
    if (!TEST_CHECKED) delete_roots(1, 3);
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
