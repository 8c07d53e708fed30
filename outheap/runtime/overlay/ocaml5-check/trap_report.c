/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "trap_report.h"
#include "base.h"
#include "clock.h"
#include "settings.h"
#include "table.h"
#include "trap_left.h"
#include "trap_places.h"
#include "trap_text.h"
#include <caml/custom.h>
#include <caml/fiber.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define SMALL_PAGE ((uintptr_t)4096)
#define FRAMES 32
#define REPORTS_MOST 100 /* with check.go=1 */

uintptr_t oh_trap_report_nowhere_old, oh_trap_report_nowhere_young;

/* One report at a time; a thread whose report faults ends without it. */
static pthread_mutex_t reporting = PTHREAD_MUTEX_INITIALIZER;
static __thread bool mine;
static unsigned reports;

static bool begin_report(void)
{
  if (mine) { /* the report itself has failed: what there is of it */
    oh_trap_text_put("\n  (the report failed here)\n\n");
    oh_trap_text_flush();
    return false;
  }
  pthread_mutex_lock(&reporting);
  return mine = true;
}

static void leave_report(void)
{
  mine = false;
  pthread_mutex_unlock(&reporting);
}

static void end_report(void)
{
  oh_trap_text_put("\n");
  oh_trap_text_flush();
  reports++;
  leave_report();
}

/* --- what was it? ------------------------------------------------------------------------------------------------ */

static uintptr_t word(uintptr_t at)
{
  uintptr_t w = 0;
  oh_trap_left_peek(at, &w, sizeof w);
  return w;
}

static char const *kind_of(int tag)
{
  switch (tag) {
    case String_tag: return "string";
    case Double_tag: return "float";
    case Double_array_tag: return "array of floats";
    case Custom_tag: return "custom block";
    case Closure_tag: return "closure";
    case Abstract_tag: return "abstract block";
    case Object_tag: return "object";
    case Lazy_tag: return "lazy value";
    case Cont_tag: return "continuation";
    default: return "block";
  }
}

/* The first bytes. */
static void put_content(uintptr_t at, header_t header)
{
  char s[40];
  if (Tag_hd(header) == String_tag) {
    size_t all = Bosize_hd(header), n = all < sizeof s ? all : sizeof s;
    if (!oh_trap_left_peek(at, s, n)) return;
    if (n == all) n = all - 1 - (unsigned char)s[all - 1];
    oh_trap_text_put(" \"");
    for (size_t i = 0; i < n && i < sizeof s; i++) {
      bool shown = s[i] >= ' ' && s[i] < 127 && s[i] != '"';
      oh_trap_text_put("%c", shown ? s[i] : '.');
    }
    oh_trap_text_put(all > sizeof s ? "…\"" : "\"");
  }
  else if (Tag_hd(header) == Custom_tag) {
    uintptr_t operations = word(at), name = word(operations);
    if (operations == 0 || !oh_trap_left_peek(name, s, sizeof s)) return;
    s[sizeof s - 1] = 0;
    oh_trap_text_put(" \"%s\"", s);
  }
}

/* Where a block is at last, which may have moved again since. */
static uintptr_t now_of(uintptr_t at)
{
  struct oh_trap_left left;
  struct oh_trap_left_block block;
  for (int moves = 0; moves < 32 && oh_trap_left_find(at, &left) && oh_trap_left_block_at(&left, at, &block); moves++) {
    if (block.now == 0) break;
    at = block.now;
  }
  return at;
}

static char const *const causes[] = {
  [OH_TRAP_RUNTIME] = "the runtime (the minor heap was full, or the program asked)", [OH_TRAP_ALLOC] = "an allocation",
  [OH_TRAP_CALLBACK] = "a callback", [OH_TRAP_RELEASE] = "the release of the domain lock",
  [OH_TRAP_POLL] = "caml_process_pending_actions"
};

static void put_left(struct oh_trap_left const *left)
{
  uintnat ago = (uintnat)caml_minor_collections_count - left->collection;
  oh_trap_text_put("  left at collection %lu (%lu since), domain %d, by %s: %s\n", (unsigned long)left->collection,
              (unsigned long)ago, left->domain, left->block_words != 0 ? "compaction" : "a minor collection",
              causes[left->reason.cause]);
  oh_trap_places_code(left->reason.frames, left->reason.depth, false, 6);
}

/* --- who holds it? ----------------------------------------------------------------------------------------------- */

enum holder { NOBODY, REGISTER, VARIABLE, HEAP, MALLOC, STACK, HOLDERS };

/* [from, to): the words that are looked for, until then; `in_heap`: in the major heap, or in all other memory.
   [own, own + OWN): the stack of the signal handler, with copies of all registers. */
struct search {
  uintptr_t from, to, stack_pointer, own, ocaml_begin, ocaml_end;
  uint64_t until;
  bool in_heap, ended;
  unsigned found[HOLDERS];
};
#define SEARCH_NS 1000000000u /* some 2 GB */
#define OWN ((uintptr_t)32 << 10)

static char report_stack[1 << 18];

static bool is_wanted(struct search const *s, uintptr_t w) { return w >= s->from && w < s->to; }

static bool note(struct search *s, enum holder holder, unsigned most) { return s->found[holder]++ < most; }

static void search_registers(struct search *s, ucontext_t const *context)
{
#ifdef __x86_64__
  static char const *const names[] = { "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rdi", "rsi", "rbp", "rbx",
                                       "rdx", "rax", "rcx" };
  for (int i = 0; i < 15; i++)
    if (is_wanted(s, (uintptr_t)context->uc_mcontext.gregs[i]) && note(s, REGISTER, 15))
      oh_trap_text_put("  held by register %s\n", names[i]);
#else
  (void)context, (void)s;
#endif
}

/* The block of the major heap that holds this word: the nearest header before it that reaches it. */
static uintptr_t block_around(uintptr_t at)
{
  for (uintptr_t back = 1; back < 1024; back++) {
    header_t header = word(at - back * sizeof(value));
    if (header != 0 && Wosize_hd(header) >= back && Wosize_hd(header) < (1 << 22) && (header >> 8 & 3) != 3)
      return at - (back - 1) * sizeof(value);
  }
  return 0;
}

struct mapping { uintptr_t begin, end; char const *file; uintptr_t base; bool is_file, is_stack; };

static void note_place(struct search *s, struct mapping const *m, uintptr_t at)
{
  if (oh_table_kind(at) == OH_KIND_MAJOR) {
    uintptr_t block = block_around(at);
    if (!note(s, HEAP, 3)) return;
    oh_trap_text_put("  held by field %ld of the block %p of the major heap\n",
                block == 0 ? -1 : (long)((at - block) / sizeof(value)), (void *)block);
  }
  else if (m->is_file) {
    char name[256], variable[280];
    if (!note(s, VARIABLE, 6)) return;
    oh_trap_places_variable(m->file, m->base, at, name, sizeof name);
    if (strncmp(name, "oh_trap_", 8) == 0) {
      s->found[VARIABLE]--;
      return;
    }
    snprintf(variable, sizeof variable, *name == 0 ? "a variable%s" : "the variable %s", name);
    char const *slash = strrchr(m->file, '/');
    oh_trap_text_put("  held by %s of %s\n", variable, slash == NULL ? m->file : slash + 1);
  }
  else if (s->stack_pointer >= m->begin && s->stack_pointer < m->end) {
    if (at >= s->stack_pointer && at < s->stack_pointer + 8192 && note(s, STACK, 3))
      oh_trap_text_put("  held by the stack, %ld bytes above the stack pointer\n", (long)(at - s->stack_pointer));
  }
  else if (s->ocaml_begin <= at && at < s->ocaml_end) return; /* OCaml's own stack, with slots that are not in use */
  else if (note(s, m->is_stack ? STACK : MALLOC, 3))
    oh_trap_text_put("  held by %s at %p\n", m->is_stack ? "another stack" : "memory of malloc or mmap", (void *)at);
}

static void search_mapping(struct search *s, struct mapping const *m)
{
  static uintptr_t piece[4096];
  for (uintptr_t p = m->begin; p < m->end && !s->ended; p += sizeof piece) {
    s->ended = oh_clock_of_machine() > s->until;
    size_t bytes = m->end - p < sizeof piece ? m->end - p : sizeof piece;
    if (!oh_trap_left_peek(p, piece, bytes)) continue;
    for (size_t i = 0; i < bytes / sizeof *piece; i++) {
      uintptr_t at = p + i * sizeof *piece;
      bool own = at - (uintptr_t)piece < sizeof piece || at - (uintptr_t)report_stack < sizeof report_stack
                 || at - s->own < OWN;
      if (is_wanted(s, piece[i]) && !own) note_place(s, m, at);
    }
  }
}

static void search_memory(struct search *s)
{
  static char maps[1 << 18], file[512];
  size_t length = 0;
  ssize_t n;
  int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  while (length + 1 < sizeof maps && (n = read(fd, maps + length, sizeof maps - 1 - length)) > 0) length += (size_t)n;
  close(fd);
  maps[length] = 0;
  struct mapping m = { .file = file };
  for (char *line = maps, *next; *line != 0; line = next) {
    next = strchr(line, '\n');
    if (next == NULL) break;
    *next++ = 0;
    unsigned long begin, end, offset;
    char access[8], path[512] = "";
    if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %511[^\n]", &begin, &end, access, &offset, path) < 4) continue;
    bool follows = path[0] == 0 && begin == m.end && m.is_file; /* a file's zeroed variables */
    if (path[0] == '/' && strcmp(path, file) != 0) {
      ElfW(Ehdr) header;
      snprintf(file, sizeof file, "%s", path);
      m.base = oh_trap_left_peek(begin, &header, sizeof header) && header.e_type != ET_DYN ? 0 : begin - offset;
    }
    m.begin = begin;
    m.end = end;
    m.is_file = path[0] == '/' || follows;
    m.is_stack = strcmp(path, "[stack]") == 0;
    enum oh_kind kind = oh_table_kind(begin);
    bool wanted = kind != OH_KIND_YOUNG && (kind == OH_KIND_MAJOR) == s->in_heap;
    if (access[0] == 'r' && access[1] == 'w' && wanted) search_mapping(s, &m);
  }
}

/* --- what to do? ------------------------------------------------------------------------------------------------- */

static char const *advice_for(struct search const *s, struct oh_trap_left_block const *block, bool in_ocaml)
{
  if (s->found[HEAP] != 0)
    return "store values in blocks that are not new by caml_modify or Store_field; what C keeps in a custom block "
           "needs a root of its own (boxroot_create)";
  if (s->found[VARIABLE] != 0)
    return "make the variable a root: boxroot_create, or caml_register_generational_global_root";
  if (s->found[MALLOC] != 0) return "values in memory of C need roots: boxroot_create, or caml_register_global_root";
  if (in_ocaml)
    return "OCaml's code uses what a collection has left: a stub that is declared [@@noalloc] allocates or collects";
  if (block != NULL && Tag_hd(block->header) >= No_scan_tag)
    return "keep the value in a local root (CAMLparam, CAMLlocal) over everything that may collect, and take pointers "
           "into it (String_val, Data_custom_val) anew after that";
  return "keep the value in a local root (CAMLparam, CAMLlocal) over everything that may collect";
}

/* --- faults of memory --------------------------------------------------------------------------------------------- */

struct fault { uintptr_t at, pc; bool write; void *frames[FRAMES]; int depth; ucontext_t *context; };

#define VECTOR ((uintptr_t)64)

/* The address that the program meant. Vector instructions of the C library (strlen, memcpy) begin at a multiple of
   their size: what they mean is a string, or the like, that begins in their reach. */
static uintptr_t pointer_of(struct fault const *f, struct oh_trap_left const *left)
{
  if (f->depth == 0 || !oh_trap_places_is_libc(f->frames[0])) return f->at;
  struct oh_trap_left_block block;
  for (uintptr_t at = f->at; at < f->at + VECTOR && at < left->end; at += sizeof(value))
    if (oh_trap_left_block_at(left, at, &block) && Tag_hd(block.header) >= No_scan_tag) return at;
  return f->at;
}

static void search(struct search *s, struct fault const *f)
{
#ifdef __x86_64__
  s->stack_pointer = (uintptr_t)f->context->uc_mcontext.gregs[REG_RSP];
#endif
  s->own = (uintptr_t)f->context - OWN / 2;
  if (Caml_state_opt != NULL) {
    s->ocaml_begin = (uintptr_t)Stack_base(Caml_state->current_stack);
    s->ocaml_end = (uintptr_t)Stack_high(Caml_state->current_stack);
  }
  s->until = oh_clock_of_machine() + SEARCH_NS;
  search_registers(s, f->context);
  search_memory(s);
  s->in_heap = true;
  search_memory(s);
  if (s->ended) oh_trap_text_put("  held by: the heap is large, and was not searched to its end\n");
}

static void report_stale(struct fault *f, struct oh_trap_left const *left)
{
  uintptr_t at = pointer_of(f, left);
  struct oh_trap_left_block block;
  bool known = oh_trap_left_block_at(left, at, &block);
  oh_trap_text_put("outheap-check: a stale value was %s: %p\n", f->write ? "written to" : "read", (void *)f->at);
  oh_trap_places_code(f->frames, f->depth, true, 4);
  struct search s = { .from = left->first, .to = left->end };
  if (known) {
    oh_trap_text_put("  it was: %s, tag %d, %lu words", kind_of((int)Tag_hd(block.header)), (int)Tag_hd(block.header),
                (unsigned long)Wosize_hd(block.header));
    uintptr_t now = block.now == 0 ? 0 : now_of(block.now);
    put_content(now != 0 ? now : block.value, block.header);
    if (now != 0) oh_trap_text_put(", moved to %p", (void *)now);
    else oh_trap_text_put(", dead: no root led to it");
    oh_trap_text_put("; used at byte %ld\n", (long)(at - block.value));
    s.from = block.value;
    s.to = block.value + Bosize_hd(block.header);
  }
  put_left(left);
  search(&s, f);
  bool in_ocaml = f->depth == 1 && oh_trap_places_is_ocaml(f->frames[0]);
  oh_trap_text_put("  advice: %s\n", advice_for(&s, known ? &block : NULL, in_ocaml));
}

static void report_nowhere(struct fault *f, uintptr_t nowhere)
{
  oh_trap_text_put("outheap-check: a field was followed that is not initialised, or belongs to a free block: %p\n",
              (void *)f->at);
  oh_trap_places_code(f->frames, f->depth, true, 4);
  struct search s = { .from = nowhere, .to = nowhere + 1 };
  search(&s, f);
  oh_trap_text_put("  advice: write all fields of a new block before anything may collect (caml_initialize, or Field "
                   "after caml_alloc_small); caml_alloc does so itself\n");
}

/* Is this a fault of the trap's? Then it is reported. */
static bool report(struct fault *f)
{
  struct oh_trap_left left;
  bool old = f->at - (oh_trap_report_nowhere_old - SMALL_PAGE / 2) < SMALL_PAGE;
  bool young = f->at - (oh_trap_report_nowhere_young - SMALL_PAGE / 2) < SMALL_PAGE;
  bool ring = f->at >= caml_minor_heaps_start && f->at < caml_minor_heaps_end;
  bool ours = old || young || ring || oh_table_kind(f->at) == OH_KIND_MAJOR;
  if (oh_trap_report_nowhere_old == 0 || !ours) return false;
  bool found = oh_trap_left_find(f->at, &left);
  if (old || young) report_nowhere(f, old ? oh_trap_report_nowhere_old : oh_trap_report_nowhere_young);
  else if (found) report_stale(f, &left);
  else if (ring) {
    oh_trap_text_put("outheap-check: a stale value was %s: %p\n", f->write ? "written to" : "read", (void *)f->at);
    oh_trap_places_code(f->frames, f->depth, true, 4);
    oh_trap_text_put("  left too many collections ago to say more\n  advice: make what holds it a root\n");
  }
  else return false;
  return true;
}

/* The report wants more stack than signal handlers have. */
static struct fault *current;
static bool was_reported;
static void report_on_stack(void) { was_reported = report(current); }

static bool report_elsewhere(struct fault *f)
{
  static ucontext_t here, there;
  current = f;
  getcontext(&there);
  there.uc_stack.ss_sp = report_stack;
  there.uc_stack.ss_size = sizeof report_stack;
  there.uc_link = &here;
  makecontext(&there, report_on_stack, 0);
  swapcontext(&here, &there);
  return was_reported;
}

static struct sigaction before;

/* As if this handler were not there. */
static void pass_on(int number, siginfo_t *info, void *context)
{
  if (before.sa_flags & SA_SIGINFO) before.sa_sigaction(number, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) before.sa_handler(number);
  else sigaction(number, &before, NULL); /* and the instruction runs again */
}

static void handler(int number, siginfo_t *info, void *context)
{
  int error = errno;
  struct fault f = { .at = (uintptr_t)info->si_addr, .context = context };
  uintptr_t pc = 0;
#ifdef __x86_64__
  pc = (uintptr_t)f.context->uc_mcontext.gregs[REG_RIP];
  f.write = (f.context->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#endif
  f.pc = pc;
  if (info->si_code <= 0 || !begin_report()) {
    pass_on(number, info, context);
    return;
  }
  f.depth = oh_trap_places_stack_of_signal(f.frames, FRAMES, pc);
  bool done = report_elsewhere(&f);
  if (!done) {
    leave_report();
    pass_on(number, info, context);
  }
  else {
    end_report();
    uintptr_t page = OH_ROUND_DOWN(f.at, SMALL_PAGE);
    if (!oh_settings.check.go || reports > REPORTS_MOST
        || mprotect((void *)page, SMALL_PAGE, PROT_READ | PROT_WRITE) != 0) {
      struct sigaction ends = { .sa_handler = SIG_DFL };
      sigaction(number, &ends, NULL);
    }
  }
  errno = error;
}

void oh_trap_report_install(void)
{
  struct sigaction now, ours = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
  if (sigaction(SIGSEGV, NULL, &now) != 0 || ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handler)) return;
  if (reports != 0 && now.sa_handler == SIG_DFL) return; /* the program is about to end */
  before = now;
  sigaction(SIGSEGV, &ours, NULL);
}

static uintnat (*count_forced)(void);

/* For outheap-check, which reads the file. */
static void tell_end(void)
{
  if (oh_settings.check.report[0] == 0 || mine) return;
  pthread_mutex_lock(&reporting);
  oh_trap_text_put("outheap-check: the end, after %lu collections that were asked for, of %lu\n",
                   (unsigned long)count_forced(), (unsigned long)caml_minor_collections_count);
  oh_trap_text_flush();
  pthread_mutex_unlock(&reporting);
}

void oh_trap_report_start(uintnat (*forced)(void))
{
  count_forced = forced;
  atexit(tell_end);
  oh_trap_places_start();
  oh_trap_report_install();
}

/* --- other faults ------------------------------------------------------------------------------------------------- */

/* A program that goes on comes to the same place again. */
static bool is_new(char const *what, void *const *frames, int depth)
{
  static uintptr_t seen[REPORTS_MOST];
  uintptr_t hash = (uintptr_t)what;
  for (int i = 0; i < depth; i++) hash = hash * 31 + (uintptr_t)frames[i];
  for (unsigned i = 0; i < reports && i < REPORTS_MOST; i++)
    if (seen[i] == hash) return false;
  if (reports < REPORTS_MOST) seen[reports] = hash;
  return reports < REPORTS_MOST;
}

void oh_trap_report_fault(char const *what, void const *address, char const *advice)
{
  void *frames[FRAMES];
  if (!begin_report()) return;
  int depth = oh_trap_places_stack(frames, FRAMES);
  if (!is_new(what, frames, depth)) {
    leave_report();
    return;
  }
  oh_trap_text_put("outheap-check: %s: %p\n", what, address);
  oh_trap_places_code(frames, depth, false, 4);
  oh_trap_text_put("  advice: %s\n", advice);
  end_report();
}

/* Both on the stack of this thread? Other stacks may lie anywhere. */
static bool are_on_one_stack(uintptr_t a, uintptr_t b)
{
  pthread_attr_t attributes;
  void *begin;
  size_t size;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
  bool known = pthread_attr_getstack(&attributes, &begin, &size) == 0;
  pthread_attr_destroy(&attributes);
  return known && a - (uintptr_t)begin < size && b - (uintptr_t)begin < size;
}

/* The first block of a list that lies above `here`, as those of functions that run do. What is below may have been
   written over: NULL then. */
static struct caml__roots_block *first_above(struct caml__roots_block *roots, uintptr_t here)
{
  for (int n = 0; n < 1000 && roots != NULL && are_on_one_stack((uintptr_t)roots, here); n++) {
    if ((uintptr_t)roots >= here) return roots;
    roots = roots->next;
  }
  return NULL;
}

void oh_trap_report_frames(caml_domain_state *d)
{
  struct caml__roots_block *roots = d->local_roots;
  uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  if (roots == NULL || (uintptr_t)roots >= here || !are_on_one_stack((uintptr_t)roots, here)) return;
  oh_trap_report_fault("a function has returned without giving up its local roots", roots,
                       "a function with CAMLparam or CAMLlocal returns by CAMLreturn; one of those called before this "
                       "place does not");
  d->local_roots = first_above(roots, here); /* the collector would follow them for ever */
}

void oh_trap_report_refused(void)
{
  oh_trap_report_fault("a system call without the domain lock was refused an address (EFAULT)", NULL,
                       "a pointer into a block ends when the lock is released: copy what the system call needs");
}
