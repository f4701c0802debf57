import { Effect, Semaphore } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import { keepGoing } from "../../broker/keep-going.ts"
import { ageLimitMs } from "../../broker/kept-since.ts"
import type { Delivery, PlacedDelivery } from "../../domain/delivery.ts"
import { eventOutlasts } from "../../policy/event-outlasts.ts"
import type { EventBodies } from "./event-bodies.ts"

/**
 * Bodies of this size or more are left in their event, bytes. A smaller copy costs less than a
 * request that may have to read a block from the broker's disk (docs/internals/decisions.md).
 */
const leastLeftBytes = 32 * 1024

/** Maximum deliveries, and bytes of their bodies, that are read together. */
const together = { deliveries: 256, bytes: 4 * 1024 * 1024 }

/** A delivery as a message of a queue holds it. */
export type LeftDelivery = Pick<PlacedDelivery, "body" | "delivery">

/** A body that somebody waits for. */
interface Wanted {
  readonly delivery: Delivery
  readonly bytes: number
  body: Uint8Array | "gone" | undefined
}

/** What deliveries of one tenant wait for. */
interface Turn {
  users: number
  readonly reading: Semaphore.Semaphore
  readonly wanted: Array<Wanted>
}

interface LeftBodiesOptions {
  readonly bodies: Pick<EventBodies, "read">
  /** Returns how long events are kept, ms: infinite for ever, undefined while it is unknown. */
  readonly eventAge: () => number | undefined
  /** Bodies of this size or more are left in their event, bytes. */
  readonly least?: number | undefined
}

const nothing = new Uint8Array()

/**
 * Large bodies of deliveries that wait in queues. A retry names its event instead of holding a copy
 * of its body, where the event is certainly kept for as long as the retry may wait. The body is read
 * when it is needed: those that are asked for while others of the tenant are read are read together,
 * in order of sequence. One for each worker.
 */
export class LeftBodies {
  readonly #options: LeftBodiesOptions
  readonly #least: number
  readonly #turns = new Map<string, Turn>()

  constructor(options: LeftBodiesOptions) {
    this.#options = options
    this.#least = options.least ?? leastLeftBytes
  }

  /** Returns a delivery as a queue is to hold it: without its body, where that may be left. */
  leave({ body, delivery }: LeftDelivery): LeftDelivery {
    const isLeft =
      delivery.leftBytes === undefined &&
      body.length >= this.#least &&
      eventOutlasts(delivery, this.#options.eventAge())
    return isLeft
      ? { delivery: { ...delivery, leftBytes: body.length }, body: nothing }
      : { delivery, body }
  }

  /**
   * Returns the body of a delivery, `gone` where the leader of EVENTS does not have its event any
   * more. Fails with BrokerError.
   */
  read({ body, delivery }: LeftDelivery): Effect.Effect<Uint8Array | "gone", BrokerError> {
    const { leftBytes: bytes, tenant } = delivery
    if (bytes === undefined) return Effect.succeed(body)
    return Effect.suspend(() => {
      const own: Wanted = { delivery, bytes, body: undefined }
      const turn = this.#turns.get(tenant) ?? {
        ...{ users: 0, wanted: [] },
        reading: Semaphore.makeUnsafe(1)
      }
      turn.users++
      turn.wanted.push(own)
      this.#turns.set(tenant, turn)
      const read = Effect.suspend(() =>
        own.body === undefined ? this.#readTogether(own, turn.wanted) : Effect.succeed(own.body)
      )
      return Effect.ensuring(
        turn.reading.withPermit(read),
        Effect.sync(() => {
          const at = turn.wanted.indexOf(own)
          if (at !== -1) turn.wanted.splice(at, 1)
          if (--turn.users === 0) this.#turns.delete(tenant)
        })
      )
    })
  }

  /**
   * Reads a body and those that others wait for. Where that fails they read for themselves, each in
   * its turn.
   */
  readonly #readTogether = Effect.fnUntraced(
    { self: this },
    function* (own: Wanted, wanted: Array<Wanted>) {
      const group = [own]
      let { bytes } = own
      for (const other of wanted) {
        if (group.length >= together.deliveries || bytes + other.bytes > together.bytes) break
        if (other === own || other.body !== undefined) continue
        group.push(other)
        bytes += other.bytes
      }
      const references = group.map(({ bytes, delivery: { eventAt, eventSeq, tenant } }) => ({
        ...{ tenant, eventSeq, eventAt, bytes }
      }))
      const found = yield* this.#options.bodies.read(references, undefined)
      group.forEach((one, index) => {
        const contents = found[index] ?? "gone"
        one.body = contents === "gone" ? "gone" : contents.body
      })
      return own.body ?? "gone"
    }
  )
}

/** Returns the size of the body that a delivery is sent with, bytes. */
export const sentBytes = ({ body, delivery }: LeftDelivery): number =>
  delivery.leftBytes ?? body.length

/** Returns a delivery as one whose message holds its body. */
export const withBody = ({ leftBytes: _, ...delivery }: Delivery): Delivery => delivery

/** Interval at which it is read how long events are kept, ms: `petrel init` may change it. */
const lookEveryMs = 10_000

/**
 * Reads how long events are kept, again and again until the scope closes.
 *
 * @returns what returns it, ms: infinite for ever, undefined until it is known.
 */
export const watchEventAge = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  let keptMs: number | undefined
  const look = Effect.map(streamInfo("look how long events are kept", names.events), (info) => {
    keptMs = ageLimitMs(info.config) || Number.POSITIVE_INFINITY
  })
  yield* Effect.ignore(look)
  yield* Effect.forkScoped(
    keepGoing("look how long events are kept", Effect.delay(look, lookEveryMs), lookEveryMs)
  )
  return () => keptMs
})
