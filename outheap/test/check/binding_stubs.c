/* SPDX-License-Identifier: MIT */
/* A small binding with one fault of each kind, each beside the same function without it (`right` as a last argument
   chooses). binding.ml calls them; test_check.py knows which line of which function is wrong. */
#define _GNU_SOURCE
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/custom.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <caml/signals.h>
#include <caml/threads.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_right(value right) { return Bool_val(right); }

/* An argument is used after an allocation. */
value b_argument(value name, value right)
{
  value pair;
  if (is_right(right)) {
    CAMLparam1(name);
    pair = caml_alloc_tuple(2);
    Store_field(pair, 0, name);
    CAMLreturn(pair);
  }
  pair = caml_alloc_tuple(2);
  Store_field(pair, 0, Val_long(caml_string_length(name)));
  return pair;
}

/* A callback is kept in a variable. */
static struct { long calls; value function; } listener;
value b_listen(value f, value right)
{
  if (!is_right(right)) listener.function = f;
  else if (listener.function == 0) {
    listener.function = f;
    caml_register_generational_global_root(&listener.function);
  }
  else caml_modify_generational_global_root(&listener.function, f);
  return Val_unit;
}
value b_notify(value unit)
{
  (void)unit;
  listener.calls++;
  return caml_callback(listener.function, caml_copy_string("event"));
}

/* A pointer into a string is kept over an allocation. */
value b_inside(value text, value right)
{
  CAMLparam1(text);
  CAMLlocal1(cell);
  char const *begin = String_val(text);
  cell = caml_alloc(1, 0);
  if (is_right(right)) begin = String_val(text);
  Store_field(cell, 0, Val_long(begin[0]));
  CAMLreturn(cell);
}

/* The same over the release of the lock. */
value b_unlocked(value text, value right)
{
  CAMLparam1(text);
  char *copy = is_right(right) ? strdup(String_val(text)) : NULL;
  char const *begin = copy != NULL ? copy : String_val(text);
  caml_enter_blocking_section();
  size_t length = strlen(begin);
  caml_leave_blocking_section();
  free(copy);
  CAMLreturn(Val_long(length));
}

/* The same in a system call, which does not fault. */
value b_refused(value text, value right)
{
  CAMLparam1(text);
  char copy[8] = "text";
  char const *begin = is_right(right) ? copy : String_val(text);
  int ends[2];
  if (pipe(ends) != 0) CAMLreturn(Val_int(-2));
  caml_enter_blocking_section();
  ssize_t n = write(ends[1], begin, 1);
  caml_leave_blocking_section();
  close(ends[0]);
  close(ends[1]);
  CAMLreturn(Val_long(n));
}

/* A field of an old block is stored to as if it were C's. */
value b_store(value block, value v, value right)
{
  if (is_right(right)) caml_modify(&Field(block, 0), v);
  else Field(block, 0) = v;
  return Val_unit;
}

/* A new block is kept over the next allocation. */
value b_fresh(value n, value right)
{
  CAMLparam1(n);
  CAMLlocal2(rooted, text);
  value pair = caml_alloc_small(2, 0);
  Field(pair, 0) = n;
  Field(pair, 1) = Val_unit;
  rooted = is_right(right) ? pair : Val_unit;
  text = caml_copy_string("second");
  if (is_right(right)) pair = rooted;
  caml_modify(&Field(pair, 1), text);
  CAMLreturn(pair);
}

/* A function leaves its local roots. */
__attribute__((noinline)) value b_return(value v, value right)
{
  CAMLparam1(v);
  CAMLlocal1(cell);
  cell = caml_alloc_tuple(1);
  Store_field(cell, 0, v);
  if (is_right(right)) CAMLreturn(cell);
  return cell;
}

/* The result of one callback is kept over the next. */
value b_results(value f, value right)
{
  CAMLparam1(f);
  CAMLlocal1(rooted);
  value first = caml_callback(f, Val_long(1));
  rooted = is_right(right) ? first : Val_unit;
  value second = caml_callback(f, Val_long(2));
  if (is_right(right)) first = rooted;
  CAMLreturn(Val_long(caml_string_length(first) + caml_string_length(second)));
}

/* Values are kept in memory of malloc. */
value b_buffer(value list, value right)
{
  CAMLparam1(list);
  CAMLlocal1(result);
  value *all = malloc(2 * sizeof *all);
  all[0] = Field(list, 0);
  all[1] = Field(Field(list, 1), 0);
  for (int i = 0; is_right(right) && i < 2; i++) caml_register_global_root(&all[i]);
  result = caml_alloc_tuple(2);
  for (int i = 0; i < 2; i++) Store_field(result, i, is_right(right) ? all[i] : caml_copy_string(String_val(all[i])));
  for (int i = 0; is_right(right) && i < 2; i++) caml_remove_global_root(&all[i]);
  free(all);
  CAMLreturn(result);
}

/* A value is handed to another thread. */
static value handed;
static void *call_handed(void *unused)
{
  caml_c_thread_register();
  caml_acquire_runtime_system();
  caml_callback(handed, Val_unit);
  caml_release_runtime_system();
  caml_c_thread_unregister();
  return unused;
}
value b_thread(value f, value right)
{
  CAMLparam1(f);
  pthread_t thread;
  handed = f;
  if (is_right(right)) caml_register_global_root(&handed);
  pthread_create(&thread, NULL, call_handed, NULL);
  caml_release_runtime_system();
  pthread_join(thread, NULL);
  caml_acquire_runtime_system();
  if (is_right(right)) caml_remove_global_root(&handed);
  CAMLreturn(Val_unit);
}

/* A custom block keeps a value, which its finaliser uses. */
static long lengths;
static void finalise_kept(value v) { lengths += (long)caml_string_length(*(value *)Data_custom_val(v)); }
static void finalise_root(value v)
{
  value *root = *(value **)Data_custom_val(v);
  lengths += (long)caml_string_length(*root);
  caml_remove_global_root(root);
  free(root);
}
#define OPERATIONS(finalise) \
  { "binding", finalise, custom_compare_default, custom_hash_default, custom_serialize_default, \
    custom_deserialize_default, custom_compare_ext_default, custom_fixed_length_default }
static struct custom_operations keeps = OPERATIONS(finalise_kept), roots = OPERATIONS(finalise_root);
value b_custom(value text, value right)
{
  CAMLparam1(text);
  value v = caml_alloc_custom(is_right(right) ? &roots : &keeps, sizeof(value), 0, 1);
  if (is_right(right)) {
    value *root = malloc(sizeof *root);
    *root = text;
    caml_register_global_root(root);
    *(value **)Data_custom_val(v) = root;
  }
  else *(value *)Data_custom_val(v) = text;
  CAMLreturn(v);
}

/* A large block is filled while its other fields are nothing yet. */
value b_unfilled(value n, value right)
{
  CAMLparam1(n);
  CAMLlocal1(block);
  block = is_right(right) ? caml_alloc(400, 0) : caml_alloc_shr(400, 0);
  for (int i = 0; i < 400; i++) {
    value text = caml_copy_string("x");
    if (is_right(right)) Store_field(block, i, text);
    else caml_initialize(&Field(block, i), text);
  }
  CAMLreturn(block);
}

/* Values that are old when they are kept: they move in major cycles alone. */
static value old_function, old_text;
value b_keep_old(value f, value text)
{
  old_function = f;
  old_text = text;
  return Val_unit;
}
value b_call_old(value unit) { return caml_callback(old_function, unit); }
value b_read_old(value unit)
{
  (void)unit;
  return Val_long(caml_string_length(old_text));
}

/* Large blocks, which are old from the beginning. */
static value large;
value b_keep_large(value text)
{
  large = text;
  return Val_unit;
}
value b_read_large(value unit)
{
  (void)unit;
  return Val_long(caml_string_length(large));
}
value b_fill_large(value n)
{
  value all = caml_alloc(Long_val(n), 0);
  for (long i = 0; i < Long_val(n); i++) caml_modify(&Field(all, i), caml_copy_string("x"));
  return all;
}

/* Correct: blocks that lie one below the other were allocated without a collection in between. */
value b_row(value unit)
{
  long sum = 0;
  value above = 0;
  for (int i = 0; i < 100; i++) {
    value v = caml_alloc_string(2032); /* with its header, half a page */
    if (above != 0 && (char *)above - (char *)v == 2048) sum += (long)caml_string_length(above);
    above = v;
  }
  return (void)unit, Val_long(sum);
}

/* Global roots. */
static value twice, unknown, assigned;
value b_twice(value v)
{
  twice = v;
  caml_register_global_root(&twice);
  caml_register_global_root(&twice);
  caml_remove_global_root(&twice);
  return Val_unit;
}
value b_unknown(value v)
{
  unknown = v;
  caml_remove_generational_global_root(&unknown);
  return Val_unit;
}
value b_assigned(value v)
{
  assigned = Val_unit;
  caml_register_generational_global_root(&assigned);
  assigned = v; /* without caml_modify_generational_global_root */
  caml_remove_generational_global_root(&assigned);
  return Val_unit;
}

/* Declared [@@noalloc]. */
value b_noalloc(value n) { return caml_copy_string("allocated") == n ? n : Val_unit; }
