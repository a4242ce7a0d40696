(() => {
  const LONGEST_PAUSE_SECONDS = 60;
  const LONGEST_CHECK_SECONDS = 10;
  const room = document.getElementById("room");
  const element = (id) => document.getElementById(id);
  let refreshSeconds = Number(room.dataset.refresh);
  let lastCheckIn = Date.now();
  let timer = 0;
  let failures = 0;
  let checking = false;
  let entering = false;
  let shownSeconds = Number(room.dataset.waitSeconds || NaN);
  let riseSeen = false;
  let movement;
  let moves = true;

  // Writing the same text again would make a screen reader say it again.
  const write = (id, text) => {
    if (element(id).textContent !== text) element(id).textContent = text;
  };
  const showTime = () => {
    const time = element("checked");
    const at = new Date(lastCheckIn);
    time.dateTime = at.toISOString();
    time.textContent = at.toLocaleTimeString("en", { timeStyle: "medium", hourCycle: "h23" });
  };

  // Each pause starts from an answer, not from the timer before it: Chromium wakes a tab in the background once a
  // minute for timers that start one another, but within a second for these.
  const checkInAfter = (seconds) => {
    clearTimeout(timer);
    timer = setTimeout(checkIn, seconds * 1000);
    movement?.cancel();
    movement = element("line").firstChild.animate?.(
      [{ transform: "scaleX(0)" }, { transform: "scaleX(1)" }],
      { duration: seconds * 1000, fill: "forwards" },
    );
    if (!moves) movement?.cancel();
  };

  // Asks for the page itself, not for what it shows. With a fragment in the address, `replace` would only scroll.
  const go = () => {
    if (location.href.includes("#")) location.reload();
    else location.replace(location.href);
  };
  const enter = () => {
    entering = true;
    room.dataset.state = "open";
    document.title = "Your turn! – waiting room";
    write("label", "Thank you for waiting");
    write("wait", "it is your turn");
    write("note", "The page opens by itself.");
    write("people", "");
    write("trouble", "");
    // For addresses that answer with a download or nothing at all, and so leave this page standing.
    element("enter").hidden = false;
    element("line").hidden = element("often").hidden = element("still").hidden = true;
    go();
  };

  const show = (answer) => {
    refreshSeconds = answer.refreshSeconds;
    element("seconds").textContent = refreshSeconds;
    // A wait that rises for one answer only is noise of the estimate: a rise is shown when a second answer confirms it.
    // (Nothing is greater than NaN, which stands for a wait that is not known.)
    const rises = answer.waitSeconds > shownSeconds;
    const hold = rises && !riseSeen;
    riseSeen = rises;
    if (hold) return;
    shownSeconds = answer.waitKnown ? answer.waitSeconds : NaN;
    room.dataset.state = answer.queueAll ? "closed" : "ajar";
    document.title = answer.title;
    write("label", answer.waitLabel);
    write("wait", answer.waitText);
    write("note", answer.waitNote);
    write("people", answer.peopleText);
  };

  const failed = () => {
    failures += 1;
    write(
      "trouble",
      "The last check did not get through. The page goes on trying; your place is kept for a few minutes meanwhile.",
    );
    const pause = Math.min(refreshSeconds * 2 ** (failures - 1), LONGEST_PAUSE_SECONDS);
    // Spread out, so that the pages of a room that was away for a moment do not all come back at once.
    checkInAfter(pause * (0.8 + 0.4 * Math.random()));
  };

  const checkIn = async () => {
    if (checking || entering) return;
    checking = true;
    let response;
    let answer;
    try {
      response = await fetch(location.href, {
        headers: { "anteroom-status": "1", accept: "application/json" },
        cache: "no-store",
        credentials: "same-origin",
        redirect: "manual",
        signal: AbortSignal.timeout?.(LONGEST_CHECK_SECONDS * 1000),
      });
      if (response.headers.get("content-type")?.includes("json")) answer = await response.json();
    } catch {
      response = undefined;
    }
    checking = false;
    if (!response || response.status === 429 || response.status >= 500) return failed();
    if (answer?.admitted === true) return enter();
    // Not the room's answer: the room is gone, or something before it asks for a look. A real visit finds out.
    if (answer?.admitted !== false) {
      checkInAfter(refreshSeconds);
      return go();
    }
    failures = 0;
    write("trouble", "");
    lastCheckIn = Date.now();
    showTime();
    show(answer);
    checkInAfter(refreshSeconds);
  };

  const checkInWhenStale = () => {
    if (Date.now() - lastCheckIn > refreshSeconds * 1000) checkIn();
  };
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) checkInWhenStale();
  });
  addEventListener("online", checkInWhenStale);
  // Back from the browser's own cache of pages: what is shown is old, and a check that was under way is lost.
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    checking = entering = false;
    checkIn();
  });
  // The Refresh header is for visitors without script. Stopping the page while its load event runs cancels the reload
  // in Chromium, Firefox and WebKit; a moment later WebKit ignores it.
  addEventListener("load", () => stop());

  element("still").addEventListener("click", () => {
    moves = !moves;
    write("still", moves ? "Stop the animation" : "Show the animation");
    element("line").hidden = !moves;
    if (!moves) movement?.cancel();
  });
  if (!navigator.cookieEnabled) element("cookies").hidden = false;
  element("line").hidden = element("often").hidden = element("still").hidden = false;
  showTime();
  checkInAfter(refreshSeconds);
})();
