// SPDX-License-Identifier: MIT
// A plug-in whose object with static storage duration owns a root; it has no copy of the library.
#include <boxroot/boxroot.hpp>
static boxroot_ptr::root kept;
extern "C" value plugin_keep(value v) { kept.set(v); return Val_unit; }
