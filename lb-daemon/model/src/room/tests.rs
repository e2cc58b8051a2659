use std::sync::Arc;
use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    time::Instant,
};

use lb_common::abi::limits;

use super::*;
use crate::{
    AdminState, Affinity, Backend, Fragments, Ports, Protocol, Rate, WhenFull,
    ids::{Ids, Quarantine},
    maglev,
};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn address(n: u32) -> IpAddr {
    Ipv4Addr::from(0x0a00_0000 + n).into()
}

fn backend(region: &str, limited: bool) -> Backend {
    Backend {
        region: name(region),
        weight: 1,
        admin_state: AdminState::Active,
        mtu: None,
        max_connection_rate: limited.then(|| Rate::new(1.0).unwrap()),
    }
}

/// Pools of two backends in one region and one in another, which has a limit: each is the first pool's, but for the
/// last backend.
fn configuration(services: u32, pools: u32) -> Configuration {
    let mut configuration = Configuration::default();
    for n in 0..pools {
        let backends = [
            (address(1), backend("eu", false)),
            (address(2), backend("eu", false)),
            (address(100 + n), backend("us", true)),
        ];
        let pool = Pool { backends: backends.into(), slots: 7, ..Pool::default() };
        configuration.pools.insert(name(&format!("p{n}")), pool.into());
    }
    for n in 0..services {
        let service = Service {
            address: address(n),
            ports: Ports::Any,
            protocol: Protocol::Tcp,
            pool: name("p0"),
            affinity: Affinity::Client,
            fragments: if n == 0 { Fragments::Served } else { Fragments::Dropped },
            idle_timeout: None,
            when_full: WhenFull::Nearest,
        };
        configuration.services.insert(name(&format!("s{n}")), service);
    }
    configuration
}

#[test]
fn each_size_counts_what_it_is_about() {
    let expected = [
        (Size::Services, 3),
        (Size::Ports, 4),
        (Size::Pools, 5),
        (Size::Groups, 10),
        (Size::Backends, 7),
        (Size::PoolBackends, 15),
        (Size::LimitedBackends, 5),
    ];
    let configuration = configuration(3, 5);
    let tables: Vec<_> = configuration.pools.values().flat_map(|pool| groups(pool)).collect();
    assert_eq!(used(&configuration, &tables), expected);
    let exact = expected.iter().fold(MapSizes::DEFAULT, |sizes, (size, number)| {
        sizes.with(*size, u32::try_from(*number).unwrap())
    });
    fits(&configuration, &exact).unwrap();
    // Whoever has room has numbers for all of it.
    Ids::default()
        .next(None, &configuration, &exact, &Quarantine::default(), Instant::now())
        .unwrap();
    for (size, number) in expected {
        let most = u32::try_from(number).unwrap() - 1;
        let refused = fits(&configuration, &exact.with(size, most)).unwrap_err();
        assert_eq!(refused, TooMany::Objects { size, number, most });
        let setting = size.setting();
        let said = refused.to_string();
        assert!(said.ends_with(&format!("exceed the {most} that the setting `{setting}` allows")));
        let hint = format!("set `{setting}` to {number} or more, at most {}; then ", size.most());
        assert!(refused.hint().starts_with(&hint), "{}", refused.hint());
    }
    let [(_, services), ..] = expected;
    let refused = fits(&configuration, &exact.with(Size::Services, 2)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("{services} services exceed the 2 that the setting `services` allows")
    );
}

#[test]
fn no_setting_allows_more_than_its_most() {
    let refused = TooMany::Objects { size: Size::Pools, number: 10_001, most: 10_000 };
    assert_eq!(
        refused.hint(),
        "`pools` may be 10000 at most: serve a part of the configuration by other balancers"
    );
}

#[test]
fn slot_tables_have_a_limit_of_their_own() {
    // All pools share the table of the region where they have the same two backends. Each of these tables takes 3,565,120
    // bytes.
    let tables = |number: u32| {
        let mut configuration = configuration(0, number - 1);
        let pools = configuration.pools.values_mut();
        pools.for_each(|pool| Arc::make_mut(pool).slots = 419_423);
        configuration
    };
    fits(&tables(1_204), &MapSizes::DEFAULT).unwrap();
    let refused = fits(&tables(1_205), &MapSizes::DEFAULT).unwrap_err();
    assert_eq!(refused.to_string(), "4097 MiB of slot tables exceed the limit of 4096");
}

fn document(path: &str) -> String {
    fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// With commas between the thousands.
fn spelt(number: u32) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(str::from_utf8).collect();
    groups.into_iter().map(Result::unwrap).collect::<Vec<_>>().join(",")
}

/// Rows of the table under a heading of a document, without the table's own head.
fn rows(document: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, section) = document.split_once(&format!("\n{heading}\n")).expect("no such section");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.skip(1).map(|row| row.split(" | ").map(str::to_owned).collect()).collect()
}

#[test]
fn the_document_has_all_maxima_in_one_table() {
    let rows = rows(&document("docs/configuration.md"), "## How much fits");
    let sized = used(&Configuration::default(), &[]).map(|(size, _)| {
        let setting = format!("`{}`", size.setting());
        let numbers = [size.default_value(), size.most()].map(spelt);
        [vec![size.what().to_owned(), setting], numbers.into()].concat()
    });
    let fixed = [
        ("MiB of slot tables", 4_096),
        ("next hops of backends", limits::MAX_NEXT_HOPS - 2),
        ("regions that a pool has backends in", limits::MAX_REGIONS_PER_POOL as u32),
        ("backends of a pool in one region", maglev::MAX_MEMBERS as u32),
    ];
    let fixed =
        fixed.map(|(what, most)| vec![what.to_owned(), "none".into(), spelt(most), spelt(most)]);
    assert_eq!(rows, [sized.to_vec(), fixed.to_vec()].concat());
}

#[test]
fn the_documents_and_the_packaged_file_have_the_defaults() {
    let settings = document("docs/settings.md");
    let packaged = document("packaging/etc/balancer.toml");
    for size in Size::ALL {
        let (setting, default) = (size.setting(), size.default_value());
        assert!(settings.contains(&format!("\n| `{setting}` | {default} | ")), "{setting}");
        assert!(packaged.contains(&format!("\n# {setting} = {default}\n")), "{setting}");
    }
    let operations = document("docs/operations.md");
    let [least, most, default] =
        [Size::Flows.least(), Size::Flows.most(), Size::Flows.default_value()].map(spelt);
    for words in [format!("{least} to {most} cells"), format!("{default} by default")] {
        assert!(operations.contains(&words), "{words}");
    }
}

/// Other places refer to the settings.
#[test]
fn other_documents_do_not_repeat_the_numbers() {
    let message = document("proto/spillway/v1/configuration.proto");
    assert!(message.contains("as many as the daemon's setting `ports`"), "ports");
    assert!(document("docs/services.md").contains("(configuration.md#how-much-fits)"));
    let default = Size::Ports.default_value();
    for path in ["docs/services.md", "docs/operations.md"] {
        for line in document(path).lines() {
            let is_number = line.contains(&default.to_string()) || line.contains(&spelt(default));
            let of_ports = ["ports", "listed port"].iter().any(|word| line.contains(word));
            assert!(!is_number || !of_ports, "{path}: {line}");
        }
    }
}
