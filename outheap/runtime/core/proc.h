/* SPDX-License-Identifier: MIT */
/* What the system tells in files, of /proc and /sys. proc.c is the only file of the library that reads them; it
   allocates nothing, and leaves errno as it was. */
#ifndef OH_PROC_H
#define OH_PROC_H

#include "base.h"
#include <stdbool.h>

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* Bytes that only this process has in memory; and in `shared` those of files, and of memory that is shared. False: the
   system does not tell. Cost: three system calls, and two more where the file is not kept open. */
struct oh_proc_memory { size_t own, shared; };
bool oh_proc_memory(struct oh_proc_memory *);

/* Keeps the file open from now on, so that it can be read where it cannot be opened any more: the process has changed
   its root, or all its descriptors are in use. And no longer. No other thread reads it meanwhile. */
void oh_proc_keep(void);
void oh_proc_release(void);
/* In the child, after a fork. */
void oh_proc_forked(void);

/* What the machine has left for another program, as the system guesses; SIZE_MAX: it does not say. */
size_t oh_proc_available(void);

/* Each line of the list of the process's mappings (smaps), cut after some hundred bytes. False: the system does not
   tell. Cost: the system looks at all page tables of the process, some milliseconds for each gigabyte in small
   pages. */
bool oh_proc_mappings(void (*line)(char *line, void *data), void *data);

/* --- control groups ----------------------------------------------------------------------------------------------- */

/* The least that the process's control groups, and those around them, allow: bytes of memory, SIZE_MAX: no limit;
   processors, rounded up, 0: no quota. Versions 1 and 2. */
size_t oh_proc_group_memory(void);
unsigned oh_proc_group_processors(void);

/* --- the machine's settings --------------------------------------------------------------------------------------- */

/* Of transparent huge pages. */
enum oh_proc_thp { OH_PROC_THP_NONE, OH_PROC_THP_ALWAYS, OH_PROC_THP_MADVISE, OH_PROC_THP_NEVER };
enum oh_proc_thp oh_proc_thp(void);

/* Is vm.overcommit_memory 2? */
bool oh_proc_is_strict(void);

/* Tests: in place of the root of the file system, where these files are. */
#ifdef OH_FAULTS
extern char const *oh_proc_system;
#endif

#endif
