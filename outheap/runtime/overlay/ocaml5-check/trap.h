/* SPDX-License-Identifier: MIT */
/* The trap for stale values: a value that C code keeps across a collection without a root.

   Stock   moves young values at a minor collection and leaves their old place readable, so a stale value is found, if
           ever, long after and elsewhere.
   Here    whatever a collection leaves becomes inaccessible, and the next use of it faults at the line that is wrong.
           Minor heaps slide downwards in a ring of addresses after each minor collection; a major cycle now and then
           moves every block of every pool to another pool, and every large block to other pages. Collections are asked
           for at random wherever C code may collect.

   One domain's ring (begin <= low end of the minor heap <= high end <= end):

       begin           start                     end of the minor heap    purged                 ring's end
         | not yet used  |  accessible, allocated into   |  left, readable by the report  | left, without memory |

     [open, end of the minor heap) is accessible, and open <= start; the rest of the ring is not. After a collection the
     minor heap moves down by the pages that were used, and begins again at the ring's end when it reaches the bottom.
     All of the ring passes for young, so the collector, too, faults on what was left.

   Source of the idea: electric fences of allocators (B. Perens, 1987), and the compaction of every pool at each cycle
   that moving collectors use to test themselves. */
#ifndef OH_TRAP_H
#define OH_TRAP_H

#include "trap_left.h"

extern bool oh_trap_on;

/* A place where a collection may happen. The caller holds the domain lock and, as for any allocation, has its values in
   roots. Asks for a minor collection, which the runtime's own test after it finds, once in a while: at random, with the
   mean of `check=move:N`. Cost: a decrement; a walk of the C stack and a minor collection where it asks. */
void oh_trap_event(enum oh_trap_left_cause);
#define OH_TRAP_EVENT(cause) ((void)(oh_trap_on ? (oh_trap_event(OH_TRAP_##cause), 0) : 0))

/* errno before the domain lock was released, and when it is taken back: the kernel does not fault at a stale pointer,
   but refuses it. */
void oh_trap_note_errno(void);
void oh_trap_check_errno(int now);

/* Fills fields [from, to) with a pointer to where nothing is: in a block that is not initialised, or free. */
void oh_trap_fill(value *fields, size_t from, size_t to, bool old);

/* --- the minor heap ---------------------------------------------------------------------------------------------- */

/* Before the addresses of minor heaps are reserved. Result: how many words of them each domain gets. `moved`: tells the
   runtime that a domain's young_start and young_end have changed. */
uintnat oh_trap_start(uintnat most, void (*moved)(caml_domain_state *));

/* New addresses for all minor heaps: no ring is valid any more. */
void oh_trap_reserved(void);

/* A domain gets a minor heap of so many bytes in its part of the addresses. Result: where it begins; 0: no memory. */
uintptr_t oh_trap_commit(int domain, uintptr_t begin, uintptr_t end, size_t bytes);
void oh_trap_decommit(int domain);

/* A minor collection of this domain begins, and has ended: the minor heap is empty, and nobody else uses it. */
void oh_trap_begin(caml_domain_state *);
void oh_trap_move(caml_domain_state *);

/* Did the trap alone ask for this collection? Then it is no reason for a slice of marking. */
bool oh_trap_is_forced(caml_domain_state *);

/* Is it time for a major cycle in which everything moves? True once for each such time. */
bool oh_trap_cycle_is_due(void);

/* Counts the time since `began` (clock.h) as the check's. In a program with several domains the check then rests for a
   quarter of that time. */
void oh_trap_spent(uint64_t began);

/* --- the major heap ---------------------------------------------------------------------------------------------- */

/* A pool that the heap gives up, with blocks of so many words. It stays inaccessible for a while. */
void oh_trap_leave_pool(void *pool, size_t block_words, size_t first_word);

/* A large block of so many words, header included; its header is that word. It was garbage, unless it has moved. */
void oh_trap_leave_large(void *block, size_t block_words, size_t first_word, bool moved);

/* How many words are live, as the last cycle saw them: a cycle costs as much. */
void oh_trap_live_words(size_t words);

#endif
