(* SPDX-License-Identifier: MIT *)
(* All structures. *)

open Structures_blocks
open Structures_weak
open Structures_holders

(* Every structure; those that have weak pointers apart. *)
let plain = [
  "array-literal", array_literal; "array-make", array_make; "array-init", array_init;
  "array-operations", array_operations;
  "array-blit", array_blit; "block", block; "block-copies", block_copies; "tuple", tuple_; "tuple-of-c", tuple_of_c;
  "record", record;
  "ref", reference; "atomic", atomic; "list", list_; "nested", nested; "variant", variant; "closure", closure;
  "closures-recursive", closures_recursive; "closure-partial", closure_partial; "object", object_;
  "exception", exception_;
  "module", module_; "lazy", lazy_; "lazy-from-val", lazy_from_val; "lazies", lazies; "hash-table", hash_table;
  "map", map; "queue", queue;
  "generational-root", root_ true "generational-root"; "global-root", root_ false "global-root";
  "named-value", named_value;
  "custom", custom_; "abstract", abstract; "finaliser", finaliser; "continuation", continuation;
  "local-to-domain", local_to_domain ]
let weak_ones = [ "weak", weak; "ephemeron", ephemeron; "ephemeron-table", ephemeron_table ]
let threads = [ "thread", thread ]
