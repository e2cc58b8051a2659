//! One line with a sample.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};

/// Labels by name.
pub type Labels = BTreeMap<String, String>;

pub(super) fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Name, labels and value.
pub(super) fn sample(line: &str) -> Result<(String, Labels, f64)> {
    let end = line.find(['{', ' ']).context("no value")?;
    let (name, mut rest) = line.split_at(end);
    ensure!(is_name(name), "{name} is no name");
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").context("a label without value")?;
            ensure!(is_name(label), "{label} is no name of a label");
            let (value, after) = quoted(after)?;
            ensure!(labels.insert(label.into(), value).is_none(), "{label} comes twice");
            match after.split_at_checked(1).context("no end of labels")? {
                (",", after) => rest = after,
                ("}", after) => {
                    rest = after;
                    break;
                }
                (other, _) => bail!("{other} after a label"),
            }
        }
    }
    let value = rest.strip_prefix(' ').context("no blank before the value")?;
    let value = match value {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        number => {
            ensure!(
                !number.contains(char::is_alphabetic) || number.contains(['e', 'E']),
                "{number}"
            );
            number.parse().with_context(|| format!("{number} is no number"))?
        }
    };
    Ok((name.into(), labels, value))
}

/// A value up to its quote, and what comes after that.
fn quoted(text: &str) -> Result<(String, &str)> {
    let (mut value, mut letters) = (String::new(), text.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => value.push(match letters.next().context("nothing after a backslash")?.1 {
                'n' => '\n',
                escaped @ ('\\' | '"') => escaped,
                other => bail!("\\{other} is no escape"),
            }),
            other => value.push(other),
        }
    }
    bail!("a label's value has no end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_name_labels_and_value() {
        let (name, labels, value) = sample(r#"a_total{b="c\"\\\n",d=""} 1.5e3"#).unwrap();
        assert_eq!((name.as_str(), value), ("a_total", 1500.0));
        assert_eq!((labels["b"].as_str(), labels["d"].as_str()), ("c\"\\\n", ""));
        assert_eq!(sample("a 0").unwrap().1.len(), 0);
    }

    #[test]
    fn what_is_no_sample_is_refused() {
        for wrong in ["a", "a{b=\"c\"}", "a{b=\"c} 1", "a{b=\"c\",b=\"c\"} 1", "9 1", "a x", "a  1"]
        {
            assert!(sample(wrong).is_err(), "{wrong}");
        }
    }
}
