import { Clock, Effect } from "effect"
import { Command } from "effect/cli"
import type { Present } from "../cluster/roster.ts"
import { readPresent } from "../cluster/roster.ts"
import { momentText } from "../history/line.ts"
import { connected, petrel } from "./root-command.ts"
import { print } from "./stdout.ts"
import { makeTable } from "./table.ts"
import { remark } from "./terminal.ts"

/**
 * Returns the load of each of a worker's partitions from its last heartbeat; zero for one that it
 * has just taken over.
 */
const loads = ({ heartbeat, partitions }: Present) =>
  partitions.map((partition) => {
    const { inFlight, inMemory } = heartbeat?.partitions.find(
      (load) => load.partition === partition
    ) ?? { inFlight: 0, inMemory: 0 }
    return { partition, inFlight, inMemory }
  })

const jsonOf = (worker: Present): object => {
  const { heartbeat, id } = worker
  return {
    worker: id,
    alive: heartbeat !== undefined,
    ...(heartbeat === undefined
      ? {}
      : {
          host: heartbeat.host,
          pid: heartbeat.pid,
          startedAt: heartbeat.startedAt,
          roles: heartbeat.roles,
          leaving: heartbeat.leaving === true
        }),
    partitions: loads(worker)
  }
}

const headings = ["worker", "host", "pid", "since", "roles", "partitions", "in flight", "in memory"]

const rowOf =
  (now: number) =>
  (worker: Present): ReadonlyArray<string> => {
    const { heartbeat, id, partitions } = worker
    const sum = (what: "inFlight" | "inMemory") =>
      String(loads(worker).reduce((all, load) => all + load[what], 0))
    const roles = heartbeat?.leaving === true ? "stopping" : (heartbeat?.roles.join(",") ?? "gone")
    return [
      id,
      heartbeat?.host ?? "-",
      String(heartbeat?.pid ?? "-"),
      heartbeat === undefined ? "-" : momentText(heartbeat.startedAt, now).replace(/\.\d+$/, ""),
      roles,
      partitions.join(",") || "-",
      sum("inFlight"),
      sum("inMemory")
    ]
  }

const unownedText = (unowned: ReadonlyArray<number>): string =>
  unowned.length === 1
    ? `Partition ${unowned[0]} has no worker now: nothing in it is delivered.`
    : `Partitions ${unowned.join(", ")} have no worker now: nothing in them is delivered.`

/** Lists the workers and their partitions. */
export const workers = Command.make(
  "workers",
  {},
  Effect.fnUntraced(function* () {
    const { json } = yield* petrel
    const { present, unowned } = yield* Effect.provide(readPresent, connected)
    if (json) {
      for (const worker of present) yield* print(JSON.stringify(jsonOf(worker)))
      if (unowned.length > 0) yield* print(JSON.stringify({ unowned }))
      return
    }
    const now = yield* Clock.currentTimeMillis
    if (present.length === 0) yield* remark("No worker is running.")
    else yield* Effect.forEach(makeTable(headings).lines(present.map(rowOf(now))), print)
    if (unowned.length > 0) yield* print(unownedText(unowned))
  })
).pipe(Command.withDescription("Show the workers that are running, and which partitions each has"))
