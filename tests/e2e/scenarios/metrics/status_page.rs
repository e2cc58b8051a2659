//! A real browser shows the status page of a balancer at work.

use std::net::{SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::ECHO;
use lb_tests::daemon::{get, scrape};
use lb_tests::process::{PATIENCE, pause, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Fabric;
use serde_json::Value;

use crate::metrics::browser::{Between, Look};
use crate::metrics::fixture::{FAR, MetricsFixture, OVER, STRICT};

const SHOP: u16 = 7005;
/// Of a service without backends.
const IDLE: u16 = 7006;

const DESKTOP: Look = Look { name: "desktop", width: 1280, height: 2000, dark: false, path: "/" };
const DARK: Look = Look { name: "dark", dark: true, ..DESKTOP };
const PHONE: Look = Look { name: "phone", width: 500, height: 2600, path: "/phone", ..DESKTOP };

pub(crate) fn browser(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = MetricsFixture::start(sandbox, "page")?;
    guarded(&fixture)?;
    fixture.balancer.apply(&(fixture.configuration(false) + &shop(&fixture)))?;
    up(&fixture, 1.0)?;
    fixture.echoes[0] = None;
    up(&fixture, 0.0)?;
    data(&fixture)?;
    let going = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let traffic = scope.spawn(|| traffic(&fixture, &going));
        let looked = look(&fixture);
        going.store(false, Ordering::Relaxed);
        traffic.join().ok().context("traffic")??;
        looked
    })
}

/// Waits until the first backend is up, or is not.
fn up(fixture: &MetricsFixture, wanted: f64) -> Result<()> {
    let labels = [("pool", "even"), ("backend", "10.1.0.11")];
    until("the first backend is as wanted", PATIENCE, || {
        let now = scrape(&fixture.fabric.balancer)?;
        Ok((now.value("spillway_backend_up", &labels) == Some(wanted)).then_some(()))
    })
}

/// A pool whose near region takes a part of what comes, the far one another, and nobody the rest.
fn shop(fixture: &MetricsFixture) -> String {
    let groups = "group = [{ region = \"eu\", capacity = \"160/s\" }, \
                  { region = \"us\", capacity = \"100/s\" }]\n";
    let vip = Fabric::VIP_V4;
    fixture.pool("shop", groups, |_| "")
        + &format!(
            "[[service]]\nname = \"shop\"\naddress = \"{vip}\"\nport = {SHOP}\nprotocol = \"tcp\"\n\
             pool = \"shop\"\nwhen_full = \"reject\"\n\
             [[pool]]\nname = \"idle\"\nslots = 1009\n[[service]]\nname = \"idle\"\naddress = \"{vip}\"\n\
             port = {IDLE}\nprotocol = \"tcp\"\npool = \"idle\"\n"
        )
}

/// Some of everything, all the time.
fn traffic(fixture: &MetricsFixture, going: &AtomicBool) -> Result<()> {
    for seed in 0.. {
        if !going.load(Ordering::Relaxed) {
            break;
        }
        fixture.syns(SocketAddrV4::new(FAR, ECHO), seed, 12)?;
        fixture.syns(SocketAddrV4::new(Fabric::VIP_V4, ECHO), seed + 10_000, 20)?;
        fixture.syns(SocketAddrV4::new(Fabric::VIP_V4, SHOP), seed + 40_000, 20)?;
        fixture.syns(SocketAddrV4::new(Fabric::VIP_V4, OVER), seed + 20_000, 3)?;
        fixture.syns(SocketAddrV4::new(Fabric::VIP_V4, STRICT), seed + 30_000, 2)?;
        fixture.fabric.client.enter(|| -> Result<()> {
            let socket = UdpSocket::bind((Fabric::CLIENT_V4, 0))?;
            socket.send_to(&[0; 900], (Fabric::VIP_V4, ECHO))?;
            Ok(())
        })??;
        pause(Duration::from_millis(100));
    }
    Ok(())
}

/// What the page is told is what others are told.
fn data(fixture: &MetricsFixture) -> Result<()> {
    let (_, text) = get(&fixture.fabric.balancer, "/data.json")?;
    let data: Value = serde_json::from_str(&text)?;
    let newest = &data["generations"][0];
    let is_told = newest["number"] == data["generation"] && newest["who"] == "uid 0 (root)";
    ensure!(is_told && newest["why"].as_str().is_some_and(|why| !why.is_empty()), "{newest}");
    let pools = data["pools"].as_array().context("no pools")?;
    let names: Vec<_> = pools.iter().filter_map(|pool| pool["pool"].as_str()).collect();
    ensure!(names == ["away", "even", "far", "over", "shop", "strict"], "{names:?}");
    let even = &pools[1];
    let members = even["members"].as_array().context("no members")?;
    let refused = members.iter().find(|it| it["address"] == "10.1.0.11").context("no eu1")?;
    ensure!(refused["state"] == "unhealthy", "{refused}");
    ensure!(refused["reason"] == "check open: connection refused", "{refused}");
    let states: Vec<_> = refused["history"].as_array().context("no history")?.iter().collect();
    ensure!(
        states[0]["state"] == "unhealthy" && states[0]["reason"] == refused["reason"],
        "{refused}"
    );
    ensure!(states[1]["state"] == "up" && states[1]["reason"] == "all checks pass", "{refused}");
    ensure!((&even["backends"], &even["backends_up"]) == (&6.into(), &5.into()), "{even}");
    let regions: Vec<_> = even["regions"].as_array().context("no regions")?.iter().collect();
    ensure!(regions[0]["region"] == "eu" && regions[1]["region"] == "us", "{even}");
    let (_, text) = get(&fixture.fabric.balancer, "/data.json?pool=far")?;
    let of_far: Value = serde_json::from_str(&text)?;
    ensure!(of_far["pools"][2]["members"].as_array().is_some_and(|list| list.len() == 6));
    ensure!(of_far["pools"][1]["members"].is_null(), "only those of the pool");
    Ok(())
}

fn guarded(fixture: &MetricsFixture) -> Result<()> {
    let nonce = || -> Result<String> {
        let (head, body) = get(&fixture.fabric.balancer, "/")?;
        ensure!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let policy = head.lines().find_map(|line| line.strip_prefix("content-security-policy: "));
        let policy = policy.context("no policy")?;
        ensure!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"));
        ensure!(policy.ends_with("frame-ancestors 'none'"), "{policy}");
        let (_, rest) = policy.split_once("script-src 'nonce-").context("no nonce")?;
        let (nonce, _) = rest.split_once('\'').context("no end")?;
        ensure!(body.matches(&format!("nonce=\"{nonce}\"")).count() == 2, "style and script");
        for outside in ["http://", "https://", "//cdn", "@import", "url("] {
            let named = body.replace("http://www.w3.org/2000/svg", "");
            ensure!(!named.contains(outside), "the page names {outside}");
        }
        ensure!(body.contains("<noscript>") && body.contains("prefers-color-scheme: dark"));
        Ok(nonce.into())
    };
    ensure!(nonce()? != nonce()?, "a nonce is used once");
    Ok(())
}

/// The page once it has been read twice, so that rates are there. The browser's own time may run out on a busy machine
/// before the second answer came, so it may have to load the page again.
fn drawn_twice(between: &Between, look: Look) -> Result<String> {
    until(&format!("the page {} is drawn twice", look.name), PATIENCE, || {
        let page = between.document(look)?;
        Ok(page.contains("data-drawn=\"twice\"").then_some(page))
    })
}

fn look(fixture: &MetricsFixture) -> Result<()> {
    let between = Between::start(&fixture.fabric.balancer)?;
    for look in [DESKTOP, DARK] {
        let page = drawn_twice(&between, look)?;
        let has = |what: &str| {
            ensure!(page.contains(what), "{}: no {what} in\n{page}", look.name);
            Ok(())
        };
        let lacks = |what: &str| {
            ensure!(!page.contains(what), "{}: {what} in\n{page}", look.name);
            Ok(())
        };
        has(" in eu · generation 1")?;
        has("bars and limits: new connections a second")?;
        has(" packets/s</span>")?;
        has(" connections/s</b>")?;
        has("5 of 6 backends take new connections")?;
        // A banner for the service without a backend, and none for the others.
        let (vip, no_backends) = (Fabric::VIP_V4, "pool idle has no backends");
        has(&format!("Service idle ({vip}:{IDLE} tcp) gets no new connections: {no_backends}"))?;
        lacks("Service shop (")?;
        for card in ["overrides-part", "history-title"] {
            has(&format!("class=\"card\" aria-labelledby=\"{}", card.replace("-part", "-title")))?;
        }
        has("6 backends, 1 not taking new connections")?;
        has("overflows to us</div>")?;
        has("regions_full")?;
        has("no limit")?;
        // What a backend provoked is text, and did nothing.
        has("check open: &lt;img src=x onerror=")?;
        lacks("<img")?;
        has(" ago up: all checks pass</li>")?;
        has(" – Spillway</title>")?;
        lacks("owned</title>")?;
        lacks("data-refused")?;
        lacks("data-error")?;
        // It fits its window.
        has(&format!("data-width=\"{}\"", look.width))?;
        has("data-over=\"0\"")?;
        between.picture(look)?;
    }
    let page = drawn_twice(&between, PHONE)?;
    for what in ["data-width=\"390\"", "data-over=\"0\"", "data-broken=\"0\""] {
        ensure!(page.contains(what), "phone: no {what} in\n{page}");
    }
    ensure!(!page.contains("data-refused") && !page.contains("data-error"), "{page}");
    between.picture(PHONE)?;
    Ok(())
}
