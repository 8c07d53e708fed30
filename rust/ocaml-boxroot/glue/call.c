/* SPDX-License-Identifier: MIT */
/* Calls of OCaml functions, and values that have a name. */
#include "obx.h"
#include <caml/callback.h>
#include <caml/fail.h>
#if OCAML5
#include <caml/fiber.h>
#endif

#if OCAML5
/* The call itself would raise when OCaml's stack has no room, and jump over the frames of its caller. (The bytecode
   interpreter keeps the room that a call takes.) */
static inline bool no_room(void)
{
  struct stack_info *stack = Caml_state->current_stack;
  uintnat needed = Stack_threshold_words + 8;
  uintnat room = (uintnat)((value *)stack->sp - Stack_base(stack));
  return room < needed && obx_is_native() && !caml_try_realloc_stack(needed);
}
#define STACK_OVERFLOW Make_exception_result(obx_builtin(STACK_OVERFLOW_EXN))
#else
#define no_room() false
#define STACK_OVERFLOW Val_unit
#endif

value obx_call1(value closure, value a) { return no_room() ? STACK_OVERFLOW : caml_callback_exn(closure, a); }
value obx_call2(value closure, value a, value b)
{
  return no_room() ? STACK_OVERFLOW : caml_callback2_exn(closure, a, b);
}
value obx_call3(value closure, value a, value b, value c)
{
  return no_room() ? STACK_OVERFLOW : caml_callback3_exn(closure, a, b, c);
}
value obx_call_more(value closure, size_t count, value *arguments)
{
  return no_room() ? STACK_OVERFLOW : caml_callbackN_exn(closure, (int)count, arguments);
}

/* The value registered under a name (caml_named_value reads it under a lock of its own), or 0. */
value obx_named(char const *name)
{
  value const *place = caml_named_value(name);
  return place == NULL ? 0 : *place;
}
