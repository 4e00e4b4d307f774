// SPDX-License-Identifier: Apache-2.0
// A control that does nothing, in profiles without health checks.
#ifndef FRONTAGE_TNA_WITHOUT_CHECKER_P4
#define FRONTAGE_TNA_WITHOUT_CHECKER_P4

control Checker(in headers_t hdr, inout metadata_t meta) {
    apply {}
}

#endif
