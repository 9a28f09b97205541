// Runs before anything is drawn: the light somebody chose, where they chose one.
"use strict";
{
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  document.documentElement.classList.add("scripted");
}
