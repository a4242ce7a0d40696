// The service worker of `/__anteroom/`: shows a push message, and opens the waiting page. It answers no request.
addEventListener("install", () => skipWaiting());

const pages = () => clients.matchAll({ type: "window", includeUncontrolled: true });

async function show({ title, body, url, lang, dir }) {
  // Whoever looks at the page sees it there.
  if ((await pages()).some((page) => page.focused && page.url === url)) return;
  await registration.showNotification(title, { body, lang, dir, tag: url, data: url });
}

async function open(url) {
  const page = (await pages()).find((page) => page.url === url);
  await (page ? page.focus() : clients.openWindow(url));
}

addEventListener("push", (event) => event.waitUntil(show(event.data.json())));
addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data));
});
