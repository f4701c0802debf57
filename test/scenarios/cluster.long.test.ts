import { assert, describe, it } from "@effect/vitest"
import type { Scope } from "effect"
import { Context, Effect, Layer, Stream } from "effect"
import { afterAll, beforeAll, vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import type { BrokerError } from "../../src/broker/broker-error.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { readStream, scanQueue } from "../../src/broker/scan.ts"
import type { Facts } from "../../src/history/facts.ts"
import { start } from "../cli/running.ts"
import { consistentRounds, noRecords, quiet as nothingInFlight } from "../kit/consistency.ts"
import type { Installation } from "../kit/engine.ts"
import {
  backlogged,
  endpoint,
  eventually,
  installation,
  publish,
  publishMany
} from "../kit/engine.ts"
import { gate } from "../kit/gate.ts"
import type { TestCluster, TestServer } from "../kit/nats-server.ts"
import { startCluster } from "../kit/nats-server.ts"
import { owners } from "../kit/owners.ts"
import { receiver } from "../kit/receiver.ts"
import { quiet } from "../kit/scenario.ts"
import { workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ testTimeout: 120_000 })

let cluster: TestCluster
beforeAll(async () => {
  cluster = await startCluster()
})
afterAll(() => cluster.stop())

const scenario = <E>(
  name: string,
  story: (place: Installation) => Effect.Effect<void, E, Broker | Facts | Scope.Scope>
) =>
  it.live(name, () => {
    const place = installation(cluster, { replicas: 3 })
    return Effect.provide(place.run(story(place)), quiet)
  })

/** The server that leads a stream, once there is one. */
const leaderOf = (stream: string) =>
  Effect.gen(function* () {
    const { ask, jsm } = yield* natsClients
    const look = ask("look who leads", () => jsm.streams.info(stream))
    const name = Effect.map(Effect.eventually(look), ({ cluster }) => cluster?.leader ?? "")
    return yield* eventually(name, (name) => cluster.servers.has(name))
  })

const serverOf = (name: string): TestServer => {
  const server = cluster.servers.get(name)
  if (server === undefined) throw new Error(`there is no server ${name}`)
  return server
}

/** Two ways to read the sequences of a subject's messages. */
const readings = (
  stream: string,
  subject: string
): ReadonlyArray<(fromSeq: number) => Stream.Stream<number, BrokerError, Broker>> => [
  (fromSeq) =>
    Stream.map(readStream({ stream, subjects: [subject], fromSeq }), (message) => message.seq),
  (from) => Stream.map(scanQueue(stream, subject, from), (message) => message.seq)
]

describe("a cluster of three brokers", () => {
  it.live("is set up once a server is back that it has not heard of since its start", () =>
    Effect.gen(function* () {
      const [away, ...others] = [...cluster.servers.values()]
      if (away === undefined) throw new Error("there is no server")
      yield* Effect.promise(away.kill9)
      yield* Effect.promise(() => Promise.all(others.map(({ kill9 }) => kill9())))
      yield* Effect.promise(() => Promise.all(others.map(({ restart }) => restart())))
      const { eventRoot, prefix } = installation(cluster)
      const place = ["--nats", cluster.url, "--prefix", prefix, "--events", eventRoot]
      const init = yield* start("init", "--replicas", "3", "--partitions", "1", ...place)
      yield* init.until((_, err) => err.some((line) => line.includes("a server of the cluster is")))
      yield* Effect.promise(away.restart)
      assert.strictEqual(yield* init.ended, 0)
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )

  scenario("has copies that are behind, and is read to what it has acknowledged all the same", () =>
    Effect.gen(function* () {
      const { connection, names } = yield* natsClients
      const others = [yield* leaderOf(names.events), connection.info?.server_name]
      const [behind = ""] = [...cluster.servers.keys()].filter((name) => !others.includes(name))
      const stream = names.events
      const subject = `${names.eventRoot}.acme.last`
      for (let time = 0; time < 15; time++)
        for (const readFrom of readings(stream, subject)) {
          serverOf(behind).pause()
          yield* Effect.forEach(
            Array.from({ length: 300 }),
            () => publish("before", Buffer.alloc(1_000)),
            { concurrency: 50, discard: true }
          )
          const { seq } = yield* publish("last")
          serverOf(behind).resume()
          assert.deepStrictEqual(yield* Stream.runCollect(readFrom(seq - 50)), [seq])
        }
    })
  )

  scenario(
    "is read to what it has acknowledged through a leaf node, which tells of no cluster",
    () =>
      Effect.gen(function* () {
        const { connection, names } = yield* natsClients
        const stream = names.events
        const subject = `${names.eventRoot}.acme.last`
        const others = [yield* leaderOf(stream), connection.info?.server_name]
        const [behind = ""] = [...cluster.servers.keys()].filter((name) => !others.includes(name))
        const leaf = yield* Effect.acquireRelease(
          Effect.promise(() => cluster.startLeaf(behind)),
          (leaf) => Effect.promise(leaf.stop)
        )
        const prefix = names.events.slice(0, -"EVENTS".length)
        const through = yield* Layer.build(
          connectTo({ url: leaf.url, prefix, eventRoot: names.eventRoot })
        )
        assert.isUndefined(Context.get(through, Broker).server().cluster)
        for (let time = 0; time < 10; time++)
          for (const readFrom of readings(stream, subject)) {
            serverOf(behind).pause()
            yield* Effect.forEach(
              Array.from({ length: 300 }),
              // So much that its copy is behind for a while.
              () => publish("before", Buffer.alloc(20_000)),
              { concurrency: 50, discard: true }
            )
            const { seq } = yield* publish("last")
            serverOf(behind).resume()
            const read = Stream.runCollect(readFrom(seq - 50)).pipe(Effect.provideContext(through))
            assert.deepStrictEqual(yield* read, [seq])
          }
      })
  )

  scenario(
    "has workers wait that are started while it has no leaders, and stops them when told to",
    ({ eventRoot, prefix }) =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        yield* publish("paid")
        const flags = ["--nats", cluster.url, "--prefix", prefix, "--events", eventRoot]
        const down = [...cluster.servers.values()].slice(1)
        yield* Effect.promise(() => Promise.all(down.map(({ kill9 }) => kill9())))
        const options = ["--allow-network", "127.0.0.0/8", "--json", ...flags]
        const waits = (line: string) => line.includes("the broker does not answer")
        const [stopped, patient] = [
          yield* start("worker", "--id", "stopped", ...options),
          yield* start("worker", "--id", "patient", ...options)
        ]
        yield* Effect.forEach([stopped, patient], ({ until }) => until((_, err) => err.some(waits)))
        yield* stopped.signal("SIGINT")
        assert.strictEqual(yield* stopped.ended, 0)
        yield* Effect.promise(() => Promise.all(down.map(({ restart }) => restart())))
        yield* patient.until((out) => out.some((line) => line.includes('"delivering"')))
        const goesOn = (line: string) => line.includes("the broker answers")
        yield* patient.until((_, err) => err.some(goesOn))
        assert.lengthOf(patient.err.filter(waits), 1)
        assert.lengthOf(patient.err.filter(goesOn), 1)
        yield* hook.received(1)
      })
  )

  scenario(
    "loses one leader of a backlog, and another together with the worker, and no delivery",
    (place) =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const [count, leaseTtl, maxInFlight] = [3_000, 2_000, 10]
        const hook = yield* gate
        yield* endpoint({ url: hook.url, maxInFlight })
        yield* workerProcess(place, { id: "w1", leaseTtl })
        const owner = yield* workerProcess(place, { id: "w2", leaseTtl })
        yield* eventually(owners(2), (all) => all[0] === "w2" && all[1] === "w1")
        yield* publishMany(count)
        yield* eventually(backlogged, (waiting) => waiting > count - 200)
        yield* hook.open
        yield* hook.received(500)
        const one = serverOf(yield* leaderOf(names.backlog(0)))
        yield* Effect.promise(one.kill9)
        yield* Effect.promise(one.restart)
        yield* hook.received(1_000)
        assert.lengthOf(new Set(hook.requests.map(({ body }) => body.toString())), 1_000)

        const another = serverOf(yield* leaderOf(names.backlog(0)))
        yield* Effect.all([owner.kill9, Effect.promise(another.kill9)], { concurrency: 2 })
        const sent = hook.requests.length
        yield* hook.received(count)
        // The test may itself have been connected to the server that it has killed.
        yield* Effect.eventually(nothingInFlight)
        const accounts = yield* consistentRounds
        assert.lengthOf(accounts, count)
        assert.isTrue(accounts.every(({ ends }) => ends[0]?.kind === "delivered"))
        yield* noRecords
        assert.isBelow(sent, count)
        assert.isAtMost(hook.requests.length, count + maxInFlight)
        assert.strictEqual(hook.now.most, maxInFlight)
      })
  )
})
