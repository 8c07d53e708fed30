// SPDX-License-Identifier: MIT
// A plug-in whose object with static storage duration owns a root. LEAK=1: another root is owned by nobody.
#include <boxroot/boxroot.hpp>
#include <cstdlib>
static boxroot_ptr::root kept;
extern "C" value plugin_keep(value v)
{
  kept.set(v);
  if (std::getenv("LEAK") != nullptr) boxroot_ptr::root(v).release();
  return Val_unit;
}
