/* SPDX-License-Identifier: MIT */
/* The functions of exported.ml, for native code. Those that may run the GC have their arguments in local roots. */
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/signals.h>

value none_int(intnat a, intnat b) { return Val_long(a + b); }
double none_float(double a, double b) { return a + b; }

value read_int(intnat n) { return Val_long(n + 1); }
value read_float(double x) { return Val_bool(x > 0); }
value read_string(value s) { return Val_long(caml_string_length(s)); }
value read_closure(value f, value g) { return Val_bool(f == g); }

value write_int(intnat n) { return Val_long(n + 1); }
double write_float(double x) { return x + 1; }

value write_string(value s)
{
  CAMLparam1(s);
  CAMLreturn(Val_long(caml_string_length(s)));
}

value write_closure(value f, intnat n)
{
  CAMLparam1(f);
  value result = caml_callback_exn(f, Val_long(n));
  if (Is_exception_result(result)) caml_raise(Extract_exception(result));
  CAMLreturn(result);
}

value call_many(value f, intnat n)
{
  CAMLparam1(f);
  value x = Val_long(0);
  for (intnat i = 0; i < n; i++) {
    x = caml_callback_exn(f, x);
    if (Is_exception_result(x)) caml_raise(Extract_exception(x));
  }
  CAMLreturn(x);
}

value release_many(intnat n)
{
  for (; n > 0; n--) {
    caml_enter_blocking_section();
    __asm__ volatile("" ::: "memory");
    caml_leave_blocking_section();
  }
  return Val_unit;
}

value attach_many(intnat n)
{
  caml_enter_blocking_section();
  for (; n > 0; n--) {
    caml_leave_blocking_section();
    __asm__ volatile("" ::: "memory");
    caml_enter_blocking_section();
  }
  caml_leave_blocking_section();
  return Val_unit;
}
