/* SPDX-License-Identifier: MIT */
/* The C++ owner of weak roots. */
#include <boxroot/boxroot.hpp>

#include <caml/alloc.h>
#include <string>
#include <thread>
#include <vector>

using boxroot_ptr::root;
using boxroot_ptr::weak;

/* n strings, every third of which a root holds; then what is asked for between collections, which `collect` makes. The
   number of mistakes. */
extern "C" value w_cxx(value number, value lazy, value dropped)
{
  long n = Long_val(number), wrong = 0;
  try {
    weak w(lazy);
    wrong++;
  } catch (std::system_error const &e) {
    if (e.code().value() != EINVAL) wrong++;
  }
  static std::vector<root> roots;
  static std::vector<weak> weaks;
  if (Bool_val(dropped)) { /* after a collection */
    for (long i = 0; i < n; i++) {
      value v = Val_unit;
      bool there = weaks[(size_t)i].get(v);
      if (there != (i % 3 == 0) || (there && std::to_string(i) != String_val(v))) wrong++;
      root r = weaks[(size_t)i].lock();
      if (static_cast<bool>(r) != there || (!there && errno != 0) || (there && r.get() != v)) wrong++;
    }
    std::vector<weak> theirs = std::move(weaks);
    std::thread([&theirs] { theirs.clear(); }).join();
    roots.clear();
    return Val_long(wrong);
  }
  for (long i = 0; i < n; i++) {
    root r(caml_copy_string(std::to_string(i).c_str()));
    weaks.emplace_back(r.get());
    if (i % 3 == 0) roots.push_back(std::move(r));
  }
  weak a = weak::try_create(Val_int(1)), b(std::move(a)), c;
  swap(b, c);
  value v;
  if (a || b || !c || !c.get(v) || v != Val_int(1)) wrong++;
  a = std::move(c);
  a.reset(weak(Val_int(2)).release());
  if (!a.get(v) || v != Val_int(2)) wrong++;
  return Val_long(wrong);
}
