//! Composites: operations that other operations make up, and what they are made of.

use std::borrow::Cow;

use super::entity::Entity as _;
use super::{Module, Op, OpKind};

impl Module {
    /// The module with every composite replaced by a call of its decomposition, which means the
    /// same by the specification; regions of composites mean nothing then.
    pub fn decompose_composites(&self) -> Cow<'_, Self> {
        let is_composite = |kind: &OpKind| matches!(kind, OpKind::Composite(_));
        let mut ops = self.functions.iter().flat_map(|function| function.ops.values());
        if !ops.any(|data| is_composite(&data.kind)) {
            return Cow::Borrowed(self);
        }
        let mut module = self.clone();
        for function in &mut module.functions {
            for index in 0..function.ops.len() {
                let data = &mut function.ops[Op::new(index)];
                if let OpKind::Composite(composite) = &mut data.kind {
                    let callee = std::mem::take(&mut composite.decomposition);
                    data.kind = OpKind::Call { callee };
                    data.regions.clear();
                }
            }
        }
        Cow::Owned(module)
    }
}
