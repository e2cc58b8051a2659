
// The fleet, if this balancer is a member of one.
function fleet() {
  const f = now.fleet;
  $("fleet-part").hidden = !f;
  if (!f) return;
  put($("fleet-title"), "Fleet " + f.fleet + ", as " + f.balancer + " sees it");
  const etcd = "etcd has generation " + f.generation + ", revision " + f.revision;
  put($("fleet-state"), etcd + (f.revision_in_force === f.revision ? ", in force here" : "; revision " + f.revision_in_force + " is in force here"));
  const notes = [];
  if (f.etcd_problem) notes.push("etcd: " + f.etcd_problem);
  if (f.conflict) notes.push("Conflict: " + f.conflict + "; “spillway fleet restore” decides");
  if (f.being_forgotten.length) notes.push("Portions of " + f.being_forgotten.join(", ") + " go to the others now");
  else if (f.epoch_open) notes.push("Portions wait until all balancers have said what they own");
  const latest = Math.max(...f.balancers.map((b) => b.schema || 0));
  const older = f.balancers.filter((b) => b.schema !== null && b.schema < latest);
  if (older.length) {
    const names = older.map((b) => b.name + " (version " + (b.version || "unknown") + ")").join(", ");
    notes.push("Fields of schema revision " + latest + " wait until these are upgraded: " + names);
  }
  $("fleet-notes").hidden = !notes.length;
  put($("fleet-notes"), notes.join("\n"));
  const matching = f.balancers.filter((b) => matches(b.name, b.region || "", b.version));
  keep($("fleet-balancers"), matching, (b) => b.name, (b) => {
    const line = make("tr"), state = make("td"), why = make("td", "wide");
    state.append(make("span", "state"));
    why.append(make("span"), make("span", "quiet"));
    line.append(make("td", "address", b.name), make("td", "name"), state, why);
    return line;
  }, (line, b) => {
    const words = b.ready ? "ready" : b.alive ? "not ready" : "not alive";
    const state = line.children[2].firstChild;
    state.className = "state " + (b.ready && b.alive ? "up" : b.alive ? "pending" : "unreachable");
    put(state, b.alive ? words : "not alive");
    put(line.children[1], b.region || "");
    const tables = b.tables_agree === null ? "" : b.tables_agree ? "same tables"
      : "other tables than " + (b.compared_with === f.balancer ? "here" : b.compared_with);
    const has = b.generation ? "generation " + b.generation + ", revision " + b.revision : "";
    put(line.children[3].firstChild, ["version " + (b.version || "unknown"), has, tables].filter(Boolean).join("; "));
    const heard = b.name === f.balancer ? "this balancer" : b.heard_ms_ago === null ? "never heard" : "heard " + age(b.heard_ms_ago) + " ago";
    put(line.children[3].lastChild, [heard, b.peer_problem, ...b.conditions].filter(Boolean).join("; "));
  });
  const groups = f.groups.filter((g) => matches(g.pool, g.region)).slice(0, 100);
  keep($("fleet-groups"), groups, (g) => g.pool + " " + g.region, (g) => {
    const row = make("div", "row");
    row.append(make("span", "", g.pool + " in " + g.region), make("span", "number quiet"), make("p"));
    return row;
  }, (row, g) => {
    put(row.children[1], g.capacity_unknown ? "" : g.capacity === null ? "no limit" : "capacity " + per(g.capacity, "connections"));
    const shares = g.shares.map((s) => s.balancer + " " + percent(s.portion) + " at " + rate(s.demand));
    if (g.in_flight > 0) shares.push(percent(g.in_flight) + " on its way from here");
    put(row.children[2], shares.join(" · "));
  });
}
