//! The numbers of a model's JSON document.

/// A number of a model.
pub trait Number: Copy {
    /// of the type in SQL
    const NAME: &'static str;

    /// From as many bytes as it has, little-endian.
    fn from_bytes(bytes: &[u8]) -> Self;

    fn extend(self, bytes: &mut Vec<u8>);

    /// The nearest number; an infinite one if it is too large.
    fn from_number(number: f64) -> Self;

    fn is_finite(self) -> bool;
}

macro_rules! number {
    ($float:ty, $name:literal) => {
        impl Number for $float {
            const NAME: &'static str = $name;

            fn from_bytes(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("chunks of the size of a number"))
            }

            fn extend(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }

            fn from_number(number: f64) -> Self {
                number as Self
            }

            fn is_finite(self) -> bool {
                self.is_finite()
            }
        }
    };
}

number!(f32, "real");
number!(f64, "double precision");
