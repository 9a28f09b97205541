// Session page: live messages, streamed answers, infinite scrolling and the composer.
"use strict";
{
  const entries = $("#entries");
  const id = entries.dataset.session;
  const api = "/api/sessions/" + encodeURIComponent(id);
  const here = "/s/" + encodeURIComponent(id);
  const composer = $("#composer");
  /// Maximum number of entries in the page.
  const MAX_ENTRIES = 300;

  const end = $("#end");
  const atEnd = () => end.getBoundingClientRect().top <= innerHeight + 160;
  const toEnd = () => end.scrollIntoView({ block: "end" });
  const numbers = () => $$("[data-seq]", entries).map((entry) => Number(entry.dataset.seq));

  // A link to an entry that is not on this page leads to the page it is on.
  function follow() {
    const target = /^#e(\d+)$/.exec(location.hash);
    if (target && !$(location.hash)) location.replace(`${here}/e/${target[1]}${location.hash}`);
    else if (target) $(location.hash).focus({ preventScroll: false });
  }
  addEventListener("hashchange", follow);
  follow();
  if (!location.hash && entries.hasAttribute("data-whole") && !new URLSearchParams(location.search).has("before")) toEnd();

  // Loads earlier and later entries while scrolling; removes those that are far away.
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
    addCopyButtons(part);
    // A fragment has links at both ends; drop the one that leads back.
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
    const extra = all.length - MAX_ENTRIES;
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

  // Loads entries that were appended by any client.
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
        addCopyButtons(part);
        const live = $("#live", entries);
        for (const entry of fresh) { if (live) live.before(entry); else entries.append(entry); }
        trim(false);
        watchEdges();
        if (follows) toEnd();
        if (!more) return;
      }
    }).catch((error) => notice(`Cannot load new messages: ${error.message}`, true));
    return catching;
  }
  const refreshSide = debounce(400, async () => {
    const part = await fetchPart(`${here}/side?part=1`).catch(() => null);
    if (part) $("#side").replaceChildren(part);
    const slot = $("[data-gauge]");
    const gauge = await fetchPart(slot.dataset.gauge).catch(() => null);
    if (gauge) slot.replaceChildren(gauge);
  });

  // Streams the running turn from its start, whichever client started it.
  const joined = new Set();
  let turn = null;
  function join(turnId) {
    if (joined.has(turnId)) return;
    joined.add(turnId);
    turn = turnId;
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
    const setStatus = (text) => { if (state) state.textContent = text; };
    const source = new EventSource(`${api}/turns/${encodeURIComponent(turnId)}`);
    const on = (name, act) => source.addEventListener(name, (event) => act(JSON.parse(event.data)));
    setStatus("Thinking…");
    if (stop) stop.hidden = false;
    on("turn:queued", () => setStatus("Waiting for the previous answer…"));
    on("turn:started", () => { setStatus("Thinking…"); catchUp(); });
    on("message:thinking", () => setStatus("Thinking…"));
    on("message:delta", (data) => {
      const follows = atEnd();
      text().append(data.text);
      setStatus("Answering…");
      if (follows) toEnd();
    });
    on("message:tool_call", (data) => { setStatus(`Calling ${data.call?.name ?? "a tool"}…`); });
    on("session:compaction-start", () => setStatus("Compacting…"));
    on("turn:retrying", (data) => setStatus(`Retrying: ${data.why}`));
    on("turn:warning", (data) => notice(data.text, true));
    const ended = async (problem) => {
      source.close();
      setStatus("");
      if (stop) stop.hidden = true;
      if (turn === turnId) turn = null;
      await catchUp();
      live?.closest("article").remove();
      refreshSide();
      if (problem) notice(problem, true);
    };
    on("turn:complete", () => ended());
    on("turn:stopped", () => ended("Stopped. The partial answer was saved."));
    on("turn:failed", (data) => ended(data.failed?.detail ?? "No answer was received."));
    source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED) ended(); });
  }
  if (entries.dataset.turn) join(entries.dataset.turn);
  $("#stop")?.addEventListener("click", () => {
    if (turn) fetch(`${api}/turns/${encodeURIComponent(turn)}`, { method: "DELETE" });
  });

  listen({
    session: id,
    onEvent: (event, data) => {
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
      if (event === "session:compaction-error") notice(`Compaction failed: ${data.why}`, true);
    },
    onReset: () => location.reload(),
  });

  // The composer.
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
        refused(`Cannot send the message: ${error.message}`);
      }
    });
  }
  function newKey() {
    return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }
}
