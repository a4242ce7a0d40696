// What workerd is told, in its own language: node_modules/workerd/workerd.capnp says what each word means.

/** A text in quotes. Cap'n Proto reads what JSON writes, but for control characters, and of those JSON leaves none here. */
const text = (value) => JSON.stringify(value);
const list = (values) => `[\n    ${values.join(",\n    ")}\n  ]`;

/**
 * @param {object} settings
 * @param {string} settings.listen as workerd writes addresses: `*:8080`, `unix:/run/anteroom/http`
 * @param {URL} [settings.origin] left out: the rooms' vars say it
 * @param {string[]} settings.trusted ranges of proxies
 * @param {Record<string, unknown>} settings.vars
 * @param {string[]} settings.secrets names of what the environment has
 * @param {Record<string, any>} settings.project what wrangler.toml says
 * @param {{ modules: string[], lock: string, objects: string }} settings.places files beside the configuration; and, seen
 *   from where workerd is started, the socket that shows that it runs, and the objects' directory
 * @returns {string}
 */
export function configOf({ listen, origin, trusted, vars, secrets, project, places }) {
  const objects = project.durable_objects.bindings;
  // The front needs node:net. Timers stay as the Worker knows them.
  const flags = [...(project.compatibility_flags ?? []), "nodejs_compat", "no_nodejs_global_timers"];
  const modules = places.modules.map(
    (name) => `(name = ${text(name)}, ${name.endsWith(".wasm") ? "wasm" : "esModule"} = embed ${text(name)})`,
  );
  const bindings = [
    ...objects.map(
      ({ name, class_name }) => `(name = ${text(name)}, durableObjectNamespace = ${text(class_name)})`,
    ),
    ...Object.entries({ ...vars, TRUSTED_PROXIES: trusted, ONE_PROCESS: true }).map(
      ([name, value]) => `(name = ${text(name)}, json = ${text(JSON.stringify(value))})`,
    ),
    ...secrets.map((name) => `(name = ${text(name)}, fromEnvironment = ${text(name)})`),
    ...(origin ? ['(name = "ORIGIN_SERVICE", service = "origin")'] : []),
  ];
  const classes = objects.map(
    ({ class_name: name }) =>
      `(className = ${text(name)}, uniqueKey = ${text(`anteroom-${name}`)}, enableSql = true)`,
  );
  const socket = (name, address) =>
    `(name = ${text(name)}, address = ${text(address)}, http = (), service = "room")`;
  return `using Workerd = import "/workerd/workerd.capnp";

const room :Workerd.Worker = (
  modules = ${list(modules)},
  compatibilityDate = ${text(project.compatibility_date)},
  compatibilityFlags = [${flags.map(text).join(", ")}],
  bindings = ${list(bindings)},
  durableObjectNamespaces = ${list(classes)},
  durableObjectStorage = (localDisk = "objects"),
);

const config :Workerd.Config = (
  services = ${list([
    '(name = "room", worker = .room)',
    `(name = "objects", disk = (path = ${text(places.objects)}, writable = true))`,
    // Addresses that the owner has set may be private ones; visitors set none.
    '(name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true)))',
    ...(origin ? [`(name = "origin", external = ${external(origin)})`] : []),
  ])},
  sockets = ${list([socket("http", listen), socket("lock", `unix:${places.lock}`)])},
);
`;
}

/** A server that gets requests with the host that visitors asked for. @param {URL} origin */
function external({ protocol, hostname, port }) {
  const options = '(forwardedProtoHeader = "X-Forwarded-Proto")';
  const isSecure = protocol === "https:";
  const address = text(`${hostname}:${port || (isSecure ? 443 : 80)}`);
  if (!isSecure) return `(address = ${address}, http = ${options})`;
  const tls = `tlsOptions = (trustBrowserCas = true), certificateHost = ${text(hostname)}`;
  return `(address = ${address}, https = (options = ${options}, ${tls}))`;
}
