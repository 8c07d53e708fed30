/* SPDX-License-Identifier: MIT */
/* The public functions in the checked build (BOXROOT_DEBUG); included by inline.h, private except for what boxroot.h
   promises.

   Nothing is inline: every call goes to the library, which checks it and records the place it comes from. For a call by
   name in C or C++ the place is a file and a line: a macro with the name of the function tells the library, just before
   the call. Any other call (from Rust, through a pointer, or written `(boxroot_create)(v)`) tells nothing, and the
   place is the caller's address, which the messages give as function and module where the dynamic linker knows them,
   and in the form that addr2line takes. The class of boxroot.hpp tells the place where it is used.

   Where the place is not enough, as when all roots of a program are created by one function of its own: with
   BOXROOT_STACKS=1 in the environment the messages about misuse also have the calls that led to the root's creation
   and deletion, sixteen deep, where the C library has backtrace(). That costs microseconds for each root, and 256
   bytes. */
#ifndef BOXROOT_CHECKED_H
#define BOXROOT_CHECKED_H

/* The next call of this thread to a function of the library is on this line of this file. `file` is kept: a
   constant. */
void bxr_called_from(char const *file, int line) BXR_AGREED_NAME(called_from);

/* Defines bxr_NAME_at, which is boxroot_NAME called from a place. A function, and not the macro, tells the place: its
   arguments, in which there may be other calls, have been evaluated by then. */
#define BXR_PLACE char const *file, int line
#define BXR_HERE __FILE__, __LINE__
#define BXR_AT(result, name, parameters, arguments)                             \
  static inline __attribute__((always_inline)) result bxr_##name##_at parameters \
  {                                                                             \
    bxr_called_from(file, line);                                                \
    return (boxroot_##name) arguments;                                          \
  }
#define BXR_VOID_AT(name, parameters, arguments)                              \
  static inline __attribute__((always_inline)) void bxr_##name##_at parameters \
  {                                                                           \
    bxr_called_from(file, line);                                              \
    (boxroot_##name) arguments;                                               \
  }

#ifndef BXR_LIBRARY /* where the functions are defined */
BXR_AT(boxroot, create, (value v, BXR_PLACE), (v))
BXR_AT(boxroot, create_in, (boxroot_domain d, value v, BXR_PLACE), (d, v))
BXR_AT(value, get, (boxroot r, BXR_PLACE), (r))
BXR_AT(value const *, get_ref, (boxroot r, BXR_PLACE), (r))
BXR_VOID_AT(delete, (boxroot r, BXR_PLACE), (r))
BXR_VOID_AT(delete_in, (boxroot_domain d, boxroot r, BXR_PLACE), (d, r))
BXR_AT(bool, modify, (boxroot *r, value v, BXR_PLACE), (r, v))
#define boxroot_create(v) bxr_create_at((v), BXR_HERE)
#define boxroot_create_in(d, v) bxr_create_in_at((d), (v), BXR_HERE)
#define boxroot_get(r) bxr_get_at((r), BXR_HERE)
#define boxroot_get_ref(r) bxr_get_ref_at((r), BXR_HERE)
#define boxroot_delete(r) bxr_delete_at((r), BXR_HERE)
#define boxroot_delete_in(d, r) bxr_delete_in_at((d), (r), BXR_HERE)
#define boxroot_modify(r, v) bxr_modify_at((r), (v), BXR_HERE)
#endif

#endif
