use super::*;

fn clients(list: &[&str]) -> Clients {
    list.iter().map(|text| text.parse::<Client>().unwrap()).collect()
}

fn role(clients: &Clients, names: &[&str]) -> Option<Role> {
    clients.peer(&names.iter().map(ToString::to_string).collect::<Vec<_>>()).role
}

#[test]
fn a_certificate_has_the_role_of_its_name_and_without_one_none() {
    let clients =
        clients(&["Eye.example=viewer", "hand.example=operator", "spiffe://x/a=b?=admin"]);
    assert_eq!(role(&clients, &["eye.EXAMPLE"]), Some(Role::Viewer));
    assert_eq!(role(&clients, &["eye.example", "hand.example"]), Some(Role::Operator));
    assert_eq!(role(&clients, &["spiffe://x/a=b?"]), Some(Role::Admin));
    for none in [&["spiffe://X/a=b?"][..], &["example"], &["eye.example."], &["*.example"], &[]] {
        assert_eq!(role(&clients, none), None, "{none:?}");
    }
    let peer = clients.peer(&["eye.example".into(), "hand.example".into()]);
    assert_eq!(peer.actor.to_string(), "certificate hand.example");
}

#[test]
fn names_that_nobody_listed_fit_a_line() {
    let names = ["a\nb".to_owned(), "x".repeat(4000), "c".into(), "d".into(), "e".into()];
    let expected = format!("certificate a\\nb, {}, c, 2 more", "x".repeat(100));
    assert_eq!(clients(&[]).peer(&names).actor.to_string(), expected);
}

#[test]
fn what_is_no_client_is_refused() {
    let refusal = |text: &str| text.parse::<Client>().unwrap_err().to_string();
    assert!(refusal("eye.example").starts_with("must be NAME=ROLE"));
    assert!(refusal("=viewer").starts_with("must be NAME=ROLE"));
    assert_eq!(refusal("a=root"), "\"root\" is no role; one of viewer, operator, admin is");
    assert_eq!(refusal("a=Admin"), "\"Admin\" is no role; one of viewer, operator, admin is");
}
