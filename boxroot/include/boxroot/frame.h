/* SPDX-License-Identifier: MIT */
/* Local frames: any number of values that C or C++ code keeps alive while a block of it runs. They do what CAMLparam
   and CAMLlocal do, where the number of values is not known beforehand, or a function that is called adds some; without
   a macro at each return. For values that outlive the function: roots, <boxroot.h>.

     value read_all(value source)
     {
       BOXROOT_FRAME(f, 8);                               // open until the end of this block
       boxroot_local from = boxroot_local_create(&f, source), list = boxroot_local_create(&f, Val_emptylist);
       while (more(boxroot_local_get(from))) …            // may call OCaml, allocate, raise
       return boxroot_local_get(list);                    // read first, then the frame is closed
     }

   A frame belongs to the thread, and to the block of code, in which it was opened; frames and functions with CAMLparam
   nest in any order, also in one function. All operations need the domain lock, and a frame is closed with the lock of
   the domain with which it was opened. In between the lock may be released (blocking sections), and OCaml code may be
   called. Nothing here runs the GC. Frames need no set-up of the library, and its teardown leaves them alone. */
#ifndef BOXROOT_FRAME_H
#define BOXROOT_FRAME_H

#include "../boxroot.h"
#include <caml/memory.h>

/* boxroot_frame: an open frame; &f may be passed to functions, which may make locals in it. It must not be copied.
   boxroot_local: a local, valid until its frame is closed; NULL only on failure. */
typedef struct boxroot_frame boxroot_frame;
typedef struct boxroot_local_private *boxroot_local;
#ifdef __cplusplus
extern "C" {
#endif

/* BOXROOT_FRAME(f, n): declares and opens the frame f, with room for n locals (a constant, at least 1) on the C stack;
   further ones are in tables from malloc, five of each size: 64, 512, 8,192, 262,144, 4,194,304. It is closed where the
   block ends that contains the declaration: at the end, by return, break, continue or goto, and when a C++ exception
   passes (in C if compiled with -fexceptions). All locals of the frame end then.
   An OCaml exception (caml_raise, or a callback that raises) leaves the block without closing the frame: the runtime
   forgets it, as it forgets CAMLlocal, and what it had from malloc is used again, or freed, by a later frame of the
   thread that needs more than its n, at the latest when the thread ends. (C++ does not define what becomes of a
   function that has destructors when an OCaml exception passes over it; for that of a frame it is as in C.)
   longjmp over an open frame, and C code that leaves its stack (coroutines) while one is open, are not allowed.
   Needs the domain lock. No failure. Cost: n + 5 stores; 400 bytes of stack (64 are touched), and n words.
   Each minor collection looks at all n, used or not. */
#define BOXROOT_FRAME(f, n)                            \
  struct {                                             \
    bxr_frame_head head;                               \
    value slots[n];                                    \
  } bxr_frame_of_##f;                                  \
  boxroot_frame f __attribute__((cleanup(bxr_frame_end))) = \
    bxr_frame_open(&bxr_frame_of_##f.head, bxr_frame_of_##f.slots, n BXR_FRAME_HERE)

/* boxroot_local_create(&f, v): a new local of the frame f, that holds v. f need not be the frame that was opened last:
   to hand a value to the frame of a caller, make a local there before this frame is closed.
   Failure: NULL with errno == ENOMEM (v is untouched, and the frame is as it was), also when f has some 22 million.
   Cost: a comparison and a store; a call for each new table. */
static inline boxroot_local boxroot_local_create(boxroot_frame *f, value v);

/* boxroot_local_get(l), boxroot_local_set(l, v): reads the value of l, and makes l hold v. boxroot_local_ref(l): the
   address of its cell, which the GC keeps up to date; the program may read and write the value there until the frame is
   closed. Locals that are made one after the other need not be neighbours.
   Need l of an open frame of this thread. No failure. Cost: a load or a store; none. */
static inline value boxroot_local_get(boxroot_local l);
static inline void boxroot_local_set(boxroot_local l, value v);
static inline value *boxroot_local_ref(boxroot_local l);

/* boxroot_frame_close(&f): closes f before the end of its block: all its locals end. Needs f to be the last that was
   opened, of those that are open. A frame that is closed already is left alone; it holds no locals, and takes none.
   No failure. Cost: two loads and a store; a call when the frame had tables. */
static inline void boxroot_frame_close(boxroot_frame *f);

/* The checked build (BOXROOT_DEBUG) ends the program, with the places, where it finds
   - "use after close": a local is used whose frame is closed, or was ended by an exception, or is another thread's; or
     one is made in such a frame. It is recognised until 64 later tables of the thread have been given up;
   - "closed out of order": a frame is closed before one, or a CAMLparam, that was opened after it. */

/* --- private ------------------------------------------------------------------------------------------------------ */

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif

#if BOXROOT_DEBUG
#define BXR_FRAME_HERE , BXR_HERE
#else
#define BXR_FRAME_HERE
#endif

/* A frame on the C stack. The runtime finds its locals through its list of local roots. caml_raise takes those blocks
   off that list whose address is below the handler's stack pointer: so all blocks of a frame are here, within one
   object, and leave the list together. Tables may be anywhere. A block has up to five tables of one size.

   Invariants: while the frame is open `block` is on its thread's list of local roots, followed by the blocks of
   `more` that are in use, the last one first; the tables are full of valid values; table i < tables is
   more[i / 5].tables[i % 5], all five of a size. Unused elements of `more` are not initialised. In the checked
   build there is no inline table. */
enum { BXR_FRAME_BLOCKS = 5 };
typedef struct bxr_frame_head {
  struct caml__roots_block block; /* of the slots that follow */
#if BOXROOT_DEBUG
  uint64_t serial; /* of all frames of the process */
  char const *file;
  int line;
#endif
  int tables; /* from malloc */
  struct caml__roots_block more[BXR_FRAME_BLOCKS];
} bxr_frame_head;

/* Where the next local goes. It is apart from the frame's head, to which the runtime has a pointer, so that the
   compiler may keep it in registers: an index in the head costs a store, and a load that waits for it, each time. */
struct boxroot_frame {
  value *next, *end;    /* the cells from next, until end, are free */
  bxr_frame_head *head; /* NULL: closed */
#if BOXROOT_DEBUG
  char const *file; /* where it was closed */
  int line;
#endif
};

/* The thread's list of local roots. */
#if BXR_OCAML5 && defined(HAS_FULL_THREAD_VARIABLES) && !BOXROOT_THREAD_UNSAFE
#define bxr_local_roots (((caml_domain_state *)bxr_self_word)->local_roots)
#else
#define bxr_local_roots (Caml_state_field(local_roots))
#endif

#define BXR_FRAME_INLINE static inline __attribute__((always_inline))

/* True if h, which is being closed, is still on the list. CAMLreturn has taken it off if it stands after CAMLparam in
   one function: then older blocks, further up in the stack, come first, or none. */
BXR_FRAME_INLINE int bxr_frame_is_listed(bxr_frame_head *h)
{
  return (uintptr_t)bxr_local_roots - 1 < (uintptr_t)&h->block;
}

#if BOXROOT_DEBUG
boxroot_frame bxr_frame_open(bxr_frame_head *h, value *slots, size_t n, char const *file, int line)
  BXR_AGREED_NAME(frame_open);
void bxr_frame_close(boxroot_frame *f) BXR_AGREED_NAME(frame_close);
boxroot_local bxr_local_create(boxroot_frame *f, value v) BXR_AGREED_NAME(local_create);
value *bxr_local_ref(boxroot_local l, char const *what) BXR_AGREED_NAME(local_ref);

BXR_FRAME_INLINE void boxroot_frame_close(boxroot_frame *f) { bxr_frame_close(f); }
BXR_FRAME_INLINE boxroot_local boxroot_local_create(boxroot_frame *f, value v) { return bxr_local_create(f, v); }
BXR_FRAME_INLINE value boxroot_local_get(boxroot_local l) { return *bxr_local_ref(l, "boxroot_local_get"); }
BXR_FRAME_INLINE void boxroot_local_set(boxroot_local l, value v) { *bxr_local_ref(l, "boxroot_local_set") = v; }
BXR_FRAME_INLINE value *boxroot_local_ref(boxroot_local l) { return bxr_local_ref(l, "boxroot_local_ref"); }
BXR_FRAME_INLINE void bxr_frame_end(boxroot_frame *f)
{
  if (f->head == NULL) return;
  bxr_called_from(f->head->file, f->head->line);
  bxr_frame_close(f);
}

BXR_VOID_AT(frame_close, (boxroot_frame *f, BXR_PLACE), (f))
BXR_AT(boxroot_local, local_create, (boxroot_frame *f, value v, BXR_PLACE), (f, v))
BXR_AT(value, local_get, (boxroot_local l, BXR_PLACE), (l))
BXR_VOID_AT(local_set, (boxroot_local l, value v, BXR_PLACE), (l, v))
BXR_AT(value *, local_ref, (boxroot_local l, BXR_PLACE), (l))
#define boxroot_frame_close(f) bxr_frame_close_at((f), BXR_HERE)
#define boxroot_local_create(f, v) bxr_local_create_at((f), (v), BXR_HERE)
#define boxroot_local_get(l) bxr_local_get_at((l), BXR_HERE)
#define boxroot_local_set(l, v) bxr_local_set_at((l), (v), BXR_HERE)
#define boxroot_local_ref(l) bxr_local_ref_at((l), BXR_HERE)
#else
/* Adds a table to the frame, and returns its cells, from next to end; next == NULL: no memory, or h == NULL. */
typedef struct bxr_frame_room { value *next, *end; } bxr_frame_room;
bxr_frame_room bxr_frame_grow(bxr_frame_head *h) BXR_AGREED_NAME(frame_grow);

/* Takes the blocks of a frame off the list, and gives up its tables. */
void bxr_frame_shrink(bxr_frame_head *h) BXR_AGREED_NAME(frame_shrink);

BXR_FRAME_INLINE boxroot_frame bxr_frame_open(bxr_frame_head *h, value *slots, size_t n)
{
  boxroot_frame f;
  size_t i; /* -std=gnu89 has no declarations in `for` */
  for (i = 0; i < n; i++) slots[i] = Val_unit;
  h->tables = 0;
  h->block.next = bxr_local_roots;
  h->block.nitems = (intnat)n;
  h->block.ntables = 1;
  h->block.tables[0] = slots;
  bxr_local_roots = &h->block;
  f.next = slots;
  f.end = slots + n;
  f.head = h;
  return f;
}

BXR_FRAME_INLINE void boxroot_frame_close(boxroot_frame *f)
{
  bxr_frame_head *h = f->head;
  if (h == NULL) return;
  if (BXR_UNLIKELY(h->tables != 0)) bxr_frame_shrink(h);
  else if (BXR_LIKELY(bxr_frame_is_listed(h))) bxr_local_roots = h->block.next;
  f->head = NULL;
  f->next = f->end = NULL;
}

BXR_FRAME_INLINE void bxr_frame_end(boxroot_frame *f) { boxroot_frame_close(f); }

BXR_FRAME_INLINE boxroot_local boxroot_local_create(boxroot_frame *f, value v)
{
  if (BXR_UNLIKELY(f->next == f->end)) {
    bxr_frame_room room = bxr_frame_grow(f->head);
    if (room.next == NULL) return NULL;
    f->next = room.next;
    f->end = room.end;
  }
  *f->next = v;
  return (boxroot_local)f->next++;
}

BXR_FRAME_INLINE value boxroot_local_get(boxroot_local l) { return *(value *)l; }
BXR_FRAME_INLINE void boxroot_local_set(boxroot_local l, value v) { *(value *)l = v; }
BXR_FRAME_INLINE value *boxroot_local_ref(boxroot_local l) { return (value *)l; }
#endif

#ifdef __cplusplus
} /* extern "C" */
#pragma GCC diagnostic pop
#endif

#endif
