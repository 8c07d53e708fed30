/* SPDX-License-Identifier: MIT */
#include "marking.h"

struct oh_marking_counters oh_marking;
