import { Clock, Effect, Option, Schema } from "effect"
import type { BrokerError } from "../../broker/connection.ts"
import { Broker } from "../../broker/connection.ts"
import { makeGate } from "../../broker/gate.ts"
import type { Layout } from "../../broker/installed.ts"
import { PublishError } from "../../broker/publisher.ts"
import type { StreamMessage } from "../../broker/stream-message.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { deliveryHeaders, firstRound, untried } from "../../domain/delivery.ts"
import type { Event, GetHeader } from "../../domain/event.ts"
import { contentOf, eventId, parseEventSubject } from "../../domain/event.ts"
import type { Plan, Planned } from "../../domain/fact.ts"
import { partitionOf } from "../../domain/names.ts"
import { nobody } from "../../domain/token.ts"
import { Facts } from "../../history/facts.ts"
import { Checkpoint } from "../checkpoint.ts"
import { Directory } from "../endpoints/directory.ts"
import { mayBeStored, storeOnce } from "../memory/store-once.ts"
import type { Plain } from "../underway.ts"
import type { Begun } from "./begun.ts"
import { makeIsSent } from "./begun.ts"
import type { StoredPart } from "./plan.ts"
import { candidates, endOf, nextPart, readPart, routedFact } from "./plan.ts"

/** Deliveries of one event that await their acknowledgement at the same time. */
const fanOut = 64

export interface RouteOptions {
  readonly worker: string
  readonly layout: Layout
}

/**
 * Meanwhile somebody else may have been given the event, and have routed it longer ago than the
 * broker remembers.
 */
class RoutingTooSlow extends Schema.TaggedError<RoutingTooSlow>()("RoutingTooSlow", {
  ms: Schema.Number
}) {
  override get message() {
    return `it was not routed within ${this.ms} ms`
  }
}

/** What is known of an event's routing when it is gone on with. */
export interface SoFar {
  /** Its plan as far as it is stored, and who has a delivery; nothing where nobody has begun. */
  readonly known: Begun | undefined
  /** Endpoints whose delivery may have been stored: nobody knows. */
  readonly tried?: ReadonlySet<string>
  /** When that was begun, ms of the monotonic clock. (Default: now) */
  readonly began?: number
}

const nobodyTried: ReadonlySet<string> = new Set()

/** Makes what routes an event: by fibers, or plainly for as long as all is as usual. */
export const makeRoute = Effect.fnUntraced(function* ({ layout, worker }: RouteOptions) {
  const isSent = yield* makeIsSent(layout.partitions)
  const clock = yield* Clock.Clock
  const { names, publisher } = yield* Broker
  const directory = yield* Directory
  const facts = yield* Facts
  const reached = yield* Checkpoint
  const deliveries = makeGate(
    "the broker takes no deliveries: events wait until it does",
    "the broker takes deliveries again"
  )

  /** Beyond it the broker may have forgotten what it has stored already: that is looked for then. */
  const patience = layout.moveDedupe / 2

  /** The message that is one endpoint's delivery: its subject and its headers. */
  const messageOf = (event: Event, planned: Planned) => {
    const delivery: Delivery = {
      tenant: event.tenant,
      endpoint: planned.id,
      event: event.id,
      eventSeq: event.seq,
      type: event.type,
      round: firstRound,
      began: event.at,
      deadline: planned.deadline,
      generation: planned.generation,
      revision: planned.revision,
      content: event.content,
      progress: untried
    }
    const partition = partitionOf(event.tenant, planned.id, layout.partitions)
    const subject = names.subjects.delivery(partition, event.tenant, planned.id)
    const messageId = `${event.seq}.${firstRound}.${planned.id}`
    return { subject, headers: deliveryHeaders(delivery, messageId) }
  }

  const send = (
    event: Event,
    body: Uint8Array,
    planned: Planned,
    stored: StoredPart,
    tried: boolean
  ) => {
    const { headers, subject } = messageOf(event, planned)
    const store = storeOnce(
      publisher.publish(subject, body, headers),
      Effect.suspend(() => isSent(event, planned, stored)),
      tried
    )
    return Effect.map(deliveries.within(patience, store), () => reached("delivery-stored"))
  }

  /** The part that counts: one stored earlier goes before one made now. */
  const storePart = (event: Event, plan: Plan) => {
    const fact = routedFact(event, plan, clock.currentTimeMillisUnsafe(), worker)
    const append = facts.appendWithin(patience, fact, factId(event, plan))
    return Effect.flatMap(append, ({ duplicate, seq }) =>
      duplicate ? readEarlier(event, plan, seq) : Effect.succeed<StoredPart>({ plan, seq })
    )
  }

  const readEarlier = Effect.fnUntraced(function* (event: Event, plan: Plan, seq: number) {
    const stored = yield* readPart(seq)
    if (Option.isSome(stored)) return stored.value
    return yield* Effect.die(
      new Error(`fact ${seq} should hold part ${plan.part} of the plan of event ${event.seq}`)
    )
  })

  const candidatesFor = ({ tenant, type }: Event) =>
    candidates(directory.match(tenant, type), directory.unreadable(tenant))

  const routeEvent = (event: Event, body: Uint8Array, sofar: SoFar) => {
    const { began = performance.now(), known, tried = nobodyTried } = sofar
    const follow = (planned: Planned, stored: StoredPart) =>
      Effect.suspend(
        (): Effect.Effect<void, PublishError | RoutingTooSlow> =>
          performance.now() - began > patience
            ? Effect.fail(new RoutingTooSlow({ ms: patience }))
            : send(event, body, planned, stored, tried.has(planned.id))
      )
    const all = candidatesFor(event)
    const routePart = (
      part: number,
      after: string
    ): Effect.Effect<void, PublishError | RoutingTooSlow | BrokerError, Broker> => {
      const earlier = known?.parts[part]
      const planned =
        earlier === undefined
          ? storePart(event, nextPart(event, all, part, after))
          : Effect.succeed(earlier)
      return Effect.flatMap(planned, (stored) => {
        reached("plan-stored")
        const { endpoints, last } = stored.plan
        const missing = endpoints.filter(({ id }) => known?.sent.has(id) !== true)
        const sent = Effect.forEach(missing, (planned) => follow(planned, stored), {
          concurrency: Math.min(fanOut, missing.length),
          discard: true
        })
        return last ? sent : Effect.andThen(sent, () => routePart(part + 1, endOf(stored.plan)))
      })
    }
    return routePart(0, "")
  }

  const unroutable = Effect.fnUntraced(function* (
    message: StreamMessage,
    header: GetHeader,
    tenant: string | undefined,
    reason: string
  ) {
    const at = clock.currentTimeMillisUnsafe()
    yield* Effect.logWarning("unroutable event", { subject: message.subject, reason })
    yield* facts.append(
      {
        v: 1,
        kind: "unroutable",
        at,
        tenant: tenant ?? nobody,
        endpoint: nobody,
        event: eventId(header("nats-msg-id"), message.seq),
        eventSeq: message.seq,
        reason,
        worker
      },
      `unroutable.${message.seq}`
    )
  })

  const eventOf = (
    message: StreamMessage,
    header: GetHeader,
    { tenant, type }: { readonly tenant: string; readonly type: string }
  ): Event => ({
    seq: message.seq,
    tenant,
    type,
    id: eventId(header("nats-msg-id"), message.seq),
    at: message.storedAt,
    content: contentOf(header)
  })

  const acknowledge = (message: StreamMessage) => {
    reached("event-routed")
    message.ack()
  }

  const carefully = (message: StreamMessage, header: GetHeader, sofar: SoFar) => {
    const subject = parseEventSubject(message.subject, names.eventRoot)
    const routed =
      "problem" in subject
        ? unroutable(message, header, subject.tenant, subject.problem)
        : routeEvent(eventOf(message, header, subject), message.data, sofar)
    return Effect.map(routed, () => acknowledge(message))
  }

  /** Stores the deliveries of a plan, some at a time. */
  const sendAll = (
    event: Event,
    message: StreamMessage,
    stored: StoredPart,
    began: number,
    work: Plain<Broker>,
    otherwise: (sofar: SoFar) => void
  ) => {
    const { endpoints } = stored.plan
    /** Those that were not stored, as far as is known; made when there is one. */
    let failures: Map<string, PublishError> | undefined
    let next = 0
    let waiting = 0
    let isLate = false
    const advance = (): void => {
      while (failures === undefined && !isLate && waiting < fanOut) {
        const planned = endpoints[next++]
        if (planned === undefined) break
        waiting++
        store(planned)
      }
      if (waiting > 0) return
      if (failures !== undefined || isLate) otherwise(soFar())
      else {
        acknowledge(message)
        work.done()
      }
    }
    const store = (planned: Planned) => {
      const { headers, subject } = messageOf(event, planned)
      publisher.send(subject, message.data, headers, (result) =>
        work.step(() => {
          waiting--
          if (result instanceof PublishError) {
            failures ??= new Map()
            failures.set(planned.id, result)
          } else reached("delivery-stored")
          isLate ||= performance.now() - began > patience
          advance()
        })
      )
    }
    const soFar = (): SoFar => {
      const ids = endpoints.slice(0, next).map(({ id }) => id)
      const sent = new Set(ids.filter((id) => failures?.has(id) !== true))
      const unsure = [...(failures ?? [])].filter(([, error]) => mayBeStored(error))
      const known = { tenant: event.tenant, parts: [stored], sent }
      return { known, tried: new Set(unsure.map(([id]) => id)), began }
    }
    advance()
  }

  /**
   * The usual event, which nobody has begun and whose plan is one part, without fibers.
   *
   * @param otherwise called where something is not as usual: how far it has come.
   */
  const plainly = (
    message: StreamMessage,
    header: GetHeader,
    work: Plain<Broker>,
    otherwise: (sofar: SoFar) => void
  ) =>
    work.step(() => {
      const began = performance.now()
      const fromStart = () => otherwise({ known: undefined, began })
      const subject = parseEventSubject(message.subject, names.eventRoot)
      if ("problem" in subject || !deliveries.isCalm()) return fromStart()
      const event = eventOf(message, header, subject)
      const plan = nextPart(event, candidatesFor(event), 0, "")
      if (!plan.last) return fromStart()
      const fact = routedFact(event, plan, clock.currentTimeMillisUnsafe(), worker)
      facts.tryAppend(fact, factId(event, plan), (stored) =>
        work.step(() => {
          if (stored === undefined || stored.duplicate) return fromStart()
          reached("plan-stored")
          sendAll(event, message, { plan, seq: stored.seq }, began, work, otherwise)
        })
      )
    })

  return { plainly, carefully }
})

const factId = ({ seq }: Event, { part }: Plan): string => `routed.${seq}.${part}`
