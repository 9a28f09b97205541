// Events page: shows live events, newest first.
"use strict";
{
  const table = $("#events");
  const body = $("tbody", table);
  const filter = $("#filter");
  const pause = $("#pause");
  const MAX_ROWS = 500;
  let paused = false;
  let skipped = 0;

  const cell = (text, href) => {
    const td = document.createElement("td");
    if (href) {
      const a = document.createElement("a");
      a.href = href;
      a.textContent = text;
      td.append(a);
    } else td.textContent = text;
    return td;
  };
  const fits = (row) => row.textContent.toLowerCase().includes(filter.value.trim().toLowerCase());

  function show(event, data) {
    $("#waiting")?.remove();
    const row = document.createElement("tr");
    const session = data.session ?? table.dataset.session;
    const path = session ? `/s/${encodeURIComponent(session)}` : null;
    const what = data.action ?? data.text ?? data.why ?? "";
    row.append(
      cell(new Date().toLocaleTimeString()),
      cell(event),
      cell(session ?? "", path),
      cell(String(what).slice(0, 200) + (data.seq ? ` #${data.seq}` : ""), data.seq && path ? `${path}/e/${data.seq}#e${data.seq}` : null),
    );
    row.hidden = !fits(row);
    body.prepend(row);
    while (body.rows.length > MAX_ROWS) body.lastElementChild.remove();
  }
  filter.addEventListener("input", () => { for (const row of body.rows) row.hidden = !fits(row); });
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Resume" : "Pause";
    if (!paused && skipped) notice(`${skipped} events were skipped while paused.`);
    skipped = 0;
  });
  listen({
    session: table.dataset.session || undefined,
    onEvent: (event, data) => { if (paused) skipped += 1; else show(event, data); },
    onReset: () => show("reset", { why: "Too far behind: some events are not shown" }),
    onState: (connected) => { $("#state").textContent = connected ? "Live" : "Connecting…"; },
  });
}
