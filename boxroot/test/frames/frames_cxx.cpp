/* SPDX-License-Identifier: MIT */
/* Local frames in C++: closed when an exception passes. */
#include <boxroot/frame.h>

#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/fail.h>
#include <new>
#include <string>

extern "C" void __asan_handle_no_return() __attribute__((weak));

namespace {

struct Thrown {};

value address(void *p) { return reinterpret_cast<value>(p) | 1; }

/* What body's exception was is left in `raised`, and a C++ exception passes over the frame. */
__attribute__((noinline)) value call(value body, boxroot_local raised)
{
  BOXROOT_FRAME(f, 3);
  boxroot_local kept = boxroot_local_create(&f, body);
  if (kept == nullptr) throw std::bad_alloc();
  value r = caml_callback_exn(body, address(&f));
  if (!Is_exception_result(r)) return r;
  boxroot_local_set(raised, Extract_exception(r));
  std::string destroyed(100, 'x');
  throw Thrown();
}

} // namespace

/* As f_frame: body's exception becomes one of C++, passes over the frame, and becomes one of OCaml. */
extern "C" value f_cxx_frame(value body)
{
  if (&__asan_handle_no_return != nullptr) __asan_handle_no_return(); // as in frames_stubs.c
  bool raised = false;
  value result = Val_unit;
  {
    BOXROOT_FRAME(outer, 1);
    boxroot_local exception = boxroot_local_create(&outer, Val_unit);
    if (exception == nullptr) return Val_unit;
    try {
      result = call(body, exception);
    } catch (Thrown const &) {
      raised = true;
      result = boxroot_local_get(exception);
    }
  }
  if (raised) caml_raise(result);
  return result;
}
