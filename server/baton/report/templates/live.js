// Keeps the page as the record is: on news the content is fetched again and put in place of the old one.
"use strict";
(() => {
  const word = document.querySelector(".live");
  const topic = document.body.dataset.live;
  if (!topic || !word) return;

  const LEAST = 700;
  let busy = false, again = false, last = 0;

  const say = (state, text) => { word.dataset.state = state; word.textContent = text; };

  // Nothing is taken away under somebody's hands.
  const inUse = () => {
    const chosen = document.getSelection();
    const field = document.activeElement;
    return (chosen && !chosen.isCollapsed) || (field && field.matches("main input, main select"));
  };

  const place = (element) => element.id || element.getAttribute("href");

  function put(fresh) {
    const main = document.querySelector("main");
    const open = new Map([...main.querySelectorAll("details[id]")].map((one) => [one.id, one.open]));
    const scrolled = new Map([...main.querySelectorAll("details[id] pre")].map((one) => [one.closest("details").id, one.scrollTop]));
    const focused = main.contains(document.activeElement) ? place(document.activeElement) : null;
    main.replaceChildren(...fresh.childNodes);
    for (const one of main.querySelectorAll("details[id]")) {
      if (open.has(one.id)) one.open = open.get(one.id);
      const pre = one.querySelector("pre");
      if (pre && scrolled.get(one.id)) pre.scrollTop = scrolled.get(one.id);
    }
    if (focused) {
      const one = [...main.querySelectorAll("a, summary, [tabindex]")].find((each) => place(each) === focused);
      if (one) one.focus({ preventScroll: true });
    }
  }

  async function refresh() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const wait = LEAST - (performance.now() - last);
      if (wait > 0) await new Promise((done) => setTimeout(done, wait));
      while (inUse()) await new Promise((done) => setTimeout(done, LEAST));
      again = false;
      const answer = await fetch(location.href, { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      put(document.adoptNode(page.querySelector("main")));
      document.title = page.title;
      say("live", "live");
    } catch {
      say("lost", "not up to date");
    } finally {
      last = performance.now();
      busy = false;
      if (again) refresh();
    }
  }

  // A browser keeps few connections to one place: only pages that are seen have one.
  let news = null, missed = false;

  function listen() {
    news = new EventSource("/live?of=" + encodeURIComponent(topic));
    news.onopen = () => { say("live", "live"); if (missed) refresh(); missed = false; };
    news.onerror = () => { missed = true; say("lost", "the dashboard does not answer"); };
    news.addEventListener("changed", refresh);
  }

  function rest() {
    if (news) news.close();
    news = null;
    missed = true;
  }

  document.addEventListener("visibilitychange", () => { if (document.hidden) rest(); else if (!news) listen(); });
  addEventListener("pagehide", rest);
  addEventListener("pageshow", (event) => { if (event.persisted && !news) listen(); });
  if (!document.hidden) listen();
})();
