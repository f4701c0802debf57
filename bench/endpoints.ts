/*
 * What a worker costs with many endpoints, and with much that waits in backlogs:
 *   npm run bench:endpoints -- [--events 30000] [--json]
 * Takes two minutes and up to 1 GB of disk in the system's directory for temporary files.
 */
import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { Clock, Effect, Schema } from "effect"
import { Broker } from "../src/broker/connection.ts"
import { startEmbedded } from "../src/broker/embedded.ts"
import { init } from "../src/broker/init.ts"
import type { HeaderList, PublishError } from "../src/broker/publisher.ts"
import { defaultTopology } from "../src/broker/topology.ts"
import { writeFloor } from "../src/delivery/memory/takeover.ts"
import { deliveryHeaders, firstRound, untried } from "../src/domain/delivery.ts"
import { Endpoint } from "../src/domain/endpoint.ts"
import { partitionOf } from "../src/domain/names.ts"
import { ask, cpuOf, memoryOf, next, received, start, startWorker } from "./processes.ts"

const { values } = parseArgs({
  options: {
    events: { type: "string", default: "30000" },
    json: { type: "boolean", default: false }
  }
})
const events = Number(values.events)

const tenants = 1_000
/** Endpoints that get events, where there are so many; each is of another tenant. */
const mostBusy = 1_000
/** Endpoints that are paused and have something waiting. */
const paused = 10
/** Where nothing listens. */
const nowhere = "http://127.0.0.1:1"
/** How long a worker is watched that has nothing to do. */
const restSeconds = 3
const day = 24 * 60 * 60 * 1000

interface Case {
  readonly endpoints: number
  readonly waiting: number
}
const cases: ReadonlyArray<Case> = [
  { endpoints: 10, waiting: 0 },
  { endpoints: 1_000, waiting: 0 },
  { endpoints: 100_000, waiting: 0 },
  { endpoints: 10, waiting: 100_000 },
  { endpoints: 10, waiting: 1_000_000 }
]

const busyOf = ({ endpoints }: Case) => Math.min(endpoints, mostBusy)
/** A tenth of them is dead, where they are many. */
const isDead = (number: number, { endpoints }: Case) => endpoints >= mostBusy && number % 10 === 9

const encode = Schema.encodeSync(Endpoint)
const decode = Schema.decodeUnknownSync(Endpoint)
const configuration = (id: string, number: number, more: object) =>
  JSON.stringify(
    encode(
      decode({
        v: 1,
        tenant: `t${number % tenants}`,
        id,
        generation: `generation${number}`,
        types: ["invoice.>", "*.created"],
        sign: "standard",
        secrets: [{ value: `whsec_${Buffer.alloc(32, number).toString("base64")}`, createdAt: 0 }],
        retry: "default",
        maxInFlight: 10,
        redirects: 3,
        headers: {},
        createdAt: 0,
        updatedAt: 0,
        ...more
      })
    )
  )

interface Message {
  readonly subject: string
  readonly body: string
  readonly headers: HeaderList
}

/** Many at once, for one after the other would take most of the time. */
const publishAll = Effect.fnUntraced(function* (count: number, make: (number: number) => Message) {
  const { publisher } = yield* Broker
  let made = 0
  const loop = Effect.callback<void, PublishError>((resume) => {
    const more = () => {
      if (made >= count) return resume(Effect.void)
      const { body, headers, subject } = make(made++)
      publisher.send(subject, body, headers, (result) =>
        result instanceof Error ? resume(Effect.fail(result)) : more()
      )
    }
    more()
  })
  yield* Effect.all(
    Array.from({ length: 1_000 }, () => loop),
    { concurrency: "unbounded" }
  )
})

const makeEndpoints = Effect.fnUntraced(function* (wanted: Case, receiver: string) {
  const { names } = yield* Broker
  const stored = (id: string, number: number, more: object): Message => ({
    subject: `$KV.${names.buckets.endpoints}.t${number % tenants}.${id}`,
    body: configuration(id, number, more),
    headers: []
  })
  yield* publishAll(wanted.endpoints, (number) =>
    stored(`e${number}`, number, {
      url: `${isDead(number, wanted) ? nowhere : receiver}/${number}`,
      ...(number < busyOf(wanted) ? { types: ["busy"] } : {})
    })
  )
  if (wanted.waiting > 0)
    yield* publishAll(paused, (number) =>
      stored(`p${number}`, number, { url: receiver, paused: { at: 0, by: "bench" } })
    )
})

/** Deliveries in the backlogs of paused endpoints, as a worker that has run for a while leaves them. */
const makeWaiting = Effect.fnUntraced(function* ({ waiting }: Case) {
  const { names, publisher } = yield* Broker
  const { partitions } = defaultTopology
  const began = yield* Clock.currentTimeMillis
  yield* publishAll(waiting, (number) => {
    const tenant = `t${number % paused}`
    const endpoint = `p${number % paused}`
    const delivery = {
      ...{ tenant, endpoint, event: `evt_${number}`, eventSeq: number + 1, type: "invoice.paid" },
      ...{ round: firstRound, began, deadline: began + 3 * day, revision: 1 },
      ...{ generation: `generation${number % paused}`, content: {}, progress: untried }
    }
    return {
      subject: names.subjects.backlog(partitionOf(tenant, endpoint, partitions), tenant, endpoint),
      body: '{"invoice":42}',
      headers: deliveryHeaders(delivery, `waiting.${number}`)
    }
  })
  const fact = names.subjects.fact("t0", "p0", "ok", "endpoint-paused")
  const { seq } = yield* publisher.publish(fact, "{}", [])
  for (let partition = 0; partition < partitions; partition++) yield* writeFloor(partition, seq)
})

/** Sends events to the busy endpoints in turn, and waits for what the living ones get. */
const load = async (nats: string, receiver: ChildProcess, count: number, wanted: Case) => {
  const busy = busyOf(wanted)
  await ask(receiver, "reset")
  const publisher = start("publisher.ts", [nats, "events.t*.busy", count, busy])
  let delivered = 0
  for (let number = 0; number < count; number++) if (!isDead(number % busy, wanted)) delivered++
  await received(receiver, delivered)
  if (publisher.exitCode === null) await once(publisher, "exit")
  return delivered
}

const measure = Effect.fnUntraced(function* (wanted: Case, receiver: ChildProcess, url: string) {
  const dataDir = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "petrel-bench-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const broker = yield* startEmbedded({ port: 0, dataDir })
  yield* Effect.gen(function* () {
    yield* init(defaultTopology)
    yield* makeEndpoints(wanted, url)
    if (wanted.waiting > 0) yield* makeWaiting(wanted)
  }).pipe(Effect.provide(Broker.layer({ url: broker.url })))
  const worker = yield* startWorker(broker.url)
  const memory = () => ({ worker: memoryOf(worker.pid), broker: memoryOf(broker.pid) })
  const spent = () => ({ worker: cpuOf(worker.pid), broker: cpuOf(broker.pid) })
  const since = (before: ReturnType<typeof spent>, count: number) => ({
    worker: (cpuOf(worker.pid) - before.worker) / count,
    broker: (cpuOf(broker.pid) - before.broker) / count
  })
  yield* Effect.sleep("2 seconds")
  const atRest = spent()
  yield* Effect.sleep(`${restSeconds} seconds`)
  const idleCpu = since(atRest, restSeconds * 10_000)
  const idle = memory()
  yield* Effect.promise(() => load(broker.url, receiver, events / 2, wanted))
  const before = spent()
  const delivered = yield* Effect.promise(() => load(broker.url, receiver, events, wanted))
  const cpuMicros = since(before, delivered)
  return { ...wanted, deliversAfterMs: worker.after, idle, idleCpu, cpuMicros, busy: memory() }
}, Effect.scoped)

const header = [
  "| endpoints | waiting | delivers after | idle: worker, broker | CPU of a core | CPU a delivery: worker, broker | then: worker, broker |",
  "| --- | --- | --- | --- | --- | --- | --- |"
]
const pair = ({ broker, worker }: { readonly worker: number; readonly broker: number }) =>
  `${worker.toFixed(0)}, ${broker.toFixed(0)}`

const receiver = start("receiver.ts")
const { port } = await next<{ port: number }>(receiver)
if (!values.json) console.log(header.join("\n"))
for (const wanted of cases) {
  const row = await Effect.runPromise(measure(wanted, receiver, `http://127.0.0.1:${port}`))
  const { busy, cpuMicros, deliversAfterMs, endpoints, idle, idleCpu, waiting } = row
  console.log(
    values.json
      ? JSON.stringify(row)
      : `| ${endpoints.toLocaleString("en")} | ${waiting.toLocaleString("en")} | ${(deliversAfterMs / 1000).toFixed(1)} s | ${pair(idle)} MiB | ${pair(idleCpu)}% | ${pair(cpuMicros)} µs | ${pair(busy)} MiB |`
  )
}
receiver.disconnect()
