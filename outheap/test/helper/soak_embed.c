/* SPDX-License-Identifier: MIT */
/* OCaml in a program of C, or in a shared object of one: it is started, works, and is shut down in the middle of a
   cycle. Nothing of it may run afterwards. All custom blocks are finalised then: OCaml does that since 5.4. */
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/custom.h>
#include <caml/mlvalues.h>
#include <stdio.h>
#include <caml/version.h>
#include "soak_threads.h"

static long made, finalised;

static void finalise(value v) { (void)v, finalised++; }
static struct custom_operations operations = {
  "embedded", finalise, custom_compare_default, custom_hash_default, custom_serialize_default,
  custom_deserialize_default, custom_compare_ext_default, custom_fixed_length_default};

value soak_embed_custom(value number)
{
  value v = caml_alloc_custom(&operations, sizeof(long), 0, 1);
  *(long *)Data_custom_val(v) = Long_val(number);
  made++;
  return v;
}

int soak_embed(int rounds)
{
  char name[] = "soak", *argv[] = {name, NULL};
  caml_startup_pooled(argv);
  for (int i = 0; i < rounds; i++) {
    value result = caml_callback_exn(*caml_named_value("work"), Val_int(i));
    if (Is_exception_result(result)) {
      fprintf(stderr, "soak_embed: an exception\n");
      return 1;
    }
  }
  caml_shutdown();
  if (OCAML_VERSION >= 50400 && made != finalised) {
    fprintf(stderr, "soak_embed: %ld custom blocks, %ld finalised\n", made, finalised);
    return 1;
  }
  return 0;
}

#ifndef PLUGIN
int main(int argc, char **argv)
{
  (void)argv;
  int failed = soak_embed(argc + 7);
  /* Up to OCaml 5.3 the runtime says nothing of its end, and threads end with the process. */
  if (OCAML_VERSION >= 50400) failed |= !is_alone();
  if (!failed) puts("ok embed");
  return failed;
}
#endif
