// Sets the chosen colours before the page is shown.
try {
  document.documentElement.dataset.theme = localStorage.getItem("zoo-theme") || "auto";
} catch {
  // Storage may be disabled; the colours are then those of the system.
}
