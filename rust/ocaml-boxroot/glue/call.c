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
enum { NEEDED = Stack_threshold_words + 8 };
static inline bool has_room(void)
{
  /* Caml_state, which this way takes no call. */
  struct stack_info *stack = ((caml_domain_state *)bxr_self())->current_stack;
  return BXR_LIKELY((uintnat)((value *)stack->sp - Stack_base(stack)) >= NEEDED);
}

/* Apart, so that the usual case is a jump. 0: there is room now; else an exception. */
static __attribute__((cold, noinline)) value make_room(void)
{
  bool room = !obx_is_native() || caml_try_realloc_stack(NEEDED);
  return room ? 0 : Make_exception_result(obx_builtin(STACK_OVERFLOW_EXN));
}
static __attribute__((cold, noinline)) value call_with_more_room(value closure, size_t count, value *arguments)
{
  value overflow = make_room();
  return overflow != 0 ? overflow : caml_callbackN_exn(closure, (int)count, arguments);
}
#else
#define has_room() true
static value call_with_more_room(value closure, size_t count, value *arguments)
{
  return caml_callbackN_exn(closure, (int)count, arguments);
}
#endif

value obx_call1(value closure, value a)
{
  return has_room() ? caml_callback_exn(closure, a) : call_with_more_room(closure, 1, (value[]){a});
}
value obx_call2(value closure, value a, value b)
{
  return has_room() ? caml_callback2_exn(closure, a, b) : call_with_more_room(closure, 2, (value[]){a, b});
}
value obx_call3(value closure, value a, value b, value c)
{
  return has_room() ? caml_callback3_exn(closure, a, b, c) : call_with_more_room(closure, 3, (value[]){a, b, c});
}
value obx_call_more(value closure, size_t count, value *arguments)
{
  return has_room() ? caml_callbackN_exn(closure, (int)count, arguments)
                    : call_with_more_room(closure, count, arguments);
}

/* The value registered under a name (caml_named_value reads it under a lock of its own), or 0. */
value obx_named(char const *name)
{
  value const *place = caml_named_value(name);
  return place == NULL ? 0 : *place;
}
