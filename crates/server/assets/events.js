// What happens, as it happens, newest first.
"use strict";
{
  const table = $("#events");
  const body = $("tbody", table);
  const filter = $("#filter");
  const pause = $("#pause");
  const MOST = 500;
  let paused = false;
  let missed = 0;

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
    const place = session ? `/s/${encodeURIComponent(session)}` : null;
    const what = data.action ?? data.text ?? data.why ?? "";
    row.append(
      cell(new Date().toLocaleTimeString()),
      cell(event),
      cell(session ?? "", place),
      cell(String(what).slice(0, 200) + (data.seq ? ` #${data.seq}` : ""), data.seq && place ? `${place}/e/${data.seq}#e${data.seq}` : null),
    );
    row.hidden = !fits(row);
    body.prepend(row);
    while (body.rows.length > MOST) body.lastElementChild.remove();
  }
  filter.addEventListener("input", () => { for (const row of body.rows) row.hidden = !fits(row); });
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    if (!paused && missed) notice(`${missed} events went by meanwhile.`);
    missed = 0;
  });
  listen({
    session: table.dataset.session || undefined,
    heard: (event, data) => { if (paused) missed += 1; else show(event, data); },
    lost: () => show("reset", { why: "too far behind: some events are not shown" }),
    state: (connected) => { $("#state").textContent = connected ? "live" : "connecting…"; },
  });
}
