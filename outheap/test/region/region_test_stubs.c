/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#define CAML_INTERNALS
#include <caml/alloc.h>
#include <caml/bigarray.h>
#include <caml/custom.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <outheap_region.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A custom type with data of its own, and one that stays unknown. */
static int compare(value a, value b) { return (int)(*(intnat *)Data_custom_val(a) - *(intnat *)Data_custom_val(b)); }
static intnat hash(value v) { return *(intnat *)Data_custom_val(v); }
static struct custom_operations known = { "region_test.known", custom_finalize_default, compare, hash,
                                          custom_serialize_default, custom_deserialize_default,
                                          custom_compare_ext_default, custom_fixed_length_default };
static struct custom_operations unknown = { "region_test.unknown", custom_finalize_default, compare, hash,
                                            custom_serialize_default, custom_deserialize_default,
                                            custom_compare_ext_default, custom_fixed_length_default };

value region_test_register(value unit) { return (void)unit, Val_bool(outheap_region_register_custom(&known)); }

static value custom(struct custom_operations *operations, intnat n)
{
  value v = caml_alloc_custom(operations, 2 * sizeof(intnat), 0, 1);
  ((intnat *)Data_custom_val(v))[0] = n;
  ((intnat *)Data_custom_val(v))[1] = ~n;
  return v;
}

value region_test_custom(value is_known, value n)
{
  return custom(Bool_val(is_known) ? &known : &unknown, Long_val(n));
}

/* One of many types, which it registers. */
value region_test_custom_of_type(value n)
{
  static struct custom_operations all[64];
  static char names[64][32];
  intnat i = Long_val(n);
  if (all[i].identifier == NULL) {
    snprintf(names[i], sizeof names[i], "region_test.%d", (int)i);
    all[i] = known;
    all[i].identifier = names[i];
    if (!outheap_region_register_custom(&all[i])) return Val_unit;
  }
  return custom(&all[i], i);
}

value region_test_custom_number(value v)
{
  intnat *n = Data_custom_val(v);
  return Val_long(n[1] == ~n[0] ? n[0] : -1);
}

value region_test_abstract(value unit)
{
  value v = caml_alloc(2, Abstract_tag);
  (void)unit;
  memset((void *)v, 0, 16);
  return v;
}

/* Something else at an address (half of it); it can be read. */
value region_test_occupy(value half, value bytes)
{
  void *at = (void *)(half - 1), *p = mmap(at, (size_t)Long_val(bytes), PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  return Val_bool(p == at);
}

value region_test_address(value v) { return v | 1; }

value region_test_color(value v) { return Val_int(Hd_val(v) >> 8 & 3); }

/* Failures: region_faults.h. A second process counts them too. */
static struct {
  long after;          /* 0: none; 1: the next */
  int failed, lasting; /* was there one; do all fail after the first one */
} *faults;
unsigned long region_faults_patience = 2000000;
static __attribute__((constructor)) void start(void)
{
  char const *patience = getenv("REGION_TEST_PATIENCE");
  faults = mmap(NULL, sizeof *faults, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (faults == MAP_FAILED) abort();
  if (patience != NULL) region_faults_patience = strtoul(patience, NULL, 10);
}
int region_faults_now(int error)
{
  if (!(faults->failed && faults->lasting) && (faults->after == 0 || --faults->after != 0)) return 0;
  faults->failed = 1;
  errno = error;
  return 1;
}
/* Calls of umask by the library. */
static long umasks;
mode_t region_faults_umask(mode_t mask)
{
  umasks++;
  return umask(mask);
}
value region_test_umasks(value unit) { return (void)unit, Val_long(umasks); }

/* The nth call from now on fails; -n: that one, and all that follow. Result: was there one since the last time? */
value region_test_fail(value n)
{
  int before = faults->failed;
  faults->failed = 0;
  faults->lasting = Long_val(n) < 0;
  faults->after = labs(Long_val(n));
  return Val_bool(before);
}

/* Uses up the mappings that the process may have, but for so many; -1: gives them back. Result: was that possible? */
value region_test_few_mappings(value left)
{
  static char *all;
  enum { MOST = 1 << 18 };
  size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 0;
  if (Long_val(left) < 0) return Val_bool(munmap(all, MOST * page) == 0);
  all = mmap(NULL, MOST * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return Val_false;
  while (n < MOST && mprotect(all + n * page, page, PROT_READ) == 0) n += 2;
  if (n >= MOST) return Val_false;
  munmap(all + (n - (size_t)Long_val(left)) * page, (size_t)Long_val(left) * page);
  return Val_true;
}

/* A line of a file of /proc/self, in KB; -1: there is none. */
value region_test_proc(value file, value name)
{
  FILE *f = fopen(String_val(file), "r");
  char line[512];
  long n = -1;
  while (f != NULL && fgets(line, sizeof line, f) != NULL)
    if (strncmp(line, String_val(name), caml_string_length(name)) == 0)
      sscanf(line + caml_string_length(name), " %ld", &n);
  if (f != NULL) fclose(f);
  return Val_long(n);
}

value region_test_lines(value file)
{
  FILE *f = fopen(String_val(file), "r");
  long n = 0;
  for (int c; f != NULL && (c = getc(f)) != EOF;) n += c == '\n';
  if (f != NULL) fclose(f);
  return Val_long(n);
}

/* --- second processes --------------------------------------------------------------------------------------------- */

value region_test_patience(value n) { return region_faults_patience = (unsigned long)Long_val(n), Val_unit; }

/* How many are there? Maybe ends them. */
value region_test_seconds(value end)
{
  DIR *all = opendir("/proc");
  long n = 0;
  for (struct dirent *e; all != NULL && (e = readdir(all)) != NULL;) {
    char path[300], name[64] = "";
    long pid = atol(e->d_name), parent = 0;
    if (pid <= 0) continue;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "r");
    if (f == NULL) continue;
    if (fscanf(f, "%*d (%60[^)]) %*c %ld", name, &parent) != 2) parent = 0;
    fclose(f);
    if (parent != getpid() || strcmp(name, "outheap-copy") != 0) continue;
    n++;
    if (Bool_val(end)) kill((pid_t)pid, SIGKILL);
  }
  if (all != NULL) closedir(all);
  return Val_long(n);
}

value region_test_subreaper(value on) { return prctl(PR_SET_CHILD_SUBREAPER, Bool_val(on), 0, 0, 0), Val_unit; }

/* From now on clone without threads (0), or memfd_create (1) is not permitted. */
value region_test_sandbox(value kind)
{
  struct sock_filter clone_filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x100 /* CLONE_VM */, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_filter memory_filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog clones = { sizeof clone_filter / sizeof *clone_filter, clone_filter };
  struct sock_fprog memory = { sizeof memory_filter / sizeof *memory_filter, memory_filter };
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Val_false;
  return Val_bool(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, Long_val(kind) == 0 ? &clones : &memory, 0, 0) == 0);
}

/* A bigarray over memory that C code may share with others. */
value region_test_shared_array(value unit)
{
  static unsigned char data[4096];
  intnat size = sizeof data;
  (void)unit;
  for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 37);
  return caml_ba_alloc(CAML_BA_UINT8 | CAML_BA_C_LAYOUT | CAML_BA_EXTERNAL, 1, data, &size);
}

/* From OCaml 5.5 on marking begins in a minor collection, some time after the cycle: in the next one, after this.
   Result: is it so? */
extern uintnat mark_phase_requested __asm__("caml_gc_mark_phase_requested") __attribute__((weak));
value region_test_begin_marking(value unit)
{
  (void)unit;
  if (&mark_phase_requested == NULL) return Val_false;
  __atomic_store_n(&mark_phase_requested, 1, __ATOMIC_RELEASE);
  return Val_true;
}
