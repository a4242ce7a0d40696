// What the platform itself costs: every request goes to the origin as it came. All other Workers are compared with it.
export default {
  fetch(request) {
    return fetch(request);
  },
};
