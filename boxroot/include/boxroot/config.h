/* SPDX-License-Identifier: MIT */
/* Compile-time switches. The defaults are for users; the others are for experiments and tests. A program and the library it
   links must be compiled with the same switches, or else they do not link (BXR_AGREED below). */
#ifndef BOXROOT_CONFIG_H
#define BOXROOT_CONFIG_H

#include <caml/config.h>
#include <caml/version.h>

#if !defined(__GNUC__)
#error "Boxroot needs GCC or Clang"
#endif
#if SIZEOF_PTR != 8
#error "Boxroot needs a 64-bit platform"
#endif
#if OCAML_VERSION < 41400
#error "Boxroot needs OCaml 4.14 or later"
#endif

#define BXR_OCAML5 (OCAML_VERSION >= 50000)

/* Log2 of the size of a pool in bytes (12 to 15). */
#ifndef BOXROOT_POOL_LOG_SIZE
#define BOXROOT_POOL_LOG_SIZE 14
#endif

/* Most roots in a pool; pools are filled no further than this. For tests: 4 reaches every transition quickly. */
#ifndef BOXROOT_POOL_CAPACITY
#define BOXROOT_POOL_CAPACITY 1000000
#endif

/* OCaml 5: hand every root to the GC while the world is stopped, instead of letting the marker find them (the only way in 4.14). */
#ifndef BOXROOT_STW_SCAN
#define BOXROOT_STW_SCAN 0
#endif
#if !BXR_OCAML5
#undef BOXROOT_STW_SCAN
#define BOXROOT_STW_SCAN 1
#endif

/* OCaml 5: charge the slots that the marker reads to the GC's pace, so that a cycle is not stretched by them. */
#ifndef BOXROOT_PACING
#define BOXROOT_PACING 1
#endif

/* Every deletion takes the path of a deletion from elsewhere. */
#ifndef BOXROOT_FORCE_REMOTE
#define BOXROOT_FORCE_REMOTE 0
#endif

/* One thread, one domain, the lock never released: no test of who calls. Unsafe otherwise. */
#ifndef BOXROOT_THREAD_UNSAFE
#define BOXROOT_THREAD_UNSAFE 0
#endif

/* The checked build: assertions, validation of all structures around every scan, and detection of misuse (use after
   delete, double delete, foreign pointers, use after teardown), which ends the program with a message that names the
   fault and the places in the program that have to do with it (checked.h). */
#ifndef BOXROOT_DEBUG
#define BOXROOT_DEBUG 0
#endif

/* The checked build: so many deleted slots wait, first in, first out, before they are used again. A power of two,
   from 1. A matter of the library alone. */
#ifndef BOXROOT_QUARANTINE
#define BOXROOT_QUARANTINE 4096
#endif

/* The public functions that are inline; in the checked build ordinary ones, so that they know who calls. */
#if BOXROOT_DEBUG
#define BXR_INLINE
#else
#define BXR_INLINE inline
#endif

/* What program and library must agree on, as a part of names. Every private function and variable that a public
   inline function uses is renamed by BXR_AGREED, and the public inline functions themselves have such names in object
   files (BXR_AGREED_SYMBOL), in case a compiler does not inline them. So a program and a library that do not agree do
   not link, and the linker's message says why. It costs nothing. The plain names are there too, for languages that do
   not read this header: whoever calls those depends on no layout. BXR_LAYOUT goes up with any change of what the
   inline functions read, write or call. The switches must be plain numbers. */
#define BXR_LAYOUT 2
#if BOXROOT_DEBUG
#define BXR_AGREED_CHECKED 1
#else
#define BXR_AGREED_CHECKED 0
#endif
#if BXR_OCAML5
#define BXR_AGREED_OCAML 5
#else
#define BXR_AGREED_OCAML 4
#endif
#if BOXROOT_FORCE_REMOTE
#define BXR_AGREED_REMOTE 1
#else
#define BXR_AGREED_REMOTE 0
#endif
#if BOXROOT_THREAD_UNSAFE
#define BXR_AGREED_UNSAFE 1
#else
#define BXR_AGREED_UNSAFE 0
#endif
#define BXR_AGREED(name) \
  BXR_AGREED_ON(name, BXR_AGREED_CHECKED, BXR_AGREED_OCAML, BOXROOT_POOL_LOG_SIZE, BOXROOT_POOL_CAPACITY, \
                BXR_AGREED_REMOTE, BXR_AGREED_UNSAFE, BXR_LAYOUT)
#define BXR_AGREED_ON(name, checked, ocaml, size, capacity, remote, unsafe, layout) \
  BXR_AGREED_PASTE(name, checked, ocaml, size, capacity, remote, unsafe, layout)
#define BXR_AGREED_PASTE(name, checked, ocaml, size, capacity, remote, unsafe, layout) \
  name##__program_and_library_must_agree_on__BOXROOT_DEBUG_##checked##__OCAML_##ocaml##__POOL_LOG_SIZE_##size##\
__POOL_CAPACITY_##capacity##__FORCE_REMOTE_##remote##__THREAD_UNSAFE_##unsafe##__LAYOUT_##layout

/* After the declaration of a function: its name in object files. */
#define BXR_SYMBOL(name) __asm__(BXR_STRING(__USER_LABEL_PREFIX__) BXR_STRING(name))
#define BXR_AGREED_SYMBOL(name) BXR_SYMBOL(BXR_AGREED(name))
#define BXR_STRING(...) BXR_QUOTE(__VA_ARGS__)
#define BXR_QUOTE(...) #__VA_ARGS__

#endif
