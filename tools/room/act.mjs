// What each command does.
import { openApi } from "./api.mjs";
import { agree, clearAll } from "./clear.mjs";
import { actOnPlans } from "./plans.mjs";
import { auditTable, historyTable, line, newsLine, roomText, statusTable, steeringTable } from "./print.mjs";
import { applyRooms, createRoom, editRoom, exportRooms, importRooms } from "./rooms.mjs";
import { actOnTokens } from "./tokens.mjs";

/**
 * @param {import("./options.mjs").Call} call
 * @param {{ out: (text: string) => void }} io
 * @returns {Promise<number>} The exit code.
 */
export async function act(call, { out }) {
  const { name, url, json, room, ifVersion } = call;
  if (name === "export") {
    out(await exportRooms(() => openApi(url), call.deployed, call.cloudflare));
    return 0;
  }
  const api = openApi(url);
  /** Prints an answer: as it is, or in words. */
  const show = (answer, words) => out(json ? JSON.stringify(answer, null, 2) : words(answer));
  const steer = async (order) => {
    // What is not given is left out.
    const more = { until: call.until, reason: call.reason, ...(ifVersion && { if_version: ifVersion }) };
    show(await api.json("steering", { room }, { ...order, ...more }), steeringTable);
    return 0;
  };
  switch (name) {
    case "status": {
      const status = await api.json("status", {});
      show(status, statusTable);
      return status.problems.length > 0 || status.rooms.some(({ error }) => error) ? 1 : 0;
    }
    case "show": {
      // Asked for first: a room that is not there is told so.
      const steering = await api.json("steering", { room });
      const status = await api.json("status", { room });
      show(
        { ...status, steering },
        () => `${roomText(status.rooms[0], status.now)}\n\n${steeringTable(steering)}`,
      );
      return status.rooms[0].error ? 1 : 0;
    }
    case "set":
      return steer({ set: call["field=value"] });
    case "clear": {
      if (!call.all) return steer({ clear: call.field });
      const { order, changes, isEmpty } = await clearAll(api, room, call.resume);
      if (isEmpty || !json) out(changes.join("\n") || "Nothing is overridden.");
      if (isEmpty) return 0;
      if (!call.yes) await agree();
      return steer(order);
    }
    case "create":
      await createRoom(api, call, out);
      return 0;
    case "edit":
      await editRoom(api, call, out);
      return 0;
    case "import":
      await importRooms(api, call, out);
      return 0;
    case "apply":
      await applyRooms(api, call, out);
      return 0;
    case "plan":
    case "plans":
    case "drop":
      await actOnPlans(api, call, show);
      return 0;
    case "token":
      await actOnTokens(api, call, show);
      return 0;
    case "keep":
      return steer({ keep: call.field });
    case "event":
      return steer({ events: { [call.event]: call.what } });
    case "audit":
      show(await api.json("audit", { room, limit: call.limit, before: call.before }), auditTable);
      return 0;
    case "history": {
      const { from, to, resolution, fields, colo, format } = call;
      const query = { room, from, to, resolution, fields, colo, format: format === "csv" ? "csv" : "json" };
      if (format === "csv" && !json) out(await api.text("history", query));
      else if (format === "json" || json)
        out(JSON.stringify(await api.json("history", { ...query, format: "json" }), null, 2));
      else out(historyTable(await api.json("history", query)));
      return 0;
    }
    default: {
      let left = call.count ?? Infinity;
      await api.listen(room, (message) => {
        if (json) out(JSON.stringify(message));
        else if (message.type === "room") out(line(message.room, message.now));
        else for (const news of message.news ?? []) out(newsLine(news));
        left -= 1;
        return left > 0;
      });
      return 0;
    }
  }
}
