// SPDX-License-Identifier: MIT
// A C++ program that contains OCaml, built against an installed Boxroot: formulas are closures of OCaml, and a
// container of C++ owns them. In this folder, after `OCAML=PREFIX PREFIX=/opt/boxroot tools/install` in the repository:
//   cmake -S . -B build -DCMAKE_PREFIX_PATH=/opt/boxroot && cmake --build build && build/formulas
// or
//   export PKG_CONFIG_PATH=/opt/boxroot/lib/pkgconfig
//   meson setup build && ninja -C build && build/formulas
// or, after the same export,
//   ocamlopt -output-complete-obj formula.ml -o whole.o
//   c++ -std=c++11 -O2 $(pkg-config --cflags boxroot) main.cpp whole.o $(pkg-config --libs boxroot)
//     $(ocamlopt -config-var native_c_libraries) -o formulas
#include <boxroot/boxroot.hpp>

#include <caml/alloc.h>
#include <caml/callback.h>

#include <cstdio>
#include <map>
#include <string>
#include <thread>

static std::map<std::string, boxroot_ptr::root> formulas;

static bool add(char const *text)
{
  value closure = caml_callback_exn(*caml_named_value("parse"), caml_copy_string(text));
  if (Is_exception_result(closure)) return false;
  formulas[text].set(closure);
  return true;
}

static double at(char const *text, double x)
{
  value argument = caml_copy_double(x);
  return Double_val(caml_callback(formulas.at(text).get(), argument)); // read after the allocation
}

int main(int, char **words)
{
  caml_startup(words); // from here on this thread holds OCaml's lock
  bool all = add("x * (x + 2) - 1") && add("3 * x") && add("x * x * x");
  for (int n = 0; n < 1000; n++) all = all && add(("x + " + std::to_string(n)).c_str());
  if (!all || add("x +") || add("(x")) return std::puts("a formula is not read as it should be"), 1;
  caml_callback(*caml_named_value("compact"), Val_unit);
  std::printf("%g %g %g %g\n", at("x * (x + 2) - 1", 3), at("3 * x", 3), at("x * x * x", 3), at("x + 999", 3));
  // roots end on any thread, with or without the lock
  std::thread([] { formulas.erase("3 * x"); }).join();
  caml_callback(*caml_named_value("compact"), Val_unit);
  std::printf("%zu formulas, %g\n", formulas.size(), at("x + 500", 3));
  return 0; // the container ends the other roots
}
