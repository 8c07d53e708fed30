/* SPDX-License-Identifier: MIT */
/* What C code of programs does beside an idle collection, with the stock runtime as well: roots, blocks with
   finalisers, threads that come and go, children that no handler of forks sees, the end of the runtime. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/custom.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <caml/signals.h>
#include <caml/threads.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Threads have this in their stacks: nearly as much as those of the runtime's own threads have. */
static __thread char volatile large[125 << 10];

bool oh_clock_advance(uint64_t nanoseconds, uint64_t used); /* of the runtime: clock.ml */

/* A child that shares nothing, and that the C library knows nothing of, ends. Result: its status; that of SIGALRM if
   it has not ended after a minute. */
value ordinary_clone(value unit)
{
  int status = -1;
  (void)unit;
  large[0] = 1;
  fflush(NULL);
  pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
  if (child == 0) {
    alarm(60);
    exit(0);
  }
  while (waitpid(child, &status, 0) < 0) {}
  return Val_int(status);
}

/* The runtime ends, and the process goes on. */
value ordinary_shutdown(value unit)
{
  (void)unit;
  caml_shutdown();
  oh_clock_advance(2500000000, 0);
  _exit(0);
}

/* --- a library that wraps the hook of blocking sections ----------------------------------------------------------- */

CAMLextern void (*caml_enter_blocking_section_hook)(void);
static void (*enter_before)(void);
static long sections;
static void count_section(void)
{
  sections++;
  enter_before();
}
value ordinary_wrap_sections(value unit)
{
  enter_before = caml_enter_blocking_section_hook;
  caml_enter_blocking_section_hook = count_section;
  return unit;
}
value ordinary_sections(value unit) { return (void)unit, Val_long(sections); }

/* --- blocks and roots --------------------------------------------------------------------------------------------- */

static intnat made, finalised;
static void finalise(value block)
{
  char **memory = Data_custom_val(block);
  free(*memory);
  finalised++;
}
static struct custom_operations operations = { "ordinary", finalise, custom_compare_default, custom_hash_default,
  custom_serialize_default, custom_deserialize_default, custom_compare_ext_default, custom_fixed_length_default };

value ordinary_block(value text)
{
  CAMLparam1(text);
  CAMLlocal1(block);
  char *memory = strdup(String_val(text));
  if (memory == NULL) caml_raise_out_of_memory();
  block = caml_alloc_custom_mem(&operations, sizeof memory, caml_string_length(text));
  *(char **)Data_custom_val(block) = memory;
  made++;
  CAMLreturn(block);
}
value ordinary_text(value block) { return caml_copy_string(*(char **)Data_custom_val(block)); }
value ordinary_alive(value unit) { return (void)unit, Val_long(made - finalised); }

enum { ROOTS = 20000 };
static value roots[2][ROOTS];
value ordinary_root(value i, value v)
{
  intnat n = Long_val(i);
  roots[0][n] = roots[1][n] = v;
  caml_register_generational_global_root(&roots[0][n]);
  caml_register_global_root(&roots[1][n]);
  return Val_unit;
}
value ordinary_rooted(value i)
{
  if (roots[0][Long_val(i)] != roots[1][Long_val(i)]) caml_failwith("two roots differ");
  return roots[0][Long_val(i)];
}

/* A block of C, outside of the heap. */
value ordinary_outside(value n)
{
  value *memory = malloc(2 * sizeof(value));
  if (memory == NULL) caml_raise_out_of_memory();
  memory[0] = (value)Caml_out_of_heap_header(1, 0);
  memory[1] = n;
  return (value)(memory + 1);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static int volatile calls;

/* OCaml learns of it, it calls a function, and so on. Now and then the program is idle for seconds meanwhile. */
static void *visit(void *unused)
{
  value const *function = caml_named_value("visit");
  for (int i = 0; i < 40; i++) {
    oh_clock_advance(i % 8 == 0 ? 3000000000 : 100000000, 0);
    if (!caml_c_thread_register()) abort();
    caml_acquire_runtime_system();
    if (caml_callback(*function, Val_int(i)) == Val_int(i + 1)) calls++;
    caml_release_runtime_system();
    caml_c_thread_unregister();
  }
  return unused;
}

static pthread_t visitor;
value ordinary_visit(value unit)
{
  if (pthread_create(&visitor, NULL, visit, NULL) != 0) caml_failwith("no thread");
  return unit;
}
value ordinary_visited(value unit)
{
  (void)unit;
  caml_release_runtime_system();
  pthread_join(visitor, NULL);
  caml_acquire_runtime_system();
  return Val_int(calls);
}
