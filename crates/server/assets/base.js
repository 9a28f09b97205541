// Common to every page: theme switch, keyboard shortcuts, copy buttons and menus.
"use strict";

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

/// Shows a notification at the edge of the page for a few seconds.
function notice(text, bad = false) {
  const box = $("#notice");
  box.textContent = text;
  box.classList.toggle("bad", bad);
  clearTimeout(notice.timer);
  notice.timer = setTimeout(() => { box.textContent = ""; }, bad ? 12000 : 5000);
}

/// Fetches an HTML fragment of a page; the caller inserts its nodes.
async function fetchPart(url, signal) {
  const response = await fetch(url, { headers: { accept: "text/html" }, signal });
  if (response.status === 401) {
    location.href = "/login?next=" + encodeURIComponent(location.pathname + location.search);
  }
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  const template = document.createElement("template");
  template.innerHTML = await response.text();
  return template.content;
}

/// Debounces: calls `work` once there were no calls for `wait` milliseconds.
function debounce(wait, work) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...args), wait);
  };
}

function isTyping(target) {
  return target.closest("input, textarea, select, [contenteditable]") !== null;
}

/// Moves the focus through the items of a page: `j` down, `k` up.
function step(by) {
  const things = $$("#list a.row, #results a.row, #entries [data-seq]:not(.anchor), ul.things > li")
    .filter((thing) => thing.offsetParent !== null);
  if (things.length === 0) return;
  const now = things.findIndex((thing) => thing.contains(document.activeElement));
  const fresh = by > 0 ? 0 : things.length - 1;
  const next = now < 0 ? things[fresh] : things[Math.min(Math.max(now + by, 0), things.length - 1)];
  if (!next.matches("a, [tabindex]")) next.tabIndex = -1;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

const KEYS = [
  ["/", "Search"], ["j, k", "Next, previous"], ["Enter", "Open"], ["c", "Write a message"],
  ["n", "New session"], ["g s", "Sessions"], ["g f", "Search everything"], ["g m", "Memory"],
  ["g e", "Events"], ["t", "Switch theme"], ["Esc", "Leave a field, close a menu"], ["?", "Show keyboard shortcuts"],
];

function showKeys() {
  let dialog = $("#keys");
  if (!dialog) {
    dialog = document.createElement("dialog");
    dialog.id = "keys";
    dialog.setAttribute("aria-label", "Keyboard shortcuts");
    const list = document.createElement("dl");
    for (const [key, what] of KEYS) {
      const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
      dt.textContent = key;
      dd.textContent = what;
      list.append(dt, dd);
    }
    const close = document.createElement("button");
    close.textContent = "Close";
    close.addEventListener("click", () => dialog.close());
    dialog.append(list, close);
    document.body.append(dialog);
  }
  dialog.showModal();
}

let afterG = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    const open = $("details.menu[open]");
    if (open) { open.open = false; $("summary", open).focus(); } else if (isTyping(event.target)) event.target.blur();
    return;
  }
  if (isTyping(event.target) || $("dialog[open]")) return;
  if (afterG) {
    afterG = false;
    const places = { s: "/", f: "/search", m: "/memory", e: "/events" };
    if (places[event.key]) location.href = places[event.key];
    return;
  }
  const act = {
    "/": () => { const field = $("[data-search]"); if (field) field.focus(); else location.href = "/search"; },
    j: () => step(1),
    k: () => step(-1),
    c: () => $("#message")?.focus(),
    n: () => $("form[action='/new']")?.requestSubmit(),
    t: () => switchTheme(),
    g: () => { afterG = true; setTimeout(() => { afterG = false; }, 1000); },
    "?": showKeys,
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme === "dark"
    || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
}

for (const button of $$("[data-theme-switch]")) {
  button.hidden = false;
  button.addEventListener("click", switchTheme);
}

for (const button of $$("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText($(button.dataset.copy).textContent);
    notice("Copied");
  });
}

for (const select of $$("[data-submit]")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}

// Closes open menus on a click elsewhere, so that at most one is open.
document.addEventListener("click", (event) => {
  for (const menu of $$("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// Copy buttons of code blocks.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  await navigator.clipboard.writeText($("code", button.parentElement).textContent);
  notice("Copied");
});

/// Adds a copy button to every code block in these nodes.
function addCopyButtons(root) {
  for (const pre of $$(".md pre", root)) {
    if ($("button.copy", pre)) continue;
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "Copy";
    pre.append(button);
  }
}
addCopyButtons(document);

for (const slot of $$("[data-gauge]")) {
  fetchPart(slot.dataset.gauge).then((part) => slot.replaceChildren(part)).catch(() => {});
}
