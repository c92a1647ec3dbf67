//! Extensions of the API, which callers find as a list behind the table.

pub(crate) mod layouts;
pub(crate) mod shardings;
