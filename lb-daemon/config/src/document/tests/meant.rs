//! Mistakes of which it is plain what was meant, each with its whole sentence.

use super::*;

const SERVICE: &str = "[[service]]\nname = \"web\"\naddress = \"192.0.2.1\"\nport = 80\nprotocol = \"tcp\"\npool = \"web\"\n";
const POOL: &str = "[[pool]]\nname = \"web\"\n";
const BACKEND: &str = "address = \"10.0.0.1\"\nregion = \"eu\"\n";

/// The first mistake of form: most of these texts lack something too.
fn said(text: &str) -> String {
    let mut lines = Document::parse(text).unwrap_err().lines().collect::<Vec<_>>();
    lines.retain(|line| !line.contains("must be set") && !line.contains("is not among"));
    lines.remove(0)
}

#[test]
fn one_bracket_where_there_are_two() {
    for (text, expected) in [
        (
            "[service]\nname = \"web\"\n",
            "line 1, column 1: `[service]`: write `[[service]]`, with two brackets",
        ),
        (
            "[region]\nname = \"eu\"\n",
            "line 1, column 1: `[region]`: write `[[region]]`, with two brackets",
        ),
        (
            "[health_check]\n",
            "line 1, column 1: `[health_check]`: write `[[health_check]]`, with two brackets",
        ),
        (
            "[pool]\nname = \"web\"\n[[pool.backend]]\n",
            "line 1, column 1: `[pool]`: write `[[pool]]`, with two brackets",
        ),
        (
            &format!("{POOL}  [pool.backend] # the first\n{BACKEND}"),
            "line 3, column 3: `[pool.backend]`: write `[[pool.backend]]`, with two brackets",
        ),
        (
            &format!("{POOL}[ pool.group ]\nregion = \"eu\"\n"),
            "line 3, column 1: `[pool.group]`: write `[[pool.group]]`, with two brackets",
        ),
        // TOML itself refuses the second one; the mistake is in the first that has one bracket.
        (
            "[service]\nname = \"a\"\n[service]\nname = \"b\"\n",
            "line 1, column 1: `[service]`: write `[[service]]`, with two brackets",
        ),
        (
            "[service]\nname = \"a\"\n[[service]]\nname = \"b\"\n",
            "line 1, column 1: `[service]`: write `[[service]]`, with two brackets",
        ),
        (
            &format!("{SERVICE}[service]\nname = \"b\"\n"),
            "line 7, column 1: `[service]`: write `[[service]]`, with two brackets",
        ),
        (
            &format!("{POOL}[pool.backend]\n{BACKEND}[pool.backend]\n{BACKEND}"),
            "line 3, column 1: `[pool.backend]`: write `[[pool.backend]]`, with two brackets",
        ),
        (
            &format!("[[pool.backend]]\n{BACKEND}"),
            "line 1, column 3: `[[pool.backend]]`: needs a `[[pool]]` before it",
        ),
        // What is no list has no brackets to add.
        ("hash_key = \"\"\nhash_key = 2\n", "line 2, column 1: duplicate key"),
        (
            "service = { name = \"web\" }\n",
            "line 1, column 11: service: invalid type: map, expected a list",
        ),
    ] {
        assert_eq!(said(text), expected, "{text}");
    }
}

#[test]
fn a_name_that_is_nearly_one() {
    for (text, expected) in [
        (
            "[[backend]]\n",
            "line 1, column 3: unknown field `backend`: did you mean `[[pool.backend]]`?",
        ),
        (
            "[backend]\n",
            "line 1, column 2: unknown field `backend`: did you mean `[[pool.backend]]`?",
        ),
        (
            "[[backends]]\n",
            "line 1, column 3: unknown field `backends`: did you mean `[[pool.backend]]`?",
        ),
        ("[[group]]\n", "line 1, column 3: unknown field `group`: did you mean `[[pool.group]]`?"),
        (
            "[[services]]\n",
            "line 1, column 3: unknown field `services`: did you mean `[[service]]`?",
        ),
        ("[[pools]]\n", "line 1, column 3: unknown field `pools`: did you mean `[[pool]]`?"),
        ("[regions]\n", "line 1, column 2: unknown field `regions`: did you mean `[[region]]`?"),
        (
            "[[health_checks]]\n",
            "line 1, column 3: unknown field `health_checks`: did you mean `[[health_check]]`?",
        ),
        (
            "[[health-check]]\n",
            "line 1, column 3: unknown field `health-check`: did you mean `[[health_check]]`?",
        ),
        (
            &format!("{POOL}[[pool.backends]]\n{BACKEND}"),
            "line 3, column 8: pools[0] \"web\": unknown field `backends`: did you mean `[[pool.backend]]`?",
        ),
        (
            &format!("{POOL}[[pool.region]]\nregion = \"eu\"\n"),
            "line 3, column 8: pools[0] \"web\": unknown field `region`, expected one of `name`, `health_checks`, `slots`",
        ),
        (
            &format!("{POOL}health_check = [\"tcp\"]\n"),
            "line 3, column 1: pools[0] \"web\": unknown field `health_check`: did you mean `health_checks`?",
        ),
        (
            &format!("{SERVICE}Affinity = \"client\"\n"),
            "line 7, column 1: services[0] \"web\": unknown field `Affinity`: did you mean `affinity`?",
        ),
        (
            &format!("{POOL}[[pool.backend]]\n{BACKEND}wieght = 1\n"),
            "line 6, column 1: pools[0] \"web\": backends[0] \"10.0.0.1\": unknown field `wieght`: did you mean `weight`?",
        ),
        (
            "hashkey = \"00\"\n",
            "line 1, column 1: unknown field `hashkey`: did you mean `hash_key`?",
        ),
        // Nothing there is like it.
        (
            "listen = 80\n",
            "line 1, column 1: unknown field `listen`, expected one of `hash_key`, `balancers`, `region`, \
             `health_check`, `pool`, `service`",
        ),
    ] {
        let said = said(text);
        assert!(said.starts_with(expected), "{text}: {said}");
        assert!(expected.contains("expected one of") || said == expected, "{text}: {said}");
    }
}

#[test]
fn capitals_where_there_are_none() {
    for (text, expected) in [
        (
            SERVICE.replace("tcp", "TCP"),
            "line 5, column 12: services[0] \"web\": protocol: unknown variant `TCP`: write \"tcp\"",
        ),
        (
            format!("{SERVICE}when_full = \"Reject\"\n"),
            "line 7, column 13: services[0] \"web\": when_full: unknown variant `Reject`: write \"reject\"",
        ),
        (
            format!("{POOL}[[pool.backend]]\n{BACKEND}admin_state = \"Drain\"\n"),
            "line 6, column 15: pools[0] \"web\": backends[0] \"10.0.0.1\": admin_state: unknown variant `Drain`: write \"drain\"",
        ),
        (
            SERVICE.replace("tcp", "sctp"),
            "line 5, column 12: services[0] \"web\": protocol: unknown variant `sctp`, expected `tcp` or `udp`",
        ),
    ] {
        assert_eq!(said(&text), expected, "{text}");
    }
}
