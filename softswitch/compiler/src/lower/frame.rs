// SPDX-License-Identifier: Apache-2.0
//! Environments: what names and type parameters stand for.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::value::Val;
use crate::ast::NodeId;
use crate::types::Type;

/// One environment; names not found in it are looked up in its parent.
#[derive(Default)]
pub struct Frame {
    pub values: RefCell<HashMap<NodeId, Val>>,
    pub types: RefCell<HashMap<NodeId, Type>>,
    pub parent: Option<FrameRef>,
    /// Prefix of the names of everything declared here, as the control plane sees it.
    pub prefix: String,
    /// The block instance that the frame belongs to.
    pub block: Option<usize>,
}

pub type FrameRef = Rc<Frame>;

impl Frame {
    pub fn child(parent: &FrameRef) -> Frame {
        Frame {
            parent: Some(parent.clone()),
            prefix: parent.prefix.clone(),
            block: parent.block,
            ..Frame::default()
        }
    }

    pub fn set(&self, id: NodeId, v: Val) {
        self.values.borrow_mut().insert(id, v);
    }

    pub fn find(&self, id: NodeId) -> Option<Val> {
        if let Some(v) = self.values.borrow().get(&id) {
            return Some(v.clone());
        }
        self.parent.as_ref()?.find(id)
    }

    pub fn find_type(&self, id: NodeId) -> Option<Type> {
        if let Some(t) = self.types.borrow().get(&id) {
            return Some(t.clone());
        }
        self.parent.as_ref()?.find_type(id)
    }
}
