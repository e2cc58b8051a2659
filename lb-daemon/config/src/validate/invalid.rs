//! The error of validation: where, in which object, and why; and how all mistakes are found at once.

use std::fmt;

use lb_base::{FirstOf, Quoted};

/// Most mistakes that are kept of one message; of the others only the number is.
pub const MOST_MISTAKES: usize = 100;

/// All that is wrong with a message, in the order in which it was found. As text, the first mistake, and how many more there
/// are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invalid {
    /// Empty only while a message is being read.
    mistakes: Vec<Mistake>,
    /// Mistakes beyond [`MOST_MISTAKES`].
    left_out: usize,
}

impl Invalid {
    /// The mistakes, at most [`MOST_MISTAKES`].
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }

    /// How many mistakes were found.
    pub fn count(&self) -> usize {
        self.mistakes.len() + self.left_out
    }

    /// The field of the first mistake: see [`Mistake::path`].
    pub fn path(&self) -> String {
        self.mistakes.first().map(Mistake::path).unwrap_or_default()
    }

    /// Rephrases the error for a caller who sent a single object as `field` of a request, where the mistakes are in it:
    /// `service "web": port: …`, `service.port`. `place` is its place in the configuration.
    #[must_use]
    pub fn for_single_object(
        mut self,
        place: &[(&str, usize)],
        kind: &'static str,
        field: &str,
    ) -> Self {
        self.mistakes.iter_mut().for_each(|mistake| mistake.rephrase(place, kind, field));
        self
    }

    /// Notes that the mistakes are only there because of what stands at another path as well; `pools[].name` is the names
    /// of all pools.
    pub(super) fn depending_on(mut self, path: String) -> Self {
        self.mistakes.iter_mut().for_each(|mistake| mistake.depends_on.push(path.clone()));
        self
    }

    /// As [`Self::depending_on`] of other fields of an object.
    pub(super) fn depending_on_fields(self, at: &ObjectPath, fields: &[&str]) -> Self {
        fields.iter().fold(self, |all, field| all.depending_on(format!("{}{field}", Prefix(&at.0))))
    }

    /// Only these mistakes; and whether it is unknown how many of those that were left out are to be kept.
    pub(super) fn filter(mut self, keep: impl FnMut(&Mistake) -> bool) -> (Self, bool) {
        let before = self.mistakes.len();
        self.mistakes.retain(keep);
        let is_unknown = self.left_out > 0 && self.mistakes.len() < before;
        if is_unknown {
            self.left_out = 0;
        }
        (self, is_unknown)
    }

    /// Adds the mistakes of another part.
    pub(super) fn add(&mut self, other: Self) {
        self.left_out += other.left_out;
        let room = MOST_MISTAKES.saturating_sub(self.mistakes.len());
        self.left_out += other.mistakes.len().saturating_sub(room);
        self.mistakes.extend(other.mistakes.into_iter().take(room));
    }

    /// The value of a part without mistakes; adds those of another.
    pub(super) fn value<T>(&mut self, part: Result<T, Self>) -> Option<T> {
        part.map_err(|mistakes| self.add(mistakes)).ok()
    }

    /// `value` if there are no mistakes.
    pub(super) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.mistakes.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mistakes.first().map_or(Ok(()), |first| FirstOf(first, self.count()).fmt(f))
    }
}

impl std::error::Error for Invalid {}

/// The values of parts that are right or wrong independently of each other, or all of their mistakes.
pub(super) fn all<P: Parts>(parts: P) -> Result<P::Values, Invalid> {
    parts.all()
}

/// As [`all`], for any number of parts of one type.
pub(super) fn each<T, C: Default + Extend<T>>(
    parts: impl Iterator<Item = Result<T, Invalid>>,
) -> Result<C, Invalid> {
    let (mut values, mut invalid) = (C::default(), Invalid::default());
    parts.for_each(|part| values.extend(invalid.value(part)));
    invalid.or(values)
}

/// A tuple of results.
pub(super) trait Parts {
    type Values;

    fn all(self) -> Result<Self::Values, Invalid>;
}

macro_rules! parts {
    ($($part:ident)+) => {
        impl<$($part),+> Parts for ($(Result<$part, Invalid>,)+) {
            type Values = ($($part,)+);

            #[allow(non_snake_case, reason = "a value is called like its type")]
            fn all(self) -> Result<Self::Values, Invalid> {
                match self {
                    ($(Ok($part),)+) => Ok(($($part,)+)),
                    ($($part,)+) => {
                        let mut invalid = Invalid::default();
                        $(invalid.value($part);)+
                        Err(invalid)
                    }
                }
            }
        }
    };
}

parts!(A B);
parts!(A B C);
parts!(A B C D);
parts!(A B C D E);
parts!(A B C D E F);
parts!(A B C D E F G);
parts!(A B C D E F G H);
parts!(A B C D E F G H I);
parts!(A B C D E F G H I J);
parts!(A B C D E F G H I J K);

/// One mistake: `services[2] "web": port: 70000 is not a port; give 1 to 65535`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The object, if a single one was sent; then `levels` are the objects in it.
    root: Option<Box<Root>>,
    /// The objects from the outside in.
    levels: Vec<Level>,
    field: &'static str,
    cause: String,
    /// Paths of what else it depends on.
    depends_on: Vec<String>,
}

impl Mistake {
    /// The field without names, for programs: `services[2].port`.
    pub fn path(&self) -> String {
        let root = self.root.iter().map(|root| format!("{}.", root.field));
        let levels = format!("{}{}", Prefix(&self.levels), self.field);
        root.chain([levels]).collect()
    }

    pub(super) fn depends_on(&self) -> &[String] {
        &self.depends_on
    }

    fn rephrase(&mut self, place: &[(&str, usize)], kind: &'static str, field: &str) {
        let is = |(level, (list, index)): (&Level, &(&str, usize))| {
            level.list == *list && level.index == *index
        };
        if self.levels.len() >= place.len() && self.levels.iter().zip(place).all(is) {
            let name = self.levels.drain(..place.len()).next_back().map(|level| level.name);
            self.root = name.map(|name| Box::new(Root { kind, field: field.into(), name }));
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { root, levels, field, cause, .. } = self;
        write!(f, "{}{field}: {cause}", Subject(root.as_deref(), levels))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Root {
    kind: &'static str,
    field: String,
    name: String,
}

/// An object of a list, with the name it gives itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Level {
    list: &'static str,
    index: usize,
    name: String,
}

/// `pools[0].backends[1].`
struct Prefix<'a>(&'a [Level]);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|level| write!(f, "{}[{}].", level.list, level.index))
    }
}

struct Subject<'a>(Option<&'a Root>, &'a [Level]);

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Root { kind, name, .. }) = self.0 {
            write!(f, "{kind} {}: ", Quoted(name))?;
        }
        let mut levels = self.1.iter();
        levels.try_for_each(|l| write!(f, "{}[{}] {}: ", l.list, l.index, Quoted(&l.name)))
    }
}

/// An object in the message that is being read.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectPath(Vec<Level>);

impl ObjectPath {
    /// The `index`-th object of a list, with its name.
    pub(super) fn child(&self, list: &'static str, index: usize, name: &str) -> Self {
        let mut levels = Vec::with_capacity(self.0.len() + 1);
        levels.extend_from_slice(&self.0);
        levels.push(Level { list, index, name: name.into() });
        Self(levels)
    }

    /// A mistake in one of its fields.
    pub(super) fn invalid(&self, field: &'static str, cause: impl fmt::Display) -> Invalid {
        let levels = self.0.clone();
        let cause = cause.to_string();
        let mistake = Mistake { root: None, levels, field, cause, depends_on: Vec::new() };
        Invalid { mistakes: vec![mistake], left_out: 0 }
    }
}
