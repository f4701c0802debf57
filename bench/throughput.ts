/*
 * Deliveries per second of one worker against its limit, in the same run, alternating:
 *   npm run bench -- [--rounds 3] [--events 40000] [--endpoints 10] [--json]
 * Everything on this machine: receiver, load and broker are processes of their own.
 */
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { availableParallelism, tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { Effect, Schema } from "effect"
import { findNatsServer } from "../src/broker/binary.ts"
import { Broker } from "../src/broker/connection.ts"
import { startEmbedded } from "../src/broker/embedded.ts"
import { init } from "../src/broker/init.ts"
import { defaultTopology } from "../src/broker/topology.ts"
import { addEndpoint } from "../src/delivery/endpoints/endpoint-store.ts"
import { Endpoint } from "../src/domain/endpoint.ts"
import { ask, cpuOf, memoryOf, next, received, start, startWorker } from "./processes.ts"

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    events: { type: "string", default: "40000" },
    endpoints: { type: "string", default: "10" },
    json: { type: "boolean", default: false }
  }
})
const rounds = Number(values.rounds)
const events = Number(values.events)
const endpoints = Number(values.endpoints)
const inFlight = 10

const receiver = start("receiver.ts")
const { port } = await next<{ port: number }>(receiver)
const url = `http://127.0.0.1:${port}`

const runLimit = async () => {
  await ask(receiver, "reset")
  const child = start("limit.ts", [url, events, endpoints * inFlight, endpoints])
  const { cpu, ms } = await next<{ ms: number; cpu: number }>(child)
  return { perSecond: events / (ms / 1000), cpuEach: cpu / events }
}

const decode = Schema.decodeUnknownSync(Endpoint)
const benchEndpoint = (number: number) =>
  decode({
    v: 1,
    tenant: "bench",
    id: `e${number}`,
    generation: "bench",
    url: `${url}/${number}`,
    types: [`type${number}`],
    sign: "standard",
    secrets: [{ value: `whsec_${Buffer.alloc(32, 7).toString("base64")}`, createdAt: 0 }],
    retry: "default",
    maxInFlight: inFlight,
    redirects: 3,
    headers: {},
    createdAt: 0,
    updatedAt: 0
  })

const setUp = (broker: { readonly url: string }) =>
  Effect.gen(function* () {
    yield* init(defaultTopology)
    for (let number = 0; number < endpoints; number++) yield* addEndpoint(benchEndpoint(number))
  }).pipe(Effect.provide(Broker.layer(broker)))

const runPetrel = async (nats: string, brokerPid: number, pid: number) => {
  await ask(receiver, "reset")
  const before = { worker: cpuOf(pid), broker: cpuOf(brokerPid) }
  const publisher = start("publisher.ts", [nats, "events.bench.type*", events, endpoints])
  const counted = await received(receiver, events)
  if (publisher.exitCode === null) await once(publisher, "exit")
  return {
    perSecond: events / ((counted.last - counted.first) / 1000),
    workerCpuEach: (cpuOf(pid) - before.worker) / events,
    brokerCpuEach: (cpuOf(brokerPid) - before.broker) / events,
    receiverCpuEach: counted.cpu,
    memory: memoryOf(pid)
  }
}

const spread = (numbers: ReadonlyArray<number>, digits = 0) => {
  const sorted = [...numbers].sort((a, b) => a - b)
  const show = (n: number | undefined) => (n ?? 0).toFixed(digits)
  return `${show(sorted[0])} / ${show(sorted[sorted.length >> 1])} / ${show(sorted.at(-1))}`
}

const main = Effect.gen(function* () {
  const dataDir = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "petrel-bench-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const binary = yield* findNatsServer()
  const broker = yield* startEmbedded({ port: 0, dataDir })
  yield* setUp(broker)
  const worker = yield* startWorker(broker.url)
  const results = []
  for (let round = 0; round <= rounds; round++) {
    const limit = yield* Effect.promise(runLimit)
    const petrel = yield* Effect.promise(() => runPetrel(broker.url, broker.pid, worker.pid))
    // The first round warms up compilers and caches, and does not count.
    if (round === 0) continue
    const result = { round, limit, petrel, ratio: petrel.perSecond / limit.perSecond }
    results.push(result)
    if (values.json) console.log(JSON.stringify(result))
    else
      console.log(
        `round ${round}: limit ${limit.perSecond.toFixed(0)}/s (${limit.cpuEach.toFixed(0)} µs), petrel ${petrel.perSecond.toFixed(0)}/s (worker ${petrel.workerCpuEach.toFixed(0)} µs, broker ${petrel.brokerCpuEach.toFixed(0)} µs, ${petrel.memory.toFixed(0)} MiB), ratio ${result.ratio.toFixed(3)}`
      )
  }
  if (values.json) return
  console.log(
    [
      "",
      `${events} events of 1 KB a round to ${endpoints} endpoints, one worker; Node ${process.versions.node}, nats-server ${binary.version}, ${availableParallelism()} cores`,
      "                            min / median / max",
      `limit, deliveries a second  ${spread(results.map(({ limit }) => limit.perSecond))}`,
      `petrel, deliveries a second ${spread(results.map(({ petrel }) => petrel.perSecond))}`,
      `ratio                       ${spread(
        results.map(({ ratio }) => ratio),
        3
      )}`,
      `worker CPU µs a delivery    ${spread(results.map(({ petrel }) => petrel.workerCpuEach))}`,
      `broker CPU µs a delivery    ${spread(results.map(({ petrel }) => petrel.brokerCpuEach))}`,
      `worker memory MiB           ${spread(results.map(({ petrel }) => petrel.memory))}`
    ].join("\n")
  )
}).pipe(Effect.scoped)

await Effect.runPromise(main)
receiver.disconnect()
