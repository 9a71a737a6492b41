//! Options that are serialized in the form that users write.

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
