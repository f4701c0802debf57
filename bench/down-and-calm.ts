/* The ground of scenarios in which a tenant's endpoints are down beside a tenant that is well. */
import { setTimeout } from "node:timers/promises"
import { Effect } from "effect"
import { natsClients } from "../src/broker/clients.ts"
import { connectTo } from "../src/broker/connection.ts"
import { defaultTopology } from "../src/broker/topology.ts"
import { type Receiver, startReceiver } from "./processes.ts"
import { addEndpoints, type EndpointChoice } from "./rig.ts"

/** Where a broker that was started listens. */
interface Listening {
  readonly url: string
}

/** Events of the tenant that is well. */
export const tick = { subject: "events.calm.tick", subjects: 1, bytes: 300 }

/** How many requests a second the circuits of all endpoints that are down let through, at most. */
const probesPerSecond = 200
/** Routing that has not come further for so long has stopped, s. */
const longestStand = 90
/** Deliveries of which none has come for so long do not come any more, ms. */
const stillMs = 120_000
const glanceMs = 100

/**
 * Starts the receivers of both tenants, and adds `endpoints` endpoints that may be down for the one
 * and one endpoint for the other. Circuits cool down so slowly that 200 requests a second are let
 * through in all.
 *
 * @param typesOf returns the types that an endpoint gets which may be down, by its number.
 */
export const addDownAndCalm = Effect.fnUntraced(function* (
  broker: Listening,
  endpoints: number,
  typesOf: (number: number) => EndpointChoice["types"]
) {
  const receiver = yield* startReceiver()
  const calmReceiver = yield* startReceiver()
  const coolDown = `${Math.max(5, Math.ceil(endpoints / probesPerSecond))} seconds`
  const circuit = { coolDown, maxCoolDown: coolDown }
  const add = addEndpoints(endpoints + 1, (number) =>
    number === endpoints
      ? { tenant: "calm", id: "hook", url: calmReceiver.url, types: ["tick"] }
      : {
          ...{ id: `e${number}`, url: `${receiver.url}/${number}`, circuit },
          types: typesOf(number)
        }
  )
  yield* Effect.provide(add, connectTo(broker))
  return { receiver, calmReceiver }
})

/** What no router has finished, and what none has had. */
const lookAtRouting = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const { num_ack_pending, num_pending } = yield* ask("look at the router", () =>
    jsm.consumers.info(names.events, names.routerConsumer)
  )
  return { unseen: num_pending, unrouted: num_pending + num_ack_pending }
})

/** What is stored: bytes, and the number of dead letters. */
const lookAtStreams = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const stateOf = (name: string) =>
    Effect.map(
      ask("look at a stream", () => jsm.streams.info(name)),
      ({ state }) => state
    )
  let waitingBytes = 0
  for (let partition = 0; partition < defaultTopology.partitions; partition++)
    for (const name of [names.deliveries(partition), names.backlog(partition)])
      waitingBytes += (yield* stateOf(name)).bytes
  return {
    waitingBytes,
    eventBytes: (yield* stateOf(names.events)).bytes,
    historyBytes: (yield* stateOf(names.history)).bytes,
    dead: (yield* stateOf(names.dead)).messages
  }
})

/**
 * Waits until all events are routed, or none has been for 90 s. Returns what is stored
 * then, how long that took, and the longest time without an event that was routed while there were
 * some that no router had had, both in s: what routers have given back waits for its pause.
 */
export const untilRouted = (broker: Listening) =>
  Effect.gen(function* () {
    const began = performance.now()
    const secondsSince = (time: number) => (performance.now() - time) / 1000
    let least = Number.POSITIVE_INFINITY
    let progressAt = began
    let standsSince = began
    let stood = 0
    while (true) {
      const { unrouted, unseen } = yield* lookAtRouting
      const isProgress = unrouted < least
      if (isProgress) {
        least = unrouted
        progressAt = performance.now()
      }
      if (isProgress || unseen === 0) standsSince = performance.now()
      stood = Math.max(stood, secondsSince(standsSince))
      if (unrouted === 0 || secondsSince(progressAt) > longestStand)
        return { ...(yield* lookAtStreams), unrouted, took: secondsSince(began), stood }
      yield* Effect.sleep(glanceMs)
    }
  }).pipe(Effect.provide(connectTo(broker)))

/**
 * Follows a receiver until `wanted` requests came, or none has for two minutes. Returns when the
 * first came, and how many seconds passed until all but `lastFew` had come: these may be retries, whose
 * time comes later.
 */
export const follow = async (receiver: Receiver, wanted: number, lastFew: number) => {
  let most = -1
  let since = performance.now()
  let nearly: number | undefined
  for (;;) {
    const counted = await receiver.count()
    if (counted.requests >= wanted - lastFew) nearly ??= counted.last
    if (counted.requests > most) since = performance.now()
    most = Math.max(most, counted.requests)
    const isStill = performance.now() - since > stillMs
    if (counted.requests >= wanted || isStill)
      return { first: counted.first, seconds: ((nearly ?? counted.last) - counted.first) / 1000 }
    await setTimeout(glanceMs)
  }
}
