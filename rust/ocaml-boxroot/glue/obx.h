/* SPDX-License-Identifier: MIT */
/* What the safe layer needs of the OCaml runtime beyond plain calls: macros, versions, and words of the domain's state.
   No function of these files raises but obx_raise, obx_refuse_data and obx_seal, and none that the Rust side calls with
   `&Runtime` runs the collector. Their names get the crate's version behind them (build.rs), so that the copies of two
   versions in one program do not mix; two copies of one version are one where the linker sees both. */
#ifndef OBX_H
#define OBX_H
#define CAML_NAME_SPACE
#define CAML_INTERNALS
#include <caml/version.h>
#include <caml/mlvalues.h>
#include <caml/domain_state.h>
#include "obx_names.h"
#include <boxroot.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCAML5 (OCAML_VERSION >= 50000)

/* stack.c */
void obx_stack_remember(void);
void obx_stack_keep(void);
void obx_stack_restore(void);
void obx_stack_started(void);

/* exception.c */
bool obx_is_native(void);
value obx_builtin(int which);

/* alloc.c */
struct custom_operations;
value obx_alloc_major(size_t size, unsigned tag);
value obx_alloc_custom(struct custom_operations const *ops, size_t size, size_t bytes);

#endif
