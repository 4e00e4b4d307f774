// SPDX-License-Identifier: Apache-2.0
// The common part of TNA and T2NA. TOFINO_NATIVE_VERSION is 1 for TNA, and 2 for T2NA; __TARGET_TOFINO__ is the chip.
#ifndef _TOFINO_NATIVE_P4_
#define _TOFINO_NATIVE_P4_

#include <core.p4>

// Widths that depend on the chip.
#if __TARGET_TOFINO__ == 1
#define QUEUE_ID_WIDTH 5
#define MIRROR_TYPE_WIDTH 3
#define MIRROR_ID_WIDTH 10
const bit<32> PORT_METADATA_SIZE = 64;
#elif __TARGET_TOFINO__ == 2
#define QUEUE_ID_WIDTH 7
#define MIRROR_TYPE_WIDTH 4
#define MIRROR_ID_WIDTH 8
const bit<32> PORT_METADATA_SIZE = 192;
#else
#error __TARGET_TOFINO__ must be 1 or 2
#endif

#define PORT_ID_WIDTH 9
#define MULTICAST_GROUP_ID_WIDTH 16
#define RESUBMIT_TYPE_WIDTH 3
#define DIGEST_TYPE_WIDTH 3
#define REPLICATION_ID_WIDTH 16
#define L1_EXCLUSION_ID_WIDTH 16
#define L2_EXCLUSION_ID_WIDTH 9

typedef bit<PORT_ID_WIDTH> PortId_t;
typedef bit<MULTICAST_GROUP_ID_WIDTH> MulticastGroupId_t;
typedef bit<QUEUE_ID_WIDTH> QueueId_t;
typedef bit<MIRROR_TYPE_WIDTH> MirrorType_t;
typedef bit<MIRROR_ID_WIDTH> MirrorId_t;
typedef bit<RESUBMIT_TYPE_WIDTH> ResubmitType_t;
typedef bit<DIGEST_TYPE_WIDTH> DigestType_t;
typedef bit<REPLICATION_ID_WIDTH> ReplicationId_t;
typedef bit<L1_EXCLUSION_ID_WIDTH> L1ExclusionId_t;
typedef bit<L2_EXCLUSION_ID_WIDTH> L2ExclusionId_t;
typedef error ParserError_t;
#if __TARGET_TOFINO__ == 2
typedef MirrorType_t CloneId_t;
#endif

// The pipe, and the port within it, of a port number.
#define DEVPORT_PIPE_MASK 0x180
#define DEVPORT_PIPE(port) (port)[8:7]
#define DEVPORT_PORT_MASK 0x7f
#define DEVPORT_PORT(port) (port)[6:0]

// Bits of `parser_err`.
const bit<16> PARSER_ERROR_OK = 0;
const bit<16> PARSER_ERROR_NO_MATCH = 0x0001;
const bit<16> PARSER_ERROR_PARTIAL_HDR = 0x0002;
const bit<16> PARSER_ERROR_CTR_RANGE = 0x0004;
const bit<16> PARSER_ERROR_TIMEOUT_USER = 0x0008;
const bit<16> PARSER_ERROR_TIMEOUT_HW = 0x0010;
const bit<16> PARSER_ERROR_SRC_EXT = 0x0020;
#if TOFINO_NATIVE_VERSION == 1
const bit<16> PARSER_ERROR_DST_CONT = 0x0040;
#endif
const bit<16> PARSER_ERROR_PHV_OWNER = 0x0080;
const bit<16> PARSER_ERROR_MULTIWRITE = 0x0100;
const bit<16> PARSER_ERROR_ARAM_MBE = 0x0400;
const bit<16> PARSER_ERROR_FCS = 0x0800;
#if TOFINO_NATIVE_VERSION == 2
const bit<16> PARSER_ERROR_CSUM_MBE = 0x1000;
#endif

error { CounterRange, Timeout, PhvOwner, MultiWrite, IbufOverflow, IbufUnderflow }

match_kind { range, selector, atcam_partition_index }
#if TOFINO_NATIVE_VERSION == 2
match_kind { dleft_hash }
#endif

enum MeterType_t { PACKETS, BYTES }
enum bit<8> MeterColor_t { GREEN = 0, YELLOW = 1, RED = 3 }
enum CounterType_t { PACKETS, BYTES, PACKETS_AND_BYTES }
enum SelectorMode_t { FAIR, RESILIENT }
enum HashAlgorithm_t { IDENTITY, RANDOM, XOR8, XOR16, XOR32, CRC8, CRC16, CRC32, CRC64, CUSTOM }
enum MathOp_t { MUL, SQR, SQRT, DIV, RSQR, RSQRT }

// Intrinsic metadata. Its headers are in front of the packet; times are in nanoseconds.

header ingress_intrinsic_metadata_t {
    bit<1> resubmit_flag;
    @padding bit<1> _pad1;
    bit<2> packet_version;
    @padding bit<3> _pad2;
    PortId_t ingress_port;
    bit<48> ingress_mac_tstamp;
}

struct ingress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;
    bit<32> global_ver;
    bit<16> parser_err;
}

// Requests of the ingress to the traffic manager.
struct ingress_intrinsic_metadata_for_tm_t {
    PortId_t ucast_egress_port;
    bit<1> bypass_egress;
    bit<1> deflect_on_drop;
    bit<3> ingress_cos;
    QueueId_t qid;
    bit<3> icos_for_copy_to_cpu;
    bit<1> copy_to_cpu;
    bit<2> packet_color;
    bit<1> disable_ucast_cutthru;
    bit<1> enable_mcast_cutthru;
    MulticastGroupId_t mcast_grp_a;
    MulticastGroupId_t mcast_grp_b;
    bit<13> level1_mcast_hash;
    bit<13> level2_mcast_hash;
    L1ExclusionId_t level1_exclusion_id;
    L2ExclusionId_t level2_exclusion_id;
    bit<16> rid;
}

#if TOFINO_NATIVE_VERSION == 2
// These fields override the mirror session.
#define MIRROR_METADATA \
    bit<1> mirror_io_select; \
    bit<13> mirror_hash; \
    bit<3> mirror_ingress_cos; \
    bit<1> mirror_deflect_on_drop; \
    bit<1> mirror_multicast_ctrl; \
    PortId_t mirror_egress_port; \
    QueueId_t mirror_qid; \
    bit<8> mirror_coalesce_length; \
    bit<32> adv_flow_ctl; \
    bit<14> mtu_trunc_len; \
    bit<1> mtu_trunc_err_f;
#else
#define MIRROR_METADATA
#endif

// `drop_ctl`: bit 0 drops unicast, multicast and resubmitted packets, and bit 1 the copy to the CPU.
struct ingress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
    DigestType_t digest_type;
    ResubmitType_t resubmit_type;
    MirrorType_t mirror_type;
    MIRROR_METADATA
#if TOFINO_NATIVE_VERSION == 2
    bit<1> pktgen;
    bit<14> pktgen_address;
    bit<10> pktgen_length;
#endif
}

#if TOFINO_NATIVE_VERSION == 2
// The change of a queue's length.
header ghost_intrinsic_metadata_t {
    bit<1> ping_pong;
    bit<18> qlength;
    bit<11> qid;
    bit<2> pipe_id;
}
#endif

header egress_intrinsic_metadata_t {
    @padding bit<7> _pad0;
    PortId_t egress_port;
    @padding bit<5> _pad1;
    bit<19> enq_qdepth;
    @padding bit<6> _pad2;
    bit<2> enq_congest_stat;
#if TOFINO_NATIVE_VERSION == 1
    @padding bit<14> _pad3;
    bit<18> enq_tstamp;
    @padding bit<5> _pad4;
    bit<19> deq_qdepth;
    @padding bit<6> _pad5;
    bit<2> deq_congest_stat;
    bit<8> app_pool_congest_stat;
    @padding bit<14> _pad6;
    bit<18> deq_timedelta;
    bit<16> egress_rid;
    @padding bit<7> _pad7;
    bit<1> egress_rid_first;
    @padding bit<(8 - QUEUE_ID_WIDTH)> _pad8;
    QueueId_t egress_qid;
    @padding bit<5> _pad9;
    bit<3> egress_cos;
    @padding bit<7> _pad10;
    bit<1> deflection_flag;
    bit<16> pkt_length;
#else
    bit<32> enq_tstamp;
    @padding bit<5> _pad3;
    bit<19> deq_qdepth;
    @padding bit<6> _pad4;
    bit<2> deq_congest_stat;
    bit<8> app_pool_congest_stat;
    bit<32> deq_timedelta;
    bit<16> egress_rid;
    @padding bit<7> _pad5;
    bit<1> egress_rid_first;
    @padding bit<(8 - QUEUE_ID_WIDTH)> _pad6;
    QueueId_t egress_qid;
    @padding bit<5> _pad7;
    bit<3> egress_cos;
    @padding bit<7> _pad8;
    bit<1> deflection_flag;
    bit<16> pkt_length;
    @padding bit<8> _pad9;
#endif
}

struct egress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;
    bit<32> global_ver;
    bit<16> parser_err;
}

// `drop_ctl`: bit 0 drops the packet, and bit 2 the mirrored one.
struct egress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
    MirrorType_t mirror_type;
    bit<1> coalesce_flush;
    bit<7> coalesce_length;
    MIRROR_METADATA
}
#undef MIRROR_METADATA

struct egress_intrinsic_metadata_for_output_port_t {
    bit<1> capture_tstamp_on_tx;
    bit<1> update_delay_on_tx;
}

// Headers in front of the packet generator's packets. Batches and packets are numbered from 0.

#if TOFINO_NATIVE_VERSION == 1
#define PKTGEN_APPLICATION \
    @padding bit<3> _pad1; \
    bit<2> pipe_id; \
    bit<3> app_id;
#else
#define PKTGEN_APPLICATION \
    @padding bit<2> _pad1; \
    bit<2> pipe_id; \
    bit<4> app_id;
#endif

header pktgen_timer_header_t {
    PKTGEN_APPLICATION
    @padding bit<8> _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_port_down_header_t {
    PKTGEN_APPLICATION
    @padding bit<15> _pad2;
    PortId_t port_num;
    bit<16> packet_id;
}

header pktgen_recirc_header_t {
    PKTGEN_APPLICATION
#if TOFINO_NATIVE_VERSION == 1
    bit<24> key;
#else
    @padding bit<8> _pad2;
    bit<16> batch_id;
#endif
    bit<16> packet_id;
}

#if TOFINO_NATIVE_VERSION == 2
header pktgen_deparser_header_t {
    PKTGEN_APPLICATION
    @padding bit<8> _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_pfc_header_t {
    PKTGEN_APPLICATION
    @padding bit<40> _pad2;
}
#endif
#undef PKTGEN_APPLICATION

// In front of a packet in which the port updates the correction field of PTP.
header ptp_metadata_t {
    bit<8> udp_cksum_byte_offset;
    bit<8> cf_byte_offset;
    bit<48> updated_cf;
}

// Parsers and deparsers.

// The port's metadata, which tables of the control plane contain.
extern T port_metadata_unpack<T>(packet_in pkt);

// The ones' complement sum of 16-bit words.
extern Checksum {
    Checksum();
    void add<T>(in T data);
    void subtract<T>(in T data);
    bool verify();
    bit<16> get();
    // Subtract all that is extracted from here on, and store the sum in `residual`.
    void subtract_all_and_deposit<T>(out T residual);
    // The complement of the sum of `data`. With `zeros_as_ones`, 0 becomes 0xffff.
    bit<16> update<T>(in T data, @optional in bool zeros_as_ones);
}

#if TOFINO_NATIVE_VERSION == 1
#define COUNTER_MASK bit<3>
#else
#define COUNTER_MASK bit<8>
#endif

// A signed counter of 8 bits, which `set` and `push` may load with a field that is rotated right, masked and increased.
extern ParserCounter {
    ParserCounter();
    void set<T>(in T value);
    void set<T>(in T field, in bit<8> max, in bit<8> rotate, in COUNTER_MASK mask, in bit<8> add);
#if TOFINO_NATIVE_VERSION == 2
    // With `update_with_top`, the value below the top changes with the top.
    void push<T>(in T value, @optional bool update_with_top);
    void push<T>(in T field, in bit<8> max, in bit<8> rotate, in COUNTER_MASK mask, in bit<8> add,
                 @optional bool update_with_top);
    void pop();
#endif
    bool is_zero();
    bool is_negative();
    void increment(in bit<8> value);
    void decrement(in bit<8> value);
}
#undef COUNTER_MASK

// The priority of a packet if the parser's buffer is full.
extern ParserPriority {
    ParserPriority();
    void set(in bit<3> prio);
}

// `mirror_type`, `resubmit_type` and `digest_type` of the intrinsic metadata select an instance by its number.

extern Mirror {
    @deprecated("Give Mirror the value of mirror_type that selects it")
    Mirror();
    Mirror(MirrorType_t mirror_type);
    void emit(in MirrorId_t session_id);
    void emit<T>(in MirrorId_t session_id, in T hdr);
}

extern Resubmit {
    @deprecated("Give Resubmit the value of resubmit_type that selects it")
    Resubmit();
    Resubmit(ResubmitType_t resubmit_type);
    void emit();
    void emit<T>(in T hdr);
}

extern Digest<T> {
    @deprecated("Give Digest the value of digest_type that selects it")
    Digest();
    Digest(DigestType_t digest_type);
    void pack(in T data);
}

// Arithmetic.

extern T max<T>(in T t1, in T t2);
extern T min<T>(in T t1, in T t2);

// The low bits of `src1 ++ src2`, shifted right.
#if TOFINO_NATIVE_VERSION == 1
extern void funnel_shift_right<T>(inout T dst, in T src1, in T src2, int shift_amount);
#else
extern void funnel_shift_right<T>(out T dst, in T src1, in T src2, int shift_amount);
#endif

// Keep a field's storage out of the deparser, so that it has no value.
extern void invalidate<T>(in T field);
extern bool is_validated<T>(in T field);

extern bit<32> sizeInBits<H>(in H h);
extern bit<32> sizeInBytes<H>(in H h);

extern CRCPolynomial<T> {
    CRCPolynomial(T coeff, bool reversed, bool msb, bool extended, T init, T xor);
}

extern Hash<W> {
    Hash(HashAlgorithm_t algo);
    Hash(HashAlgorithm_t algo, CRCPolynomial<_> poly);
    W get<D>(in D data);
}

// Uniform numbers of W.
extern Random<W> {
    Random();
    W get();
}

// A function f of its operand's highest bits, by a table with the values for 15 to 0. Shift 1 squares the operand, -1 takes
// its square root, and `invert` takes its reciprocal. The result is 2^scale * f.
extern MathUnit<T> {
    MathUnit(bool invert, int<2> shift, int<6> scale,
             tuple<bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>,
                   bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>> data);
    // factor * op(x)
    MathUnit(MathOp_t op, int factor);
    // (A / B) * op(x)
    MathUnit(MathOp_t op, int A, int B);
    T execute(in T x);
}

// Objects of the control plane. Direct ones have a cell for each entry of their table.

#if TOFINO_NATIVE_VERSION == 1
#define TRUE_EGRESS_ACCOUNTING
#else
// Count the bytes of the packet as it leaves the switch; only in the egress.
#define TRUE_EGRESS_ACCOUNTING , @optional bool true_egress_accounting
#endif

// `adjust_byte_count` is subtracted from the packet's length.
@noWarn("unused")
extern Counter<W, I> {
    Counter(bit<32> size, CounterType_t type TRUE_EGRESS_ACCOUNTING);
    void count(in I index, @optional in bit<32> adjust_byte_count);
}

@noWarn("unused")
extern DirectCounter<W> {
    DirectCounter(CounterType_t type TRUE_EGRESS_ACCOUNTING);
    void count(@optional in bit<32> adjust_byte_count);
}

// `red`, `yellow` and `green` replace the numbers of MeterColor_t.
extern Meter<I> {
    Meter(bit<32> size, MeterType_t type TRUE_EGRESS_ACCOUNTING);
    Meter(bit<32> size, MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green TRUE_EGRESS_ACCOUNTING);
    bit<8> execute(in I index, in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(in I index, @optional in bit<32> adjust_byte_count);
}

extern DirectMeter {
    DirectMeter(MeterType_t type TRUE_EGRESS_ACCOUNTING);
    DirectMeter(MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green TRUE_EGRESS_ACCOUNTING);
    bit<8> execute(in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(@optional in bit<32> adjust_byte_count);
}
#undef TRUE_EGRESS_ACCOUNTING

// Low-pass filters.
extern Lpf<T, I> {
    Lpf(bit<32> size);
    T execute(in T val, in I index);
}

extern DirectLpf<T> {
    DirectLpf();
    T execute(in T val);
}

// Weighted random early detection.
extern Wred<T, I> {
    Wred(bit<32> size, bit<8> drop_value, bit<8> no_drop_value);
    bit<8> execute(in T val, in I index);
}

extern DirectWred<T> {
    DirectWred(bit<8> drop_value, bit<8> no_drop_value);
    bit<8> execute(in T val);
}

extern Register<T, I> {
    Register(bit<32> size);
    Register(bit<32> size, T initial_value);
    T read(in I index);
    T write(in I index, in T value);
#if TOFINO_NATIVE_VERSION == 2
    // Write every cell.
    void clear(in T value, @optional in T busy);
#endif
}

extern DirectRegister<T> {
    DirectRegister();
    DirectRegister(T initial_value);
    T read();
    T write(in T value);
#if TOFINO_NATIVE_VERSION == 2
    void clear(in T value, @optional in T busy);
#endif
}

// A value that the control plane sets, for actions on registers.
extern RegisterParam<T> {
    RegisterParam(T initial_value);
    T read();
}

// Implementations of tables.

extern ActionProfile {
    ActionProfile(bit<32> size);
}

// With a register, the selector passes over members whose bit is 0.
extern ActionSelector {
    ActionSelector(ActionProfile action_profile, Hash<_> hash, SelectorMode_t mode,
                   bit<32> max_group_size, bit<32> num_groups);
    ActionSelector(ActionProfile action_profile, Hash<_> hash, SelectorMode_t mode, Register<bit<1>, _> reg,
                   bit<32> max_group_size, bit<32> num_groups);
    @deprecated("Give ActionSelector an ActionProfile")
    ActionSelector(bit<32> size, Hash<_> hash, SelectorMode_t mode);
    @deprecated("Give ActionSelector an ActionProfile")
    ActionSelector(bit<32> size, Hash<_> hash, SelectorMode_t mode, Register<bit<1>, _> reg);
}

// Sets the bit of a member in its selector's register.
extern SelectorAction {
    SelectorAction(ActionSelector sel);
    bit<1> execute(@optional in bit<32> index);
    @synchronous(execute)
    abstract void apply(inout bit<1> value, @optional out bit<1> rv);
}

extern Atcam {
    Atcam(@optional bit<32> number_partitions);
}

extern Alpm {
    Alpm(@optional bit<32> number_partitions, @optional bit<32> subtrees_per_partition,
         @optional bit<32> atcam_subset_width, @optional bit<32> shift_granularity);
}

#endif
