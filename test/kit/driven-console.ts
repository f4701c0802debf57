import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { quarantine } from "../../src/intake/quarantine.ts"
import { runJobs } from "../../src/operations/jobs/job-runner.ts"
import { listQuarantined } from "../../src/operations/sources/manage-quarantine.ts"
import { DeliveryLog } from "../../src/projection/delivery-log.ts"
import { serveProjection } from "../../src/projection/remote-log.ts"
import { startConsole } from "./console.ts"
import { caughtUp } from "./delivery-log.ts"
import { worker } from "./engine.ts"
import { receiver } from "./receiver.ts"

let came = 0

/** Puts something of acme in quarantine that no event can be made of, and something that can be one. */
const putOne = Effect.gen(function* () {
  const n = came++
  const request = {
    ...{ source: "stripe", provider: "stripe", contentType: "application/json", headers: {} },
    ...{ method: "POST", url: "http://127.0.0.1/in/acme/stripe" }
  }
  const put = (
    more: Pick<Parameters<typeof quarantine>[1], "reason" | "problem" | "id" | "type">
  ) => quarantine("acme", { ...request, ...more }, Buffer.from(`{"n":${n}}`))
  yield* put({ reason: "unreadable", problem: "no id" })
  yield* put({
    ...{ reason: "id-collision", problem: "other bytes came before" },
    ...{ id: `evt_${n}`, type: "invoice.paid" }
  })
})

/** How often for each operation. */
const quarantined = 5

/** Sees to it that acme has something in quarantine. */
export const fillQuarantine = Effect.gen(function* () {
  const there = yield* listQuarantined("acme")
  if (there.length < quarantined) for (let n = 0; n < quarantined; n++) yield* putOne
})

/** A token's rate that nothing reaches. */
const rate = 1_000_000

/**
 * Starts a console with all its roles, beside a worker and a receiver that refuses what comes on
 * `/refused`. All of it stops with the scope.
 */
export const startDrivenConsole = Effect.fnUntraced(function* (brokerUrl: string) {
  const { names } = yield* Broker
  const hook = yield* receiver({
    answer: ({ path }) => ({ status: path.startsWith("/refused") ? 503 : 200 })
  })
  yield* worker()
  const data = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "petrel-test-driven-"))),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )
  const log = yield* serveProjection({
    broker: {
      url: brokerUrl,
      prefix: names.history.replace(/HISTORY$/, ""),
      eventRoot: names.eventRoot
    },
    data,
    keepMs: 3_600_000,
    maxBytes: 1_024 ** 3
  })
  // It answers nothing before it has begun to read.
  yield* caughtUp(log.status)
  yield* runJobs("driven")
  const console = yield* startConsole().pipe(Effect.provideService(DeliveryLog, log))
  const token = yield* console.token({ tenant: "*", rate })
  return { ...console, token, receiver: hook }
})
