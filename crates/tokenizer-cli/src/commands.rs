//! The commands, a file each.

pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod count;
pub(crate) mod counts;
pub(crate) mod decode;
pub(crate) mod diff;
pub(crate) mod encode;
pub(crate) mod explain;
pub(crate) mod inspect;
pub(crate) mod splitters;
pub(crate) mod train;
pub(crate) mod verify;
