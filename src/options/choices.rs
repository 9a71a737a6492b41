//! What arguments and options choose between, each choice by its name.

/// One of a few things, each of which has a name in SQL.
pub trait Choice: Copy + Default + 'static {
    /// All of them and their names, the default first.
    const ALL: &'static [(&'static str, Self)];

    /// The names, the default first.
    fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|(name, _)| *name).collect()
    }

    /// Its name.
    fn name(self) -> &'static str
    where
        Self: PartialEq,
    {
        Self::ALL.iter().find(|(_, choice)| *choice == self).map_or("", |(name, _)| name)
    }

    /// That of this name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, choice)| *choice)
    }
}

/// An enum whose variants have names, the first being the default.
macro_rules! choice {
    ($(#[$about:meta])* $choice:ident { $(#[$first_about:meta])* $first:ident = $first_name:literal, $($(#[$variant_about:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
        pub enum $choice {
            $(#[$first_about])*
            #[default]
            #[serde(rename = $first_name)]
            $first,
            $($(#[$variant_about])* #[serde(rename = $name)] $variant,)*
        }

        impl $crate::options::choices::Choice for $choice {
            const ALL: &'static [(&'static str, $choice)] =
                &[($first_name, $choice::$first), $(($name, $choice::$variant),)*];
        }
    };
}

pub(crate) use choice;

/// What is sent and recorded as it is written by users: a type that has `read` and `to_json`.
macro_rules! as_written {
    ($($written:ty),*) => {$(
        impl serde::Serialize for $written {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.to_json().serialize(serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $written {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = serde_json::Value::deserialize(deserializer)?;
                <$written>::read(&value).ok_or_else(|| serde::de::Error::custom("it cannot be this"))
            }
        }
    )*};
}

pub(crate) use as_written;
