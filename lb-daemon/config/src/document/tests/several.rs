//! Files with several mistakes.

use lb_fake::arbitrary;
use proptest::{prelude::*, sample::Index};
use toml::Value;

use super::*;

fn lines(text: &str) -> Vec<String> {
    Document::parse(text).unwrap_err().lines().collect()
}

/// Five of form, and six of meaning: two of single fields, three of references, one between objects, one of which has another
/// mistake.
#[test]
fn mistakes_of_form_and_of_meaning_are_reported_together_in_the_order_of_the_file() {
    let text = r#"
[[region]]
name = "eu"
overflow_to = ["us"]

[[health_check]]
name = "page"
port = 80
tcp = {}
interval = "1"
rise = 1000

[[pool]]
name = "web"
health_checks = ["page"]
wieght = 1
slots = 9

[[pool.backend]]
address = "10.0.0.1"
region = "eu"

[[pool.backend]]
address = "10.0.0.2"
region = "eu"
weight = "much"

[[service]]
name = "web"
address = "192.0.2.1"
port = 80
protocol = "http"
pool = "wep"
idle_timeout = 60

[[service]]
name = "one"
address = "192.0.2.2"
port = 53
protocol = "udp"
pool = "web"

[[service]]
name = "two"
address = "192.0.2.2"
port = 53
protocol = "udp"
pool = "wbe"
"#;
    assert_eq!(
        lines(text),
        [
            "line 4, column 1: regions[0] \"eu\": overflow_to: \"us\" is not among the regions",
            "line 10, column 12: health_checks[0] \"page\": interval: \"1\": give a unit: ms, s, m, h or d, as in 30s",
            "line 11, column 1: health_checks[0] \"page\": rise: 1000 is not within 1 to 100",
            "line 16, column 1: pools[0] \"web\": unknown field `wieght`, expected one of `name`, `health_checks`, `slots`, \
             `isolation`, `preferred_regions`, `panic_threshold_percent`, `settle_time`, `slow_start`, `hold_down`, \
             `max_hold_down`, `encapsulation`, `gue_port`, `group`, `backend`",
            "line 17, column 1: pools[0] \"web\": slots: 9 is not a prime: 3 divides it",
            "line 26, column 10: pools[0] \"web\": backends[1] \"10.0.0.2\": weight: invalid type: string \"much\", expected a \
             number from 0 to 1000000",
            "line 32, column 12: services[0] \"web\": protocol: unknown variant `http`, expected `tcp` or `udp`",
            "line 33, column 1: services[0] \"web\": pool: \"wep\" is not among the pools",
            "line 34, column 16: services[0] \"web\": idle_timeout: 60: give a unit: ms, s, m, h or d, as in 30s",
            "line 45, column 1: services[2] \"two\": address: 192.0.2.2, port 53, udp is already used by service \"one\"",
            "line 48, column 1: services[2] \"two\": pool: \"wbe\" is not among the pools",
        ]
    );
    let first = Document::parse(text).unwrap_err().to_string();
    let expected = "is not among the regions (and 10 more mistakes)";
    assert!(first.ends_with(expected), "{first}");
}

/// Nothing is reported of what depends on a part that was not read.
#[test]
fn a_mistake_of_form_has_no_consequences() {
    let rest = "[[service]]\nname = \"web\"\naddress = \"192.0.2.1\"\nport = 80\nprotocol = \"tcp\"\npool = \"web\"\n";
    for (text, expected) in [
        // References to a name that is there, whatever it is.
        ("[[pool]]\nname = 5\n", &["line 2, column 8: pools[0]: name: "][..]),
        // What is misspelt is not missing.
        (
            "[[pool]]\nnane = \"web\"\n",
            &["line 2, column 1: pools[0]: unknown field `nane`: did you mean `name`?"],
        ),
        (
            "[[pools]]\nname = \"web\"\n",
            &["line 1, column 3: unknown field `pools`: did you mean `[[pool]]`?"],
        ),
        (
            "pool = [5]\n",
            &["line 1, column 9: pools[0]: invalid type: integer `5`, expected a table"],
        ),
        (
            "pool = \"web\"\n",
            &["line 1, column 8: pool: invalid type: string \"web\", expected a list"],
        ),
        (
            "[[pool]]\nname = web\n",
            &["line 2, column 8: pools[0] \"web\": name: web is not a number; put text in quotes"],
        ),
        // All weights would be 0, and the group without backend.
        (
            "[[region]]\nname = \"eu\"\n[[pool]]\nname = \"web\"\n[[pool.group]]\nregion = \"eu\"\nscaler = 0.5\n\
             [[pool.backend]]\naddress = \"10.0.0.1\"\nregion = \"eu\"\nweight = 0\n\
             [[pool.backend]]\naddress = 10.0.0.2\nregion = \"eu\"\nmax_connection_rate = 10\n",
            &[
                "line 13, column 11: pools[0] \"web\": backends[1]: address: 10.0.0.2 is not a number",
                "line 15, column 23: pools[0] \"web\": backends[1]: max_connection_rate: invalid type: integer `10`",
            ],
        ),
        (
            "[[health_check]]\nname = \"x\"\nport = 1\nudp = 5\ninterval = \"5\"\ntimeout = \"3s\"\ntls = {}\n\
             [[pool]]\nname = \"web\"\nhealth_checks = [\"x\"]\n",
            // The timeout would be longer than the interval, and TLS not for UDP.
            &[
                "line 4, column 7: health_checks[0] \"x\": udp: invalid type: integer `5`, expected a table",
                "line 5, column 12: health_checks[0] \"x\": interval: \"5\": give a unit: ",
            ],
        ),
    ] {
        let found = lines(&format!("{text}{rest}"));
        let alike = found.iter().zip(expected).all(|(found, expected)| found.starts_with(expected));
        assert!(alike && found.len() == expected.len(), "{text}: {found:#?}");
    }
}

#[test]
fn what_is_not_toml_is_reported_once_for_each_line() {
    for (text, expected) in [
        // A value without its quotes hides nothing.
        (
            "[[pool]]\nname = \"web\"\nslots = 9\n[[pool.backend]]\naddress = 10.1.0.11 # one\nregion = eu\nweight = 5x\n",
            &[
                "line 3, column 1: pools[0] \"web\": slots: 9 is not a prime: 3 divides it",
                "line 5, column 11: pools[0] \"web\": backends[0]: address: 10.1.0.11 is not a number; put text in quotes: \
                 address = \"10.1.0.11\"",
                "line 6, column 10: pools[0] \"web\": backends[0]: region: eu is not a number; put text in quotes: \
                 region = \"eu\"",
                "line 7, column 10: pools[0] \"web\": backends[0]: weight: 5x is not a number from 0 to 1000000",
            ][..],
        ),
        // Anything else may.
        (
            "[[region]]\nname = \"eu\nslots = 9\n[[pool]\nname = “a”\nports = [1, 2\nx = 1\n",
            &[
                "line 2, column 11: invalid basic string, expected `\"`",
                "line 4, column 8: unclosed array table, expected `]`",
                "line 7, column 1: missing comma between array elements, expected `,`",
            ],
        ),
        (
            "[service]\nname = \"a\"\n[service]\nname = \"b\"\nx = 1\n",
            &["line 1, column 1: `[service]`: write `[[service]]`, with two brackets"],
        ),
        (
            "hash_key = 1\nhash_key = 2\nx = 1\n",
            &[
                "line 1, column 12: hash_key: invalid type: integer `1`, expected a string",
                "line 2, column 1: duplicate key",
                "line 3, column 1: unknown field `x`, expected one of `hash_key`, `balancers`, `region`, `health_check`, \
                 `pool`, `service`, `vip`",
            ],
        ),
    ] {
        assert_eq!(lines(text), expected, "{text}");
    }
}

#[test]
fn more_mistakes_than_anyone_reads_are_counted() {
    let wrong: String = (0..250).map(|n| format!("[[region]]\nname = \"-{n}\"\nx = 1\n")).collect();
    let found = lines(&wrong);
    assert_eq!((found.len(), &*found[100]), (101, "400 more mistakes"));
    assert!(found[99].starts_with("line 150, column 1: regions[49]"), "{}", found[99]);
    // It is not known which of the others depend on a part that was not read.
    let wrong: String = (0..250)
        .map(|n| format!("[[service]]\nname = \"s{n}\"\nprotocol = \"http\"\npool = \"x\"\n"))
        .collect();
    let last = lines(&wrong).pop().unwrap();
    assert!(last.starts_with("at least ") && last.ends_with(" more mistakes"), "{last}");
}

/// What is missing is a mistake of meaning: the API has the same.
#[test]
fn a_field_that_is_missing_is_that_of_an_object() {
    let text = "x = 1\n[[service]]\nname = \"web\"\n[[pool]]\n[[pool.backend]]\n[[health_check]]\nname = \"tcp\"\n";
    let found = lines(text);
    let expected = [
        "line 2, column 1: services[0] \"web\": address: must be set",
        "line 2, column 1: services[0] \"web\": port: must be set; give port, ports or any_port",
        "line 2, column 1: services[0] \"web\": protocol: must be set; give tcp or udp",
        "line 2, column 1: services[0] \"web\": pool: must be set",
        "line 4, column 1: pools[0] \"\": name: must be set",
        "line 5, column 1: pools[0] \"\": backends[0] \"\": address: must be set",
        "line 5, column 1: pools[0] \"\": backends[0] \"\": region: must be set",
        "line 6, column 1: health_checks[0] \"tcp\": kind: must be set; give tcp, http, grpc, udp or agent",
        "line 6, column 1: health_checks[0] \"tcp\": port: must be set; give 1 to 65535",
    ];
    assert_eq!(found[1..], expected);
}

#[test]
fn a_single_object_has_all_its_mistakes_of_form() {
    let error =
        parse_object::<Service>("port = \"x\"\nprotocol = \"http\"\nidle_timeout = \"1\"\n");
    let found: Vec<_> = error.unwrap_err().lines().collect();
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[1].starts_with("line 2, column 12: protocol: unknown variant `http`"),
        "{found:?}"
    );
}

/// Every field of a file, each as a list of the keys and indices that lead to it.
fn fields(value: &Value, at: &[String], all: &mut Vec<Vec<String>>) {
    let with = |step: String| [at, &[step]].concat();
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                let at = with(key.clone());
                if !matches!(value, Value::Array(items) if items.iter().all(Value::is_table)) {
                    all.push(at.clone());
                }
                fields(value, &at, all);
            }
        }
        Value::Array(items) => {
            let items = items.iter().enumerate().filter(|(_, item)| item.is_table());
            items.for_each(|(index, item)| fields(item, &with(index.to_string()), all));
        }
        _ => {}
    }
}

fn field<'v>(value: &'v mut Value, path: &[String]) -> &'v mut Value {
    path.iter().fold(value, |value, step| match value {
        Value::Array(items) => &mut items[step.parse::<usize>().unwrap()],
        value => &mut value[step.as_str()],
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// A file that is right but for some fields of which none has a value of its type: each is one mistake.
    #[test]
    fn fields_that_cannot_be_read_are_as_many_mistakes(
        configuration in arbitrary::configuration(),
        chosen in proptest::collection::vec(any::<Index>(), 1..6),
    ) {
        let document = Document::try_from(crate::to_message(&configuration)).unwrap();
        let mut file = Value::Table(document.to_toml().unwrap().parse().unwrap());
        let mut all = Vec::new();
        fields(&file, &[], &mut all);
        prop_assume!(!all.is_empty());
        let mut wrong: Vec<_> = chosen.iter().map(|index| index.get(&all).clone()).collect();
        wrong.sort();
        // Not a field, and one in it.
        wrong.dedup_by(|next, before| next.starts_with(before));
        for path in &wrong {
            *field(&mut file, path) = Value::Datetime("1979-05-27".parse().unwrap());
        }
        let text = toml::to_string(&file).unwrap();
        let found = lines(&text);
        prop_assert_eq!(found.len(), wrong.len(), "{:?}: {:?}\n{}", wrong, found, text);
    }
}
