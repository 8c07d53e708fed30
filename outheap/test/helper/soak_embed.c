/* SPDX-License-Identifier: MIT */
/* OCaml in a program of C, or in a shared object of one: it is started, works, and is shut down in the middle of a
   cycle. Nothing of it may run afterwards. */
#include <caml/callback.h>
#include <caml/mlvalues.h>
#include <stdio.h>
#include <unistd.h>

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
  return 0;
}

#ifndef PLUGIN
int main(int argc, char **argv)
{
  (void)argv;
  int failed = soak_embed(argc + 7);
  usleep(50000);
  if (!failed) puts("ok embed");
  return failed;
}
#endif
