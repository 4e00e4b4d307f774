// SPDX-License-Identifier: Apache-2.0
//! A session: the connection, the program of the switch, and the numbers that the session gave to entries and nodes.

use std::sync::Arc;

use crate::client::Client;
use crate::error::Result;
use crate::handles::Handles;
use crate::nodes::Nodes;
use crate::options::Options;
use crate::schema::Schema;

/// A session with one switch.
#[derive(Debug)]
pub struct Session {
    pub(crate) client: Client,
    pub(crate) schema: Arc<Schema>,
    pub(crate) handles: Handles,
    pub(crate) nodes: Nodes,
}

impl Session {
    /// Connects to a switch and reads its program.
    ///
    /// # Errors
    /// If the server does not answer.
    pub fn connect(options: &Options) -> Result<Self> {
        let mut session = Self {
            client: Client::connect(options)?,
            schema: Arc::default(),
            handles: Handles::default(),
            nodes: Nodes::default(),
        };
        session.reload()?;
        Ok(session)
    }

    /// Returns the objects of the program.
    pub fn schema(&self) -> Arc<Schema> {
        self.schema.clone()
    }

    /// Reads the program of the switch again, and forgets the handles of its entries.
    pub(crate) fn reload(&mut self) -> Result<()> {
        let config = self.client.config()?.unwrap_or_default();
        self.schema = Arc::new(config.p4info.map(Schema::new).unwrap_or_default());
        self.handles = Handles::default();
        self.nodes = Nodes::default();
        Ok(())
    }
}
