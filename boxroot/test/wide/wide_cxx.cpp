/* SPDX-License-Identifier: MIT */
/* The C++ owner of wide roots. */
#include <boxroot/boxroot.hpp>

#include <caml/alloc.h>
#include <caml/memory.h>
#include <cerrno>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using boxroot_ptr::wide;

static bool is(wide const &w, std::size_t i, long n) { return std::to_string(n) == String_val(w.get(i)); }

/* Some wide roots with three strings each, which `check` finds again after a collection; then they end, in several
   ways. The number of mistakes. */
extern "C" value w_cxx(value number, value check)
{
  CAMLparam2(number, check);
  CAMLlocal3(a, b, c);
  static std::vector<wide> all;
  long n = Long_val(number), wrong = 0;
  if (!Bool_val(check)) {
    for (long i = 0; i < n; i++) {
      a = caml_copy_string(std::to_string(i).c_str());
      b = caml_copy_string(std::to_string(i + 1).c_str());
      c = caml_copy_string(std::to_string(i + 2).c_str());
      all.push_back(wide{a, b, c});
    }
    wide x{Val_int(1)}, y(std::move(x)), z;
    swap(y, z);
    if (x || y || !z || z.get(0) != Val_int(1) || !z.try_set(0, Val_int(2)) || *z.get_ref(0) != Val_int(2)) wrong++;
    x = std::move(z);
    x.reset(wide{Val_int(3), Val_int(4)}.release());
    if (!x || x.get(1) != Val_int(4)) wrong++;
    wide braces{};
    if (braces) wrong++;
    std::vector<value> many(65, Val_int(0));
    if (wide::try_create(65, many.data()) || errno != EINVAL) wrong++;
    try {
      wide none(std::initializer_list<value>{});
      wrong++;
    } catch (std::system_error const &e) {
      if (e.code().value() != EINVAL) wrong++;
    }
    CAMLreturn(Val_long(wrong));
  }
  for (size_t i = 0; i < (size_t)n; i++) {
    for (size_t k = 0; k < 3; k++)
      if (!is(all[i], k, (long)(i + k))) wrong++;
    a = caml_copy_string("7");
    all[i].set(1, a);
    if (!is(all[i], 0, (long)i) || !is(all[i], 1, 7) || !is(all[i], 2, (long)i + 2)) wrong++;
  }
  std::vector<wide> theirs = std::move(all);
  theirs.resize((size_t)n / 2);
  std::thread([&theirs] { theirs.clear(); }).join();
  all.clear();
  CAMLreturn(Val_long(wrong));
}
