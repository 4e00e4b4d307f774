// SPDX-License-Identifier: Apache-2.0
//! Empty: cargo needs a target in order to fetch the dependencies of a package.
