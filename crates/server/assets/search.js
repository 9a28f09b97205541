// Search page: search as you type.
"use strict";
{
  const field = $("[data-search]");
  const results = $("#results");
  let pending = null;
  field.addEventListener("input", debounce(180, async () => {
    pending?.abort();
    pending = new AbortController();
    const url = new URL("/search", location.href);
    if (field.value.trim()) url.searchParams.set("q", field.value);
    history.replaceState(null, "", url);
    url.searchParams.set("part", "results");
    try {
      results.replaceChildren(await fetchPart(url, pending.signal));
    } catch (error) {
      if (error.name !== "AbortError") notice(`Search failed: ${error.message}`, true);
    }
  }));
  field.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    $("a.row", results)?.focus();
  });
}
