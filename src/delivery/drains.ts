import type { StoredMsg } from "@nats-io/jetstream"
import type { Clock } from "effect"
import { Cause, Effect, Latch } from "effect"
import type { BrokerError } from "../broker/connection.ts"
import type { PubAck, PublishError } from "../broker/publisher.ts"
import type { Delivery } from "../domain/delivery.ts"
import { parseDelivery } from "../domain/delivery.ts"
import type { Addressee, Backlog } from "./backlog.ts"
import { DrainWindow } from "./drain-window.ts"
import { endpointKey } from "./endpoint-store.ts"
import type { Held } from "./held.ts"
import type { StreamMemory } from "./partition-memory.ts"

/** Read at a time, in bytes of bodies and in messages. */
const batchBytes = 1024 * 1024
const batchMessages = 256
/** Unfinished at the head of a backlog, as many as may have been under way when its owner died. */
const atOnce = 32
/** Stands for how often such a message was handed out, which nobody counts. */
const perhapsDeadly = 100
/** How often it is asked whether a deadline has passed while an endpoint takes nothing, ms. */
const lookAgain = 1_000
/** Finished messages that are worth a purge while more are under way. */
const worthPurging = 64
/** Pause before a backlog is looked at again in which more is known to be than was found, ms. */
const rereadPause = 100
const failurePause = 1_000
/** Pause before it is tried again to end what could not be ended, ms. */
const endPause = 30_000

export interface DrainsOptions {
  readonly backlog: Backlog
  readonly memory: StreamMemory
  /** How many deliveries an endpoint's lane has use for now. */
  readonly wants: (key: string) => number
  /** Told where a delivery was moved from: it has left that place. */
  readonly left: (delivery: Delivery) => void
  /** Gives a delivery to its endpoint's lane. */
  readonly begin: (key: string, held: Held) => void
  /** Messages that one backlog takes. */
  readonly most: number
  /** Ends a delivery whose time is over; it was read and is not begun. */
  readonly expire: (held: Held) => Effect.Effect<void>
  readonly clock: Clock.Clock
  /** Runs until the partition is given up. */
  readonly run: (work: Effect.Effect<void>) => void
}

/** One endpoint's backlog, from the first message stored there until it is empty. */
interface Drain {
  readonly to: Addressee
  readonly window: DrainWindow
  readonly wake: Latch.Latch
  /** Being stored. */
  storing: number
  /** Messages that it holds. */
  count: number
  /** The last sequence known to be stored: what is being stored comes after it. */
  last: number
  /** Before it no deadline passes of what was there at the last look, ms since the epoch. */
  nextDeadline: number
  /** The first deadline of what was stored since. */
  nextStored: number
  /** When all that waits may be read for its deadlines again, ms since the epoch. */
  nextLook: number
  /** How many of those that are read next a former owner may have died of. */
  suspects: number
  readonly marks: Map<number, symbol>
  readonly erasures: Map<number, Effect.Effect<void>>
  /** Taken out one by one, and not purged past. */
  thinned: Array<number>
}

/**
 * Drains the backlogs of a partition: each in order, at the pace of its endpoint's lane. What is
 * read ends or waits elsewhere; only then it is purged, up to the lowest that is unfinished.
 */
export const makeDrains = (options: DrainsOptions) => {
  const { backlog, memory } = options
  const drains = new Map<string, Drain>()
  /** Where to read on in backlogs that were empty: a copy that is behind may still show what was in them. */
  const floors = new Map<string, number>()

  const finish = (drain: Drain, seq: number, erase: Effect.Effect<void>) => {
    drain.window.finish(seq)
    drain.erasures.set(seq, erase)
    drain.wake.openUnsafe()
  }

  /** It is to be read again. */
  const forget = (drain: Drain, { delivery, place: { seq } }: Pick<Held, "delivery" | "place">) => {
    drain.window.forget(seq)
    drain.nextStored = Math.min(drain.nextStored, delivery.deadline)
    release(drain, seq)
    drain.wake.openUnsafe()
  }

  const release = (drain: Drain, seq: number) => {
    const mark = drain.marks.get(seq)
    if (mark !== undefined) memory.settled.close(mark)
    drain.marks.delete(seq)
  }

  const take = (drain: Drain, message: StoredMsg) => {
    const { seq } = message
    if (!drain.window.add(seq)) return Effect.void
    const delivery = deliveryIn(message)
    if (delivery === undefined) {
      finish(drain, seq, Effect.void)
      return Effect.logError("a message that is no delivery", { stream: memory.stream, seq })
    }
    if (memory.settled.has(seq, delivery.eventSeq)) {
      finish(drain, seq, Effect.void)
      return Effect.void
    }
    options.left(delivery)
    const held = hold(drain, message, delivery)
    return Effect.sync(() =>
      options.begin(endpointKey(delivery.tenant, delivery.endpoint), held)
    ).pipe(Effect.onError(() => Effect.sync(() => forget(drain, held))))
  }

  const hold = (drain: Drain, { data, seq }: StoredMsg, delivery: Delivery): Held => {
    drain.marks.set(seq, memory.settled.open())
    let given = false
    return {
      place: { stream: memory.stream, seq },
      delivery,
      body: data,
      handedOut: drain.suspects-- > 0 ? perhapsDeadly : 1,
      ack: (erase) => Effect.sync(() => finish(drain, seq, erase)),
      nak: (delayMs) => {
        if (!given)
          setTimeout(
            () => forget(drain, { delivery, place: { stream: memory.stream, seq } }),
            Math.max(1, delayMs)
          ).unref()
        given = true
      }
    }
  }

  /**
   * What passes its deadline ends though its endpoint takes nothing: nobody waits for those in
   * front. All that waits is read for it when the first deadline has passed, at most a tenth of the
   * time, and no longer once the endpoint takes something.
   */
  const expire = Effect.fnUntraced(function* (key: string, drain: Drain) {
    const now = options.clock.currentTimeMillisUnsafe()
    if (now < Math.max(drain.nextLook, Math.min(drain.nextDeadline, drain.nextStored))) return
    drain.nextStored = Number.POSITIVE_INFINITY
    drain.nextDeadline = 0
    let first = Number.POSITIVE_INFINITY
    let from = drain.window.below
    const isWanted = () => options.wants(key) > 0 && drain.window.room > 0
    while (!isWanted()) {
      const messages = yield* backlog.read(drain.to, from, batchMessages, batchBytes)
      const last = messages.at(-1)
      if (last === undefined) {
        drain.nextDeadline = first
        break
      }
      from = last.seq + 1
      yield* Effect.forEach(
        messages,
        (message) => {
          const delivery = deliveryIn(message)
          if (delivery === undefined || drain.window.has(message.seq) || isWanted())
            return Effect.void
          if (delivery.deadline > now) {
            first = Math.min(first, delivery.deadline)
            return Effect.void
          }
          return Effect.map(end(drain, message, delivery), (isGone) => {
            if (!isGone) first = Math.min(first, now + endPause)
          })
        },
        { concurrency: 16, discard: true }
      )
    }
    const done = options.clock.currentTimeMillisUnsafe()
    drain.nextLook = done + 10 * (done - now)
  })

  /** Its place is given up by itself: what is in front of it stays. */
  const end = Effect.fnUntraced(function* (drain: Drain, message: StoredMsg, delivery: Delivery) {
    const { seq } = message
    if (memory.settled.has(seq, delivery.eventSeq)) return true
    const held = hold(drain, message, delivery)
    let gone: Effect.Effect<void> | undefined
    yield* options.expire({
      ...held,
      ack: (erase) =>
        Effect.sync(() => {
          gone = erase
        }),
      nak: () => undefined
    })
    if (gone !== undefined) {
      yield* backlog.remove(seq)
      drain.window.gone(seq)
      drain.count--
      yield* gone
      memory.settled.delete(seq)
    }
    release(drain, seq)
    return gone !== undefined
  })

  const purge = Effect.fnUntraced(function* (drain: Drain) {
    const { below } = drain.window
    const gone = drain.window.finishedBelow(below)
    if (gone.length === 0) return
    yield* backlog.purge(drain.to, below)
    drain.window.purged(gone)
    // One that was taken out alone may still be read from a copy that is behind, until now.
    for (const seq of [...gone, ...drain.thinned]) if (seq < below) memory.settled.delete(seq)
    drain.thinned = drain.thinned.filter((seq) => seq >= below)
    yield* letGo(drain, gone)
  })

  /** Takes out what is finished behind one that is not for long, so that others can be read. */
  const thin = Effect.fnUntraced(function* (drain: Drain) {
    const finished = drain.window.finished
    yield* Effect.forEach(finished, backlog.remove, { concurrency: 16, discard: true })
    drain.window.purged(finished)
    drain.thinned.push(...finished)
    yield* letGo(drain, finished)
  })

  /** They are gone from the stream. */
  const letGo = (drain: Drain, gone: ReadonlyArray<number>) => {
    drain.count -= gone.length
    const erasures: Array<Effect.Effect<void>> = []
    for (const seq of gone) {
      release(drain, seq)
      erasures.push(drain.erasures.get(seq) ?? Effect.void)
      drain.erasures.delete(seq)
    }
    return Effect.forEach(erasures, (erase) => erase, { concurrency: 16, discard: true })
  }

  /** True once nothing is left, as the leader knows it. */
  const isDone = Effect.fnUntraced(function* (key: string, drain: Drain) {
    const isQuiet = () => drain.storing === 0 && drain.window.isFinished
    if (!isQuiet()) return false
    yield* purge(drain)
    const { last } = drain
    const empty = yield* backlog.isEmpty(drain.to, drain.window.next)
    if (!empty || drain.last !== last || !isQuiet()) return false
    floors.set(key, drain.window.next)
    drains.delete(key)
    return true
  })

  const step = Effect.fnUntraced(function* (key: string, drain: Drain) {
    const { to, wake, window } = drain
    if (window.finishedBelow(window.below).length >= worthPurging) yield* purge(drain)
    const wanted = Math.min(options.wants(key), window.room)
    wake.closeUnsafe()
    if (wanted === 0) {
      yield* purge(drain)
      if (window.room === 0) yield* thin(drain)
      yield* expire(key, drain)
      if (options.wants(key) === 0 || window.room === 0)
        yield* Effect.raceFirst(wake.await, Effect.sleep(lookAgain))
      return false
    }
    const messages = yield* backlog.read(to, window.next, wanted, batchBytes)
    for (const message of messages) yield* take(drain, message)
    if (messages.length > 0) return false
    if (yield* isDone(key, drain)) return true
    yield* Effect.raceFirst(wake.await, Effect.sleep(rereadPause))
    return false
  })

  const keepDraining = (key: string, drain: Drain): Effect.Effect<void> => {
    let failing = false
    const again = (error: BrokerError) =>
      Effect.gen(function* () {
        if (!failing)
          yield* Effect.logWarning(`the backlog of ${key} cannot be read`, { why: error.message })
        failing = true
        yield* Effect.sleep(failurePause)
        return false
      })
    return step(key, drain).pipe(
      Effect.tap(() =>
        Effect.sync(() => {
          failing = false
        })
      ),
      Effect.catch(again),
      Effect.catchCauseIf(
        (cause) => !Cause.hasInterrupts(cause),
        (cause) =>
          Effect.as(
            Effect.delay(Effect.logError(`draining ${key} met a defect`, cause), failurePause),
            false
          )
      ),
      Effect.repeat({ until: (done) => done }),
      Effect.asVoid
    )
  }

  const open = (to: Addressee): Drain => {
    const key = endpointKey(to.tenant, to.endpoint)
    const known = drains.get(key)
    if (known !== undefined) return known
    const drain: Drain = {
      to,
      window: new DrainWindow(floors.get(key)),
      wake: Latch.makeUnsafe(),
      storing: 0,
      count: 0,
      last: 0,
      nextDeadline: 0,
      nextStored: Number.POSITIVE_INFINITY,
      nextLook: 0,
      suspects: 0,
      marks: new Map(),
      erasures: new Map(),
      thinned: []
    }
    drains.set(key, drain)
    options.run(keepDraining(key, drain))
    return drain
  }

  return {
    /** True while something waits in an endpoint's backlog, or is being stored there. */
    isBehind: (key: string): boolean => drains.has(key),

    /** True where an endpoint's backlog takes no more. */
    isFull: (key: string): boolean => (drains.get(key)?.count ?? 0) >= options.most,

    /** What is stored in an endpoint's backlog stands behind what is there, and is drained after it. */
    storing: (
      to: Delivery,
      store: (after: number) => Effect.Effect<PubAck, PublishError>
    ): Effect.Effect<PubAck, PublishError> => {
      let once: Effect.Effect<PubAck, PublishError> | undefined
      return Effect.suspend(() => {
        const drain = open(to)
        drain.storing++
        drain.count++
        once ??= store(drain.last)
        return once.pipe(
          Effect.tap(({ seq }) =>
            Effect.sync(() => {
              drain.last = Math.max(drain.last, seq)
              drain.nextStored = Math.min(drain.nextStored, to.deadline)
            })
          ),
          Effect.tapError(() => Effect.sync(() => drain.count--)),
          Effect.ensuring(
            Effect.sync(() => {
              drain.storing--
              drain.wake.openUnsafe()
            })
          )
        )
      })
    },

    /** Looks again whether an endpoint's lane has use for more, or those of all. */
    wake: (key?: string) => {
      for (const drain of key === undefined ? drains.values() : [drains.get(key)])
        drain?.wake.openUnsafe()
    },

    /** A delivery that was read has no place in its lane any more. */
    handBack: (key: string, held: Held) => {
      const drain = drains.get(key)
      if (drain !== undefined) forget(drain, held)
    },

    /** Finds what waited when this owner began. */
    find: Effect.map(backlog.list, (found) => {
      for (const to of found) {
        const drain = open(to)
        drain.suspects = atOnce
        drain.count = to.count
      }
    })
  }
}

const deliveryIn = ({ header, subject }: StoredMsg): Delivery | undefined =>
  parseDelivery(subject, (name) => header.get(name) || undefined)

export type Drains = ReturnType<typeof makeDrains>
