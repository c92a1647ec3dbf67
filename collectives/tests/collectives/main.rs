//! One suite for every transport: what collectives compute, and how they fail.

#[cfg(test)]
mod algorithms;
#[cfg(test)]
mod arithmetic;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod groups;
#[cfg(test)]
mod jobs;
#[cfg(test)]
mod placement;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod stress;
#[cfg(test)]
mod values;
