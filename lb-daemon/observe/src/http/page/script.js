"use strict";
// Everything that is shown goes in as text, never as markup: reasons are what backends provoke.
const PERIOD = 1000, HOLD = 3;
const $ = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
let before = null, now = null, paused = false, wanted = null, failures = 0;

function make(tag, kind, text) {
  const node = document.createElement(tag);
  if (kind) node.className = kind;
  if (text !== undefined) node.textContent = text;
  return node;
}
function put(node, text) { if (node.textContent !== text) node.textContent = text; }

// Keeps one child for each item, in their order, so that focus and open details stay.
function keep(parent, items, key, create, update) {
  const there = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let at = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let child = there.get(name);
    if (child) there.delete(name);
    else { child = create(item); child.dataset.key = name; }
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
    update(child, item);
  }
  for (const child of there.values()) child.remove();
}

function rate(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 1e6) return (value / 1e6).toPrecision(3) + " M/s";
  if (value >= 1e4) return (value / 1e3).toPrecision(3) + " k/s";
  if (value >= 100 || value === 0) return value.toFixed(0) + "/s";
  return value.toFixed(1) + "/s";
}
// A rate with what it counts.
function per(value, what) { return rate(value).replace("/s", " " + what + "/s"); }
function bits(bytes) {
  if (bytes === null) return "–";
  const units = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
  let value = bytes * 8, unit = 0;
  while (value >= 1000 && unit < 4) { value /= 1000; unit += 1; }
  return (value >= 100 || value === 0 ? value.toFixed(0) : value.toPrecision(3)) + " " + units[unit];
}
function age(milliseconds) {
  const s = Math.max(0, Math.floor(milliseconds / 1000));
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min";
  if (s < 172800) return Math.floor(s / 3600) + " h";
  return Math.floor(s / 86400) + " d";
}
function percent(part) { return part === null ? "–" : (100 * part).toFixed(part < 0.0995 ? 1 : 0) + "%"; }

// How fast a counter rises between two readings; null: there are not two, or it began anew.
function speed(index, name, field) {
  if (!before || now.at <= before.at) return null;
  const a = before[index].get(name), b = now[index].get(name);
  if (!a || !b || b[field] < a[field]) return null;
  return (b[field] - a[field]) * 1000 / (now.at - before.at);
}
function index(data) {
  const by = (list, name) => new Map(list.map((item) => [item[name], item]));
  const backends = data.pools.flatMap((pool) => pool.members || []);
  return Object.assign(data, {
    ofService: by(data.pools.flatMap((pool) => pool.services), "service"),
    ofBackend: by(backends, "address"), ofVerdict: by(data.verdicts, "verdict"),
  });
}
function sum(values) { return values.some((v) => v === null) ? null : values.reduce((a, b) => a + b, 0); }

function head() {
  const backends = now.pools.reduce((a, pool) => a + pool.backends, 0);
  const up = now.pools.reduce((a, pool) => a + pool.backends_up, 0);
  const services = [...now.ofService.keys()];
  const of = (list, kind, field) => before ? sum(list.map((name) => speed(kind, name, field))) : null;
  const drops = now.verdicts.filter((v) => v.action === "drop").map((v) => v.verdict);
  const dropped = of(drops, "ofVerdict", "packets");
  const figures = [
    ["New connections", rate(of(services, "ofService", "connections")), "", ""],
    ["Forwarded", per(of(services, "ofService", "packets"), "packets"), bits(of(services, "ofService", "bytes")), ""],
    ["Backends up", up + " of " + backends, "", up < backends ? "bad" : ""],
    ["Dropped", per(dropped, "packets"), "", dropped > 0 ? "bad" : ""],
  ];
  keep($("figures"), figures, (f) => f[0], (f) => {
    const cell = make("div");
    const value = make("dd");
    value.append(make("span"), " ", make("small"));
    cell.append(make("dt", "", f[0]), value);
    return cell;
  }, (cell, [, value, more, kind]) => {
    cell.className = kind;
    put(cell.querySelector("span"), value);
    put(cell.querySelector("small"), more);
  });
  const name = now.balancer || "balancer";
  put($("where"), name + (now.region ? " in " + now.region : "") + " · generation " + now.generation);
  // Several of these pages stand side by side in a browser.
  document.title = (now.balancer ? now.balancer + " – " : "") + "Spillway";
  const dead = now.dead_services.map((s) => "Service " + s.service + " (" + s.endpoint + " " + s.protocol + ") gets no new connections: " +
    (s.backends ? "none of the " + s.backends + " backends of pool " + s.pool + " takes any" : "pool " + s.pool + " has no backends"));
  $("dead").hidden = !dead.length;
  put($("dead"), dead.slice(0, 10).concat(dead.length > 10 ? ["and " + (dead.length - 10) + " more services"] : []).join("\n"));
  const wrong = now.conditions.slice();
  if (now.behind) wrong.unshift("The packet path is behind the configuration; the daemon tries again every second: " + now.behind);
  if (now.waiting_settings.length) wrong.push("Changed settings wait for the next start of the daemon: " + now.waiting_settings.join(", "));
  $("behind").hidden = !wrong.length;
  put($("behind"), wrong.join("\n"));
  const links = now.interfaces.map((i) => i.name + (i.mode ? " (" + i.mode + ")" : " (not attached!)")).join(", ");
  put($("foot"), "spillwayd " + now.version + " · up " + age(now.at - now.started_at) + " · on " + links +
    " · checksum " + now.checksum + (now.balancers > 1 ? " · capacity shared by " + now.balancers : ""));
}

// The waterfall. Across: new connections a second. Each region begins where those before it ended, so
// what one leaves falls on to the next; the pale part is its limit, what nobody takes ends in red.
function waterfall(lanes, pool) {
  const shown = pool.regions.map((r) => ({ r, got: r.rates || null }));
  let from = 0;
  for (const row of shown) {
    row.from = from;
    row.took = row.got ? row.got.admitted : 0;
    from += row.took;
  }
  const refused = shown.reduce((a, row) => a + (row.got ? row.got.refused : 0), 0);
  const ends = shown.map((row) => row.from + Math.max(row.took, row.r.limit === null ? 0 : row.r.limit));
  const open = pool.regions.some((r) => r.limit === null);
  const most = Math.max(1, (from + refused) * (open ? 1.2 : 1), ...ends) * 1.04;
  const at = (value) => (100 * value / most).toFixed(3) + "%";
  shown.forEach((row, i) => { row.next = shown[i + 1]; row.last = i === shown.length - 1; });
  keep(lanes, shown, (row) => row.r.region, (row) => {
    const line = make("div", "region"), name = make("div", "name"), lane = make("div", "lane");
    name.append(make("strong", "", row.r.region), make("small"));
    for (const kind of ["room", "took", "over", "gone", "edge", "drop"]) lane.append(make("div", kind));
    lane.setAttribute("role", "img");
    line.append(name, lane, make("div", "said"));
    return line;
  }, (line, row) => {
    const { r, got } = row, lane = line.children[1], said = line.children[2];
    const [room, took, over, gone, edge, drop] = lane.children;
    const place = (node, left, width, is = true) => {
      node.hidden = !is;
      node.style.left = at(left);
      node.style.width = at(width);
    };
    const excess = got ? Math.min(got.over_capacity, row.took) : 0;
    const unlimited = r.limit === null, end = unlimited ? most : row.from + r.limit;
    place(room, row.from, Math.max(0, end - row.from), unlimited || r.limit > 0);
    room.className = unlimited ? "room open" : "room";
    place(took, row.from, row.took - excess, row.took > 0);
    place(over, row.from + row.took - excess, excess, excess > 0);
    place(gone, row.from + row.took, refused, row.last && refused > 0);
    place(edge, end, 0, !unlimited);
    const falls = got ? got.overflow_out : 0;
    place(drop, row.from + row.took, 0, falls > 0 && !row.last);
    const up = r.backends_up + " of " + r.backends + " up";
    put(line.querySelector("small"), up + (r.marked_out ? ", asked last" : ""));
    const parts = [["b", "", per(got ? got.admitted : null, "connections")]];
    parts.push(["span", "", unlimited ? " no limit" : r.limit === 0 ? " closed" : " of " + rate(r.limit)]);
    if (got && r.limit > 0 && got.admitted > r.limit) {
      const why = got.over_capacity > 0 ? "all regions are full, and the service admits then" : "a burst, or the limit was lowered just now";
      parts.push(["div", "spills", percent(got.admitted / r.limit) + " of the limit: " + why]);
    }
    if (!unlimited && Math.abs(r.portion - 1 / Math.max(1, now.balancers)) > 1e-9) {
      parts.push(["div", "", (100 * r.portion).toFixed(1) + " % of the capacity is this balancer's"]);
    }
    if (got && falls > 0) parts.push(["div", "spills", rate(falls) + " overflows" + (row.next ? " to " + row.next.r.region : "")]);
    if (got && got.refused > 0) parts.push(["div", "lost", rate(got.refused) + " refused"]);
    if (got && got.over_capacity > 0) parts.push(["div", "spills", rate(got.over_capacity) + " over capacity"]);
    if (r.missing_backends > 0) parts.push(["div", "", r.missing_backends + " more backends would do"]);
    const text = parts.map((p) => p[2]).join("\n");
    if (said.dataset.text !== text) {
      said.dataset.text = text;
      said.replaceChildren(...parts.map((p) => make(...p)));
    }
    lane.setAttribute("aria-label", r.region + ": " + parts.map((p) => p[2].trim()).join(", "));
  });
}

function services(list, pool) {
  const speeds = new Map(pool.services.map((s) => [s.service, speed("ofService", s.service, "packets")]));
  const total = sum([...now.ofService.keys()].map((name) => speed("ofService", name, "packets")));
  keep(list, pool.services, (s) => s.service, (s) => {
    const line = make("li"), share = make("div", "share");
    share.append(make("i"), make("span"));
    share.title = "share of all packets";
    line.append(make("strong", "", s.service), make("span", "quiet", s.endpoint + " " + s.protocol), make("span", "state"), make("span", "number"), make("span", "number quiet"), share);
    return line;
  }, (line, s) => {
    const mine = speeds.get(s.service), part = total && mine !== null ? mine / total : null;
    const [, , state, connections, packets, share] = line.children;
    state.hidden = s.backends_up === null;
    state.className = "state " + (s.backends_up === 0 ? "dead" : s.backends_up < s.backends ? "partly" : "up");
    put(state, s.backends_up + " of " + s.backends + " backends take new connections");
    put(connections, per(speed("ofService", s.service, "connections"), "connections"));
    connections.title = "new connections, repeated SYNs included";
    put(packets, per(mine, "packets"));
    share.style.setProperty("--part", 100 * (part || 0) + "%");
    put(share.lastChild, percent(part));
  });
}

const RANK = { unreachable: 0, pending: 1, unhealthy: 2, held_down: 3, draining: 4, disabled: 5, up: 6 };
function members(card, pool) {
  const fold = card.querySelector("details"), body = fold.querySelector("tbody");
  const down = pool.backends - pool.backends_up;
  put(fold.firstChild, pool.backends + " backends" + (down ? ", " + down + " not taking new connections" : ", all up"));
  fold.querySelector("table").hidden = !pool.members;
  if (!pool.members) return;
  const rates = new Map(pool.members.map((m) => [m.address, speed("ofBackend", m.address, "packets")]));
  const total = sum([...rates.values()]);
  const list = pool.members.filter((m) => matches(m.address, m.region, m.state, m.reason) || matches(pool.pool));
  list.sort((a, b) => RANK[a.state] - RANK[b.state] || (a.region < b.region ? -1 : a.region > b.region ? 1 : 0));
  keep(body, list, (m) => m.address, (m) => {
    const line = make("tr"), health = make("td"), why = make("td", "wide"), share = make("td", "wide");
    const bar = make("div", "share");
    health.append(make("span", "state"), make("span", "quiet"));
    why.append(make("span"), make("ul", "history"), make("span", "quiet"));
    bar.append(make("i"), make("span"));
    share.append(bar);
    line.append(make("td", "address", m.address), make("td", "name", m.region), health, why, share);
    return line;
  }, (line, m) => {
    const [state, since] = line.children[2].children, [reason, past, hop] = line.children[3].children;
    state.className = "state " + m.state;
    put(state, m.state);
    put(since, "for " + age(now.at - m.since));
    const more = [m.reason + (m.marked_out ? " (marked out)" : "")];
    if (m.utilisation !== null) more.push(percent(m.utilisation) + " utilised");
    if (m.utilisation > 1) more.push("more than it says it can do");
    if (m.state === "up" && m.share > 0 && m.share < 1) more.push("takes " + percent(m.share) + " of its share");
    if (m.report_error) more.push(m.report_error);
    put(reason, more.join("; "));
    // The newest is what is said above.
    keep(past, m.history.slice(1, 6), (c) => c.at + c.state, () => make("li"), (item, c) => put(item, age(now.at - c.at) + " ago " + c.state + ": " + c.reason));
    put(hop, m.next_hop_resolved ? "via " + m.next_hop : "no next hop: " + m.next_hop);
    const mine = rates.get(m.address), part = total && mine !== null ? mine / total : null;
    const bar = line.children[4].firstChild;
    bar.style.setProperty("--part", 100 * (part || 0) + "%");
    bar.title = mine === null ? "" : per(mine, "packets");
    put(bar.lastChild, percent(part));
  });
}

function pools() {
  const list = now.pools.filter((pool) => matches(pool.pool) || pool.services.some((s) => matches(s.service, s.endpoint)) ||
    pool.regions.some((r) => matches(r.region)) || (pool.members || []).some((m) => matches(m.address, m.region, m.state, m.reason)));
  const shown = list.slice(0, 100);
  keep($("pools"), shown, (pool) => pool.pool, (pool) => {
    const card = make("article", "card"), top = make("div", "top"), served = make("div", "services"), fold = make("details");
    top.append(make("h2", "", pool.pool), make("span", "quiet"), make("span", "tag"));
    served.append(make("h3", "", "Services"), make("ul"));
    const table = make("table"), titles = make("tr"), body = make("tbody"), thead = make("thead");
    for (const title of ["Backend", "Region", "State", "Why, and next hop", "Share of packets, over all pools"]) {
      const cell = make("th", "", title);
      cell.scope = "col";
      titles.append(cell);
    }
    thead.append(titles);
    table.append(thead, body);
    fold.append(make("summary"), table);
    // Open at once where it is short, or where something is wrong.
    fold.open = pool.backends <= 24 && (now.pools.length <= 2 || pool.backends_up < pool.backends);
    fold.addEventListener("toggle", () => { if (fold.open && table.hidden) { wanted = pool.pool; read(); } });
    card.append(top, make("div", "fall"), served, fold);
    return card;
  }, (card, pool) => {
    const [, about, tag] = card.firstChild.children;
    const ways = pool.regions.length === 1 ? "1 region" : pool.regions.length + " regions in the order they are asked";
    put(about, ways + " · bars and limits: new connections a second");
    tag.hidden = !pool.settling && !pool.has_displaced;
    put(tag, pool.settling ? "remap" : "displaced connections");
    tag.title = pool.settling ? "open connections stay on their backends" : "some connections are at another backend than their home, and are remembered one by one";
    waterfall(card.children[1], pool);
    card.children[2].hidden = pool.services.length === 0;
    services(card.children[2].lastChild, pool);
    members(card, pool);
  });
  const words = !now.pools.length ? "No pool yet: apply a configuration with “spillway apply”."
    : !list.length ? "No pool matches the filter."
    : list.length > shown.length ? "and " + (list.length - shown.length) + " more pools: filter by name" : "";
  const said = $("pools").nextElementSibling.matches(".empty") ? $("pools").nextElementSibling : make("p", "empty");
  put(said, words);
  said.hidden = !words;
  $("pools").after(said);
}

function below() {
  const drops = now.verdicts.filter((v) => v.action === "drop" && v.packets > 0).sort((a, b) => b.packets - a.packets);
  if (!drops.length) drops.push({ verdict: "none", packets: 0, meaning: "No packet was dropped since the program was loaded." });
  keep($("drops"), drops, (v) => v.verdict, (v) => {
    const row = make("div", "row");
    row.append(make("code", "", v.verdict), make("span", "number"), make("p", "", v.meaning));
    return row;
  }, (row, v) => {
    const quick = speed("ofVerdict", v.verdict, "packets");
    put(row.children[1], v.packets ? number.format(v.packets) + " packets" + (quick ? ", now " + rate(quick) : "") : "");
  });
  keep($("history"), now.generations, (g) => g.number, () => {
    const row = make("div", "row");
    row.append(make("span"), make("span", "number quiet"), make("p"));
    return row;
  }, (row, g) => {
    const changes = g.changes === null ? "" : g.changes === 1 ? " · 1 change" : " · " + number.format(g.changes) + " changes";
    put(row.children[0], "Generation " + g.number + (g.who ? " by " + g.who : "") + changes);
    put(row.children[1], g.applied_at === null ? "" : age(now.at - g.applied_at) + " ago");
    row.children[1].title = g.applied_at === null ? "" : new Date(g.applied_at).toISOString();
    put(row.children[2], [g.why, g.unusable === null ? "" : "(cannot be used: " + g.unusable + ")"].filter(Boolean).join(" "));
  });
  $("overrides-part").hidden = !now.overrides.length;
  keep($("overrides"), now.overrides, (o) => o.name, () => {
    const row = make("div", "row");
    row.append(make("span"), make("span", "number quiet"), make("p"));
    return row;
  }, (row, o) => {
    put(row.children[0], o.target + ": " + o.action + (o.local ? ", at this balancer alone" : ""));
    const end = o.until === null ? "" : ", ends in " + age(o.until - now.at);
    put(row.children[1], age(now.at - o.set_at) + " ago" + end);
    row.children[1].title = new Date(o.set_at).toISOString() + (o.until === null ? "" : " to " + new Date(o.until).toISOString());
    const gone = o.absent_since === null ? "" : "(there is no such object since " + age(now.at - o.absent_since) + ")";
    put(row.children[2], ["by " + o.who + (o.reason ? ": " + o.reason : ""), gone].filter(Boolean).join(" "));
  });
  const names = { open: "Open connections", half_open: "Half open", half_open_at_home: "Half open at home",
    seen_once: "Seen once", closing: "Closing", datagrams: "UDP flows" };
  keep($("memory"), now.flows, (f) => f.state, (f) => {
    const row = make("div", "row"), bar = make("div", "share meter");
    bar.append(make("i"), make("span"));
    row.append(make("span", "", names[f.state] || f.state), make("span", "number quiet"), bar);
    return row;
  }, (row, f) => {
    put(row.children[1], number.format(f.held) + " of " + number.format(now.flow_room) + " cells");
    row.children[2].style.setProperty("--part", 100 * f.held / now.flow_room + "%");
    put(row.children[2].lastChild, percent(f.held / now.flow_room));
  });
}

function matches(...words) {
  const sought = $("filter").value.trim().toLowerCase();
  return !sought || words.some((word) => word.toLowerCase().includes(sought));
}
function draw() {
  if (!now) return;
  head();
  pools();
  fleet();
  below();
  document.body.dataset.drawn = before ? "twice" : "once";
}
function live(kind, text) {
  $("live").className = "pill " + kind;
  put($("live"), text);
}

async function read() {
  try {
    const answer = await fetch("data.json" + (wanted ? "?pool=" + encodeURIComponent(wanted) : ""), { cache: "no-store" });
    if (!answer.ok) throw new Error((await answer.text()).trim());
    const data = index(await answer.json());
    // What was read a moment ago is given again to those who ask soon: it is no second reading.
    if (!now || data.at !== now.at) { before = now; now = data; }
    else if (wanted) { now = data; }
    failures = 0;
    live("good", "live");
    draw();
  } catch (error) {
    failures += 1;
    live("bad", "no answer" + (now ? " for " + age(Date.now() - now.at) : ""));
    $("live").title = String(error.message || error);
  }
}
async function turn() {
  if (!paused && !document.hidden) await read();
  setTimeout(turn, PERIOD * (failures ? HOLD : 1));
}
$("filter").addEventListener("input", draw);
$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", String(paused));
  live(paused ? "warn" : "good", paused ? "paused" : "live");
});
addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement;
  if (event.key === "/" && !typing) { event.preventDefault(); $("filter").focus(); }
  else if (event.key === "Escape" && typing) { $("filter").value = ""; draw(); $("filter").blur(); }
  else if (event.key === "p" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) $("pause").click();
});
turn();
