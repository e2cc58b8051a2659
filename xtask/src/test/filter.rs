//! Which steps and which tests were asked for.

use super::steps::Step;

/// Words of the command line: names of steps, and parts of names of tests.
pub(crate) struct Filter {
    /// Whether steps that only a run at full size has are wanted unless others are named.
    is_long: bool,
    steps: Vec<Step>,
    tests: Vec<String>,
}

impl Filter {
    pub(crate) fn new(words: &[String], is_long: bool) -> Self {
        let (steps, tests): (Vec<_>, Vec<_>) =
            words.iter().cloned().partition(|word| Step::named(word).is_some());
        Self { is_long, steps: steps.iter().filter_map(|word| Step::named(word)).collect(), tests }
    }

    /// Without words every step is wanted; with parts of names of tests those that run tests. Steps
    /// that take what was built bring the build with them: a fresh clone has none, and on old
    /// programs they would say nothing.
    pub(crate) fn wants(&self, step: Step) -> bool {
        self.names(step)
            || step == Step::Build
                && Step::ALL.into_iter().any(|it| it.takes_built() && self.names(it))
    }

    fn names(&self, step: Step) -> bool {
        match (self.steps.is_empty(), self.tests.is_empty()) {
            (true, true) => self.is_long || !step.is_long(),
            (true, false) => step.runs_tests(),
            (false, _) => self.steps.contains(&step),
        }
    }

    /// Whether a step needs the test programs of lb-e2e.
    pub(crate) fn wants_test_programs(&self) -> bool {
        [Step::Root, Step::Mutants, Step::Package].into_iter().any(|step| self.wants(step))
    }

    /// What test programs are told.
    pub(crate) fn tests(&self) -> &[String] {
        &self.tests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(words: &[&str]) -> Vec<Step> {
        wanted_of(words, false)
    }

    fn wanted_of(words: &[&str], is_long: bool) -> Vec<Step> {
        let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        let filter = Filter::new(&words, is_long);
        Step::ALL.into_iter().filter(|&step| filter.wants(step)).collect()
    }

    #[test]
    fn what_takes_the_objects_comes_after_the_build() {
        let position = |step| Step::ALL.iter().position(|&it| it == step);
        for step in Step::ALL.into_iter().filter(|step| step.takes_built()) {
            assert!(position(step) > position(Step::Build), "{}", step.name());
        }
    }

    #[test]
    fn words_choose_steps_or_tests() {
        assert_eq!(wanted_of(&[], true), Step::ALL);
        let short: Vec<_> = Step::ALL.into_iter().filter(|step| !step.is_long()).collect();
        assert_eq!(wanted(&[]), short);
        assert_eq!(wanted(&["fuzz"]), [Step::Fuzz]);
        assert_eq!(wanted(&["fmt", "deny"]), [Step::Fmt, Step::Deny]);
        assert_eq!(wanted(&["maglev"]), [Step::Build, Step::Unit, Step::Root]);
        assert_eq!(wanted(&["root", "maglev"]), [Step::Build, Step::Root]);
        assert_eq!(wanted(&["mutants"]), [Step::Build, Step::Mutants]);
        assert_eq!(wanted(&["clippy"]), [Step::Build, Step::Clippy]);
        assert_eq!(wanted(&["unit"]), [Step::Build, Step::Unit]);
        assert_eq!(Filter::new(&["root".into(), "maglev".into()], false).tests(), ["maglev"]);
    }
}
