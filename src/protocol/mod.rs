//! What the Worker and the objects say to each other, and how it becomes bytes.

pub mod messages;
mod method;
pub mod records;
pub mod schema;

pub use crate::wire;
pub use method::{
    Answer, AnywhereLease, AnywhereReserve, AnywhereTake, CounterGiven, CounterRecall, CounterTake,
    DataCenterRefresh, DataCenterReport, DataCenterState, GlobalAudit, GlobalHistory, GlobalMove,
    GlobalNotifications, GlobalOrigin, GlobalOriginHealth, GlobalPush, GlobalState, GlobalStatus,
    GlobalSteer, GlobalSubscribe, GlobalTotals, Method, Object, Request,
};
