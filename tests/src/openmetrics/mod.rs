//! What is served at `/metrics`, read by the letter of OpenMetrics 1.0 and no more kindly.

mod family;
mod line;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};

pub use family::{Family, Kind};
pub use line::Labels;

/// A whole exposition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exposition {
    /// Families by name.
    pub families: BTreeMap<String, Family>,
}

impl Exposition {
    /// Reads a text.
    ///
    /// # Errors
    /// It breaks a rule; the error has the line.
    pub fn read(text: &str) -> Result<Self> {
        let body = text.strip_suffix("# EOF\n").context("it does not end with # EOF")?;
        let mut exposition = Self::default();
        let mut current: Option<(String, Family)> = None;
        for (number, line) in body.lines().enumerate() {
            exposition
                .line(&mut current, line)
                .with_context(|| format!("line {}: {line}", number + 1))?;
        }
        exposition.finish(current)?;
        Ok(exposition)
    }

    fn line(&mut self, current: &mut Option<(String, Family)>, line: &str) -> Result<()> {
        let Some(told) = line.strip_prefix("# ") else {
            let (name, family) = current.as_mut().context("a sample before any family")?;
            return family.sample(name, line);
        };
        let (what, rest) = told.split_once(' ').context("neither HELP, TYPE nor UNIT")?;
        let (name, text) = rest.split_once(' ').context("no text")?;
        if current.as_ref().is_none_or(|(there, _)| there != name) {
            self.finish(current.take())?;
            ensure!(!self.families.contains_key(name), "{name} comes twice");
            ensure!(line::is_name(name), "{name} is no name");
            *current = Some((name.into(), Family::default()));
        }
        let (name, family) = current.as_mut().context("no family")?;
        ensure!(family.samples.is_empty(), "told after its first sample");
        match what {
            "HELP" => ensure!(family.help.replace(text.into()).is_none(), "helped twice"),
            "TYPE" => ensure!(family.kind.replace(text.parse()?).is_none(), "typed twice"),
            "UNIT" => ensure!(name.ends_with(&format!("_{text}")), "the unit is not in the name"),
            other => bail!("{other}?"),
        }
        Ok(())
    }

    fn finish(&mut self, current: Option<(String, Family)>) -> Result<()> {
        let Some((name, family)) = current else { return Ok(()) };
        family.check().with_context(|| name.clone())?;
        self.families.insert(name, family);
        Ok(())
    }

    /// The samples of a name, each with its labels.
    pub fn samples(&self, name: &str) -> impl Iterator<Item = (&Labels, f64)> {
        let all = self.families.values().flat_map(|family| &family.samples);
        all.filter(move |((of, _), _)| of == name).map(|((_, labels), value)| (labels, *value))
    }

    /// The sample of a name with these labels among others; where several have them, their sum.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let has = |there: &Labels| {
            labels.iter().all(|(name, value)| there.get(*name).is_some_and(|it| it == value))
        };
        let values: Vec<f64> =
            self.samples(name).filter(|(there, _)| has(there)).map(|(_, value)| value).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    /// How many samples there are in all.
    pub fn len(&self) -> usize {
        self.families.values().map(|family| family.samples.len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
