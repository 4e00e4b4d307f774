// SPDX-License-Identifier: Apache-2.0
// The Tofino 2 Native Architecture (T2NA).
#ifndef _T2NA_P4_
#define _T2NA_P4_

#ifndef __TARGET_TOFINO__
#define __TARGET_TOFINO__ 2
#endif
#if __TARGET_TOFINO__ != 2
#error T2NA needs __TARGET_TOFINO__ == 2
#endif
#define TOFINO_NATIVE_VERSION 2

#include <tofino_native.p4>

// Actions on registers. `apply` changes one cell, and its results are those of the method that runs it.
//
// Only `apply`, `overflow` and `underflow` may call these methods: the cell's address, the comparisons' results as a bit
// mask, and the extreme values among the parts of a cell. WITH declares the type U if the extern does not.
#define REGISTER_ADDRESS(WITH) \
    U address WITH(@optional bit<1> subword); \
    U predicate WITH(@optional in bool cmp0, @optional in bool cmp1, \
                     @optional in bool cmp2, @optional in bool cmp3);
#define REGISTER_EXTREMES \
    bit<8> min8<I>(in I val, in bit<16> mask, @optional out bit<4> index); \
    bit<8> max8<I>(in I val, in bit<16> mask, @optional out bit<4> index); \
    bit<16> min16<I>(in I val, in bit<8> mask, @optional out bit<3> index); \
    bit<16> max16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
#define WIDE_REGISTER_EXTREMES(POSTMOD) \
    bit<8> min8(in bit<128> val, in bit<16> mask, @optional out bit<4> index, @optional in POSTMOD postmod); \
    bit<8> max8(in bit<128> val, in bit<16> mask, @optional out bit<4> index, @optional in POSTMOD postmod); \
    bit<16> min16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, @optional in POSTMOD postmod); \
    bit<16> max16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, @optional in POSTMOD postmod);

// The number in an extern's name is its number of results. `execute` returns the first, and the others by parameters.
#define OPTIONAL_RESULTS @optional out U rv2, @optional out U rv3, @optional out U rv4
#define RESULTS2 out U2 rv2
#define RESULTS3 out U2 rv2, out U3 rv3
#define RESULTS4 out U2 rv2, out U3 rv3, out U4 rv4

@noWarn("unused")
extern RegisterAction<T, H, U> {
    RegisterAction(Register<_, _> reg);
    U execute(@optional in H index, OPTIONAL_RESULTS);
    // Like `execute`, with an index that every call increments.
    U execute_log(OPTIONAL_RESULTS);
    // The register as a queue.
    U enqueue(OPTIONAL_RESULTS);
    U dequeue(OPTIONAL_RESULTS);
    // The register as a stack.
    U push(OPTIONAL_RESULTS);
    U pop(OPTIONAL_RESULTS);
    // Run the action on every cell.
    void sweep(@optional in U busy);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop, sweep)
    abstract void apply(inout T value, @optional out U rv1, OPTIONAL_RESULTS);
    @synchronous(enqueue, push)
    @optional abstract void overflow(@optional inout T value, @optional out U rv1, OPTIONAL_RESULTS);
    @synchronous(dequeue, pop)
    @optional abstract void underflow(@optional inout T value, @optional out U rv1, OPTIONAL_RESULTS);
    REGISTER_ADDRESS()
    REGISTER_EXTREMES
}

#define REGISTER_ACTION(NAME, RESULTS) \
    NAME(Register<_, _> reg); \
    U1 execute(in H index, RESULTS); \
    U1 execute_log(RESULTS); \
    U1 enqueue(RESULTS); \
    U1 dequeue(RESULTS); \
    U1 push(RESULTS); \
    U1 pop(RESULTS); \
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop) \
    abstract void apply(inout T value, out U1 rv1, RESULTS); \
    @synchronous(enqueue, push) \
    @optional abstract void overflow(@optional inout T value, out U1 rv1, RESULTS); \
    @synchronous(dequeue, pop) \
    @optional abstract void underflow(@optional inout T value, out U1 rv1, RESULTS); \
    REGISTER_ADDRESS(<U>) \
    REGISTER_EXTREMES

extern RegisterAction2<T, H, U1, U2> { REGISTER_ACTION(RegisterAction2, RESULTS2) }
extern RegisterAction3<T, H, U1, U2, U3> { REGISTER_ACTION(RegisterAction3, RESULTS3) }
extern RegisterAction4<T, H, U1, U2, U3, U4> { REGISTER_ACTION(RegisterAction4, RESULTS4) }

@noWarn("unused")
extern DirectRegisterAction<T, U> {
    DirectRegisterAction(DirectRegister<T> reg);
    U execute(OPTIONAL_RESULTS);
    @synchronous(execute)
    abstract void apply(inout T value, @optional out U rv, OPTIONAL_RESULTS);
    REGISTER_ADDRESS()
    REGISTER_EXTREMES
}

#define DIRECT_REGISTER_ACTION(NAME, RESULTS) \
    NAME(DirectRegister<T> reg); \
    U1 execute(RESULTS); \
    @synchronous(execute) \
    abstract void apply(inout T value, out U1 rv1, RESULTS); \
    REGISTER_ADDRESS(<U>) \
    REGISTER_EXTREMES

extern DirectRegisterAction2<T, U1, U2> { DIRECT_REGISTER_ACTION(DirectRegisterAction2, RESULTS2) }
extern DirectRegisterAction3<T, U1, U2, U3> { DIRECT_REGISTER_ACTION(DirectRegisterAction3, RESULTS3) }
extern DirectRegisterAction4<T, U1, U2, U3, U4> { DIRECT_REGISTER_ACTION(DirectRegisterAction4, RESULTS4) }

// Actions that learn keys: `digest` is the key's hash, and `learn` is true if the key is unknown.
extern LearnAction<T, H, D, U> {
    LearnAction(Register<T, H> reg);
    U execute(in H index, OPTIONAL_RESULTS);
    @synchronous(execute)
    abstract void apply(inout T value, in D digest, in bool learn, @optional out U rv1, OPTIONAL_RESULTS);
    REGISTER_ADDRESS()
    REGISTER_EXTREMES
}

#define LEARN_ACTION(NAME, RESULTS) \
    NAME(Register<T, H> reg); \
    U1 execute(in H index, RESULTS); \
    @synchronous(execute) \
    abstract void apply(inout T value, in D digest, in bool learn, out U1 rv1, RESULTS); \
    REGISTER_ADDRESS(<U>) \
    REGISTER_EXTREMES

extern LearnAction2<T, H, D, U1, U2> { LEARN_ACTION(LearnAction2, RESULTS2) }
extern LearnAction3<T, H, D, U1, U2, U3> { LEARN_ACTION(LearnAction3, RESULTS3) }
extern LearnAction4<T, H, D, U1, U2, U3, U4> { LEARN_ACTION(LearnAction4, RESULTS4) }

// Actions on cells of 128 bits, whose parts they compare.
extern MinMaxAction<T, H, U> {
    MinMaxAction(Register<T, _> reg);
    U execute(@optional in H index, OPTIONAL_RESULTS);
    @synchronous(execute)
    abstract void apply(inout bit<128> value, @optional out U rv1, OPTIONAL_RESULTS);
    REGISTER_ADDRESS()
    WIDE_REGISTER_EXTREMES(int<8>)
}

#define MIN_MAX_ACTION(NAME, RESULTS) \
    NAME(Register<T, _> reg); \
    U1 execute(@optional in H index, RESULTS); \
    @synchronous(execute) \
    abstract void apply(inout bit<128> value, out U1 rv1, RESULTS); \
    REGISTER_ADDRESS(<U>) \
    WIDE_REGISTER_EXTREMES(int<9>)

extern MinMaxAction2<T, H, U1, U2> { MIN_MAX_ACTION(MinMaxAction2, RESULTS2) }
extern MinMaxAction3<T, H, U1, U2, U3> { MIN_MAX_ACTION(MinMaxAction3, RESULTS3) }
extern MinMaxAction4<T, H, U1, U2, U3, U4> { MIN_MAX_ACTION(MinMaxAction4, RESULTS4) }

#undef REGISTER_ADDRESS
#undef REGISTER_EXTREMES
#undef WIDE_REGISTER_EXTREMES
#undef OPTIONAL_RESULTS
#undef RESULTS2
#undef RESULTS3
#undef RESULTS4
#undef REGISTER_ACTION
#undef DIRECT_REGISTER_ACTION
#undef LEARN_ACTION
#undef MIN_MAX_ACTION

extern IdleTimeout {
    IdleTimeout();
}

// Starts the packet generator at the end of the ingress.
extern Pktgen {
    Pktgen();
    // Put a header in front of the generated packets.
    void emit<T>(in T hdr);
}

// The programmable blocks.

parser IngressParserT<H, M>(
    packet_in pkt,
    out H hdr,
    out M ig_md,
    out ingress_intrinsic_metadata_t ig_intr_md,
    @optional out ingress_intrinsic_metadata_for_tm_t ig_intr_md_for_tm,
    @optional out ingress_intrinsic_metadata_from_parser_t ig_intr_md_from_prsr);

control IngressT<H, M>(
    inout H hdr,
    inout M ig_md,
    in ingress_intrinsic_metadata_t ig_intr_md,
    in ingress_intrinsic_metadata_from_parser_t ig_intr_md_from_prsr,
    inout ingress_intrinsic_metadata_for_deparser_t ig_intr_md_for_dprsr,
    inout ingress_intrinsic_metadata_for_tm_t ig_intr_md_for_tm,
    @optional in ghost_intrinsic_metadata_t gh_intr_md);

control IngressDeparserT<H, M>(
    packet_out pkt,
    inout H hdr,
    in M metadata,
    in ingress_intrinsic_metadata_for_deparser_t ig_intr_md_for_dprsr,
    @optional in ingress_intrinsic_metadata_t ig_intr_md);

parser EgressParserT<H, M>(
    packet_in pkt,
    out H hdr,
    out M eg_md,
    out egress_intrinsic_metadata_t eg_intr_md,
    @optional out egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr,
    @optional out egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr);

control EgressT<H, M>(
    inout H hdr,
    inout M eg_md,
    in egress_intrinsic_metadata_t eg_intr_md,
    in egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr,
    inout egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr,
    inout egress_intrinsic_metadata_for_output_port_t eg_intr_md_for_oport);

control EgressDeparserT<H, M>(
    packet_out pkt,
    inout H hdr,
    in M metadata,
    in egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr,
    @optional in egress_intrinsic_metadata_t eg_intr_md,
    @optional in egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr);

// Runs when the length of a queue changes, without a packet.
control GhostT(in ghost_intrinsic_metadata_t gh_intr_md);

package Pipeline<IH, IM, EH, EM>(
    IngressParserT<IH, IM> ingress_parser,
    IngressT<IH, IM> ingress,
    IngressDeparserT<IH, IM> ingress_deparser,
    EgressParserT<EH, EM> egress_parser,
    EgressT<EH, EM> egress,
    EgressDeparserT<EH, EM> egress_deparser,
    @optional GhostT ghost);

// A single pipeline runs in all pipes.
@pkginfo(arch="T2NA", version="1.0.1")
@noWarn("unused")
package Switch<IH0, IM0, EH0, EM0, IH1, IM1, EH1, EM1, IH2, IM2, EH2, EM2, IH3, IM3, EH3, EM3>(
    Pipeline<IH0, IM0, EH0, EM0> pipe0,
    @optional Pipeline<IH1, IM1, EH1, EM1> pipe1,
    @optional Pipeline<IH2, IM2, EH2, EM2> pipe2,
    @optional Pipeline<IH3, IM3, EH3, EM3> pipe3);

#endif
