// SPDX-License-Identifier: Apache-2.0
//! Buffers of digests, which controllers receive as [notifications](crate::notifications).

use softswitch_thrift::interface::{Learning, LearningError};

use super::Services;
use crate::notifications::Lists;

type Result = std::result::Result<(), LearningError>;

impl Services {
    /// Runs a function with the learn lists, if there is this list. Without notifications, only the list is checked.
    fn with_list(&self, list: i32, f: impl FnOnce(&mut Lists, u32)) -> Result {
        let unknown = LearningError::InvalidListId;
        let deployment = self.deployment().ok_or(unknown)?;
        let program = deployment.pipeline().lock().program().clone();
        let id = u32::try_from(list).map_err(|_| unknown)?;
        if !program.info().digests.iter().any(|digest| digest.id == id) {
            return Err(unknown);
        }
        if let Some(notifications) = &self.device.notifications {
            notifications.with_lists(deployment.pipeline(), |lists| f(lists, id));
        }
        Ok(())
    }
}

impl Learning for Services {
    fn bm_learning_ack(&self, _: i32, list: i32, buffer: i64, samples: Vec<i32>) -> Result {
        self.with_list(list, |lists, id| {
            lists.acknowledge(id, buffer.cast_unsigned(), &samples);
        })
    }

    fn bm_learning_ack_buffer(&self, _: i32, list: i32, buffer: i64) -> Result {
        self.with_list(list, |lists, id| {
            lists.acknowledge_buffer(id, buffer.cast_unsigned());
        })
    }

    fn bm_learning_set_timeout(&self, _: i32, list: i32, milliseconds: i32) -> Result {
        let milliseconds = u32::try_from(milliseconds).map_err(|_| LearningError::Error)?;
        self.with_list(list, |lists, id| lists.set_timeout(id, milliseconds))
    }

    fn bm_learning_set_buffer_size(&self, _: i32, list: i32, samples: i32) -> Result {
        let samples = usize::try_from(samples).map_err(|_| LearningError::Error)?;
        self.with_list(list, |lists, id| lists.set_size(id, samples))
    }
}
