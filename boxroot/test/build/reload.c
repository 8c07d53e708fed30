/* SPDX-License-Identifier: MIT */
/* The host of reload.ml, and (RELOAD_PLUGIN) what its plug-ins have beside the library. */
#define CAML_NAME_SPACE
#define CAML_INTERNALS
#include <caml/mlvalues.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if RELOAD_PLUGIN
#include "boxroot.h"
enum { ROOTS = 20000 };
static boxroot roots[ROOTS];

/* What a plug-in does; 0: all went well. */
int plugin_work(void);
int plugin_work(void)
{
  for (int i = 0; i < ROOTS; i++)
    if ((roots[i] = boxroot_create(Val_int(i))) == NULL) return 1;
  for (int i = 0; i < ROOTS; i++)
    if (boxroot_get(roots[i]) != Val_int(i)) return 2;
  return 0;
}
void plugin_end(void);
void plugin_end(void) { for (int i = 0; i < ROOTS / 2; i++) boxroot_delete(roots[i]); }

/* After a teardown: nothing happens. */
void plugin_end_late(void);
void plugin_end_late(void) { for (int i = ROOTS / 2; i < ROOTS; i++) boxroot_delete(roots[i]); }
static bool ends_late;
void plugin_will_end_late(void);
void plugin_will_end_late(void) { ends_late = true; }
__attribute__((destructor)) static void statics(void) { if (ends_late) plugin_end_late(); }

int plugin_status(void);
int plugin_status(void) { return boxroot_status(); }
bool plugin_setup(void);
bool plugin_setup(void) { return boxroot_setup(); }
void plugin_teardown(void);
void plugin_teardown(void) { boxroot_teardown(); }
#else
#include <caml/callback.h>
#include <caml/misc.h>
#include <caml/roots.h>
#include <caml/signals.h>
#include <caml/version.h>
#include <dlfcn.h>
#include <sys/syscall.h>

#define CHECK(c, ...) \
  do { \
    if (!(c)) { \
      fprintf(stderr, "FAILED: " __VA_ARGS__); \
      fputc('\n', stderr); \
      _Exit(1); \
    } \
  } while (0)

enum { NOT_SETUP, RUNNING, TORE_DOWN };
typedef struct plugin {
  void *handle;
  int (*work)(void), (*status)(void);
  void (*end)(void), (*end_late)(void), (*will_end_late)(void), (*teardown)(void);
  bool (*setup)(void);
} plugin;

static void *function(plugin *p, char const *name)
{
  void *f = dlsym(p->handle, name);
  CHECK(f != NULL, "%s", dlerror());
  return f;
}
static plugin load(char const *file)
{
  plugin p = { dlopen(file, RTLD_NOW | RTLD_LOCAL), 0 };
  CHECK(p.handle != NULL, "%s", dlerror());
#define FUNCTION(f) *(void **)&p.f = function(&p, "plugin_" #f)
  FUNCTION(work), FUNCTION(status), FUNCTION(end), FUNCTION(end_late), FUNCTION(will_end_late), FUNCTION(teardown);
  FUNCTION(setup);
  return p;
}
static bool is_loaded(char const *file)
{
  void *h = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
  if (h != NULL) dlclose(h);
  return h != NULL;
}

static void call(char const *name) { caml_callback(*caml_named_value(name), Val_unit); }
static void exercise(void)
{
  call("collect");
  caml_enter_blocking_section();
  caml_leave_blocking_section();
  if (OCAML_VERSION >= 50000) call("other domain");
  call("collect");
}

/* The thread of the last domain, which goes on for a while when its domain has ended. */
static long other_thread;
value reload_other_thread(value unit)
{
  other_thread = syscall(SYS_gettid);
  return unit;
}
static void wait_for_other_thread(void)
{
  char task[100];
  snprintf(task, sizeof task, "/proc/self/task/%ld", other_thread);
  while (other_thread != 0 && access(task, F_OK) == 0) usleep(1000);
}

static void usage(long *kilobytes, long *mappings)
{
  char line[1000];
  FILE *f = fopen("/proc/self/status", "r");
  CHECK(f != NULL, "/proc");
  while (fgets(line, sizeof line, f) != NULL) sscanf(line, "VmSize: %ld", kilobytes);
  fclose(f);
  f = fopen("/proc/self/maps", "r");
  CHECK(f != NULL, "/proc");
  for (*mappings = 0; fgets(line, sizeof line, f) != NULL;) ++*mappings;
  fclose(f);
}

/* Loaded, used, torn down, unloaded, many times. */
static void again(char const *file)
{
  enum { WARM_UP = 5, ROUNDS = 40 };
  long size, mappings, size_before = 0, mappings_before = 0;
  for (int i = 0; i < WARM_UP + ROUNDS; i++) {
    if (i == WARM_UP) usage(&size_before, &mappings_before);
    plugin p = load(file);
    CHECK(p.status() == NOT_SETUP, "round %d: status %d after loading", i, p.status());
    if (i % 3 != 2) {
      CHECK(p.work() == 0, "round %d", i);
      p.end();
      if (i % 2 == 0) exercise();
      else call("collect");
      if (i % 4 == 0) p.will_end_late();
      p.teardown();
      p.end_late();
      /* Up to 5.3 the library cannot wait for the marker. */
      if (OCAML_VERSION >= 50000 && OCAML_VERSION < 50400) call("collect");
    }
    dlclose(p.handle);
    /* The thread of a domain that has ended keeps it until its own end; the next dlclose unloads it then. */
    wait_for_other_thread();
    (void)is_loaded(file);
    CHECK(!is_loaded(file), "round %d: not unloaded", i);
    if (i % 3 == 0) exercise();
  }
  usage(&size, &mappings);
  printf("%d times: %+ld KB of address space, %+ld mappings\n", (int)ROUNDS, size - size_before,
         mappings - mappings_before);
  CHECK(size - size_before < 40000, "address space grew by %ld KB", size - size_before);
  CHECK(mappings - mappings_before < ROUNDS / 2, "%ld mappings more", mappings - mappings_before);
}

/* Another library wraps the hooks, and does not know that the plug-in goes. */
#if OCAML_VERSION >= 50000
static scan_roots_hook earlier_scan;
static caml_timing_hook earlier_minor;
static void scan(scanning_action a, scanning_action_flags f, void *d, caml_domain_state *s)
{
  if (earlier_scan != NULL) earlier_scan(a, f, d, s);
}
static caml_timing_hook earlier_end;
static void minor(void) { if (earlier_minor != NULL) earlier_minor(); }
static void end(void) { if (earlier_end != NULL) earlier_end(); }
static void wrap(int which)
{
  if (which == 0) earlier_scan = atomic_exchange(&caml_scan_roots_hook, scan);
  if (which == 1) earlier_minor = atomic_exchange(&caml_minor_gc_end_hook, minor);
  if (which == 2) earlier_end = atomic_exchange(&caml_domain_terminated_hook, end);
}
#else
CAMLextern void (*caml_leave_blocking_section_hook)(void);
CAMLextern void (*caml_enter_blocking_section_hook)(void);
static void (*earlier_scan)(scanning_action);
static void scan(scanning_action a) { if (earlier_scan != NULL) earlier_scan(a); }
static void (*earlier_enter)(void), (*earlier_leave)(void);
static void enter(void) { earlier_enter(); }
static void leave(void) { earlier_leave(); }
static void wrap(int which)
{
  if (which == 0) {
    earlier_scan = caml_scan_roots_hook;
    caml_scan_roots_hook = scan;
  } else {
    earlier_enter = caml_enter_blocking_section_hook;
    earlier_leave = caml_leave_blocking_section_hook;
    caml_enter_blocking_section_hook = enter;
    caml_leave_blocking_section_hook = leave;
  }
}
#endif

static void wrapped(char const *file, int which)
{
  plugin p = load(file);
  CHECK(p.work() == 0, "work");
  wrap(which);
  exercise();
  p.teardown();
  wait_for_other_thread();
  dlclose(p.handle);
  for (int i = 0; i < 5; i++) exercise();
  /* The same object is found again, torn down. */
  p = load(file);
  CHECK(p.status() == TORE_DOWN, "status %d of the plug-in that was loaded again", p.status());
  CHECK(p.setup() && p.work() == 0, "the plug-in does not work after set-up");
  exercise();
  p.end();
  p.teardown();
  dlclose(p.handle);
  exercise();
}

/* The process exits: nothing may be missing when destructors of the plug-in, and functions of others, end roots. */
static plugin left;
static void end_left(void) { left.end_late(); }
static void exits(char const *file)
{
  left = load(file);
  atexit(end_left);
  CHECK(left.work() == 0, "work");
  left.will_end_late();
  left.teardown();
}

value reload_run(value argv)
{
  char scenario[100], file[1000];
  snprintf(scenario, sizeof scenario, "%s", String_val(Field(argv, 1)));
  snprintf(file, sizeof file, "%s", String_val(Field(argv, 2)));
  if (strcmp(scenario, "again") == 0) again(file);
  else if (strncmp(scenario, "wrapped-", 8) == 0) wrapped(file, scenario[8] - '0');
  else if (strcmp(scenario, "exits") == 0) exits(file);
  else abort();
  return Val_unit;
}
#endif
