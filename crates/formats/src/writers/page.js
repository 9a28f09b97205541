"use strict";
const find = document.getElementById("find");
const found = document.getElementById("found");
const entries = Array.from(document.querySelectorAll(".entry"));
const texts = entries.map((entry) => entry.textContent.toLowerCase());
find.addEventListener("input", () => {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  entries.forEach((entry, index) => {
    const fits = words.every((word) => texts[index].includes(word));
    entry.classList.toggle("away", !fits);
    if (fits) shown += 1;
    entry.querySelectorAll("details").forEach((part) => { part.open = words.length > 0 && fits; });
  });
  found.textContent = words.length ? shown + " of " + entries.length : "";
});
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
