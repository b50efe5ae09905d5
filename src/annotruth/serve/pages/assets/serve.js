// What every page does: theme, tips, times in the visitor's zone, questions before forms are sent.
function prepare() {
  tipsOfCharts();
  for (const time of document.querySelectorAll("time[datetime]")) {
    time.dataset.tip = new Date(time.dateTime).toLocaleString();
  }
}

function askBeforeSending() {
  addEventListener("submit", (event) => {
    const question = event.target.dataset.confirm;
    if (question && !confirm(question)) event.preventDefault();
  });
}

// The link that the command prints has the token behind #, which is not sent to servers.
function logInByLink() {
  const login = document.getElementById("login"), token = location.hash.slice(1);
  if (!login || !token.startsWith("at_")) return;
  history.replaceState(null, "", location.pathname);
  document.getElementById("token").value = token;
  login.requestSubmit();
}

applyKeptTheme();
addEventListener("DOMContentLoaded", () => {
  themeButton();
  prepare();
  document.querySelector(".top nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  showTips();
  askBeforeSending();
  logInByLink();
  addEventListener("hashchange", logInByLink); // the link was pasted into this page's address
  const main = document.querySelector("main[data-events]");
  if (main) follow(main);
  ROOT.dataset.ready = "yes";
});
