/* SPDX-License-Identifier: MIT */
/* Reports: who holds OCaml values. A report says
   - how many roots are live, by storage;
   - if creations are sampled: by which calls they were created;
   - which cells were registered with OCaml's runtime (caml_register_global_root and its like), by any code, with this
     library or not: the variable and its source file, or for allocated memory what the cells hold.
   From the second report on it also says what changed since the one before. docs/guide/who-holds-it.md in the source
   repository shows how a leak is found.

   The environment asks for reports by BOXROOT_REPORT, words separated by commas; the library reads it at set-up:
     exit       at the exit, after C++ objects with static storage duration have ended their roots
     USR1       in the next minor collection after this signal; also USR2, HUP, or a number. Needs that the program has
                no handler for it at set-up; one that it installs later takes its place
     sample=N   boxroot_sample(N)
     to=FILE    reports are appended to FILE, instead of the standard error output; the last word, as FILE may have
                commas
   Unknown words are named on the standard error output. A program with more rights than its caller ignores it all. */
#ifndef BOXROOT_REPORT_H
#define BOXROOT_REPORT_H

#include "../boxroot.h"

#ifdef __cplusplus
extern "C" {
#endif

/* boxroot_report(file): makes a report now, and appends it to the file; NULL: prints it on the standard error output.
   Needs no lock; without the domain lock it leaves out what is registered with the runtime. Any thread may call it at
   any time, but not a signal handler. It does not run the GC, and changes nothing of OCaml's.
   Roots that other threads create or delete meanwhile may or may not be counted; the rest is exact, unless a root holds
   an integer that looks like an address in its own pool. 254 weak roots count as one.
   Failure: false, with errno, if the file cannot be opened or there is no memory.
   Cost: a look at each slot and each registered cell, some milliseconds for a million; at first, for each object file
   that has some of them, also reading its symbols. */
bool boxroot_report(char const *file) BXR_LINK_NAME(report);

/* boxroot_sample(n): from now on the calls that create a root are recorded for one creation in n, drawn at random; each
   creation has the same chance. Earlier samples are dropped. With n == 1 all are. 0 ends it.
   Needs no lock. A domain begins and ends with it in its next minor collection, at the latest.
   Failure: false, with errno: ENOTSUP where the C library has no backtrace(), ENOMEM.
   Cost: none while it is off. While it is on no creation is inline: it takes about 10 nanoseconds more, and some
   microseconds if it is drawn. Deletion and modification cost what they always do. Memory: two bytes for each slot
   among which there is a sample, and 168 bytes for each different sequence of calls. */
bool boxroot_sample(uint32_t n) BXR_LINK_NAME(sample);

/* boxroot_cap(roots, reached, data): once there are more than so many live roots, reached(how many, data) is called, by
   the thread that creates one, before it does. It is called once; it may call boxroot_cap again. roots == 0: never.
   Needs no lock. `reached` has the domain lock and must not run OCaml code or the GC, since whoever creates a root need
   not expect that; it may call boxroot_report, and create and delete roots.
   No failure. The number is noticed late: by some thousand roots for each domain and storage, and by 3 per cent.
   Cost: a load in each creation that leaves the inline path, when such a domain needs room; near the cap, now and then
   a look at each slot. */
void boxroot_cap(uint64_t roots, void (*reached)(uint64_t live, void *data), void *data) BXR_LINK_NAME(cap);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
