// SPDX-License-Identifier: Apache-2.0
// The profile for Tofino 2: everything.
#include <core.p4>
#include <t2na.p4>

#include "../include/size.p4"
#include "frontage.p4"
