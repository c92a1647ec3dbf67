//! One suite for every transport: what collectives compute, and how they fail.

#[cfg(test)]
mod failures;
#[cfg(test)]
mod jobs;
#[cfg(test)]
mod placement;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod values;
