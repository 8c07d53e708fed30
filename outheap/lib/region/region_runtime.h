/* SPDX-License-Identifier: MIT */
/* What the runtime and the system do for regions: the marker says which regions were reached; the world is stopped; the
   operations of custom blocks are looked up; the collector's cycles come sooner; a second process is started. */
#ifndef OUTHEAP_REGION_RUNTIME_H
#define OUTHEAP_REGION_RUNTIME_H

#include "region_base.h"
#include <caml/bigarray.h>
#include <caml/custom.h>
#include <outheap_marker.h>
#include <sys/types.h>

/* Does this setting count with this value? The runtime variant knows; over the stock runtime, OUTHEAP has it last, in a
   program without more rights than its caller. */
bool outheap_region_runtime_is_set(char const *name, char const *value);

/* --- the marker ------------------------------------------------------------------------------------------------------
   These call the variant's services (outheap_marker.h) where it is linked, and are what stands in for them with the
   stock runtime. */

/* Can the runtime tell whether a pointer leads to a region? Otherwise regions live until exit. */
bool outheap_region_marker_can_tell(void);

/* Has these functions called between two cycles: `stopped` while the world is stopped, `running` soon after
   (outheap_marker_on_cycle). To be called once. */
void outheap_region_marker_start(void (*stopped)(void), void (*running)(void));

/* Tells the runtime that there are values at [base, base + bytes), which is mapped, before the marker can find a
   pointer to them; whole chunks belong to the region. Returns false if there is no memory, or the chunks cannot be had.
   */
bool outheap_region_marker_declare(char *base, size_t bytes);

/* Takes that back, before the memory is unmapped, when the region did not come into being after all. */
void outheap_region_marker_withdraw(char *base, size_t bytes);

/* From now on the runtime reads nothing there. */
void outheap_region_marker_revoke(char *base, size_t bytes);

/* The reach bits of these chunks: by what they were reached since the bits were cleared (a sum of outheap_marker_by;
   0: they were not). `set` is called for a pointer that a handle gives out, which no marker has seen. */
unsigned outheap_region_marker_reached(char *base, size_t bytes);
void outheap_region_marker_clear_reached(char *base, size_t bytes);
void outheap_region_marker_set_reached(char *pointer);

/* From now on the pointers to these chunks that markers find are counted; with `bytes` = 0, none are. Returns the
   number of those that were found to the memory that was counted before. */
size_t outheap_region_marker_count_pointers(char *base, size_t bytes);

/* Memory that is written to (outheap_marker.h). With runtimes that do not track, all of these do nothing. */
bool outheap_region_marker_can_track(void);
bool outheap_region_marker_track(char *base, size_t bytes);
void outheap_region_marker_set_root(char *base, bool is_root);
size_t outheap_region_marker_tracked(char *base);
void outheap_region_marker_forget(char *base, size_t bytes);
bool outheap_region_marker_hasten(char *base);
void outheap_region_marker_untrack(char *base);

/* From now on this page of owned cells (linear_pool.h) holds values that come and go, and are black like static data:
   OUTHEAP_REGION_CELLS bytes, aligned. For ever: pages of cells are not given to anybody else. False: its address is
   beyond OUTHEAP_REGION_ADDRESSES. */
#define OUTHEAP_REGION_CELLS ((size_t)1 << 21)
bool outheap_region_marker_note_cells(void const *page);
/* Does this address lie in such a page? Lock-free. */
bool outheap_region_marker_has_cells(uintptr_t address);

/* Does this block, whose header is `h`, stay where it is until exit: is it the program's static data? Never true of
   blocks of regions and of owned cells. Where the runtime cannot tell (OCaml 4.14 without naked pointers, code that was
   loaded later), the answer is no. */
bool outheap_region_marker_is_static(uintptr_t block, header_t h);

/* May the header in front of this pointer be read? With the stock runtime the answer is yes for any pointer. */
bool outheap_region_marker_is_value(uintptr_t pointer);

/* --- the stopped world -------------------------------------------------------------------------------------------- */

/* Stops all domains. Then one of them, maybe not the caller's, calls f(data), and after that each of them calls
   each(data), unless that is NULL, on a thread of its own. The caller holds OCaml's lock. Before that there may be a
   collection; during it, none. The functions must not call OCaml, allocate in its heap, or take a lock that a stopped
   thread may hold. `waited` gets the nanoseconds for which the others waited for f. Returns false if there is no
   memory; then nothing was called. */
bool outheap_region_run_alone(void (*f)(void *), void (*each)(void *), void *data, uint64_t *waited);

/* --- custom blocks ---------------------------------------------------------------------------------------------------
   Those that may lie in a region are int32, int64, nativeint, bigarrays, and those whose types a program registers. */

enum outheap_region_custom_kind {
  OUTHEAP_REGION_CUSTOM_NONE, OUTHEAP_REGION_CUSTOM_PLAIN, OUTHEAP_REGION_CUSTOM_BIGARRAY
};

/* May blocks of this type be copied, and how? */
enum outheap_region_custom_kind outheap_region_custom_kind(struct custom_operations const *);

/* Finds the operations of that identifier in this program; NULL: they are unknown. The caller holds OCaml's lock. */
struct custom_operations const *outheap_region_custom_find(char const *identifier);

/* A bigarray in a region counts as managed, with a proxy that all of them share. The runtime counts there the bigarrays
   in the heap that are parts of them (sub, slice, reshape): these have an address in the region, and maybe its table of
   functions, which the collector does not see. The region holds one count itself, so nobody frees anything. */
static inline void outheap_region_custom_start(struct caml_ba_proxy *p)
{
  memset(p, 0, sizeof *p);
  __atomic_store_n((uintnat *)&p->refcount, 1, __ATOMIC_RELAXED);
}
/* Are there such parts? `p` may be NULL: then there are none. */
static inline bool outheap_region_custom_has_parts(struct caml_ba_proxy const *p)
{
  return p != NULL && __atomic_load_n((uintnat const *)&p->refcount, __ATOMIC_ACQUIRE) != 1;
}

/* --- the pace of the collector ------------------------------------------------------------------------------------ */

/* What lies outside the heap makes the collector's cycles come sooner: so much was made of what there may be `most` of
   for one cycle, so a whole cycle is run meanwhile. Several calls add up; one counts as a whole cycle at most. The
   caller holds OCaml's lock. Never runs the collector. */
void outheap_region_pace(size_t made, size_t most);

/* --- a second process ------------------------------------------------------------------------------------------------
   It reads the memory of this one as it was at a moment, while this one goes on. It is made as by fork, but the program
   does not notice it: there is no signal for its end, and waitpid(-1, …) does not find it; handlers of pthread_atfork
   are not called; it shares the table of files, so that what the program closes is closed; it blocks all signals,
   leaves no core file, is the first to be killed when memory runs out, and ends soon after the program. */

/* `shared`: a page that both processes see, from `start` to `wait`; all zeroes in the beginning. */
struct outheap_region_second { pid_t process, first; void *shared; };
#define OUTHEAP_REGION_SECOND_SHARED 4096 /* bytes */

/* Is it worth while? No, if this process has one thread only, which would wait anyway, or if a sanitizer cannot do it.
   Cost: a system call. */
bool outheap_region_second_helps(void);

/* Runs f(data) in a second process. There, only this thread exists: f may make system calls, but must not call OCaml or
   take any lock. What it is to leave behind must be in `shared` or in a shared mapping. In this process the function
   returns true at once; false if that is not possible now (no memory, a limit on processes, a filter of system calls).
   Any thread may call it; for the memory to be that of a moment, all others are stopped. Cost: some 30 ms for each GiB
   that the process has in pages of 4 KiB, little where it has huge ones. */
bool outheap_region_second_start(struct outheap_region_second *, void (*f)(void *), void *data);

/* In the second process: has the first one ended? */
bool outheap_region_second_is_orphan(struct outheap_region_second const *);

/* Waits for its end. Returns true if f returned. To be called once after each `start`, without OCaml's lock. `shared`
   stays until `end`. */
bool outheap_region_second_wait(struct outheap_region_second *);
void outheap_region_second_end(struct outheap_region_second *);

#endif
