import { Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import { PublishError } from "../../broker/publisher.ts"
import type { StreamMessage } from "../../broker/stream-message.ts"
import type { Progress } from "../../domain/delivery.ts"
import { untried } from "../../domain/delivery.ts"
import type { Planned } from "../../domain/fact.ts"
import { partitionOfKey } from "../../domain/names.ts"
import { Checkpoint } from "../checkpoint.ts"
import type { Linked } from "../lanes/chain.ts"
import { Chain } from "../lanes/chain.ts"
import { mayBeStored } from "../memory/store-once.ts"
import type { Straight } from "../straight.ts"
import type { Plain } from "../underway.ts"
import type { Begun } from "./begun.ts"
import { deliveryOf, messageOf } from "./planned.ts"
import type { Telling } from "./telling.ts"

/** Deliveries of one event that await their acknowledgement at the same time. */
export const fanOut = 64
/** Deliveries that are attempted from their events at the same time, or stand in line for it. */
const mostStraight = 768
/**
 * How long an event may have such ones before it no longer counts as in hand, ms: where all that is
 * missing are answers, and where some stand in line.
 */
const moments = { answers: 20, line: 100 }
/** How long the only delivery of an event may last before its plan is told by itself, ms. */
const untold = 1_000
/** How often that is looked at while there are any, ms. */
const tick = 10

/** Attempts a delivery from its event where this worker may do that in a moment; else says false. */
export type TakeStraight = (partition: number, straight: Straight) => boolean

/** What is known of an event's routing when it is gone on with. */
export interface SoFar {
  /** Its plan as far as it is stored, and who has a delivery; nothing where nobody has begun. */
  readonly known: Begun | undefined
  /**
   * Endpoints whose delivery may have been stored, or attempted: nobody knows. Undefined where that
   * goes for all of a plan that was stored earlier.
   */
  readonly tried?: ReadonlySet<string>
  /** When that was begun, ms of the monotonic clock. (Default: now) */
  readonly began?: number
}

/** An event with a plan in one part: it was stored just now, or is told with its only delivery. */
export interface Routed {
  readonly message: StreamMessage
  readonly telling: Telling
  /** Of the endpoints of its plan, one after the other. */
  readonly keys: ReadonlyArray<string>
  /** ms of the monotonic clock */
  readonly began: number
}

export interface FanOutOptions {
  /** How many there are. */
  readonly partitions: number
  /** How long the storing of an event's deliveries may take, ms. */
  readonly patience: number
  /** Bodies of events that are attempted at the same time, bytes. */
  readonly bytes: number
  readonly takeStraight: TakeStraight
}

/** An event of which deliveries are attempted. */
interface Attempting extends Linked<Attempting> {
  /** ms of the monotonic clock */
  readonly since: number
  /** True where none of them stands in line. */
  readonly areBegun: () => boolean
  readonly lasts: () => void
}

/** What follows a fan-out. */
export interface Then {
  /** Each delivery is stored, or has ended. */
  readonly done: () => void
  /** Something was not as usual: how far it has come. */
  readonly otherwise: (sofar: SoFar) => void
  /** It will be under way for longer than a moment. */
  readonly lasts: () => void
}

/**
 * Makes what brings an event to the endpoints of its plan without fibers: where this worker may do
 * that in a moment it attempts the delivery itself, else it stores it in its partition's queue.
 */
export const makeFanOut = Effect.fnUntraced(function* (options: FanOutOptions) {
  const { partitions, patience, takeStraight } = options
  const { names, publisher } = yield* Broker
  const reached = yield* Checkpoint
  /** Of all events: deliveries that are attempted, and bytes of the events' bodies. */
  let straights = 0
  let bytes = 0
  /** Those that are so for a moment only so far. */
  const young = new Chain<Attempting>()
  let timer: NodeJS.Timeout | undefined
  const noteLasting = () => {
    timer = undefined
    const now = performance.now()
    for (const event of young) {
      const age = now - event.since
      if (age < moments.answers) break
      if (age < moments.line && !event.areBegun()) continue
      young.remove(event)
      event.lasts()
    }
    if (young.size > 0) timer ??= setTimeout(noteLasting, tick)
  }
  yield* Effect.addFinalizer(() => Effect.sync(() => clearTimeout(timer)))

  return ({ began, keys, message, telling }: Routed, work: Plain<Broker>, then: Then) => {
    const { event } = telling
    const { endpoints } = telling.plan
    /** Those that have no delivery, as far as is known; made when there is one. */
    let without: Map<string, PublishError | "unknown"> | undefined
    let failed: Map<string, Progress> | undefined
    let next = 0
    let storing = 0
    let attempting = 0
    let inLine = 0
    /** Of those that are attempted: they no longer stand in the way of others. */
    let lasting = 0
    /** While some are attempted that have not lasted yet. */
    let attempted: Attempting | undefined
    /** While the plan is not told although the only delivery lasts. */
    let tells: NodeJS.Timeout | undefined
    let isLate = false

    const isAsUsual = () => without === undefined && !isLate && !telling.isUnsure

    const advance = (): void => {
      while (isAsUsual() && storing + attempting - lasting < fanOut) {
        const planned = endpoints[next]
        const key = keys[next]
        if (planned === undefined || key === undefined) break
        next++
        if (!attempt(planned, key)) storeUntried(planned)
      }
      if (storing + attempting > 0) return
      if (isAsUsual()) then.done()
      else then.otherwise(soFar())
    }

    /** Nothing is stored that rests upon a plan which the history does not have. */
    const storeUntried = (planned: Planned) => {
      if (telling.isTold) {
        store(planned, untried)
        return
      }
      storing++
      telling.ask(() =>
        work.step(() => {
          storing--
          if (telling.isUnsure) lack(planned, "unknown")
          else {
            reached("plan-stored")
            store(planned, untried)
          }
          advance()
        })
      )
    }

    const attempt = (planned: Planned, key: string): boolean => {
      if (straights >= mostStraight || bytes >= options.bytes) return false
      let isBegun = false
      const straight: Straight = {
        delivery: deliveryOf(event, planned, untried),
        key,
        body: message.data,
        untold: telling.isTold ? undefined : telling,
        begun: () => {
          inLine--
          isBegun = true
        },
        ended: (end) => {
          if (!isBegun) inLine--
          leave()
          work.step(() => {
            // Meanwhile another router may have stored it, and the broker have forgotten that.
            const isUnsure = end._tag === "Failed" && performance.now() - began > patience
            if (end._tag === "Unknown" || isUnsure || telling.isUnsure) lack(planned, "unknown")
            else if (end._tag === "Failed") {
              failed ??= new Map()
              failed.set(planned.id, end.progress)
              store(planned, end.progress)
            } else if (end._tag === "Untried") storeUntried(planned)
            advance()
          })
        }
      }
      let isTaken = false
      begin()
      try {
        isTaken = takeStraight(partitionOfKey(key, partitions), straight)
      } finally {
        if (!isTaken) {
          inLine--
          leave()
        }
      }
      return isTaken
    }

    const begin = () => {
      straights++
      inLine++
      if (attempting++ === 0) bytes += message.data.length
      if (attempted !== undefined) return
      attempted = { since: performance.now(), areBegun, lasts, before: undefined, after: undefined }
      young.add(attempted)
      timer ??= setTimeout(noteLasting, tick)
    }

    const leave = () => {
      straights--
      attempting--
      lasting = Math.min(lasting, attempting)
      if (attempting > 0) return
      bytes -= message.data.length
      if (attempted !== undefined) young.remove(attempted)
      attempted = undefined
      clearInterval(tells)
    }

    const areBegun = () => inLine === 0

    const lasts = () => {
      attempted = undefined
      lasting = attempting
      if (!telling.isTold) tells = setInterval(() => work.step(() => telling.tell()), untold)
      then.lasts()
      work.step(advance)
    }

    const store = (planned: Planned, progress: Progress) => {
      storing++
      const { headers, subject } = messageOf(names, partitions, event, planned, progress)
      publisher.send(subject, message.data, headers, (result) =>
        work.step(() => {
          storing--
          if (result instanceof PublishError) lack(planned, result)
          else reached("delivery-stored")
          isLate ||= performance.now() - began > patience
          advance()
        })
      )
    }

    const lack = ({ id }: Planned, why: PublishError | "unknown") => {
      without ??= new Map()
      without.set(id, why)
    }

    const soFar = (): SoFar => {
      const { stored } = telling
      if (stored === undefined) return { known: undefined, began }
      const ids = endpoints.slice(0, next).map(({ id }) => id)
      const sent = new Set(ids.filter((id) => without?.has(id) !== true))
      const unsure = [...(without ?? [])].filter(([, why]) => why === "unknown" || mayBeStored(why))
      const known = { tenant: event.tenant, parts: [stored], sent, failed: failed ?? new Map() }
      return { known, tried: new Set(unsure.map(([id]) => id)), began }
    }
    advance()
  }
})
