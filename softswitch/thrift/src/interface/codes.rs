// SPDX-License-Identifier: Apache-2.0
//! Error codes.

use crate::declare::codes;

codes! {
    /// Why an operation on a table or an action profile is refused.
    TableError {
        TableFull = 1,
        InvalidHandle = 2,
        ExpiredHandle = 3,
        CountersDisabled = 4,
        MetersDisabled = 5,
        AgeingDisabled = 6,
        InvalidTableName = 7,
        InvalidActionName = 8,
        WrongTableType = 9,
        InvalidMbrHandle = 10,
        MbrStillUsed = 11,
        MbrAlreadyInGrp = 12,
        MbrNotInGrp = 13,
        InvalidGrpHandle = 14,
        GrpStillUsed = 15,
        EmptyGrp = 16,
        DuplicateEntry = 17,
        BadMatchKey = 18,
        InvalidMeterOperation = 19,
        DefaultActionIsConst = 20,
        DefaultEntryIsConst = 21,
        NoDefaultEntry = 22,
        InvalidActionProfileName = 23,
        NoActionProfileSelection = 24,
        ImmutableTableEntries = 25,
        BadActionData = 26,
        NoTableKey = 27,
        Error = 100,
    }

    /// Why an operation on a counter is refused.
    CounterError {
        InvalidCounterName = 1,
        InvalidIndex = 2,
        Error = 3,
    }

    /// Why a change of the program is refused.
    SwapError {
        ConfigSwapDisabled = 1,
        OngoingSwap = 2,
        NoOngoingSwap = 3,
    }

    /// Why an operation on a meter is refused.
    MeterError {
        InvalidMeterName = 1,
        InvalidIndex = 2,
        BadRatesList = 3,
        InvalidInfoRateValue = 4,
        InvalidBurstSizeValue = 5,
        Error = 6,
    }

    /// Why an operation on a register is refused.
    RegisterError {
        InvalidRegisterName = 1,
        InvalidIndex = 2,
        Error = 3,
    }

    /// Why an operation on a value set is refused.
    ValueSetError {
        InvalidParseVsetName = 1,
        Error = 2,
    }

    /// Why an operation on a digest is refused.
    LearningError {
        InvalidListId = 1,
        InvalidListName = 2,
        Error = 3,
    }

    /// Why an operation on a port is refused.
    PortError {
        Error = 1,
    }

    /// Why the parameters of a CRC are refused.
    CrcError {
        InvalidCalculationName = 1,
        WrongTypeCalculation = 2,
        InvalidConfig = 3,
    }

    /// Why the key of a Toeplitz hash is refused.
    ToeplitzError {
        InvalidCalculationName = 1,
        WrongTypeCalculation = 2,
        InvalidKey = 3,
    }

    /// Why the search for an id fails.
    IdError {
        InvalidResourceType = 0,
        InvalidResourceName = 1,
    }

    /// Why an operation on multicast groups is refused.
    MulticastError {
        TableFull = 1,
        InvalidMgid = 2,
        InvalidMgrpHandle = 3,
        InvalidL1Handle = 4,
        Error = 5,
    }

    /// Why an operation on a mirroring session is refused.
    MirroringError {
        SessionNotFound = 1,
    }
}
