// The list of sessions: searched as one types, going on by itself, changing as things
// happen.
"use strict";
{
  const list = $("#list");
  const field = $("[data-search]");
  const form = $("[data-filter]");
  /// So many rows and no more are in the page; after that one turns pages.
  const MOST = 500;

  const here = () => new URL(location.href);
  const partOf = (url) => {
    const part = new URL(url, location.href);
    part.searchParams.set("part", "rows");
    return part;
  };

  let asked = null;
  async function search() {
    asked?.abort();
    asked = new AbortController();
    const url = here();
    url.searchParams.delete("after");
    url.searchParams.delete("said");
    if (field.value.trim()) url.searchParams.set("q", field.value);
    else url.searchParams.delete("q");
    history.replaceState(null, "", url);
    try {
      list.replaceChildren(await fetchPart(partOf(url), asked.signal));
      watchEnd();
    } catch (error) {
      if (error.name !== "AbortError") notice(`The list cannot be read: ${error.message}`, true);
    }
  }
  field.addEventListener("input", calmly(150, search));
  field.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    $("a.row", list)?.focus();
  });
  form.addEventListener("submit", (event) => {
    if (event.submitter && event.submitter.type === "submit") { event.preventDefault(); search(); }
  });

  // More rows as one comes to the end.
  const ends = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) if (isIntersecting) more(target);
  }, { rootMargin: "400px" });
  function watchEnd() {
    ends.disconnect();
    const link = $("[data-more]", list);
    if (link && $$("a.row", list).length < MOST) ends.observe(link);
  }
  async function more(link) {
    ends.unobserve(link);
    const part = await fetchPart(partOf(link.href)).catch(() => null);
    if (!part) return;
    const known = new Set($$("li[data-id]", list).map((row) => row.dataset.id));
    const rows = $$("li[data-id]", part).filter((row) => !known.has(row.dataset.id));
    $("ol.rows", list).append(...rows);
    link.closest("p").remove();
    const next = $("p.more", part);
    if (next) list.append(next);
    watchEnd();
  }
  watchEnd();

  // What happened to sessions moves them to the top, or out of sight.
  const changed = new Set();
  const refresh = calmly(250, async () => {
    if (field.value.trim() || here().searchParams.has("after")) return;
    const ids = [...changed];
    changed.clear();
    const part = await fetchPart(partOf(here())).catch(() => null);
    if (!part) return;
    const rows = $("ol.rows", list);
    if (!rows || !$("ol.rows", part)) { list.replaceChildren(part); watchEnd(); return; }
    const fresh = new Map($$("li[data-id]", part).map((row) => [row.dataset.id, row]));
    const focused = document.activeElement?.closest("li[data-id]")?.dataset.id;
    for (const row of $$("li[data-id]", rows)) {
      if (fresh.has(row.dataset.id) || ids.includes(row.dataset.id)) row.remove();
    }
    rows.prepend(...fresh.values());
    for (const id of ids) {
      const row = fresh.get(id);
      if (row) { row.classList.add("fresh"); setTimeout(() => row.classList.remove("fresh"), 1600); }
    }
    for (const row of $$("li[data-id]", rows).slice(MOST)) row.remove();
    if (focused) $(`li[data-id="${CSS.escape(focused)}"] a`, rows)?.focus({ preventScroll: true });
  });
  listen({
    heard: (event, data) => {
      // Pieces of an answer change nothing here.
      if (event !== "session:updated" && event !== "session:compaction-complete") return;
      changed.add(data.session);
      refresh();
    },
    lost: refresh,
  });
}
