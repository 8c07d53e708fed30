/* SPDX-License-Identifier: MIT */
/* load [-t] FUNCTION FILE…: loads the shared objects one after the other, as a program with plug-ins does, and calls
   the function, which is in the last of them; with -t on a thread that existed before. Exit code: 0 when it returns 0;
   3 when a file cannot be loaded (with the loader's words), 1 else. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int (*work)(void);
static int result = -9;
static pthread_mutex_t loaded = PTHREAD_MUTEX_INITIALIZER;

static void *call(void *unused)
{
  pthread_mutex_lock(&loaded);
  if (work != NULL) result = work();
  pthread_mutex_unlock(&loaded);
  return unused;
}

int main(int argc, char **argv)
{
  int on_thread = argc > 1 && strcmp(argv[1], "-t") == 0;
  void *last = NULL;
  pthread_t t;
  argv += on_thread;
  argc -= on_thread;
  if (argc < 3) return 2;
  pthread_mutex_lock(&loaded);
  if (on_thread && pthread_create(&t, NULL, call, NULL) != 0) return 2;
  for (int i = 2; i < argc; i++) {
    int optional = argv[i][0] == '?'; /* one that may fail, to use up what there is */
    last = dlopen(argv[i] + optional, RTLD_NOW | RTLD_GLOBAL);
    if (last == NULL && !optional) {
      fprintf(stderr, "%s\n", dlerror());
      return 3;
    }
  }
  work = (int (*)(void))dlsym(last, argv[1]);
  if (work == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  pthread_mutex_unlock(&loaded);
  if (on_thread) pthread_join(t, NULL);
  else call(NULL);
  printf("%d\n", result);
  return result != 0;
}
