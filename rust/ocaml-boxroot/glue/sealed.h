/* SPDX-License-Identifier: MIT */
/* Blocks that only this library makes. Any OCaml code may register any value under a name, and pass any number to a
   function; it cannot make a custom block. A Rust type whose values OCaml owns chooses a name for them at most, and
   such values have a finaliser, which these blocks lack. The name in the operations, not their address, says what a
   block is, so that all copies and versions of the library in a program know each other's: those of several Rust
   libraries, and that of the OCaml library ocaml-boxroot (../ocaml/ocaml_boxroot_stubs.c). */
#ifndef OCAML_BOXROOT_SEALED_H
#define OCAML_BOXROOT_SEALED_H

#include <caml/alloc.h>
#include <caml/custom.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <stdbool.h>
#include <string.h>

/* As in src/glue.rs, which has what is in each. Another layout needs another name. */
enum { EXCEPTIONS, DOMAINS, JOB };
static struct custom_operations const kinds[] = {
    [EXCEPTIONS] = {.identifier = "ocaml_boxroot.exceptions"},
    [DOMAINS] = {.identifier = "ocaml_boxroot.domains"},
    [JOB] = {.identifier = "ocaml_boxroot.job"},
};
struct job {
  void (*run)(void *data);
  void *data; /* null when somebody took it */
};

static inline void *sealed(value v, int kind)
{
  struct custom_operations const *operations;
  if (!Is_block(v) || Tag_val(v) != Custom_tag) return NULL;
  operations = Custom_ops_val(v);
  if (operations->finalize != NULL || strcmp(operations->identifier, kinds[kind].identifier) != 0) return NULL;
  return Data_custom_val(v);
}

/* A block with what an OCaml module hands over, to be registered under the name of its kind. Called by OCaml; may
   raise. */
static inline value seal(int kind, value contents)
{
  CAMLparam1(contents);
  value block = caml_alloc_custom((void *)&kinds[kind], sizeof(value *), 0, 1);
  value *place = caml_stat_alloc(sizeof *place);
  *place = contents;
  caml_register_generational_global_root(place);
  *(value **)Data_custom_val(block) = place;
  CAMLreturn(block);
}

/* The data of a job that nobody took; else null, also for other values. */
static inline void *take_job(value v)
{
  struct job *job = sealed(v, JOB);
  return job == NULL ? NULL : __atomic_exchange_n(&job->data, NULL, __ATOMIC_ACQ_REL);
}

/* Runs a job that nobody took. Whether it did. */
static inline bool run_job(value v)
{
  void *data = take_job(v);
  if (data != NULL) ((struct job *)Data_custom_val(v))->run(data);
  return data != NULL;
}

#endif
