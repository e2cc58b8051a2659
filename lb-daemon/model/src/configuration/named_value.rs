//! Settings with a closed list of values, each with one name for files, flags, tables and logs.

/// An enum of the configuration.
pub trait NamedValue: Copy + Eq + Send + Sync + 'static {
    /// Every value, in the order in which help texts and error messages list them.
    const ALL: &'static [Self];

    /// The name that files, flags and tables show.
    fn name(self) -> &'static str;

    /// What the value means, as the help of the command line says it.
    fn meaning(self) -> &'static str;

    /// The value of a name.
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.name() == name)
    }
}

/// Defines an enum with its names. The doc comments of the values are their [`NamedValue::meaning`].
macro_rules! named_values {
    (
        $(#[$attribute:meta])*
        pub enum $type:ident $(, default $default:ident)? {
            $($(#[doc = $meaning:literal])+ $value:ident = $name:tt,)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $type {
            $($(#[doc = $meaning])+ #[serde(rename = $name)] $value,)+
        }

        impl $type {
            /// The name that files, flags and tables show.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }

        impl $crate::configuration::named_value::NamedValue for $type {
            const ALL: &'static [Self] = &[$(Self::$value),+];

            fn name(self) -> &'static str {
                $type::name(self)
            }

            fn meaning(self) -> &'static str {
                match self {
                    $(Self::$value => concat!($($meaning),+).trim_ascii(),)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        $(impl Default for $type {
            fn default() -> Self {
                Self::$default
            }
        })?
    };
}

pub(crate) use named_values;
