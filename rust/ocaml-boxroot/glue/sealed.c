/* SPDX-License-Identifier: MIT */
/* Blocks that only this library makes. Any OCaml code may register any value under a name, and pass any number to a
   function; it cannot make a custom block. A Rust type whose values OCaml owns chooses a name for them at most, and
   such values have a finaliser, which these blocks lack. The name in the operations, not their address, says what a
   block is, so that all copies and versions of the library in a program know each other's. */
#include "obx.h"
#include <caml/callback.h>
#include <caml/custom.h>
#include <caml/memory.h>
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

static void *sealed(value v, int kind)
{
  struct custom_operations const *operations;
  if (!Is_block(v) || Tag_val(v) != Custom_tag) return NULL;
  operations = Custom_ops_val(v);
  if (operations->finalize != NULL || strcmp(operations->identifier, kinds[kind].identifier) != 0) return NULL;
  return Data_custom_val(v);
}

/* A block with what an OCaml module hands over, to be registered under the name of its kind. Called by OCaml; may
   raise. */
value obx_seal(int kind, value contents)
{
  CAMLparam1(contents);
  value block = caml_alloc_custom((void *)&kinds[kind], sizeof(value *), 0, 1);
  value *place = caml_stat_alloc(sizeof *place);
  *place = contents;
  caml_register_generational_global_root(place);
  *(value **)Data_custom_val(block) = place;
  CAMLreturn(block);
}

/* What the OCaml module handed over, or 0. */
value obx_sealed(int kind)
{
  value const *named = caml_named_value(kinds[kind].identifier);
  value **place = named == NULL ? NULL : sealed(*named, kind);
  return place == NULL ? 0 : **place;
}

/* A block with something to be run once. May run the collector, before. */
value obx_job(void (*run)(void *), void *data)
{
  value v = obx_alloc_custom(&kinds[JOB], sizeof(struct job), 0);
  *(struct job *)Data_custom_val(v) = (struct job){run, data};
  return v;
}

/* The data of a job that nobody took; else null, also for other values. */
void *obx_take_job(value v)
{
  struct job *job = sealed(v, JOB);
  return job == NULL ? NULL : __atomic_exchange_n(&job->data, NULL, __ATOMIC_ACQ_REL);
}

/* Runs a job that nobody took. Whether it did. */
bool obx_run_job(value v)
{
  void *data = obx_take_job(v);
  if (data != NULL) ((struct job *)Data_custom_val(v))->run(data);
  return data != NULL;
}
