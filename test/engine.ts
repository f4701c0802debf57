import { headers as makeHeaders } from "@nats-io/transport-node"
import { Clock, Context, Effect, Layer, Result, Schema, type Scope, Stream } from "effect"
import { Broker } from "../src/broker/connection.ts"
import { init } from "../src/broker/init.ts"
import { findPartitions } from "../src/broker/installed.ts"
import { readStream, scanQueue } from "../src/broker/scan.ts"
import type { TopologyOptions } from "../src/broker/topology.ts"
import { defaultTopology } from "../src/broker/topology.ts"
import type { EndpointJson } from "../src/domain/endpoint.ts"
import { Endpoint } from "../src/domain/endpoint.ts"
import type { Fact, FactKind } from "../src/domain/fact.ts"
import { Fact as FactSchema } from "../src/domain/fact.ts"
import type { RetryPolicyJson } from "../src/domain/retry-policy.ts"
import { addEndpoint } from "../src/endpoints/endpoint-store.ts"
import { Facts } from "../src/history/facts.ts"
import { parseNetwork } from "../src/policy/address.ts"
import type { WorkerOptions } from "../src/worker/worker.ts"
import { startWorker } from "../src/worker/worker.ts"
import { makeConditions } from "./conditions.ts"
import type { TestServer } from "./nats-server.ts"

/** Fast enough for tests: short time-outs, few partitions. */
export const testTopology: TopologyOptions = {
  ...defaultTopology,
  partitions: 2,
  ackWait: 1_000,
  deadBytes: 64 * 1024 * 1024
}

export const loopback = ["127.0.0.0/8", "::1"].map((text) => Result.getOrThrow(parseNetwork(text)))

export const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`

/** A policy with delays of some tens of ms. */
export const quickRetry = (changes: Partial<RetryPolicyJson> = {}): RetryPolicyJson => ({
  backoff: { kind: "fixed", delay: "50 millis" },
  jitter: "none",
  maxAttempts: 5,
  window: "1 minute",
  retryAfterCap: "24 hours",
  ...changes
})

/** A circuit that no test's failures open. */
export const closedCircuit = { failures: 1_000, rate: "none" } as const

const decodeEndpoint = Schema.decodeUnknownSync(Endpoint)
const decodeFact = Schema.decodeUnknownSync(Schema.fromJsonString(FactSchema))

let installations = 0

/** A new installation on a server or a cluster, under a prefix of its own. */
export const installation = (
  server: Pick<TestServer, "url">,
  topology: Partial<TopologyOptions> = {}
) => {
  const name = `t${process.pid}x${installations++}`
  const options = {
    url: server.url,
    prefix: `${name.toUpperCase()}_`,
    eventRoot: `${name}e`,
    publishTimeoutMs: 1_000
  }
  const broker = Broker.layer(options)
  /** Runs with a connection of its own, whatever is there. */
  const within = <A, E>(
    effect: Effect.Effect<A, E, Broker | Facts | Scope.Scope>
  ): Effect.Effect<A, unknown> =>
    Effect.provide(Effect.scoped(effect), Facts.layer.pipe(Layer.provideMerge(broker)))
  return {
    ...options,
    within,
    /** Runs with a connection of its own, after `petrel init`. */
    run: <A, E>(effect: Effect.Effect<A, E, Broker | Facts | Scope.Scope>) =>
      within(Effect.andThen(init({ ...testTopology, ...topology }), effect)),
    /** A further connection, as another process would have. */
    connection: Effect.map(Layer.build(Layer.fresh(broker)), Context.get(Broker))
  }
}

export type Installation = ReturnType<typeof installation>

/** Adds an endpoint of acme; unless it is said, its circuit stays closed and no alerts are raised about it. */
export const endpoint = (changes: Partial<EndpointJson> = {}) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    return yield* addEndpoint(
      decodeEndpoint({
        v: 1,
        tenant: "acme",
        id: "hook",
        generation: crypto.randomUUID(),
        url: "http://127.0.0.1:9/",
        types: [">"],
        sign: "standard",
        secrets: [{ value: secret, createdAt: now }],
        retry: quickRetry(),
        maxInFlight: 10,
        circuit: closedCircuit,
        alerts: "off",
        redirects: 3,
        headers: {},
        createdAt: now,
        updatedAt: now,
        ...changes
      } satisfies EndpointJson)
    )
  })

/** Publishes the way every NATS client does, and gives the event's sequence. */
export const publish = (
  type: string,
  body: string | Uint8Array = "{}",
  headers: Record<string, string> = {}
) => publishTo(`acme.${type}`, body, headers)

export const publishTo = (
  rest: string,
  body: string | Uint8Array = "{}",
  headers: Record<string, string> = {}
) =>
  Effect.gen(function* () {
    const { ask, js, names } = yield* Broker
    const list = makeHeaders()
    for (const [name, value] of Object.entries(headers)) list.set(name, value)
    const subject = `${names.eventRoot}.${rest}`
    return yield* ask("publish", () => js.publish(subject, body, { headers: list }))
  })

/** When an event was stored, ms since the epoch: with its sequence its identity. */
export const eventAt = Effect.fnUntraced(function* (seq: number) {
  const { ask, jsm, names } = yield* Broker
  const message = yield* ask("look at an event", () =>
    jsm.streams.getMessage(names.events, { seq })
  )
  return message?.time.getTime() ?? 0
})

/**
 * Publishes so many events of a type, each with its number for its body and in its id.
 *
 * @param bytes that each body has at least.
 */
export const publishMany = (count: number, type = "invoice.paid", bytes = 0) =>
  Effect.forEach(
    Array.from({ length: count }, (_, n) => n),
    (n) => publish(type, `${n}`.padEnd(bytes), { "Nats-Msg-Id": `${type}-${n}` }),
    { concurrency: 32, discard: true }
  )

/** A worker in this process that may talk to loopback, as soon as it is started. */
export const startedWorker = (options: Partial<WorkerOptions> = {}) =>
  startWorker({
    id: "w1",
    roles: ["router", "deliver"],
    allowNetworks: loopback,
    stopWithin: 5_000,
    ...options
  })

/** The same once it delivers in what is its share: it attempts then what it routes. */
export const worker = (options: Partial<WorkerOptions> = {}) =>
  Effect.tap(startedWorker(options), ({ delivering }) =>
    options.roles?.includes("deliver") === false ? Effect.void : delivering
  )

/** One that routes, and one that delivers: nothing is attempted straight from its event. */
export const workersApart = (options: Partial<WorkerOptions> = {}) =>
  Effect.andThen(
    worker({ ...options, id: "routes", roles: ["router"] }),
    worker({ ...options, roles: ["deliver"] })
  )

/** Acknowledges so many events in the name of the router, for a history that is written by hand. */
export const acknowledgeEvents = Effect.fnUntraced(function* (count: number) {
  const { ask, js, names } = yield* Broker
  yield* ask("be the router", async () => {
    const router = await js.consumers.get(names.events, names.routerConsumer)
    for await (const event of await router.fetch({ max_messages: count })) await event.ackAck()
  })
})

/** The history as it grows. */
export const history = Effect.gen(function* () {
  const { names } = yield* Broker
  const facts: Array<Fact> = []
  const changes: Array<Fact> = []
  const conditions = makeConditions()
  yield* readStream({
    stream: names.history,
    subjects: [names.subjects.allFacts],
    follow: true
  }).pipe(
    Stream.runForEach((message) =>
      Effect.sync(() => {
        const fact = decodeFact(message.string())
        if (fact.kind === "endpoint-changed") changes.push(fact)
        else facts.push(fact)
        conditions.changed()
      })
    ),
    Effect.forkScoped
  )
  return {
    /** All but those that tell a change of an endpoint. */
    facts,
    changes,
    /** Those that tell a plan, by itself or with the end of the only delivery. */
    plans: () => facts.filter(({ plan }) => plan !== undefined),
    of: (...kinds: ReadonlyArray<FactKind>) => facts.filter(({ kind }) => kinds.includes(kind)),
    until: (holds: (facts: ReadonlyArray<Fact>) => boolean) => conditions.until(() => holds(facts)),
    /** Waits for so many that tell a plan. */
    planned: (count: number) =>
      conditions.until(() => facts.filter(({ plan }) => plan !== undefined).length >= count),
    /** Waits for so many facts of a kind. */
    count: (kind: FactKind, count: number) =>
      conditions.until(() => facts.filter((fact) => fact.kind === kind).length >= count)
  }
})

/**
 * Makes the history anew, so that facts can be removed from it: the broker refuses that of the one
 * that `petrel init` makes. For stories of what only an operator can do, before they begin.
 */
export const erasableHistory = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  const { config } = yield* ask("look", () => jsm.streams.info(names.history))
  yield* ask("remove", () => jsm.streams.delete(names.history))
  yield* ask("make", () => jsm.streams.add({ ...config, deny_delete: false, deny_purge: false }))
})

/** Dead letters by their headers. */
export const deadLetters = Effect.gen(function* () {
  const { names } = yield* Broker
  return yield* readStream({ stream: names.dead, subjects: [names.subjects.allDead] }).pipe(
    Stream.runCollect
  )
})

/** Messages in the delivery streams, schedules included. */
export const waitingMessages = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  const { partitions = 0 } = yield* findPartitions
  const streams = Array.from({ length: partitions }, (_, index) => index).flatMap((index) => [
    names.deliveries(index),
    names.backlog(index)
  ])
  const look = ask("count", () => Promise.all(streams.map((name) => jsm.streams.info(name))))
  // What moves from one to another while this looks is in neither, but leaves a trace in the second.
  const before = yield* look
  const after = yield* look
  const moved = before.some(({ state }, index) => state.last_seq !== after[index]?.state.last_seq)
  return after.reduce((sum, { state }) => sum + state.messages, moved ? 1 : 0)
})

/** Messages in the backlogs. */
export const backlogged = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  const infos = yield* ask("count", () =>
    Promise.all([0, 1].map((index) => jsm.streams.info(names.backlog(index))))
  )
  return infos.reduce((sum, { state }) => sum + state.messages, 0)
})

/** Everything waiting under a subject of a delivery stream. */
export const queued = (partition: number, subject: string) =>
  Effect.gen(function* () {
    const { names } = yield* Broker
    return yield* Stream.runCollect(scanQueue(names.deliveries(partition), subject))
  })

/** Looks again and again until it holds: for states of the broker that tell nobody of a change. */
export const eventually = <A, E, R>(
  look: Effect.Effect<A, E, R>,
  holds: (value: A) => boolean
): Effect.Effect<A, E, R> =>
  Effect.flatMap(look, (value) =>
    holds(value)
      ? Effect.succeed(value)
      : Effect.andThen(
          Effect.sleep("20 millis"),
          Effect.suspend(() => eventually(look, holds))
        )
  )

/** The n-th of a list that must be that long. */
export const nth = <A>(list: ReadonlyArray<A>, index: number): A => {
  const found = list[index]
  if (found === undefined) throw new Error(`there are only ${list.length}, none at ${index}`)
  return found
}
