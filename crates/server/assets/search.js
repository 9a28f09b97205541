// Searching everything as one types.
"use strict";
{
  const field = $("[data-search]");
  const results = $("#results");
  let asked = null;
  field.addEventListener("input", calmly(180, async () => {
    asked?.abort();
    asked = new AbortController();
    const url = new URL("/search", location.href);
    if (field.value.trim()) url.searchParams.set("q", field.value);
    history.replaceState(null, "", url);
    url.searchParams.set("part", "results");
    try {
      results.replaceChildren(await fetchPart(url, asked.signal));
    } catch (error) {
      if (error.name !== "AbortError") notice(`It cannot be searched: ${error.message}`, true);
    }
  }));
  field.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    $("a.row", results)?.focus();
  });
}
