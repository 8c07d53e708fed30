/* SPDX-License-Identifier: MIT */
/* Compile-time switches. The defaults are for users; the others are for experiments and tests. A program and the
   library it links must be compiled with the same switches, and for the same version of OCaml, or else they do not link
   (BXR_AGREEMENT below). */
#ifndef BOXROOT_CONFIG_H
#define BOXROOT_CONFIG_H

#include <caml/config.h>
#include <caml/version.h>
#include <stdint.h> /* says whether this is glibc */

#if !defined(__GNUC__)
#error "Boxroot needs GCC or Clang"
#endif
#if SIZEOF_PTR != 8
#error "Boxroot needs a 64-bit platform"
#endif
#if OCAML_VERSION < 41400
#error "Boxroot needs OCaml 4.14 or later"
#endif
/* An installation defines it (boxroot.pc, boxrootConfig.cmake): the OCAML_VERSION that its library was compiled for. */
#if defined(BOXROOT_BUILT_FOR) && BOXROOT_BUILT_FOR != OCAML_VERSION
#error "This installation of Boxroot was built for another version of OCaml than the headers <caml/...> that are found"
#endif

#define BXR_OCAML5 (OCAML_VERSION >= 50000)

/* The releases of OCaml 5 with whose collector the library's use of the runtime's internals has been tested (5.4.0 and
   5.4.1 differ in other parts only). docs/reference/versions.md in the source repository says what that use is, and
   what is known of the others. */
#define BXR_KNOWN_RUNTIME \
  (OCAML_VERSION == 50100 || OCAML_VERSION == 50300 || OCAML_VERSION == 50400 || OCAML_VERSION == 50401 || \
   OCAML_VERSION == 50502)

/* The releases whose weak arrays weak roots may rely on, on the conservative path too: what matters is the same in 5.1
   and 5.3, so in 5.2, and in 5.4 and 5.5. With others no weak root is made, and the library says so. */
#define BXR_KNOWN_WEAK (OCAML_VERSION < 50000 || (OCAML_VERSION >= 50100 && OCAML_VERSION < 50600))

/* OCaml 5: the library makes no use of the collector's internals. The collector visits all roots through the scanning
   hook, at the start of marking, as OCaml 4.14 always does. This is the only way with a version that is not known; then
   the compiler prints a warning. Defining the switch as 1 chooses it without that warning. Programs need not agree with
   their library on it. */
#ifndef BOXROOT_CONSERVATIVE
#define BXR_CONSERVATIVE_UNASKED (BXR_OCAML5 && !BXR_KNOWN_RUNTIME)
#define BOXROOT_CONSERVATIVE BXR_CONSERVATIVE_UNASKED
#else
#define BXR_CONSERVATIVE_UNASKED 0
#endif
#if BXR_OCAML5 && !BXR_KNOWN_RUNTIME && !BOXROOT_CONSERVATIVE
#error "This version of OCaml is not among those that Boxroot has been tested with: BOXROOT_CONSERVATIVE cannot be 0"
#endif
#if !BXR_OCAML5
#undef BOXROOT_CONSERVATIVE
#define BOXROOT_CONSERVATIVE 0
#endif

/* Log2 of the size of a pool in bytes (12 to 15). */
#ifndef BOXROOT_POOL_LOG_SIZE
#define BOXROOT_POOL_LOG_SIZE 14
#endif

/* The most roots that a pool holds. For tests: 4 reaches every transition quickly. */
#ifndef BOXROOT_POOL_CAPACITY
#define BOXROOT_POOL_CAPACITY 1000000
#endif

/* OCaml 5: the library hands every root to the GC while the world is stopped, instead of letting the marker find them
   (the only way in 4.14). */
#ifndef BOXROOT_STW_SCAN
#define BOXROOT_STW_SCAN 0
#endif
#if !BXR_OCAML5 || BOXROOT_CONSERVATIVE
#undef BOXROOT_STW_SCAN
#define BOXROOT_STW_SCAN 1
#endif

/* OCaml 5: the library marks roots itself, in steps, so that they do not slow the collector down. 0: the marker reads
   all of them. */
#ifndef BOXROOT_PACING
#define BOXROOT_PACING 1
#endif
#if BOXROOT_CONSERVATIVE
#undef BOXROOT_PACING
#define BOXROOT_PACING 0
#endif

/* Every deletion takes the path of a remote deletion. */
#ifndef BOXROOT_FORCE_REMOTE
#define BOXROOT_FORCE_REMOTE 0
#endif

/* The program has one thread and one domain and never releases the lock, so nothing tests which thread calls. Unsafe
   otherwise. */
#ifndef BOXROOT_THREAD_UNSAFE
#define BOXROOT_THREAD_UNSAFE 0
#endif

/* The checked build has assertions, validates all structures around every scan, and detects misuse (use after delete,
   double delete, foreign pointers, use after teardown), which ends the program with a message that names the fault and
   the places in the program that are involved (checked.h). */
#ifndef BOXROOT_DEBUG
#define BOXROOT_DEBUG 0
#endif

/* The checked build: so many deleted slots wait, first in, first out, before they are used again. A power of two,
   from 1. Programs need not agree with their library on it. */
#ifndef BOXROOT_QUARANTINE
#define BOXROOT_QUARANTINE 4096
#endif

/* BXR_INLINE is for the public functions that are inline; in the checked build they are ordinary ones, so that they
   know where the call comes from. They are inline in C without optimisation too, where nothing else would refer to what
   program and library must agree on (BXR_AGREEMENT). With -std=gnu89 or -fgnu89-inline, `inline` alone would make a
   definition for the linker in each object, and `extern inline` makes none. */
#if defined(__GNUC_GNU_INLINE__) && !defined(__cplusplus) && !defined(BXR_DEFINES_FUNCTIONS)
#define BXR_INLINE_HERE extern inline
#else
#define BXR_INLINE_HERE inline
#endif
#if BOXROOT_DEBUG
#define BXR_INLINE
#elif !defined(__OPTIMIZE__) && !defined(__cplusplus)
#define BXR_INLINE BXR_INLINE_HERE __attribute__((always_inline))
#else
#define BXR_INLINE BXR_INLINE_HERE
#endif

/* Position-independent code (-fPIC, as OCaml, dune and cargo compile) reads thread-local words by a function call,
   unless it may assume that they are at a fixed distance from the thread pointer ("initial exec"): true in programs, in
   libraries that are loaded with the program, and, with glibc, in those that are loaded later as long as the space that
   it reserves for this lasts (some 1,600 bytes, more by GLIBC_TUNABLES=glibc.rtld.optional_static_tls=...; a shared
   object with the library needs 20 bytes with OCaml 5, 104 with OCaml 4.14; 56 and 104 when OCaml is in it, too).
   BOXROOT_TLS_DYNAMIC=1, for library and stubs, does not assume it. It is for objects that must load even where the
   loader says "cannot allocate memory in static TLS block":
   - that space is used up;
   - OCaml 5: a plug-in (.cmxs) with the library is loaded by an OCaml without it, which is in a shared object that was
     itself loaded while the process ran (a Python extension) and has started: the runtime's word has another place by
     then. The message names that object. */
#ifndef BOXROOT_TLS_DYNAMIC
#define BOXROOT_TLS_DYNAMIC 0
#endif
#if !BOXROOT_TLS_DYNAMIC && defined(__ELF__) && defined(__GLIBC__)
#define BXR_TLS_MODEL __attribute__((tls_model("initial-exec")))
#else
#define BXR_TLS_MODEL
#endif

/* The names that linkers see begin with the version of the layout, so that two versions in one process, or 0.4.0 beside
   this one, never bind to each other. BXR_LAYOUT changes when a structure or an inline path does.

   A program and its library must agree on the switches that follow, and on the version of OCaml. If they do not, they
   do not link, and the linker's message says why: what inline functions use has names that end in BXR_AGREEMENT and the
   version (BXR_AGREED_NAME). The public functions have short names with the default switches, for other languages, and
   names that end in BXR_AGREEMENT otherwise (BXR_LINK_NAME); so a library with default switches and one without can be
   in the same process. The switches must be plain numbers. None of this costs anything at run time. At set-up the
   library finds out whether the runtime is of that version, too. */
#define BXR_LAYOUT v5
#define BXR_STRING_(a) #a
#define BXR_STRING(a) BXR_STRING_(a)
#if BOXROOT_DEBUG
#define BXR_AGREED_DEBUG "1"
#else
#define BXR_AGREED_DEBUG "0"
#endif
#if BOXROOT_FORCE_REMOTE
#define BXR_AGREED_REMOTE "1"
#else
#define BXR_AGREED_REMOTE "0"
#endif
#if BOXROOT_THREAD_UNSAFE
#define BXR_AGREED_UNSAFE "1"
#else
#define BXR_AGREED_UNSAFE "0"
#endif
#define BXR_AGREEMENT                                                             \
  "__program_and_library_must_agree_on__BOXROOT_DEBUG_" BXR_AGREED_DEBUG          \
  "__POOL_LOG_SIZE_" BXR_STRING(BOXROOT_POOL_LOG_SIZE)                            \
  "__POOL_CAPACITY_" BXR_STRING(BOXROOT_POOL_CAPACITY)                            \
  "__FORCE_REMOTE_" BXR_AGREED_REMOTE "__THREAD_UNSAFE_" BXR_AGREED_UNSAFE
#if BOXROOT_DEBUG || BOXROOT_FORCE_REMOTE || BOXROOT_THREAD_UNSAFE || BOXROOT_POOL_LOG_SIZE != 14 || \
  BOXROOT_POOL_CAPACITY != 1000000
#define BXR_UNLESS_DEFAULT BXR_AGREEMENT
#else
#define BXR_UNLESS_DEFAULT ""
#endif
#define BXR_NAME_PREFIX BXR_STRING(__USER_LABEL_PREFIX__) "boxroot_" BXR_STRING(BXR_LAYOUT) "_"
#define BXR_LINK_NAME(name) __asm__(BXR_NAME_PREFIX #name BXR_UNLESS_DEFAULT)
#define BXR_AGREED_NAME(name) __asm__(BXR_NAME_PREFIX #name BXR_AGREEMENT "__OCAML_" BXR_STRING(OCAML_VERSION))

#endif
