import { Effect, Option, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import { OrderedMap } from "../broker/ordered-map.ts"
import type { EventIdentity } from "../domain/event.ts"
import { type Timer, timers } from "../time/timers.ts"

/** Maximum events that are remembered: as many as the broker lets be pending. */
const maxRemembered = 65_536
/** Maximum events of a message to the other routers: 10 KB. */
const maxTold = 256
/** How long events are collected for a message, ms: none comes back within seconds. */
const collectedMs = 50

/**
 * Events that a router has given back to the broker before their routing had begun: sequence, when
 * the broker stored it (ms since the epoch), and how often it had delivered it.
 */
const GivenBackMessage = Schema.Struct({
  v: Schema.Literal(1),
  events: Schema.Array(Schema.Tuple([Schema.Int, Schema.Number, Schema.Int]))
})
type Told = (typeof GivenBackMessage.Type)["events"][number]
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(GivenBackMessage))

/**
 * Events that were given back to the broker before their routing had begun, by any router. One that
 * comes back with the next delivery count was with nobody else meanwhile, so it is still new.
 */
class GivenBack {
  readonly #events = new OrderedMap<
    number,
    { readonly at: number; readonly deliveryCount: number }
  >()

  add({ eventAt: at, eventSeq }: EventIdentity, deliveryCount: number): void {
    if (this.#events.size >= maxRemembered) this.#events.takeOldest()
    this.#events.set(eventSeq, { at, deliveryCount })
  }

  /** Takes an event out. Returns true where nobody has begun it. */
  take({ eventAt, eventSeq }: EventIdentity, deliveryCount: number): boolean {
    const before = this.#events.get(eventSeq)
    this.#events.delete(eventSeq)
    return before?.at === eventAt && before.deliveryCount + 1 === deliveryCount
  }
}

/**
 * Makes the memory of events that were given back, which the routers of all workers tell each other
 * of until the scope closes: the broker delivers such an event to any of them. An event that
 * another one was not told of is looked up in the history.
 *
 * @param consumer of the events, which counts its deliveries for itself.
 */
export const makeGivenBack = Effect.fnUntraced(function* (consumer: string) {
  const { listen, names, say } = yield* Broker
  // Workers may use it, and no process has that as its instance.
  const subject = names.subjects.handOver(`events-${consumer}`)
  let known = new GivenBack()
  let telling: Array<Told> = []
  let timer: Timer | undefined
  const tell = () => {
    if (timer !== undefined) timers.cancel(timer)
    timer = undefined
    const events = telling
    telling = []
    if (events.length > 0) say(subject, JSON.stringify({ v: 1, events }))
  }
  const hear = (text: string) => {
    const { events = [] } = Option.getOrUndefined(decode(text)) ?? {}
    for (const [eventSeq, eventAt, deliveryCount] of events)
      known.add({ eventSeq, eventAt }, deliveryCount)
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => listen(subject, (message) => hear(message.string()))),
    (unlisten) =>
      Effect.sync(() => {
        tell()
        unlisten()
      })
  )
  return {
    /** Called with a new event that goes back to the broker before its routing has begun. */
    add: (event: EventIdentity, deliveryCount: number): void => {
      known.add(event, deliveryCount)
      telling.push([event.eventSeq, event.eventAt, deliveryCount])
      if (telling.length >= maxTold) tell()
      else timer ??= timers.after(collectedMs, tell)
    },
    /** Takes an event out. Returns true where nobody has begun it. */
    take: (event: EventIdentity, deliveryCount: number): boolean =>
      known.take(event, deliveryCount),
    /** Forgets all: the broker may have lost what it counted. */
    forget: (): void => {
      known = new GivenBack()
      telling = []
    }
  }
})
