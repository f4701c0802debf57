import { headers as makeHeaders } from "@nats-io/transport-node"
import { Clock, Context, Effect, Layer, Result, Schema, type Scope, Stream } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { init } from "../../src/broker/init.ts"
import { findPartitions } from "../../src/broker/installed.ts"
import { readStream, scanQueue } from "../../src/broker/scan.ts"
import type { TopologyOptions } from "../../src/broker/topology.ts"
import { defaultTopology } from "../../src/broker/topology.ts"
import type { EndpointJson } from "../../src/domain/endpoint.ts"
import { Endpoint } from "../../src/domain/endpoint.ts"
import type { Fact, FactKind } from "../../src/domain/fact.ts"
import { Fact as FactSchema } from "../../src/domain/fact.ts"
import type { RetryPolicyJson } from "../../src/domain/retry-policy.ts"
import { addEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { countBacklogs } from "../../src/history/backlog-count.ts"
import { Facts } from "../../src/history/facts.ts"
import { parseNetwork } from "../../src/policy/address.ts"
import type { WorkerOptions } from "../../src/worker/worker.ts"
import { startWorker } from "../../src/worker/worker.ts"
import { makeConditions } from "./conditions.ts"
import { notePlace } from "./explained.ts"
import type { TestServer } from "./nats-server.ts"

/** Settings for fast tests: short time-outs, few partitions. */
export const testTopology: TopologyOptions = {
  ...defaultTopology,
  partitions: 2,
  ackWait: 1_000,
  deadBytes: 64 * 1024 * 1024
}

/**
 * For stories that count what came to a queue: an event that is not acknowledged within the second of
 * `testTopology`, as on a machine that stalls, is handed out again, and recovery stores its deliveries
 * there.
 */
export const countsQueued: Partial<TopologyOptions> = { ackWait: 30_000 }

export const loopback = ["127.0.0.0/8", "::1"].map((text) => Result.getOrThrow(parseNetwork(text)))

export const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`

/** Returns a policy with delays of tens of ms. */
export const quickRetry = (changes: Partial<RetryPolicyJson> = {}): RetryPolicyJson => ({
  backoff: { kind: "fixed", delay: "50 millis" },
  jitter: "none",
  maxAttempts: 5,
  window: "1 minute",
  retryAfterCap: "24 hours",
  ...changes
})

/** A policy whose first retry comes after the end of any test. */
export const lateRetry = quickRetry({
  backoff: { kind: "fixed", delay: "20 minutes" },
  window: "1 hour"
})

/** A circuit that the failures of tests never open. */
export const closedCircuit = { failures: 1_000, rate: "none" } as const

const decodeEndpoint = Schema.decodeUnknownSync(Endpoint)
const decodeFact = Schema.decodeUnknownSync(Schema.fromJsonString(FactSchema))

let installations = 0

/** A new installation on a server or a cluster, under a unique prefix. */
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
  const broker = connectTo(options)
  /** Runs an effect with a connection of its own, on the installation as it is. */
  const within = <A, E>(
    effect: Effect.Effect<A, E, Broker | Facts | Scope.Scope>
  ): Effect.Effect<A, unknown> =>
    Effect.andThen(
      notePlace(options.prefix, broker),
      Effect.provide(Effect.scoped(effect), Facts.layer.pipe(Layer.provideMerge(broker)))
    )
  return {
    ...options,
    within,
    /** Runs an effect with a connection of its own, after `petrel init`. */
    run: <A, E>(effect: Effect.Effect<A, E, Broker | Facts | Scope.Scope>) =>
      within(Effect.andThen(init({ ...testTopology, ...topology }), effect)),
    /** Another connection, like that of another process. */
    connection: Effect.map(Layer.build(Layer.fresh(broker)), Context.get(Broker))
  }
}

export type Installation = ReturnType<typeof installation>

/**
 * Adds an endpoint of acme. By default, its circuit stays closed and no alerts are raised about it.
 */
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

/** Publishes an event as any NATS client does. Returns its sequence. */
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
    const { ask, js, names } = yield* natsClients
    const list = makeHeaders()
    for (const [name, value] of Object.entries(headers)) list.set(name, value)
    const subject = `${names.eventRoot}.${rest}`
    return yield* ask("publish", () => js.publish(subject, body, { headers: list }))
  })

/**
 * Returns when an event was stored, ms since the epoch. Together with its sequence it identifies
 * the event.
 */
export const eventAt = Effect.fnUntraced(function* (seq: number) {
  const { ask, jsm, names } = yield* natsClients
  const message = yield* ask("look at an event", () =>
    jsm.streams.getMessage(names.events, { seq })
  )
  return message?.time.getTime() ?? 0
})

/**
 * Publishes `count` events of a type. Each has its number as its body and in its id.
 *
 * @param bytes minimum length of each body.
 */
export const publishMany = (count: number, type = "invoice.paid", bytes = 0) =>
  Effect.forEach(
    Array.from({ length: count }, (_, n) => n),
    (n) => publish(type, `${n}`.padEnd(bytes), { "Nats-Msg-Id": `${type}-${n}` }),
    { concurrency: 32, discard: true }
  )

/**
 * Starts a worker in this process that may send to loopback addresses. Returns as soon as it has
 * started.
 */
export const startedWorker = (options: Partial<WorkerOptions> = {}) =>
  startWorker({
    id: "w1",
    roles: ["router", "deliver"],
    allowNetworks: loopback,
    stopWithin: 5_000,
    ...options
  })

/**
 * Starts a worker as {@link startedWorker}, and waits until it delivers for its partitions. It then
 * attempts the events that it routes directly.
 */
export const worker = (options: Partial<WorkerOptions> = {}) =>
  Effect.tap(startedWorker(options), ({ delivering }) =>
    options.roles?.includes("deliver") === false ? Effect.void : delivering
  )

/** Starts one worker that routes and one that delivers, so that there is no direct delivery. */
export const workersApart = (options: Partial<WorkerOptions> = {}) =>
  Effect.andThen(
    worker({ ...options, id: "routes", roles: ["router"] }),
    worker({ ...options, roles: ["deliver"] })
  )

/**
 * Acknowledges `count` events in place of the router, for tests that write the history themselves.
 */
export const acknowledgeEvents = Effect.fnUntraced(function* (count: number) {
  const { ask, js, names } = yield* natsClients
  yield* ask("be the router", async () => {
    const router = await js.consumers.get(names.events, names.routerConsumer)
    for await (const event of await router.fetch({ max_messages: count })) await event.ackAck()
  })
})

/** Follows the history. */
export const history = Effect.gen(function* () {
  const { names } = yield* Broker
  const facts: Array<Fact> = []
  const changes: Array<Fact> = []
  const counts = new Map<FactKind, number>()
  let plans = 0
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
        // Counted as they come: stories have thousands, and each is looked at for each condition.
        counts.set(fact.kind, (counts.get(fact.kind) ?? 0) + 1)
        if (fact.plan !== undefined) plans++
        conditions.changed()
      })
    ),
    Effect.forkScoped
  )
  return {
    /** All facts except changes of endpoints. */
    facts,
    changes,
    /** Facts that record a plan, alone or with the end of the only delivery. */
    plans: () => facts.filter(({ plan }) => plan !== undefined),
    of: (...kinds: ReadonlyArray<FactKind>) => facts.filter(({ kind }) => kinds.includes(kind)),
    until: (holds: (facts: ReadonlyArray<Fact>) => boolean) => conditions.until(() => holds(facts)),
    /** Waits for `count` facts that record a plan. */
    planned: (count: number) => conditions.until(() => plans >= count),
    /** Waits for `count` facts of a kind. */
    count: (kind: FactKind, count: number) =>
      conditions.until(() => (counts.get(kind) ?? 0) >= count)
  }
})

/**
 * Recreates the history stream so that facts can be removed from it, which the stream of `petrel
 * init` denies. For tests of what only an operator can do. Call it before anything is published.
 */
export const erasableHistory = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const { config } = yield* ask("look", () => jsm.streams.info(names.history))
  yield* ask("remove", () => jsm.streams.delete(names.history))
  yield* ask("make", () => jsm.streams.add({ ...config, deny_delete: false, deny_purge: false }))
})

/** Returns the headers of all dead letters. */
export const deadLetters = Effect.gen(function* () {
  const { names } = yield* Broker
  return yield* readStream({ stream: names.dead, subjects: [names.subjects.allDead] }).pipe(
    Stream.runCollect
  )
})

/** Returns the number of deliveries in the delivery streams, including schedules. */
export const waitingMessages = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const { partitions = 0 } = yield* findPartitions
  const indexes = Array.from({ length: partitions }, (_, index) => index)
  const streams = indexes.flatMap((index) => [names.deliveries(index), names.backlog(index)])
  const look = ask("count", () => Promise.all(streams.map((name) => jsm.streams.info(name))))
  // A message that moves between two streams during the scan is counted in neither, but increases
  // the last sequence of the second.
  const before = yield* look
  const backlogs = yield* backloggedIn(indexes)
  const after = yield* look
  const moved = before.some(({ state }, index) => state.last_seq !== after[index]?.state.last_seq)
  const queued = after.filter((_, index) => index % 2 === 0)
  return queued.reduce((sum, { state }) => sum + state.messages, backlogs + (moved ? 1 : 0))
})

/** Returns the number of deliveries in the backlogs of partitions. */
const backloggedIn = Effect.fnUntraced(function* (partitions: ReadonlyArray<number>) {
  const counts = yield* Effect.forEach(partitions, (index) => countBacklogs(index))
  return counts.flatMap((each) => [...each.values()]).reduce((sum, count) => sum + count, 0)
})

/** Returns the number of deliveries in the backlogs. */
export const backlogged = backloggedIn([0, 1])

/** Returns all messages under a subject of a delivery stream. */
export const queued = (partition: number, subject: string) =>
  Effect.gen(function* () {
    const { names } = yield* Broker
    return yield* Stream.runCollect(scanQueue(names.deliveries(partition), subject))
  })

/** The first pause between two looks, ms, and the longest: a look may cost more than what it waits for. */
const firstPauseMs = 20
const maxPauseMs = 100

/** Polls until the condition holds. For broker state whose changes are not announced. */
export const eventually = <A, E, R>(
  look: Effect.Effect<A, E, R>,
  holds: (value: A) => boolean,
  pauseMs = firstPauseMs
): Effect.Effect<A, E, R> =>
  Effect.flatMap(look, (value) =>
    holds(value)
      ? Effect.succeed(value)
      : Effect.andThen(
          Effect.sleep(pauseMs),
          Effect.suspend(() => eventually(look, holds, Math.min(maxPauseMs, 1.3 * pauseMs)))
        )
  )

/** Returns the n-th element. Fails if the list is shorter. */
export const nth = <A>(list: ReadonlyArray<A>, index: number): A => {
  const found = list[index]
  if (found === undefined) throw new Error(`there are only ${list.length}, none at ${index}`)
  return found
}
