//! What arguments and options choose between, each choice by its name.

/// One of a few things, each of which has a name in SQL.
pub trait Choice: Copy + Default + PartialEq + 'static {
    /// All of them and their names.
    const ALL: &'static [(&'static str, Self)];

    /// The names.
    fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|(name, _)| *name).collect()
    }

    /// Its name.
    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, choice)| *choice == self).map_or("", |(name, _)| name)
    }

    /// That of this name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, choice)| *choice)
    }
}

/// An enum whose variants have names. The default is the first, or the variant that stands behind the enum's name.
#[macro_export]
macro_rules! choice {
    ($(#[$about:meta])* $choice:ident $(: $default:ident)? { $($(#[$variant_about:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $choice {
            $($(#[$variant_about])* #[serde(rename = $name)] $variant,)*
        }

        impl Default for $choice {
            fn default() -> $choice {
                [$($choice::$default,)? $($choice::$variant,)*][0]
            }
        }

        impl $crate::Choice for $choice {
            const ALL: &'static [(&'static str, $choice)] = &[$(($name, $choice::$variant),)*];
        }
    };
}
