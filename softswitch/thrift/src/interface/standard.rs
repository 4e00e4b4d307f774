// SPDX-License-Identifier: Apache-2.0
//! The service `standard`.

use std::convert::Infallible;

use super::codes::*;
use super::records::*;
use crate::declare::functions;
use crate::wire::Binary;

functions! {
    /// Entries and default entries of tables.
    Tables in "standard" {
        /// Returns the number of entries.
        bm_mt_get_num_entries(1 context: i32, 2 table: String) -> i64, TableError;
        /// Deletes all entries, and resets the default entry if `reset_default` is set.
        bm_mt_clear_entries(1 context: i32, 2 table: String, 3 reset_default: bool) -> (), TableError;
        /// Adds an entry and returns its handle.
        bm_mt_add_entry(1 context: i32, 2 table: String, 3 key: Vec<MatchParam>, 4 action: String,
            5 data: Vec<Binary>, 6 options: EntryOptions) -> i32, TableError;
        /// Sets the default action.
        bm_mt_set_default_action(1 context: i32, 2 table: String, 3 action: String, 4 data: Vec<Binary>)
            -> (), TableError;
        /// Resets the default entry to the program's.
        bm_mt_reset_default_entry(1 context: i32, 2 table: String) -> (), TableError;
        /// Deletes an entry.
        bm_mt_delete_entry(1 context: i32, 2 table: String, 3 handle: i32) -> (), TableError;
        /// Replaces the action of an entry.
        bm_mt_modify_entry(1 context: i32, 2 table: String, 3 handle: i32, 4 action: String, 5 data: Vec<Binary>)
            -> (), TableError;
        /// Sets the idle time-out of an entry.
        bm_mt_set_entry_ttl(1 context: i32, 2 table: String, 3 handle: i32, 4 timeout_ms: i32) -> (), TableError;
        /// Adds an entry with a member and returns its handle.
        bm_mt_indirect_add_entry(1 context: i32, 2 table: String, 3 key: Vec<MatchParam>, 4 member: i32,
            5 options: EntryOptions) -> i32, TableError;
        /// Replaces the action of an entry by a member.
        bm_mt_indirect_modify_entry(1 context: i32, 2 table: String, 3 handle: i32, 4 member: i32)
            -> (), TableError;
        /// Deletes an entry of a table with an action profile.
        bm_mt_indirect_delete_entry(1 context: i32, 2 table: String, 3 handle: i32) -> (), TableError;
        /// Sets the idle time-out of an entry of a table with an action profile.
        bm_mt_indirect_set_entry_ttl(1 context: i32, 2 table: String, 3 handle: i32, 4 timeout_ms: i32)
            -> (), TableError;
        /// Sets the default entry to a member.
        bm_mt_indirect_set_default_member(1 context: i32, 2 table: String, 3 member: i32) -> (), TableError;
        /// Resets the default entry of a table with an action profile.
        bm_mt_indirect_reset_default_entry(1 context: i32, 2 table: String) -> (), TableError;
        /// Adds an entry with a group and returns its handle.
        bm_mt_indirect_ws_add_entry(1 context: i32, 2 table: String, 3 key: Vec<MatchParam>, 4 group: i32,
            5 options: EntryOptions) -> i32, TableError;
        /// Replaces the action of an entry by a group.
        bm_mt_indirect_ws_modify_entry(1 context: i32, 2 table: String, 3 handle: i32, 4 group: i32)
            -> (), TableError;
        /// Sets the default entry to a group.
        bm_mt_indirect_ws_set_default_group(1 context: i32, 2 table: String, 3 group: i32) -> (), TableError;
        /// Returns all entries.
        bm_mt_get_entries(1 context: i32, 2 table: String) -> Vec<TableEntry>, TableError;
        /// Returns an entry.
        bm_mt_get_entry(1 context: i32, 2 table: String, 3 handle: i32) -> TableEntry, TableError;
        /// Returns the default entry's action.
        bm_mt_get_default_entry(1 context: i32, 2 table: String) -> ActionEntry, TableError;
        /// Returns the entry with a key, or the default entry if the key is empty.
        bm_mt_get_entry_from_key(1 context: i32, 2 table: String, 3 key: Vec<MatchParam>, 4 options: EntryOptions)
            -> TableEntry, TableError;
    }
}

functions! {
    /// Members and groups of action profiles.
    Profiles in "standard" {
        /// Adds a member and returns its handle.
        bm_mt_act_prof_add_member(1 context: i32, 2 profile: String, 3 action: String, 4 data: Vec<Binary>)
            -> i32, TableError;
        /// Deletes a member.
        bm_mt_act_prof_delete_member(1 context: i32, 2 profile: String, 3 member: i32) -> (), TableError;
        /// Replaces the action of a member.
        bm_mt_act_prof_modify_member(1 context: i32, 2 profile: String, 3 member: i32, 4 action: String,
            5 data: Vec<Binary>) -> (), TableError;
        /// Creates an empty group and returns its handle.
        bm_mt_act_prof_create_group(1 context: i32, 2 profile: String) -> i32, TableError;
        /// Deletes a group.
        bm_mt_act_prof_delete_group(1 context: i32, 2 profile: String, 3 group: i32) -> (), TableError;
        /// Adds a member to a group.
        bm_mt_act_prof_add_member_to_group(1 context: i32, 2 profile: String, 3 member: i32, 4 group: i32)
            -> (), TableError;
        /// Removes a member from a group.
        bm_mt_act_prof_remove_member_from_group(1 context: i32, 2 profile: String, 3 member: i32, 4 group: i32)
            -> (), TableError;
        /// Returns all members.
        bm_mt_act_prof_get_members(1 context: i32, 2 profile: String) -> Vec<Member>, TableError;
        /// Returns a member.
        bm_mt_act_prof_get_member(1 context: i32, 2 profile: String, 3 member: i32) -> Member, TableError;
        /// Returns all groups.
        bm_mt_act_prof_get_groups(1 context: i32, 2 profile: String) -> Vec<Group>, TableError;
        /// Returns a group.
        bm_mt_act_prof_get_group(1 context: i32, 2 profile: String, 3 group: i32) -> Group, TableError;
    }
}

functions! {
    /// Direct counters and meters, which belong to entries.
    DirectResources in "standard" {
        /// Returns the counter of an entry.
        bm_mt_read_counter(1 context: i32, 2 table: String, 3 handle: i32) -> CounterValue, TableError;
        /// Sets the counters of all entries to 0.
        bm_mt_reset_counters(1 context: i32, 2 table: String) -> (), TableError;
        /// Sets the counter of an entry.
        bm_mt_write_counter(1 context: i32, 2 table: String, 3 handle: i32, 4 value: CounterValue)
            -> (), TableError;
        /// Configures the meter of an entry.
        bm_mt_set_meter_rates(1 context: i32, 2 table: String, 3 handle: i32, 4 rates: Vec<MeterRate>)
            -> (), TableError;
        /// Returns the rates of an entry's meter; none if it is not configured.
        bm_mt_get_meter_rates(1 context: i32, 2 table: String, 3 handle: i32) -> Vec<MeterRate>, TableError;
    }
}

functions! {
    /// Indirect counters.
    Counters in "standard" {
        /// Returns a cell.
        bm_counter_read(1 context: i32, 2 counter: String, 3 index: i32) -> CounterValue, CounterError;
        /// Sets all cells to 0.
        bm_counter_reset_all(1 context: i32, 2 counter: String) -> (), CounterError;
        /// Sets a cell.
        bm_counter_write(1 context: i32, 2 counter: String, 3 index: i32, 4 value: CounterValue)
            -> (), CounterError;
    }
}

functions! {
    /// Digests.
    Learning in "standard" {
        /// Acknowledges samples of a buffer.
        bm_learning_ack(1 context: i32, 2 list: i32, 3 buffer: i64, 4 samples: Vec<i32>) -> (), LearningError;
        /// Acknowledges all samples of a buffer.
        bm_learning_ack_buffer(1 context: i32, 2 list: i32, 3 buffer: i64) -> (), LearningError;
        /// Sets the time after which an incomplete buffer is sent.
        bm_learning_set_timeout(1 context: i32, 2 list: i32, 3 timeout_ms: i32) -> (), LearningError;
        /// Sets the number of samples of a complete buffer.
        bm_learning_set_buffer_size(1 context: i32, 2 list: i32, 3 samples: i32) -> (), LearningError;
    }
}

functions! {
    /// The program and the state as a whole.
    Programs in "standard" {
        /// Loads a program, which replaces the current one with `bm_swap_configs`.
        bm_load_new_config(1 config: String) -> (), SwapError;
        /// Replaces the program by the loaded one.
        bm_swap_configs() -> (), SwapError;
        /// Returns the switch's identity and addresses.
        bm_mgmt_get_info() -> SwitchInfo, Infallible;
        /// Resets all state to the program's initial state.
        bm_reset_state() -> (), Infallible;
        /// Returns the program's JSON.
        bm_get_config() -> String, Infallible;
        /// Returns the MD5 sum of the program's JSON.
        bm_get_config_md5() -> Binary, Infallible;
        /// Returns the id of an object in the program's JSON.
        bm_get_id_from_name(1 context: i32, 2 kind: i32, 3 name: String) -> i32, IdError;
    }
}

functions! {
    /// Indirect meters.
    Meters in "standard" {
        /// Configures all cells.
        bm_meter_array_set_rates(1 context: i32, 2 meter: String, 3 rates: Vec<MeterRate>) -> (), MeterError;
        /// Configures a cell.
        bm_meter_set_rates(1 context: i32, 2 meter: String, 3 index: i32, 4 rates: Vec<MeterRate>)
            -> (), MeterError;
        /// Returns the rates of a cell; none if it is not configured.
        bm_meter_get_rates(1 context: i32, 2 meter: String, 3 index: i32) -> Vec<MeterRate>, MeterError;
    }
}

functions! {
    /// Registers.
    Registers in "standard" {
        /// Returns a cell.
        bm_register_read(1 context: i32, 2 register: String, 3 index: i32) -> i64, RegisterError;
        /// Returns all cells.
        bm_register_read_all(1 context: i32, 2 register: String) -> Vec<i64>, RegisterError;
        /// Sets a cell.
        bm_register_write(1 context: i32, 2 register: String, 3 index: i32, 4 value: i64) -> (), RegisterError;
        /// Sets the cells from `start` to before `end`.
        bm_register_write_range(1 context: i32, 2 register: String, 3 start: i32, 4 end: i32, 5 value: i64)
            -> (), RegisterError;
        /// Sets all cells to 0.
        bm_register_reset(1 context: i32, 2 register: String) -> (), RegisterError;
    }
}

functions! {
    /// Parser value sets. A value has the fields' bits without gaps, after any number of zeros.
    ValueSets in "standard" {
        /// Adds a value.
        bm_parse_vset_add(1 context: i32, 2 set: String, 3 value: Binary) -> (), ValueSetError;
        /// Removes a value.
        bm_parse_vset_remove(1 context: i32, 2 set: String, 3 value: Binary) -> (), ValueSetError;
        /// Returns all values.
        bm_parse_vset_get(1 context: i32, 2 set: String) -> Vec<Binary>, ValueSetError;
        /// Removes all values.
        bm_parse_vset_clear(1 context: i32, 2 set: String) -> (), ValueSetError;
    }
}

functions! {
    /// Ports.
    Ports in "standard" {
        /// Attaches an interface as a port.
        bm_dev_mgr_add_port(1 interface: String, 2 port: i32, 3 pcap: String) -> (), PortError;
        /// Detaches a port.
        bm_dev_mgr_remove_port(1 port: i32) -> (), PortError;
        /// Returns all ports.
        bm_dev_mgr_show_ports() -> Vec<PortInfo>, PortError;
    }
}

functions! {
    /// Parameters of hash calculations.
    Calculations in "standard" {
        /// Sets the parameters of a `crc16_custom`.
        bm_set_crc16_custom_parameters(1 context: i32, 2 name: String, 3 config: Crc16Config) -> (), CrcError;
        /// Sets the parameters of a `crc32_custom`.
        bm_set_crc32_custom_parameters(1 context: i32, 2 name: String, 3 config: Crc32Config) -> (), CrcError;
        /// Sets the key of a Toeplitz hash.
        bm_set_toeplitz_hash_key(1 context: i32, 2 name: String, 3 key: Binary) -> (), ToeplitzError;
    }
}
