// Session list: search as you type, infinite scrolling and live updates.
"use strict";
{
  const list = $("#list");
  const field = $("[data-search]");
  const form = $("[data-filter]");
  /// Maximum number of rows loaded by scrolling; after that, a link leads to the next page.
  const MAX_ROWS = 500;

  const here = () => new URL(location.href);
  const partOf = (url) => {
    const part = new URL(url, location.href);
    part.searchParams.set("part", "rows");
    return part;
  };

  let pending = null;
  async function search() {
    pending?.abort();
    pending = new AbortController();
    const url = here();
    url.searchParams.delete("after");
    url.searchParams.delete("said");
    if (field.value.trim()) url.searchParams.set("q", field.value);
    else url.searchParams.delete("q");
    history.replaceState(null, "", url);
    try {
      list.replaceChildren(await fetchPart(partOf(url), pending.signal));
      watchEnd();
    } catch (error) {
      if (error.name !== "AbortError") notice(`Cannot load the list: ${error.message}`, true);
    }
  }
  field.addEventListener("input", debounce(150, search));
  field.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    $("a.row", list)?.focus();
  });
  form.addEventListener("submit", (event) => {
    if (event.submitter && event.submitter.type === "submit") { event.preventDefault(); search(); }
  });

  // Loads more rows near the end of the list.
  const ends = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) if (isIntersecting) more(target);
  }, { rootMargin: "400px" });
  function watchEnd() {
    ends.disconnect();
    const link = $("[data-more]", list);
    if (link && $$("a.row", list).length < MAX_ROWS) ends.observe(link);
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

  // Moves changed sessions to the top, or removes them from the list.
  const changed = new Set();
  const refresh = debounce(250, async () => {
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
    for (const row of $$("li[data-id]", rows).slice(MAX_ROWS)) row.remove();
    if (focused) $(`li[data-id="${CSS.escape(focused)}"] a`, rows)?.focus({ preventScroll: true });
  });
  listen({
    onEvent: (event, data) => {
      // Deltas of an answer do not change the list.
      if (event !== "session:updated" && event !== "session:compaction-complete") return;
      changed.add(data.session);
      refresh();
    },
    onReset: refresh,
  });
}
