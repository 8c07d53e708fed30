/* SPDX-License-Identifier: MIT */
/* Loads the plug-in that its argument names, runs OCaml in it, shuts it down and unloads it, again and again. */
#include "soak_threads.h"
#include <dlfcn.h>

int main(int argc, char **argv)
{
  if (argc != 2) return 2;
  for (int i = 0; i < 4; i++) {
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    int (*embed)(int) = plugin ? (int (*)(int))dlsym(plugin, "soak_embed") : NULL;
    if (!embed) {
      fprintf(stderr, "soak_host: %s\n", dlerror());
      return 1;
    }
    if (embed(2 + i)) return 1;
    if (dlclose(plugin)) return 1;
    if (!is_alone()) return 1; /* a thread that is left would run in memory that is gone */
  }
  puts("ok plugin");
  return 0;
}
