// Status page: reloads when the session changes.
"use strict";
{
  const session = decodeURIComponent(location.pathname.split("/")[2]);
  const refresh = debounce(600, async () => {
    const response = await fetch(location.href);
    if (!response.ok) return;
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    $("#main").replaceChildren(...$("#main", fresh).childNodes);
  });
  listen({
    session,
    onEvent: (event) => { if (event === "session:updated" || event === "session:compaction-complete") refresh(); },
    onReset: refresh,
  });
}
