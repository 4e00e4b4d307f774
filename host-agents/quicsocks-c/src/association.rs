// SPDX-License-Identifier: Apache-2.0
//! An association with a proxy: its control connection, and the socket for datagrams to the proxy.

use std::cell::Cell;
use std::io::{self, Read as _};
use std::net::{TcpStream, UdpSocket};

use frontage_quicsocks_client::{Credentials, associate_blocking, udp};

use crate::failure::Failure;

/// `struct fqs_association`.
#[derive(Debug)]
pub struct Association {
    control: TcpStream,
    /// Connected to the proxy's UDP port for this association.
    pub socket: UdpSocket,
    /// True while a connection uses the association.
    is_busy: Cell<bool>,
    is_closed: Cell<bool>,
}

impl Association {
    /// Open an association with the proxy at `HOST:PORT`.
    ///
    /// # Errors
    /// Those of `fqs_associate()`.
    pub fn open(proxy: &str, credentials: Option<&Credentials>) -> Result<Self, Failure> {
        let (control, relay) = associate_blocking(proxy, credentials, None)?;
        Ok(Self {
            control,
            socket: udp::connect_std(relay)?,
            is_busy: Cell::new(false),
            is_closed: Cell::new(false),
        })
    }

    /// Return the control connection. Its file descriptor is readable when the proxy has closed it.
    pub const fn control(&self) -> &TcpStream {
        &self.control
    }

    /// Reserve the association for a connection.
    ///
    /// # Errors
    /// [`Failure::ProxyClosed`], [`Failure::Busy`].
    pub fn reserve(&self) -> Result<(), Failure> {
        if self.is_closed() {
            return Err(Failure::ProxyClosed);
        }
        if self.is_busy.replace(true) {
            return Err(Failure::Busy);
        }
        Ok(())
    }

    /// Let the next connection use the association.
    pub fn free(&self) {
        self.is_busy.set(false);
    }

    /// Return true if the proxy has closed the control connection.
    pub fn is_closed(&self) -> bool {
        if !self.is_closed.get() {
            let read = (&self.control).read(&mut [0; 64]);
            let is_open = match read {
                Ok(length) => length > 0,
                Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            };
            self.is_closed.set(!is_open);
        }
        self.is_closed.get()
    }
}
