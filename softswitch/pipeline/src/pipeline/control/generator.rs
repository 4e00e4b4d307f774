// SPDX-License-Identifier: Apache-2.0
//! The packet generators of TNA, one in each pipe.

use crate::Nanos;
use crate::error::StateError;
use crate::packet::Descriptor;
use crate::pipeline::{Pipeline, Switch};
use crate::program::architecture::Architecture;
use crate::state::generator::{
    GENERATOR_BUFFER_BYTES, Generator, GeneratorApp, GeneratorCounts, GeneratorPort,
};

type Result<T> = std::result::Result<T, StateError>;

/// The settings and the state of the packet generators of all pipes.
#[derive(Debug, Clone)]
pub struct GeneratorSnapshot(Vec<Generator>);

impl Pipeline {
    /// Runs ingress for the next packet of a packet generator, if one is due. Appends the packets to enqueue to `out`.
    /// Returns false if none is due.
    pub fn generate(&mut self, now: Nanos, out: &mut Vec<Descriptor>) -> bool {
        match self.switch() {
            Switch::Tna(mut switch) => switch.generate(now, out),
            Switch::V1Model(_) | Switch::Psa(_) => false,
        }
    }

    /// Returns the time at which [`generate`](Self::generate) must be called, if a packet generator is active.
    pub fn next_generated(&self) -> Option<Nanos> {
        let pipes = 0..self.core.state.count();
        pipes
            .filter_map(|pipe| self.core.state.state_of(pipe).generator.next_event())
            .min()
    }

    /// Returns the number of applications of a packet generator; 0 for programs of other architectures than TNA.
    pub fn generator_apps(&self) -> u32 {
        match &self.program.compiled().architecture {
            Architecture::Tna(m) => m.chip.generator_apps(),
            Architecture::V1Model(_) | Architecture::Psa(_) => 0,
        }
    }

    /// Returns an application, in the first of the pipes that reads concern.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn generator_app(&self, app: u32) -> Result<GeneratorApp> {
        self.check_generator_app(app)?;
        Ok(self.state().generator.app(app).0)
    }

    /// Returns the counters of an application: the sums over the pipes that reads concern.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn generator_counts(&self, app: u32) -> Result<GeneratorCounts> {
        self.check_generator_app(app)?;
        let counts = self.states().map(|state| state.generator.app(app).1);
        Ok(counts.fold(GeneratorCounts::default(), |sum, counts| sum + counts))
    }

    /// Changes an application. A changed application starts anew.
    ///
    /// # Errors
    /// If it does not exist, or its packet is not in the buffer.
    pub fn set_generator_app(&mut self, app: u32, to: GeneratorApp) -> Result<()> {
        self.check_generator_app(app)?;
        check_buffer(to.offset, to.length)?;
        self.change(|p| {
            p.core.state.generator.set_app(app, to);
            Ok(())
        })
    }

    /// Changes the counters of an application in each pipe.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn set_generator_counts(&mut self, app: u32, to: GeneratorCounts) -> Result<()> {
        self.check_generator_app(app)?;
        self.change(|p| {
            p.core.state.generator.set_counts(app, to);
            Ok(())
        })
    }

    /// Returns bytes of the buffer of a packet generator.
    ///
    /// # Errors
    /// If they are not in the buffer.
    pub fn generator_buffer(&self, offset: u32, length: u32) -> Result<Vec<u8>> {
        check_buffer(offset, length)?;
        Ok(self
            .state()
            .generator
            .read(offset as usize, length as usize))
    }

    /// Writes to the buffer of packet generators.
    ///
    /// # Errors
    /// If the bytes do not fit.
    pub fn write_generator_buffer(&mut self, offset: u32, bytes: &[u8]) -> Result<()> {
        check_buffer(offset, u32::try_from(bytes.len()).unwrap_or(u32::MAX))?;
        self.change(|p| {
            p.core.state.generator.write(offset as usize, bytes);
            Ok(())
        })
    }

    /// Returns the use of a port by the packet generator of its pipe.
    pub fn generator_port(&self, port: u32) -> GeneratorPort {
        self.generator_of(port).port(port)
    }

    /// Changes the use of a port.
    pub fn set_generator_port(&mut self, port: u32, to: GeneratorPort) {
        self.generator_of_mut(port).set_port(port, to);
    }

    /// Lets the next failure of a port trigger applications. Later failures do not.
    pub fn arm_generator_port(&mut self, port: u32) {
        self.generator_of_mut(port).arm_port(port);
    }

    /// Returns a set of ports within a pipe whose failures trigger applications: bit 0 is port 0.
    pub fn generator_mask(&self, number: u32) -> u128 {
        self.state().generator.mask(number)
    }

    /// Changes a set of ports whose failures trigger applications.
    pub fn set_generator_mask(&mut self, number: u32, ports: u128) {
        let result = self.change(|p| {
            p.core.state.generator.set_mask(number, ports);
            Ok(())
        });
        result.expect("the change cannot fail");
    }

    /// Returns the settings and the state of all packet generators.
    pub fn generator_snapshot(&self) -> GeneratorSnapshot {
        let pipes = 0..self.core.state.count();
        GeneratorSnapshot(
            pipes
                .map(|pipe| self.core.state.state_of(pipe).generator.clone())
                .collect(),
        )
    }

    /// Restores the settings and the state of all packet generators.
    pub fn restore_generators(&mut self, snapshot: GeneratorSnapshot) {
        for (pipe, generator) in snapshot.0.into_iter().enumerate() {
            self.core.state.select(pipe);
            self.core.state.generator = generator;
        }
    }

    fn check_generator_app(&self, app: u32) -> Result<()> {
        let count = self.generator_apps();
        if app < count {
            return Ok(());
        }
        Err(StateError::Invalid {
            what: format!("application {app} of the packet generator"),
            reason: format!("must be below {count}"),
        })
    }

    fn generator_of(&self, port: u32) -> &Generator {
        let pipe = self.core.state.of_port(port);
        &self.core.state.state_of(pipe).generator
    }

    /// Returns the packet generator of the pipe of a port.
    pub(super) fn generator_of_mut(&mut self, port: u32) -> &mut Generator {
        let pipe = self.core.state.of_port(port);
        self.core.state.select(pipe);
        &mut self.core.state.generator
    }
}

fn check_buffer(offset: u32, length: u32) -> Result<()> {
    let end = u64::from(offset) + u64::from(length);
    if end <= GENERATOR_BUFFER_BYTES as u64 {
        return Ok(());
    }
    Err(StateError::Invalid {
        what: "buffer of the packet generator".into(),
        reason: format!("byte {end} is beyond its end, {GENERATOR_BUFFER_BYTES}"),
    })
}
