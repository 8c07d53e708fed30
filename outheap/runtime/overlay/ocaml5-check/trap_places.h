/* SPDX-License-Identifier: MIT */
/* Names for addresses: functions, files and lines of code, variables. */
#ifndef OH_TRAP_PLACES_H
#define OH_TRAP_PLACES_H

#include "prelude.h"
#include <stdbool.h>

/* Is this an address in compiled OCaml code, or in the code between OCaml and C? */
bool oh_trap_places_is_ocaml(void const *pc);

/* Is this an address in the C library? */
bool oh_trap_places_is_libc(void const *pc);

/* Before the first fault: what the unwinder loads at its first use. */
void oh_trap_places_start(void);

/* The caller's return addresses in C, from the inside; beyond the first frame of OCaml's code stacks have been switched
   or moved, where an unwinder may crash, so that frame is the last. Result: how many. Cost: microseconds. */
int oh_trap_places_stack(void **frames, int most);

/* The same from where a signal has interrupted the program: that address is the first. */
int oh_trap_places_stack_of_signal(void **frames, int most, uintptr_t interrupted);

/* Puts a line into the report (trap_text.h) for each address, indented by `indent` blanks, with the functions that were
   inlined there. `exact`: the first is an address of an instruction; the others are return addresses. After a frame of
   the runtime's own code that OCaml has called, OCaml's stack follows. Cost: a process of addr2line for each file. */
void oh_trap_places_code(void *const *frames, int n, bool exact, int indent);

/* The variable of an object file in which an address lies; empty: none is known. `base`: where the file is loaded. */
void oh_trap_places_variable(char const *file, uintptr_t base, uintptr_t address, char *name, size_t most);

#endif
