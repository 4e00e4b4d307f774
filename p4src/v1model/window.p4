// SPDX-License-Identifier: Apache-2.0
// AIFO's window of sampled ranks (control/aifo.p4).
#ifndef FRONTAGE_V1MODEL_WINDOW_P4
#define FRONTAGE_V1MODEL_WINDOW_P4

// One slot of the window. It stores 255 - rank, so that a slot that was never written holds the largest rank and
// never counts as smaller.
control WindowSlot(inout aifo_t aifo, in port_t port, in bit<8> rank)(bit<8> number) {
    register<bit<8>>(PORTS) inverted_ranks;

    apply {
        if (number < aifo.window) {
            bit<8> inverted_rank;
            inverted_ranks.read(inverted_rank, (bit<32>)port);
            if (inverted_rank > ~rank) {
                aifo.smaller_ranks = aifo.smaller_ranks + 1;
            }
            if (aifo.slot == number) {
                inverted_ranks.write((bit<32>)port, ~rank);
            }
        }
    }
}

// Counts the smaller ranks. P4 has neither loops nor arrays of controls, so each slot is applied by hand.
control Window(inout aifo_t aifo, in port_t port, in bit<8> rank) {
    WindowSlot(0) slot0;
    WindowSlot(1) slot1;
    WindowSlot(2) slot2;
    WindowSlot(3) slot3;
    WindowSlot(4) slot4;
    WindowSlot(5) slot5;
    WindowSlot(6) slot6;
    WindowSlot(7) slot7;
    WindowSlot(8) slot8;
    WindowSlot(9) slot9;
    WindowSlot(10) slot10;
    WindowSlot(11) slot11;
    WindowSlot(12) slot12;
    WindowSlot(13) slot13;
    WindowSlot(14) slot14;
    WindowSlot(15) slot15;
    WindowSlot(16) slot16;
    WindowSlot(17) slot17;
    WindowSlot(18) slot18;
    WindowSlot(19) slot19;

    apply {
        slot0.apply(aifo, port, rank);
        slot1.apply(aifo, port, rank);
        slot2.apply(aifo, port, rank);
        slot3.apply(aifo, port, rank);
        slot4.apply(aifo, port, rank);
        slot5.apply(aifo, port, rank);
        slot6.apply(aifo, port, rank);
        slot7.apply(aifo, port, rank);
        slot8.apply(aifo, port, rank);
        slot9.apply(aifo, port, rank);
        slot10.apply(aifo, port, rank);
        slot11.apply(aifo, port, rank);
        slot12.apply(aifo, port, rank);
        slot13.apply(aifo, port, rank);
        slot14.apply(aifo, port, rank);
        slot15.apply(aifo, port, rank);
        slot16.apply(aifo, port, rank);
        slot17.apply(aifo, port, rank);
        slot18.apply(aifo, port, rank);
        slot19.apply(aifo, port, rank);
    }
}

#endif
