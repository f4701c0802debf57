import { Clock, Effect } from "effect"
import { Command } from "effect/cli"
import { jsonOf } from "../../domain/timestamp.ts"
import { withheldText } from "../../operations/status/conditions.ts"
import { listWorkers, WorkerView } from "../../operations/status/workers.ts"
import { localTime } from "../../text/quantities.ts"
import { makeTable } from "../format/screen.ts"
import { connected, petrel } from "../root-command.ts"
import { print, remark } from "../terminal/stdout.ts"

const encode = jsonOf(WorkerView)

const headings = [
  ...["worker", "host", "pid", "since", "roles"],
  ...["owned", "delivering", "in flight", "in memory"]
]

const listed = (partitions: WorkerView["partitions"]): string =>
  partitions.map(({ partition }) => partition).join(",") || "-"

const rowOf =
  (now: number) =>
  (one: WorkerView): ReadonlyArray<string> => {
    const { host, leaving, partitions, pid, roles, startedAt, worker } = one
    const sum = (what: "inFlight" | "inMemory") =>
      String(partitions.reduce((all, load) => all + load[what], 0))
    return [
      worker,
      host ?? "-",
      String(pid ?? "-"),
      startedAt === undefined ? "-" : localTime(startedAt, now),
      leaving === true ? "stopping" : (roles?.join(",") ?? "gone"),
      listed(partitions),
      listed(partitions.filter(({ delivering }) => delivering)),
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
    const { unowned, workers: all } = yield* Effect.provide(listWorkers, connected)
    if (json) {
      for (const worker of all) yield* print(JSON.stringify(encode(worker)))
      if (unowned.length > 0) yield* print(JSON.stringify({ unowned }))
      return
    }
    const now = yield* Clock.currentTimeMillis
    if (all.length === 0) yield* remark("No worker is running.")
    else yield* Effect.forEach(makeTable(headings).lines(all.map(rowOf(now))), print)
    for (const { withheld = [], worker } of all)
      for (const [owner, kept] of Map.groupBy(withheld, ({ owner }) => owner))
        yield* print(`${withheldText(worker, owner, kept)}.`)
    if (unowned.length > 0) yield* print(unownedText(unowned))
  })
).pipe(
  Command.withDescription(
    "Show the workers that are running, the partitions that each owns, and in which it delivers"
  )
)
