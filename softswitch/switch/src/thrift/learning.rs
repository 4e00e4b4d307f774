// SPDX-License-Identifier: Apache-2.0
//! Digests. Controllers receive them over P4Runtime, because BMv2's way, nanomsg, is not served. So there are no buffers to
//! acknowledge or configure here: the functions only check the list.

use softswitch_thrift::interface::{Learning, LearningError};

use super::Services;

type Result = std::result::Result<(), LearningError>;

impl Services {
    fn check_list(&self, list: i32) -> Result {
        let unknown = LearningError::InvalidListId;
        self.with_state(unknown, |_, program| {
            let mut digests = program.info().digests.iter();
            let exists = digests.any(|digest| i64::from(digest.id) == i64::from(list));
            exists.then_some(()).ok_or(unknown)
        })
    }
}

impl Learning for Services {
    fn bm_learning_ack(&self, _: i32, list: i32, _: i64, _: Vec<i32>) -> Result {
        self.check_list(list)
    }

    fn bm_learning_ack_buffer(&self, _: i32, list: i32, _: i64) -> Result {
        self.check_list(list)
    }

    fn bm_learning_set_timeout(&self, _: i32, list: i32, _: i32) -> Result {
        self.check_list(list)
    }

    fn bm_learning_set_buffer_size(&self, _: i32, list: i32, _: i32) -> Result {
        self.check_list(list)
    }
}
