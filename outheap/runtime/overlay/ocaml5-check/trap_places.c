/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "trap_places.h"
#include "trap_text.h"
#include <caml/backtrace.h>
#include <caml/backtrace_prim.h>
#include <caml/codefrag.h>
#include <caml/interp.h>
#include <caml/stack.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#define FRAMES_MOST 48
#define LINES_MOST 16 /* of OCaml's stack */

/* --- the stack --------------------------------------------------------------------------------------------------- */

bool oh_trap_places_is_ocaml(void const *pc) { return caml_find_code_fragment_by_pc((char *)pc) != NULL; }

bool oh_trap_places_is_libc(void const *pc)
{
  Dl_info info;
  return dladdr(pc, &info) != 0 && info.dli_fname != NULL && strstr(info.dli_fname, "libc.") != NULL;
}

#ifdef NATIVE_CODE
/* The code between OCaml and C. */
extern char caml_system__code_begin, caml_system__code_end;
static bool is_border(char const *pc) { return pc >= &caml_system__code_begin && pc < &caml_system__code_end; }
#define INTERPRETER 0
#else
static bool is_border(char const *pc) { return pc == NULL; }
#define INTERPRETER ((uintptr_t)&caml_bytecode_interpreter)
#endif

/* frames[0, n) so far; `skip`: nothing is taken before this address. */
struct walk { void **frames; int n, most; uintptr_t skip; };

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *data)
{
  struct walk *w = data;
  uintptr_t pc = _Unwind_GetIP(context);
  if (w->skip != 0 && pc != w->skip) return _URC_NO_REASON;
  w->skip = 0;
  if (w->n == w->most || _Unwind_GetRegionStart(context) == INTERPRETER) return _URC_END_OF_STACK;
  w->frames[w->n++] = (void *)pc;
  bool calls_ocaml = w->n == 1 && is_border((void *)pc); /* caml_callback_asm */
  return oh_trap_places_is_ocaml((void *)pc) && !calls_ocaml ? _URC_END_OF_STACK : _URC_NO_REASON;
}

int oh_trap_places_stack(void **frames, int most)
{
  void *all[FRAMES_MOST];
  struct walk w = { all, 0, most + 2 < FRAMES_MOST ? most + 2 : FRAMES_MOST, 0 };
  _Unwind_Backtrace(step, &w);
  int n = w.n > 2 ? w.n - 2 : 0; /* without this function and the caller */
  memcpy(frames, all + 2, (size_t)n * sizeof *frames);
  return n;
}

int oh_trap_places_stack_of_signal(void **frames, int most, uintptr_t interrupted)
{
  struct walk w = { frames, 0, most, interrupted };
  bool in_ocaml = oh_trap_places_is_ocaml((void *)interrupted) && !is_border((void *)interrupted);
  if (!in_ocaml) _Unwind_Backtrace(step, &w);
  if (w.n == 0) frames[w.n++] = (void *)interrupted;
  return w.n;
}

void oh_trap_places_start(void)
{
  void *frames[4];
  (void)oh_trap_places_stack(frames, 1);
}

/* --- code -------------------------------------------------------------------------------------------------------- */

/* What a command prints, NUL-terminated. False: it cannot be run. The C library's fork would run handlers that wait for
   locks of the program; posix_spawn does not. */
static bool run(char *const *words, char *output, size_t most)
{
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  char path[1024];
  char const *was = getenv("PATH");
  snprintf(path, sizeof path, "PATH=%s", was == NULL ? "/usr/bin:/bin" : was);
  char *environment[] = { path, NULL };
  pid_t child;
  int error = posix_spawnp(&child, words[0], &actions, NULL, words, environment);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  size_t length = 0;
  while (error == 0 && length + 1 < most) {
    ssize_t n = read(ends[0], output + length, most - 1 - length);
    if (n == 0 || (n < 0 && errno != EINTR)) break;
    if (n > 0) length += (size_t)n;
  }
  output[length] = 0;
  close(ends[0]);
  if (error == 0)
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
  return error == 0;
}

/* The file in which code lies, and where it was loaded. */
static bool object_of(void *pc, char *file, size_t most, uintptr_t *base, char const **symbol)
{
  Dl_info info;
  if (dladdr(pc, &info) == 0 || info.dli_fname == NULL) return false;
  extern char const __executable_start[] __attribute__((weak, visibility("hidden")));
  snprintf(file, most, "%s", info.dli_fname);
  if (info.dli_fbase == (void *)__executable_start || strchr(file, '/') == NULL) {
    ssize_t n = readlink("/proc/self/exe", file, most - 1);
    if (n > 0) file[n] = 0;
  }
  ElfW(Ehdr) const *header = info.dli_fbase;
  *base = header->e_type == ET_DYN ? (uintptr_t)info.dli_fbase : 0;
  *symbol = info.dli_sname;
  return true;
}

static char const *name_of(char const *file)
{
  char const *slash = strrchr(file, '/');
  return slash == NULL ? file : slash + 1;
}

/* Without what belongs to the trap. */
static void put_line(char *line, int indent, char const *object)
{
  char *inlined = strstr(line, "(inlined by) ");
  if (inlined != NULL) line = inlined + strlen("(inlined by) ");
  char *discriminator = strstr(line, " (discriminator");
  if (discriminator != NULL) *discriminator = 0;
  if (strncmp(line, "oh_trap_", 8) != 0) oh_trap_text_put("%*s%s  [%s]\n", indent, "", line, object);
}

/* Addresses that lie in the same file: one process for all. */
static int put_of_one_file(void *const *frames, int n, bool exact, int indent)
{
  static char output[1 << 15], numbers[FRAMES_MOST][24];
  char file[1024], other[1024];
  uintptr_t base, other_base;
  char const *symbol;
  char *words[FRAMES_MOST + 8] = { "addr2line", "-a", "-f", "-i", "-p", "-s", "-e", file };
  if (!object_of(frames[0], file, sizeof file, &base, &symbol)) {
    oh_trap_text_put("%*s%p\n", indent, "", frames[0]);
    return 1;
  }
  int count = 0;
  while (count < n && count < FRAMES_MOST - 8) {
    char const *unused;
    bool known = count == 0 || object_of(frames[count], other, sizeof other, &other_base, &unused);
    if (!known || (count > 0 && strcmp(file, other) != 0)) break;
    snprintf(numbers[count], sizeof *numbers, "0x%lx", (uintptr_t)frames[count] - base - (exact && count == 0 ? 0 : 1));
    words[8 + count] = numbers[count];
    count++;
  }
  words[8 + count] = NULL;
  if (!run(words, output, sizeof output) || *output == 0) {
    for (int i = 0; i < count; i++) {
      if (!object_of(frames[i], other, sizeof other, &other_base, &symbol)) symbol = NULL;
      oh_trap_text_put("%*s%s  [%s+%s]\n", indent, "", symbol == NULL ? "?" : symbol, name_of(file), numbers[i]);
    }
    return count;
  }
  for (char *line = strtok(output, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    char *text = strncmp(line, "0x", 2) == 0 ? strchr(line, ' ') : line;
    if (text != NULL) put_line(text + (*text == ' '), indent, name_of(file));
  }
  return count;
}

/* What called C: the frames of OCaml's stack, whose places are in the program's own tables. */
static void put_ocaml(int indent)
{
  static backtrace_slot slots[LINES_MOST];
  backtrace_slot *buffer = slots;
  size_t size = LINES_MOST;
  if (Caml_state_opt == NULL) return;
  size_t n = caml_get_callstack(LINES_MOST - 1, &buffer, &size, -1);
  for (size_t i = 0; i < n; i++) {
    for (debuginfo d = caml_debuginfo_extract(slots[i]); d != NULL; d = caml_debuginfo_next(d)) {
      struct caml_loc_info place;
      caml_debuginfo_location(d, &place);
      if (!place.loc_valid) continue;
      oh_trap_text_put("%*s%s at %s:%d  [OCaml]\n", indent, "", place.loc_defname, place.loc_filename,
                       place.loc_start_lnum);
    }
  }
}

void oh_trap_places_code(void *const *frames, int n, bool exact, int indent)
{
  bool border = n > 1 && is_border(frames[n - 1]);
  int c = border ? n - 1 : n;
  for (int i = 0; i < c; i += put_of_one_file(frames + i, c - i, exact && i == 0, indent)) {}
#ifdef NATIVE_CODE
  if (border) put_ocaml(indent);
#else
  put_ocaml(indent);
#endif
}

/* --- variables ---------------------------------------------------------------------------------------------------- */

void oh_trap_places_variable(char const *file, uintptr_t base, uintptr_t address, char *name, size_t most)
{
  *name = 0;
  int fd = open(file, O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (fd < 0) return;
  char *map = fstat(fd, &status) != 0 ? MAP_FAILED : mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (map == MAP_FAILED) return;
  ElfW(Ehdr) const *header = (void *)map;
  ElfW(Shdr) const *sections = (void *)(map + header->e_shoff);
  bool good = (size_t)status.st_size > sizeof *header && memcmp(map, ELFMAG, SELFMAG) == 0
              && header->e_shoff + header->e_shnum * sizeof *sections <= (size_t)status.st_size;
  uintptr_t wanted = address - base, best = 0;
  for (int i = 0; good && i < header->e_shnum; i++) {
    if (sections[i].sh_type != SHT_SYMTAB && sections[i].sh_type != SHT_DYNSYM) continue;
    ElfW(Sym) const *symbols = (void *)(map + sections[i].sh_offset);
    char const *names = map + sections[sections[i].sh_link].sh_offset;
    for (size_t k = 0; k < sections[i].sh_size / sizeof *symbols; k++) {
      ElfW(Sym) const *s = &symbols[k];
      unsigned type = ELF64_ST_TYPE(s->st_info);
      if (s->st_shndx == SHN_UNDEF || type == STT_SECTION || type == STT_FILE) continue;
      bool ends_before = s->st_size != 0 && wanted >= s->st_value + s->st_size;
      if (s->st_value > wanted || s->st_value < best || ends_before) continue;
      best = s->st_value;
      snprintf(name, most, "%s", names + s->st_name);
    }
  }
  munmap(map, (size_t)status.st_size);
}
