/* SPDX-License-Identifier: MIT */
/* A table of C that owns OCaml values. From the top of the repository:
     ocamlopt -ccopt "-O2 -Iboxroot/include" boxroot/src/all.c examples/demo/demo_stubs.c examples/demo/demo.ml -cclib
     -lpthread -o demo */
#include <boxroot.h>
#include <caml/fail.h>
#include <pthread.h>
#include <stdlib.h>

static boxroot *table;
static long length;

value demo_create(value n)
{
  length = Long_val(n);
  table = calloc(length, sizeof *table);
  if (table == NULL) caml_raise_out_of_memory();
  return Val_unit;
}

value demo_set(value i, value v)
{
  boxroot *place = &table[Long_val(i)];
  if (*place == NULL ? (*place = boxroot_create(v)) == NULL : !boxroot_modify(place, v))
    caml_failwith(boxroot_error_string());
  return Val_unit;
}

value demo_get(value i) { return boxroot_get(table[Long_val(i)]); }

/* The address without its lowest bit, for which an OCaml integer has no room. */
value demo_address(value i) { return Val_long(boxroot_get(table[Long_val(i)]) >> 1); }

static void *delete_half(void *ignored)
{
  for (long i = 1; i < length; i += 2) {
    boxroot_delete(table[i]);
    table[i] = NULL;
  }
  return ignored;
}

/* Deletes every second root, in a thread that OCaml knows nothing of. */
value demo_delete_half(value unit)
{
  pthread_t thread;
  if (pthread_create(&thread, NULL, delete_half, NULL) != 0) caml_failwith("no thread");
  pthread_join(thread, NULL);
  return unit;
}

value demo_print_stats(value unit)
{
  boxroot_print_stats();
  return unit;
}
