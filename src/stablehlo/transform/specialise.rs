//! A program for arguments whose shapes are known: what `main` leaves open about its parameters is
//! filled in.

use crate::ifrt::{Code, Result, Shape, Status};
use crate::stablehlo::{Module, TensorType, Type};

impl Module {
    /// Whether a parameter of `main` has a dimension that is known only when the program runs.
    pub fn has_open_parameters(&self) -> bool {
        self.function("main").is_some_and(|main| {
            let mut types = main.params.iter().map(|param| main.ty(param.value));
            types.any(|ty| matches!(ty, Type::Dynamic(_)))
        })
    }

    /// Gives the open parameters of `main` the dimensions of the arguments, `dims`. What follows
    /// from them is known to a backend that compiles the module.
    ///
    /// # Errors
    /// `InvalidArgument` when there are not as many arguments as parameters, or when one does not
    /// have the dimensions or stay within the bounds that its parameter says.
    pub fn specialise(&mut self, dims: &[Vec<usize>]) -> Result<()> {
        let Some(main) = self.functions.iter_mut().find(|function| function.name == "main") else {
            return Err(Status::invalid_argument("the module has no function `main`"));
        };
        if main.params.len() != dims.len() {
            return Err(Status::invalid_argument(format!(
                "the program has {} parameters, {} arguments were given",
                main.params.len(),
                dims.len()
            )));
        }
        for (index, (param, dims)) in main.params.iter().zip(dims).enumerate() {
            let value = &mut main.values[param.value];
            let Type::Dynamic(open) = &value.ty else { continue };
            let fits = open.dims.len() == dims.len()
                && open
                    .dims
                    .iter()
                    .zip(dims)
                    .all(|(open, dim)| open.is_none_or(|open| open == *dim))
                && open
                    .bounds
                    .iter()
                    .zip(dims)
                    .all(|(bound, dim)| bound.is_none_or(|most| *dim <= most));
            if !fits {
                return Err(Status::invalid_argument(format!(
                    "parameter {index} is {open}; the argument has dimensions {dims:?}"
                )));
            }
            let shape = Shape::new(dims.as_slice())
                .map_err(|error| Status::wrap(Code::ResourceExhausted, error))?;
            value.ty = Type::Tensor(TensorType::new(open.dtype, shape));
        }
        Ok(())
    }
}
