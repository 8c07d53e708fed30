/* SPDX-License-Identifier: MIT */
/* Local frames (boxroot/frame.h) for OCaml code: a frame and a local are their addresses, as immediates. */
#include "../common/check.h"

#include <boxroot/frame.h>
#include <caml/fail.h>
#include <sys/wait.h>

extern void caml_minor_collection(void); /* the header that declares it is internal to the runtime */

/* AddressSanitizer does not see that an exception of OCaml ends functions, whose variables it still guards then. Each
   function that OCaml calls begins by telling it; and before that by lifting the guard of the stack below, which is in
   the way of what tells it. */
extern void __asan_handle_no_return(void) __attribute__((weak));
extern void __asan_unpoison_memory_region(void const volatile *, size_t) __attribute__((weak));
enum { STACK_BELOW = 1 << 18 };
#define ENTER()                                                                                     \
  do                                                                                                \
    if (&__asan_handle_no_return != NULL) {                                                         \
      __asan_unpoison_memory_region((char *)__builtin_frame_address(0) - STACK_BELOW, STACK_BELOW); \
      __asan_handle_no_return();                                                                    \
    }                                                                                               \
  while (0)

#define Val_address(p) ((value)(p) | 1)
#define Frame_val(v) ((boxroot_frame *)((v) & ~(value)1))
#define Local_val(v) ((boxroot_local)((v) & ~(value)1))

/* f_frame(n, how, body): opens a frame with room for about n locals and passes it to body. how: 0: an exception of body
   leaves this function at once; 1: it is caught, the frame ends, and it is raised again; 2: the frame is closed by hand
   before the result is returned. The closure is kept in the frame. */
#define DEFINE_FRAME(n)                                                                     \
  static __attribute__((noinline)) value frame_##n(value how, value body)                   \
  {                                                                                         \
    BOXROOT_FRAME(f, n);                                                                    \
    boxroot_local kept = boxroot_local_create(&f, body);                                    \
    if (kept == NULL) caml_raise_out_of_memory();                                           \
    value v = Val_address(&f);                                                              \
    v = how == Val_int(0) ? caml_callback(body, v) : caml_callback_exn(body, v);            \
    CHECK(f.head == NULL || Is_block(boxroot_local_get(kept)), "the closure is gone");      \
    if (how == Val_int(2)) boxroot_frame_close(&f);                                         \
    return v;                                                                               \
  }
DEFINE_FRAME(1)
DEFINE_FRAME(3)
DEFINE_FRAME(8)
DEFINE_FRAME(100)

value f_frame(value n, value how, value body)
{
  ENTER();
  value r = n == Val_int(1)   ? frame_1(how, body)
            : n == Val_int(3) ? frame_3(how, body)
            : n == Val_int(8) ? frame_8(how, body)
                              : frame_100(how, body);
  ENTER();
  if (Is_exception_result(r)) caml_raise(Extract_exception(r));
  return r;
}

/* The same with CAMLparam around it, and frames that are opened in a loop, left by continue, its end, and break. */
value f_frame_in_loop(value n, value body)
{
  ENTER();
  CAMLparam2(n, body);
  CAMLlocal1(last);
  for (int i = 0; i < 4; i++) {
    BOXROOT_FRAME(f, 2);
    if (i == 0) continue;
    boxroot_local kept = boxroot_local_create(&f, caml_copy_string("kept"));
    if (kept == NULL) caml_raise_out_of_memory();
    if (i == 2) last = caml_callback(body, Val_address(&f));
    CHECK(strcmp(String_val(boxroot_local_get(kept)), "kept") == 0, "a local of a loop");
    if (i == 3) break;
  }
  CAMLreturn(last);
}

/* The address of a local; 0 on failure. */
value f_add(value f, value v)
{
  ENTER();
  boxroot_local l = boxroot_local_create(Frame_val(f), v);
  if (l == NULL) {
    CHECK(errno == ENOMEM, "errno is %d", errno);
    return Val_int(0);
  }
  return Val_address(l);
}

/* The same from a function that has local roots and frames of its own. */
value f_add_from_below(value f, value v)
{
  ENTER();
  CAMLparam2(f, v);
  CAMLlocal1(result);
  BOXROOT_FRAME(own, 1);
  boxroot_local a = boxroot_local_create(&own, v), b = boxroot_local_create(&own, v);
  if (a == NULL || b == NULL) CAMLreturn(Val_int(0));
  caml_minor_collection();
  result = f_add(f, boxroot_local_get(b));
  caml_minor_collection();
  CHECK(boxroot_local_get(a) == boxroot_local_get(b) && boxroot_local_get(a) == v, "two locals of one value");
  CAMLreturn(result);
}

value f_get(value l) { ENTER(); return boxroot_local_get(Local_val(l)); }
value f_set(value l, value v) { ENTER(); boxroot_local_set(Local_val(l), v); return Val_unit; }
value f_write(value l, value v) { ENTER(); *boxroot_local_ref(Local_val(l)) = v; return Val_unit; }
value f_close(value f) { boxroot_frame_close(Frame_val(f)); return Val_unit; }
value f_error(value unit) { (void)unit; return caml_copy_string(boxroot_error_string()); }

/* A frame that is closed by hand takes no more locals. */
value f_add_to_closed(value v)
{
  BOXROOT_FRAME(f, 2);
  boxroot_frame_close(&f);
  boxroot_frame_close(&f);
  errno = 0;
  return Val_bool(boxroot_local_create(&f, v) == NULL && errno == EPERM);
}

/* n strings in one frame, with collections meanwhile; how many of them were wrong. */
value f_many(value n_, value each)
{
  long n = Long_val(n_), wrong = 0;
  BOXROOT_FRAME(f, 4);
  boxroot_local *all = malloc((size_t)n * sizeof *all);
  if (all == NULL) return Val_int(-1);
  for (long i = 0; i < n; i++) {
    char text[30];
    snprintf(text, sizeof text, "local %ld", i);
    if ((all[i] = boxroot_local_create(&f, caml_copy_string(text))) == NULL) return Val_int(-2);
    if (i % Long_val(each) == 0) caml_minor_collection();
  }
  caml_callback(*caml_named_value("compact"), Val_unit);
  for (long i = 0; i < n; i++) {
    char text[30];
    snprintf(text, sizeof text, "local %ld", i);
    wrong += strcmp(String_val(boxroot_local_get(all[i])), text) != 0;
  }
  free(all);
  return Val_long(wrong);
}

/* Locals of immediates until there is no more room, and then as many as before in a new frame; how many. */
value f_until_full(value unit)
{
  long n[2] = { 0, 0 };
  for (int i = 0; i < 2; i++) {
    BOXROOT_FRAME(f, 4);
    boxroot_local first = boxroot_local_create(&f, unit);
    while (boxroot_local_create(&f, Val_long(n[i])) != NULL) n[i]++;
    CHECK(errno == ENOMEM && boxroot_local_create(&f, unit) == NULL && boxroot_local_get(first) == unit, "when full");
  }
  CHECK(n[0] == n[1], "%ld, and then %ld", n[0], n[1]);
  return Val_long(n[0]);
}

/* A recursion of the given depth in which each function has a frame with `locals` locals; at its end body is called,
   which may raise. The sum of the locals of all. */
static long deep(long depth, long locals, boxroot_local body)
{
  BOXROOT_FRAME(f, 2);
  boxroot_local first = NULL;
  for (long i = 0; i < locals; i++) {
    boxroot_local l = boxroot_local_create(&f, caml_copy_double((double)(depth + i)));
    CHECK(l != NULL, "no local");
    if (i == 0) first = l;
  }
  long rest = 0;
  if (depth > 0) rest = deep(depth - 1, locals, body);
  else caml_callback(boxroot_local_get(body), Val_unit);
  return rest + (long)Double_val(boxroot_local_get(first));
}
value f_deep(value depth, value locals, value body)
{
  ENTER();
  BOXROOT_FRAME(f, 1);
  boxroot_local b = boxroot_local_create(&f, body);
  return Val_long(deep(Long_val(depth), Long_val(locals), b));
}

/* Frames of one function, which the compiler may lay out in either order: the one with the lower address is opened
   first (`low`), or last; both get tables, in turn. */
static void fill_locals(boxroot_frame *f, boxroot_local *l, int from, int until)
{
  for (int i = from; i < until; i++) CHECK((l[i] = boxroot_local_create(f, caml_copy_double(i))) != NULL, "no local");
}
static void check_locals(boxroot_local *l, int n)
{
  for (int i = 0; i < n; i++) CHECK(Double_val(boxroot_local_get(l[i])) == i, "local %d", i);
}
value f_sum(value n);
value f_two_frames(value low)
{
  struct { bxr_frame_head head; value slots[2]; } place[2];
  struct caml__roots_block *before = bxr_local_roots;
  ENTER();
#if BOXROOT_DEBUG
#define OPEN(i) bxr_frame_open(&place[i].head, place[i].slots, 2, __FILE__, __LINE__)
#else
#define OPEN(i) bxr_frame_open(&place[i].head, place[i].slots, 2)
#endif
  boxroot_local l[2][300];
  boxroot_frame first = OPEN(Bool_val(low) ? 0 : 1);
  fill_locals(&first, l[0], 0, 150);
  boxroot_frame second = OPEN(Bool_val(low) ? 1 : 0);
  fill_locals(&second, l[1], 0, 150);
  fill_locals(&first, l[0], 150, 300);
  fill_locals(&second, l[1], 150, 300);
  caml_minor_collection();
  check_locals(l[0], 300);
  check_locals(l[1], 300);
  boxroot_frame_close(&second);
  fill_locals(&first, l[0], 150, 300);
  f_sum(Val_int(300));
  caml_minor_collection();
  check_locals(l[0], 300);
  boxroot_frame_close(&first);
  CHECK(bxr_local_roots == before, "the list of local roots");
  return Val_unit;
}

/* A thread of C that OCaml knows for a while: frames that end, and frames that exceptions end. */
static void *foreign(void *body)
{
  CHECK(caml_c_thread_register() == 1, "register");
  caml_acquire_runtime_system();
  {
    BOXROOT_FRAME(f, 2);
    for (int i = 0; i < 100; i++) CHECK(boxroot_local_create(&f, caml_copy_double(i)) != NULL, "no local");
    value r = caml_callback_exn(boxroot_get(body), Val_unit);
    CHECK(Is_exception_result(r), "no exception");
  }
  caml_release_runtime_system();
  caml_c_thread_unregister();
  return NULL;
}
value f_foreign(value body, value times)
{
  boxroot b = boxroot_create(body);
  CHECK(b != NULL, "no root");
  caml_enter_blocking_section();
  for (long i = 0; i < Long_val(times); i++) {
    pthread_t t;
    CHECK(pthread_create(&t, NULL, foreign, b) == 0, "pthread_create");
    pthread_join(t, NULL);
  }
  caml_leave_blocking_section();
  boxroot_delete(b);
  return Val_unit;
}

/* Locals across a blocking section, in which others run. */
value f_blocking(value us)
{
  BOXROOT_FRAME(f, 2);
  boxroot_local l[200];
  for (int i = 0; i < 200; i++) CHECK((l[i] = boxroot_local_create(&f, caml_copy_double(i))) != NULL, "no local");
  caml_enter_blocking_section();
  usleep((useconds_t)Long_val(us));
  caml_leave_blocking_section();
  for (int i = 0; i < 200; i++) CHECK(Double_val(boxroot_local_get(l[i])) == i, "local %d", i);
  return Val_unit;
}

/* A child that is forked while frames are open goes on with them. */
value f_fork(value body)
{
  ENTER();
  BOXROOT_FRAME(f, 2);
  boxroot_local b = boxroot_local_create(&f, body), l[200];
  for (int i = 0; i < 200; i++) CHECK((l[i] = boxroot_local_create(&f, caml_copy_double(i))) != NULL, "no local");
  pid_t child = fork();
  caml_callback(boxroot_local_get(b), Val_unit);
  for (int i = 0; i < 200; i++) CHECK(Double_val(boxroot_local_get(l[i])) == i, "local %d", i);
  for (int i = 0; i < 200; i++) CHECK(boxroot_local_create(&f, Val_int(i)) != NULL, "no local");
  boxroot_frame_close(&f);
  if (child == 0) _exit(7);
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7, "the child failed");
  return Val_unit;
}

/* A finaliser that uses frames in the middle of a collection's end (OCaml's finalisers run at safe points). */
value f_sum(value n)
{
  ENTER();
  BOXROOT_FRAME(f, 1);
  boxroot_local total = boxroot_local_create(&f, caml_copy_double(0.));
  for (long i = 1; i <= Long_val(n); i++) {
    boxroot_local l = boxroot_local_create(&f, caml_copy_double((double)i));
    boxroot_local_set(total, caml_copy_double(Double_val(boxroot_local_get(total)) + Double_val(boxroot_local_get(l))));
  }
  return boxroot_local_get(total);
}

/* --- misuse: what the checked build finds ------------------------------------------------------------------------- */

static boxroot_local stale;
static boxroot_frame *old_frame;
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wdangling-pointer" /* GCC finds some of it, too */

static __attribute__((noinline)) void leave_behind(value v)
{
#line 101 "frames.c"
  BOXROOT_FRAME(f, 2);
  stale = boxroot_local_create(&f, v);
#line 103 "frames.c"
  boxroot_frame_close(&f);
}
value f_use_after_close(value v)
{
  leave_behind(v);
#line 104 "frames.c"
  return boxroot_local_get(stale);
}

static __attribute__((noinline)) void leave_by_return(value v)
{
#line 105 "frames.c"
  BOXROOT_FRAME(f, 2);
  stale = boxroot_local_create(&f, v);
}
value f_use_after_return(value v)
{
  leave_by_return(v);
#line 106 "frames.c"
  boxroot_local_set(stale, v);
  return v;
}

value f_use_after_reuse(value v)
{
  leave_behind(v);
  for (int i = 0; i < 60; i++) f_sum(Val_int(3));
#line 107 "frames.c"
  return *boxroot_local_ref(stale);
}

value f_leave_and_raise(value v)
{
#line 108 "frames.c"
  BOXROOT_FRAME(f, 2);
  stale = boxroot_local_create(&f, v);
  caml_failwith("left");
  return v;
}
value f_use_stale(value unit)
{
  (void)unit;
#line 109 "frames.c"
  return boxroot_local_get(stale);
}

value f_create_in_closed(value v)
{
  BOXROOT_FRAME(f, 2);
#line 110 "frames.c"
  boxroot_frame_close(&f);
#line 111 "frames.c"
  (void)boxroot_local_create(&f, v);
  return v;
}

static __attribute__((noinline)) void close_of(boxroot_frame *f)
{
  BOXROOT_FRAME(inner, 1);
  (void)inner;
#line 112 "frames.c"
  boxroot_frame_close(f);
}
value f_close_out_of_order(value v)
{
#line 113 "frames.c"
  BOXROOT_FRAME(f, 2);
  close_of(&f);
  return v;
}

static __attribute__((noinline)) void forgets(value v)
{
  CAMLparam1(v); /* but no CAMLreturn */
  CAMLnoreturn;
}
value f_close_after_forgotten(value v)
{
  BOXROOT_FRAME(f, 2);
  forgets(v);
#line 114 "frames.c"
  boxroot_frame_close(&f);
  return v;
}

static void *use_on_thread(void *l)
{
#line 115 "frames.c"
  (void)boxroot_local_get(l);
  return NULL;
}
value f_use_on_thread(value v)
{
  BOXROOT_FRAME(f, 2);
  pthread_t t;
  CHECK(pthread_create(&t, NULL, use_on_thread, boxroot_local_create(&f, v)) == 0, "pthread_create");
  pthread_join(t, NULL);
  return v;
}

/* The frame of another thread, which has the lock in turn. */
value f_lend(value body)
{
  BOXROOT_FRAME(f, 2);
  old_frame = &f;
  caml_callback(body, Val_unit);
  return body;
}
value f_use_lent(value v)
{
#line 116 "frames.c"
  (void)boxroot_local_create(old_frame, v);
  return v;
}
