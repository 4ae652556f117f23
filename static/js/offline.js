// The page that a service worker shows without a connection; it goes away by itself. A classic script:
// it is kept alone, and imports nothing.
addEventListener("online", () => location.reload());
document.querySelector("[data-again]").addEventListener("click", (event) => {
  event.preventDefault();
  document.querySelector("[data-status]").textContent = "Trying …";
  location.reload();
});
