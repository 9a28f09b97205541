// A session: what is said shows as it is said, here and in every other window.
"use strict";
{
  const entries = $("#entries");
  const id = entries.dataset.session;
  const api = "/api/sessions/" + encodeURIComponent(id);
  const here = "/s/" + encodeURIComponent(id);
  const composer = $("#composer");
  /// So many entries and no more are in the page.
  const MOST = 300;

  const end = $("#end");
  const atEnd = () => end.getBoundingClientRect().top <= innerHeight + 160;
  const toEnd = () => end.scrollIntoView({ block: "end" });
  const numbers = () => $$("[data-seq]", entries).map((entry) => Number(entry.dataset.seq));

  // A link to an entry that is not on this page leads to the page it is on.
  function follow() {
    const wanted = /^#e(\d+)$/.exec(location.hash);
    if (wanted && !$(location.hash)) location.replace(`${here}/e/${wanted[1]}${location.hash}`);
    else if (wanted) $(location.hash).focus({ preventScroll: false });
  }
  addEventListener("hashchange", follow);
  follow();
  if (!location.hash && entries.hasAttribute("data-whole") && !new URLSearchParams(location.search).has("before")) toEnd();

  // Earlier and later entries as one comes to them; what is far away leaves the page.
  const edges = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) if (isIntersecting) load(target);
  }, { rootMargin: "300px" });
  function watchEdges() {
    edges.disconnect();
    for (const link of $$("[data-earlier], [data-later]", entries)) edges.observe(link);
  }
  let loading = false;
  async function load(link) {
    if (loading) return;
    loading = true;
    const earlier = link.hasAttribute("data-earlier");
    const url = new URL(link.href);
    const part = await fetchPart(`${here}/entries${url.search}&part=1`).catch(() => null);
    loading = false;
    if (!part || !link.isConnected) return;
    dressCode(part);
    // A part has a link at both ends; only the one that leads on is new.
    $(earlier ? "[data-later]" : "[data-earlier]", part)?.closest("p").remove();
    const edge = link.closest("p");
    const before = document.documentElement.scrollHeight;
    edge.replaceWith(part);
    if (earlier) scrollBy({ top: document.documentElement.scrollHeight - before, behavior: "instant" });
    trim(earlier);
    if (!$("[data-later]", entries)) entries.setAttribute("data-whole", "");
    watchEdges();
  }
  function trim(fromEnd) {
    const all = $$("[data-seq]", entries);
    const extra = all.length - MOST;
    if (extra <= 0) return;
    const gone = fromEnd ? all.slice(-extra) : all.slice(0, extra);
    const kept = fromEnd ? all[all.length - extra - 1] : all[extra];
    const height = document.documentElement.scrollHeight;
    for (const entry of gone) entry.remove();
    $(fromEnd ? "[data-later]" : "[data-earlier]", entries)?.closest("p").remove();
    const [p, a] = [document.createElement("p"), document.createElement("a")];
    p.className = "more";
    a.textContent = fromEnd ? "Later entries" : "Earlier entries";
    a.href = `${here}?${fromEnd ? "after" : "before"}=${kept.dataset.seq}`;
    a.setAttribute(fromEnd ? "data-later" : "data-earlier", "");
    p.append(a);
    if (fromEnd) { entries.append(p); entries.removeAttribute("data-whole"); } else {
      entries.prepend(p);
      scrollBy({ top: document.documentElement.scrollHeight - height, behavior: "instant" });
    }
  }
  watchEdges();

  // What was appended, by anybody.
  let catching = Promise.resolve();
  function catchUp() {
    catching = catching.then(async () => {
      if (!entries.hasAttribute("data-whole")) return;
      for (let rounds = 0; rounds < 20; rounds += 1) {
        const last = Math.max(0, ...numbers());
        const part = await fetchPart(`${here}/entries?after=${last}&part=1`);
        const fresh = $$("[data-seq]", part);
        if (fresh.length === 0) return;
        const more = $("[data-later]", part) !== null;
        const follows = atEnd();
        $(".empty", entries)?.remove();
        dressCode(part);
        const live = $("#live", entries);
        for (const entry of fresh) { if (live) live.before(entry); else entries.append(entry); }
        trim(false);
        watchEdges();
        if (follows) toEnd();
        if (!more) return;
      }
    }).catch((error) => notice(`What was said cannot be read: ${error.message}`, true));
    return catching;
  }
  const refreshSide = calmly(400, async () => {
    const part = await fetchPart(`${here}/side?part=1`).catch(() => null);
    if (part) $("#side").replaceChildren(part);
    const slot = $("[data-gauge]");
    const gauge = await fetchPart(slot.dataset.gauge).catch(() => null);
    if (gauge) slot.replaceChildren(gauge);
  });

  // The answer under way, from its start, whoever asked.
  const joined = new Set();
  let turn = null;
  function join(wanted) {
    if (joined.has(wanted)) return;
    joined.add(wanted);
    turn = wanted;
    const state = $("#turn-state");
    const stop = $("#stop");
    let live = null;
    const text = () => {
      if (live) return live;
      const article = document.createElement("article");
      article.id = "live";
      article.className = "entry assistant live";
      const header = document.createElement("header");
      const who = document.createElement("b");
      who.className = "who";
      who.textContent = "Assistant";
      header.append(who);
      const words = document.createElement("div");
      words.className = "words";
      article.append(header, words);
      const follows = atEnd();
      entries.append(article);
      if (follows) toEnd();
      live = words;
      return live;
    };
    const say = (words) => { if (state) state.textContent = words; };
    const source = new EventSource(`${api}/turns/${encodeURIComponent(wanted)}`);
    const on = (name, act) => source.addEventListener(name, (event) => act(JSON.parse(event.data)));
    say("Thinking…");
    if (stop) stop.hidden = false;
    on("turn:queued", () => say("Waiting for the answer before…"));
    on("turn:started", () => { say("Thinking…"); catchUp(); });
    on("message:thinking", () => say("Thinking…"));
    on("message:delta", (data) => {
      const follows = atEnd();
      text().append(data.text);
      say("Answering…");
      if (follows) toEnd();
    });
    on("message:tool_call", (data) => { say(`Calling ${data.call?.name ?? "a tool"}…`); });
    on("session:compaction-start", () => say("Compacting…"));
    on("turn:retrying", (data) => say(`Trying again: ${data.why}`));
    on("turn:warning", (data) => notice(data.text, true));
    const ended = async (problem) => {
      source.close();
      say("");
      if (stop) stop.hidden = true;
      if (turn === wanted) turn = null;
      await catchUp();
      live?.closest("article").remove();
      refreshSide();
      if (problem) notice(problem, true);
    };
    on("turn:complete", () => ended());
    on("turn:stopped", () => ended("Stopped; what had come is kept."));
    on("turn:failed", (data) => ended(data.failed?.detail ?? "There is no answer."));
    source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED) ended(); });
  }
  if (entries.dataset.turn) join(entries.dataset.turn);
  $("#stop")?.addEventListener("click", () => {
    if (turn) fetch(`${api}/turns/${encodeURIComponent(turn)}`, { method: "DELETE" });
  });

  listen({
    session: id,
    heard: (event, data) => {
      if (data.turn && event !== "session:updated") join(data.turn);
      if (event === "session:updated" || event === "session:compaction-complete") {
        if (data.action === "deleted" || data.action === "removed") {
          notice("This session was moved to the trash.", true);
          return;
        }
        catchUp();
        if (data.action !== "message_added") refreshSide();
      }
      if (event === "session:compaction-start") notice("Compacting…");
      if (event === "session:compaction-error") notice(`Not compacted: ${data.why}`, true);
    },
    lost: () => location.reload(),
  });

  // Saying something.
  if (composer) {
    const field = $("#message");
    const grow = () => { field.rows = Math.min(12, Math.max(2, field.value.split("\n").length)); };
    field.addEventListener("input", grow);
    field.addEventListener("keydown", (event) => {
      const coarse = matchMedia("(pointer: coarse)").matches;
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || coarse) return;
      event.preventDefault();
      composer.requestSubmit();
    });
    const chosen = (name) => {
      const value = composer.elements[name]?.value;
      return value ? { [name]: value } : {};
    };
    composer.addEventListener("submit", async (event) => {
      event.preventDefault();
      const message = field.value;
      if (!message.trim()) return;
      field.value = "";
      grow();
      const refused = (why) => {
        if (!field.value) field.value = message;
        grow();
        notice(why, true);
      };
      try {
        const response = await fetch(`${api}/turns`, {
          method: "POST",
          headers: { "content-type": "application/json", "idempotency-key": newKey() },
          body: JSON.stringify({ message, stream: false, ...chosen("model"), ...chosen("agent") }),
        });
        const outcome = await response.json();
        if (!response.ok) refused(outcome.detail ?? response.statusText);
        else if (outcome.session !== id) location.href = `/s/${encodeURIComponent(outcome.session)}`;
        else catchUp();
      } catch (error) {
        refused(`It could not be sent: ${error.message}`);
      }
    });
  }
  function newKey() {
    return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }
}
