//! Slots that a message leaves open, and what becomes of them.

use super::*;

/// As many backends in region `eu`, in pool `web`.
fn with_backends(count: usize) -> v1::Configuration {
    let mut message = correct();
    let backend = |number: usize| v1::Backend {
        address: format!("10.1.{}.{}", number / 250, number % 250 + 1),
        region: "eu".into(),
        ..v1::Backend::default()
    };
    message.pools[0].backends = (0..count).map(backend).collect();
    message.pools[0].groups.clear();
    message
}

fn in_force(slots: &[(&str, u32)]) -> SlotsByPool {
    slots.iter().map(|(name, slots)| (Name::new(name).unwrap(), *slots)).collect()
}

/// The slots of pool `web`.
fn resolved(
    message: &v1::Configuration,
    slots: Option<u32>,
    in_force: &SlotsByPool,
) -> Result<u32, String> {
    let mut message = message.clone();
    message.pools[0].slots = slots;
    let configuration = super::super::validate(&message).unwrap().resolve(in_force);
    let configuration = configuration.map_err(|invalid| invalid.to_string())?;
    Ok(configuration.pools[&Name::new("web").unwrap()].slots)
}

#[test]
fn unset_slots_are_those_in_force_and_0_has_them_chosen_again() {
    let message = with_backends(60);
    let (none, some) = (in_force(&[]), in_force(&[("web", 1_009), ("dns", 31)]));
    for (slots, new, existing) in [
        (None, 16_381, 1_009),
        (Some(0), 16_381, 16_381),
        (Some(4_093), 4_093, 4_093),
        (Some(1_009), 1_009, 1_009),
    ] {
        assert_eq!(resolved(&message, slots, &none), Ok(new), "{slots:?}");
        assert_eq!(resolved(&message, slots, &some), Ok(existing), "{slots:?}");
    }
}

#[test]
fn what_is_kept_must_be_enough_for_the_backends() {
    let message = with_backends(1_009);
    assert_eq!(
        resolved(&message, None, &in_force(&[("web", 1_009)])).unwrap_err(),
        r#"pools[0] "web": slots: 1009 must be more than the 1009 backends in region "eu"; set another number, or 0 to have one chosen"#
    );
    assert_eq!(resolved(&message, None, &in_force(&[("web", 1_013)])), Ok(1_013));
    assert_eq!(resolved(&message, None, &in_force(&[])), Ok(65_537));
}

#[test]
fn several_balancers_need_a_number_in_each_pool() {
    let refused = |message: &v1::Configuration, slots: &SlotsByPool| {
        let open = super::super::validate(message).unwrap().require_slots(slots).unwrap_err();
        (open.to_string(), open.invalid.path(), open.hint)
    };
    let mut message = with_backends(60);
    let force = in_force(&[("web", 1_009)]);
    assert_eq!(super::super::validate(&message).unwrap().require_slots(&force), Ok(()));

    message.balancers = 2;
    let (error, path, hint) = refused(&message, &force);
    assert_eq!(
        error,
        r#"pools[0] "web": slots: must be a number, the same on all 2 balancers; 1 more pool has none"#
    );
    assert_eq!(path, "pools[0].slots");
    assert_eq!(
        hint,
        "set slots = 1009 in pool web, slots = 1009 in pool dns, in the configuration of all balancers: this one has \
         these numbers in force, or would choose them; `spillway export` prints all that are in force"
    );
    assert!(refused(&message, &in_force(&[])).2.starts_with("set slots = 16381 in pool web, "));

    // 0 is no number either: what it chooses would depend on the moment.
    message.pools[0].slots = Some(1_009);
    message.pools[1].slots = Some(0);
    let (error, path, hint) = refused(&message, &in_force(&[("dns", 31)]));
    assert_eq!(error, r#"pools[1] "dns": slots: must be a number, the same on all 2 balancers"#);
    assert_eq!(
        (&*path, hint.starts_with("set slots = 1009 in pool dns, ")),
        ("pools[1].slots", true)
    );

    message.pools[1].slots = Some(31);
    assert_eq!(super::super::validate(&message).unwrap().require_slots(&force), Ok(()));
}

#[test]
fn a_hint_names_only_some_of_many_pools() {
    let mut message = correct();
    message.services.clear();
    message.balancers = 3;
    let pool = |number| v1::Pool { name: format!("pool-{number}"), ..v1::Pool::default() };
    message.pools = (0..500).map(pool).collect();
    let open = super::super::validate(&message).unwrap().require_slots(&in_force(&[])).unwrap_err();
    let error = open.to_string();
    assert!(error.ends_with("on all 3 balancers; 499 more pools have none"), "{error}");
    let hint = open.hint;
    assert!(hint.contains("slots = 1009 in pool pool-7, and the slots of 492 more, in"), "{hint}");
    assert!(!hint.contains("pool-8"), "{hint}");
}

#[test]
fn slots_of_a_message_leave_out_what_is_no_number() {
    let mut message = correct();
    let of = |slots: Option<u32>| v1::Pool {
        name: format!("p{}", slots.unwrap_or(1)),
        slots,
        ..v1::Pool::default()
    };
    message.pools = [None, Some(0), Some(5), Some(65_536), Some(31)].map(of).to_vec();
    assert_eq!(slots_of_message(&message), in_force(&[("p31", 31)]));
}
