/* SPDX-License-Identifier: MIT */
/* The public functions in the checked build (BOXROOT_DEBUG); included by inline.h, private except for what boxroot.h
   promises.

   Nothing is inline: every call goes to the library, which checks it and records the place it comes from. For a call by
   name in C or C++ the place is a file and a line: macros with the names of the functions pass them. Any other call
   (from Rust, through a pointer, or written `(boxroot_create)(v)`) reaches the functions themselves, and the place is
   the caller's address, which the messages give as function and module where the dynamic linker knows them, and in
   the form that addr2line takes. The class of boxroot.hpp passes the place where it is used.

   Where the place is not enough, as when all roots of a program are created by one function of its own: with
   BOXROOT_STACKS=1 in the environment the messages about misuse also have the calls that led to the root's creation
   and deletion, sixteen deep, where the C library has backtrace(). That costs microseconds for each root, and 256
   bytes. */
#ifndef BOXROOT_CHECKED_H
#define BOXROOT_CHECKED_H

/* As the functions without `bxr_` and `_at`; the call is on this line of this file. `file` is kept: a constant. */
boxroot bxr_create_at(value v, char const *file, int line) BXR_AGREED_NAME(create_at);
boxroot bxr_create_in_at(boxroot_domain d, value v, char const *file, int line) BXR_AGREED_NAME(create_in_at);
value bxr_get_at(boxroot r, char const *file, int line) BXR_AGREED_NAME(get_at);
value const *bxr_get_ref_at(boxroot r, char const *file, int line) BXR_AGREED_NAME(get_ref_at);
void bxr_delete_at(boxroot r, char const *file, int line) BXR_AGREED_NAME(delete_at);
void bxr_delete_in_at(boxroot_domain d, boxroot r, char const *file, int line) BXR_AGREED_NAME(delete_in_at);
bool bxr_modify_at(boxroot *r, value v, char const *file, int line) BXR_AGREED_NAME(modify_at);

#ifndef BXR_LIBRARY /* where the functions are defined */
#define boxroot_create(v) bxr_create_at((v), __FILE__, __LINE__)
#define boxroot_create_in(d, v) bxr_create_in_at((d), (v), __FILE__, __LINE__)
#define boxroot_get(r) bxr_get_at((r), __FILE__, __LINE__)
#define boxroot_get_ref(r) bxr_get_ref_at((r), __FILE__, __LINE__)
#define boxroot_delete(r) bxr_delete_at((r), __FILE__, __LINE__)
#define boxroot_delete_in(d, r) bxr_delete_in_at((d), (r), __FILE__, __LINE__)
#define boxroot_modify(r, v) bxr_modify_at((r), (v), __FILE__, __LINE__)
#endif

#endif
