mod arbitrary;
mod meant;
mod several;
mod whole;

use std::time::Duration;

use spillway_proto::v1;

use super::*;

#[test]
fn a_file_that_says_so_is_an_empty_configuration_and_one_that_was_cut_off_is_not() {
    let document = Document::parse("# nothing\n").unwrap();
    assert_eq!(v1::Configuration::from(document.clone()), v1::Configuration::default());
    assert_eq!(document.to_toml().unwrap(), "# nothing\n");
    for text in ["", "\n", " \t\r\n\n"] {
        let error = Document::parse(text).unwrap_err().to_string();
        assert_eq!(
            error,
            "is empty, which would remove everything; if that is meant, write only `# nothing`"
        );
    }
}

/// A field that is passed over is one that its writer takes for in force.
#[test]
fn no_object_has_an_unknown_field() {
    let check = "[[health_check]]\nname = \"x\"\n";
    for above in [
        "",
        "[[region]]\nname = \"eu\"\n",
        "[[pool]]\nname = \"web\"\n",
        "[[pool]]\nname = \"web\"\n[[pool.group]]\nregion = \"eu\"\n",
        "[[pool]]\nname = \"web\"\n[[pool.backend]]\naddress = \"192.0.2.1\"\n",
        "[[service]]\nname = \"web\"\n",
        check,
        &format!("{check}[health_check.tcp]\n"),
        &format!("{check}[health_check.http]\n"),
        &format!("{check}[health_check.tls]\n"),
        &format!("{check}[health_check.grpc]\n"),
        &format!("{check}[health_check.udp]\n"),
        &format!("{check}[health_check.agent]\n"),
    ] {
        let error = Document::parse(&format!("{above}nonsense = 1\n")).unwrap_err();
        let is_unknown = |line: String| line.contains("unknown field `nonsense`");
        assert!(error.lines().any(is_unknown), "{above}: {error}");
    }
}

#[test]
fn a_mistake_is_told_with_its_line() {
    let service = "[[service]]\nname = \"web\"\naddress = \"192.0.2.1\"\npool = \"web\"\n";
    let check = "\n[[health_check]]\nname = \"x\"\nport = 1\n";
    for (text, expected) in [
        (
            "hash_key = 5",
            "line 1, column 12: hash_key: invalid type: integer `5`, expected a string",
        ),
        (
            &format!("{service}port = 80\nprotcol = \"tcp\"\n"),
            "line 6, column 1: services[0] \"web\": unknown field `protcol`: did you mean `protocol`?",
        ),
        (
            &format!("{service}port = 80\nmaximum = 1\n"),
            "line 6, column 1: services[0] \"web\": unknown field `maximum`, expected one of \
             `name`, `address`, `port`, `ports`, `any_port`, `protocol`, `pool`, `affinity`, `when_full`, `udp`, \
             `idle_timeout`, `fragments`",
        ),
        (
            &format!("{service}protocol = \"tcp\"\nport = -1\n"),
            "line 6, column 8: services[0] \"web\": port: invalid value: integer `-1`, expected a number from 1 to 65535",
        ),
        (
            &format!("{service}port = 80\nprotocol = \"sctp\"\n"),
            "line 6, column 12: services[0] \"web\": protocol: unknown variant `sctp`, expected `tcp` or `udp`",
        ),
        (
            &format!("{check}tcp = {{}}\ninterval = 5\n"),
            "line 6, column 12: health_checks[0] \"x\": interval: 5: give a unit: ms, s, m, h or d, as in 30s",
        ),
        (
            &format!("{check}tcp = {{}}\ninterval = \"5\"\n"),
            "line 6, column 12: health_checks[0] \"x\": interval: \"5\": give a unit: ms, s, m, h or d, as in 30s",
        ),
        (
            "[[pool]]\nname = \"web\"\n[[pool.group]]\nregion = \"eu\"\ncapacity = \"10\"\n",
            "line 5, column 12: pools[0] \"web\": groups[0] \"eu\": capacity: invalid value: string \"10\", expected a rate with its unit, \
             such as \"10/s\" or \"600/m\"",
        ),
        (
            "[[pool]]\nname = \"web\"\n[[pool.group]]\nregion = \"eu\"\ncapacity = 10\n",
            "line 5, column 12: pools[0] \"web\": groups[0] \"eu\": capacity: invalid type: integer `10`, expected a rate with its unit, \
             such as \"10/s\" or \"600/m\"",
        ),
        (
            &format!("{check}tcp = {{}}\nrise = 0\n"),
            "line 6, column 8: health_checks[0] \"x\": rise: invalid value: integer `0`, expected a number from 1 to 100",
        ),
        (
            &format!("{check}tcp = {{}}\nhttp = {{}}\n"),
            "line 2, column 1: health_checks[0] \"x\": give only one of tcp, http, grpc, udp and agent",
        ),
        (
            &format!("{check}udp = {{ request = \"hex:0\" }}\n"),
            "line 5, column 19: health_checks[0] \"x\": udp.request: invalid value: string \"hex:0\", expected a text, or bytes such as \
             \"hex:0001 00ff\"",
        ),
        (
            "[[pool]]\nname = \"web\"\n[[pool.backend]]\naddress = 10.1.0.11 # the first\n",
            "line 4, column 11: pools[0] \"web\": backends[0]: address: 10.1.0.11 is not a number; put text in quotes: \
             address = \"10.1.0.11\"",
        ),
        (
            "[[region]]\nname = “eu”\n",
            "line 2, column 8: regions[0]: name: “ (U+201C) is a typographic quotation mark; write straight ones: \"…\"",
        ),
        (
            "[[region]]\nname = ‘eu’\n",
            "line 2, column 8: regions[0]: name: ‘ (U+2018) is a typographic quotation mark; write straight ones: \"…\"",
        ),
        (
            "[[region]]\nname = ❝eu❞\n",
            "line 2, column 8: regions[0]: name: ❝ (U+275D) is a typographic quotation mark; write straight ones: \"…\"",
        ),
        (
            "[[region]]\nname = ＂eu＂\n",
            "line 2, column 8: regions[0]: name: ＂ (U+FF02) is a typographic quotation mark; write straight ones: \"…\"",
        ),
        (
            "[[region]]\nname = «eu»\n",
            "line 2, column 8: regions[0]: name: « (U+00AB) is a typographic quotation mark; write straight ones: \"…\"",
        ),
        (
            "[[region]]\nname = \"eu”\n[[pool]]\n",
            "line 2, column 12: regions[0]: name: invalid basic string, expected `\"`; ” (U+201D) before it is a typographic quotation mark \
             and ends no string",
        ),
        (
            "[[region]]\r\nname = \"eu”\r\n[[pool]]\r\n",
            "line 2, column 12: regions[0]: name: invalid basic string, expected non-double-quote visible characters, `\\`; ” (U+201D) before it is a typographic quotation mark \
             and ends no string",
        ),
        (
            "[[region]]\nname = \"l’eau\" b\n",
            "line 2, column 16: unexpected key or value, expected newline, `#`",
        ),
        (
            "[[pool]]\nregions = [\"eu”, \"us\"]\n",
            "line 2, column 19: pools[0]: regions: missing comma between array elements, expected `,`; ” (U+201D) before it is a typographic \
             quotation mark and ends no string",
        ),
        (
            "[[region]]\nname\u{a0}= \"eu\"\n",
            "line 2, column 5: here is a blank (U+00A0) that is no space; write a space",
        ),
        (
            "[[region]]\nname = eu",
            "line 2, column 8: regions[0] \"eu\": name: eu is not a number; put text in quotes: name = \"eu\"",
        ),
        (
            "[[service]]\naddress = 2001:db8::1\n",
            "line 2, column 11: services[0]: address: 2001:db8::1 is not a number; put text in quotes: \
             address = \"2001:db8::1\"",
        ),
        (
            &format!("{service}protocol = \"tcp\"\nport = \"80\"\n"),
            "line 6, column 8: services[0] \"web\": port: invalid type: string \"80\", expected a number from 1 to 65535",
        ),
        (
            &format!("{service}protocol = \"tcp\"\nport = 80x\n"),
            "line 6, column 8: services[0] \"web\": port: 80x is not a number from 1 to 65535",
        ),
        (
            "[[pool]]\nname = \"web\"\nhealth_checks = \"web\"\n",
            "line 3, column 17: pools[0] \"web\": health_checks: invalid type: string \"web\", expected a list: \
             health_checks = [\"web\"]",
        ),
        (
            "[[health_check]]\nname = \"x\"\nport = 1\nhttp = { path = \"/\", status_min = 0 }",
            "line 4, column 35: health_checks[0] \"x\": http.status_min: invalid value: integer `0`, expected a number from 100 to 599",
        ),
        (
            "balancers = 0",
            "line 1, column 13: balancers: invalid value: integer `0`, expected a number from 1 to 1000",
        ),
        ("[[region]]\nname = \"ä\"\nname = \"b\"", "line 3, column 1: duplicate key"),
        ("[[region", "line 1, column 9: unclosed array table, expected `]]`"),
    ] {
        let lines: Vec<_> = Document::parse(text).unwrap_err().lines().collect();
        assert!(lines.iter().any(|line| line == expected), "{text}: {lines:#?}");
    }
}

#[test]
fn durations_are_whole_numbers_with_units() {
    let day = Duration::from_secs(86_400);
    for (text, expected, again) in [
        ("500ms", Duration::from_millis(500), "500ms"),
        ("2s", Duration::from_secs(2), "2s"),
        ("0090s", Duration::from_secs(90), "90s"),
        ("1m30s", Duration::from_secs(90), "90s"),
        ("120s", Duration::from_secs(120), "2m"),
        ("1h", Duration::from_secs(3600), "1h"),
        ("1h30m", Duration::from_secs(5400), "90m"),
        ("1d", day, "1d"),
        ("36h", day * 3 / 2, "36h"),
        ("1d12h", day * 3 / 2, "36h"),
        ("1d2h3m4s5ms6us7ns", Duration::new(93_784, 5_006_007), "93784005006007ns"),
        ("0ms", Duration::ZERO, "0s"),
        ("1500us", Duration::from_micros(1500), "1500us"),
        ("7ns", Duration::from_nanos(7), "7ns"),
        ("18446744073709551615s", Duration::from_secs(u64::MAX), "18446744073709551615s"),
    ] {
        assert_eq!(parse_duration(text), Ok(expected), "{text}");
        assert_eq!(units::spell_duration(expected), again);
        assert_eq!(parse_duration(again), Ok(expected), "{again}");
    }
    for (error, texts) in [
        (DurationError::NoUnit, &["5", "0", "1h30", "18446744073709551616"][..]),
        (
            DurationError::Malformed,
            &[
                "", "s", "-1s", "1.5s", "1 s", "1S", "1s ", "1w", "1s1m", "1s1s", "1h 30m", "1sx",
                "1µs",
            ],
        ),
        (DurationError::TooLong, &["18446744073709551615h", "18446744073709551616s"]),
    ] {
        for text in texts {
            assert_eq!(parse_duration(text), Err(error), "{text}");
        }
    }
    assert_eq!(DurationError::NoUnit.to_string(), "give a unit: ms, s, m, h or d, as in 30s");
}
