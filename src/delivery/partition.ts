import { Cause, Clock, Effect, FiberSet } from "effect"
import { Broker, BrokerError } from "../broker/connection.ts"
import type { Take } from "../broker/puller.ts"
import type { Progress } from "../domain/delivery.ts"
import { parseDelivery } from "../domain/delivery.ts"
import type { DeadReason } from "../domain/outcome.ts"
import type { Facts } from "../history/facts.ts"
import { Checkpoint } from "./checkpoint.ts"
import type { LiveEndpoint, Standing } from "./directory.ts"
import { Directory } from "./directory.ts"
import { disableEndpoint, endpointKey } from "./endpoint-store.ts"
import type { Held } from "./held.ts"
import { holdMessage } from "./held.ts"
import { InHand } from "./in-hand.ts"
import { Lanes } from "./lane.ts"
import { headerOf } from "./messages.ts"
import type { PartitionMemory, Waiting } from "./partition-memory.ts"
import { pull } from "./pull.ts"
import { isOf, readRecord } from "./retry-record.ts"
import type { Sender, Sent } from "./sender.ts"
import { send } from "./sender.ts"
import type { Settlement } from "./settlement.ts"

/** What one partition holds at most, in flight and in its lanes' lines. */
const capacity = { messages: 128, bytes: 16 * 1024 * 1024 }
/** How long a delivery may stand in line, ms, before it goes back for a while. */
const patience = 1_000
const goBackFor = [2_000, 4_000] as const
/** A delivery that is early by no more than this is made at once, ms. */
const early = 1

export interface PartitionOptions {
  readonly memory: PartitionMemory
  readonly settlement: Settlement
  readonly sender: Sender
  readonly worker: string
  /** ms */
  readonly ackWait: number
  /** No attempt begins while this is false. */
  readonly mayAttempt: () => boolean
  readonly stopping: () => boolean
}

interface Job {
  readonly key: string
  readonly held: Held
}

/**
 * Delivers what lies in one partition.
 *
 * For each message: what was decided about it earlier is carried out; a delivery whose endpoint is
 * gone or whose time is over ends; one that comes too early goes back; else one attempt is made,
 * and settled. The consumer never waits for an endpoint.
 */
export const makePartition = Effect.fnUntraced(function* (options: PartitionOptions) {
  const { memory, sender, settlement } = options
  const { suspicion } = memory
  const { names } = yield* Broker
  const directory = yield* Directory
  const reached = yield* Checkpoint
  const { clock } = sender
  const fibers = yield* FiberSet.make<void>()
  const run = yield* FiberSet.runtime(fibers)<Broker | Facts>()
  const inHand = new InHand(capacity)
  yield* inHand.keepAlive(options.ackWait)
  const working = new Set<number>()

  const start = ({ held, key }: Job): void => {
    run(deliver(held)).addObserver((exit) => {
      // Interrupted: it was cut off at a stop, or by another owner.
      if (exit._tag === "Failure") held.nak(1)
      letGo(held)
      lanes.leave(key)
    })
  }
  const lanes = new Lanes(start, patience, options.stopping)

  const letGo = (held: Held) => {
    working.delete(held.place.seq)
    if (held.message !== undefined) inHand.release(held.message)
  }

  /** What was decided about a message: from memory or, where a former owner did, from the leader. */
  const recall = (held: Held) => {
    const { seq } = held.place
    const known = memory.waiting.get(seq)
    return known !== undefined || !memory.recorded.has(seq)
      ? Effect.succeed(known)
      : recallFormer(held)
  }

  const recallFormer = Effect.fnUntraced(function* (held: Held) {
    const { seq, stream } = held.place
    const record = yield* readRecord(stream, seq)
    memory.recorded.delete(seq)
    if (record === undefined || !isOf(record, held.delivery)) return undefined
    const told = memory.told.get(seq) === record.progress.attempts
    const waiting: Waiting = { record, told }
    memory.waiting.set(seq, waiting)
    return waiting
  })

  /** The endpoint that may be tried at once, where all there is to ask is answered by memory. */
  const readyFor = (held: Held): LiveEndpoint | undefined => {
    const { delivery, place } = held
    const isNew = !memory.waiting.has(place.seq) && !memory.recorded.has(place.seq)
    if (!isNew || !settlement.isOpen() || !options.mayAttempt()) return undefined
    const now = clock.currentTimeMillisUnsafe()
    const isTime = now < delivery.deadline && now + early >= (delivery.progress.nextAttemptAt ?? 0)
    return isTime && !suspicion.watches(held, 0) ? directory.liveNow(delivery) : undefined
  }

  /** Sends it and settles what comes of it. No generator, for this is the way of every delivery. */
  const tryOnce = (held: Held, progress: Progress, endpoint: LiveEndpoint) =>
    Effect.flatMap(send(sender, held, endpoint, progress.attempts + 1), (sent) => {
      reached("answered")
      return sent.verdict === "delivered"
        ? settlement.succeeded(held, progress, sent)
        : afterFailure(held, progress, endpoint, sent)
    })

  const afterFailure = Effect.fnUntraced(function* (
    held: Held,
    progress: Progress,
    endpoint: LiveEndpoint,
    sent: Sent
  ) {
    yield* settlement.failed(held, progress, sent, endpoint)
    if (sent.gone)
      yield* disableEndpoint(held.delivery, "the receiver answered 410 Gone", options.worker).pipe(
        Effect.catch((error) =>
          Effect.logWarning("an endpoint that answered 410 could not be disabled", {
            endpoint: endpoint.key,
            why: error.message
          })
        )
      )
  })

  /** All there is to consider before a delivery may be tried. */
  const consider = Effect.fnUntraced(function* (held: Held) {
    const waiting = yield* recall(held)
    if (waiting !== undefined && !isDue(waiting, yield* Clock.currentTimeMillis))
      return yield* settlement.resume(held, waiting)
    if (!settlement.isOpen()) yield* settlement.ready
    const now = yield* Clock.currentTimeMillis
    const progress = waiting?.record.progress ?? held.delivery.progress
    const standing = yield* directory.standing(held.delivery)
    const trials = trialsOf(waiting)
    const pause = suspicion.pauseBefore(held, trials)
    if (pause > 0 && now < held.delivery.deadline) return held.nak(pause)
    if (standing._tag !== "Live") return yield* settlement.end(held, progress, endReason(standing))
    if (now >= held.delivery.deadline) {
      const reason = trials > 0 ? "defect" : "deadline"
      return yield* settlement.end(held, progress, reason)
    }
    if (!options.mayAttempt()) {
      suspicion.clear(held)
      return held.nak(patience)
    }
    const wait = (progress.nextAttemptAt ?? 0) - now
    if (waiting === undefined && wait > early) {
      suspicion.clear(held)
      return held.nak(wait)
    }
    const told = progress.attempts - held.delivery.progress.attempts
    if (trials > 0 || suspicion.watches(held, told))
      yield* settlement.mark(held, progress, trials + 1)
    yield* tryOnce(held, progress, standing.endpoint)
  })

  /** A bug of ours, or a record that does not parse, is no fault of the receiver: no attempt is used up. */
  const deliver = (held: Held) => {
    const endpoint = readyFor(held)
    return Effect.catchCauseIf(
      endpoint === undefined ? consider(held) : tryOnce(held, held.delivery.progress, endpoint),
      (cause) => !Cause.hasInterrupts(cause),
      (cause) =>
        // The broker does not answer: nothing is known of the delivery, and nothing is decided.
        Cause.squash(cause) instanceof BrokerError
          ? Effect.sync(() => held.nak(patience))
          : afterDefect(held, cause)
    )
  }

  const afterDefect = Effect.fnUntraced(function* (held: Held, cause: Cause.Cause<unknown>) {
    const { seq, stream } = held.place
    const pause = suspicion.afterDefect(held)
    yield* Effect.logError("a delivery met a defect and comes back later", cause, {
      stream,
      seq,
      pause
    })
    const now = yield* Clock.currentTimeMillis
    if (now < held.delivery.deadline) return held.nak(pause)
    yield* Effect.gen(function* () {
      const waiting = yield* recall(held)
      const progress = waiting?.record.progress ?? held.delivery.progress
      yield* settlement.end(held, progress, "defect")
    }).pipe(Effect.catchCause(() => Effect.sync(() => held.nak(pause))))
  })

  const take: Take = (message, headers) => {
    const { seq } = message
    if (working.has(seq)) return
    if (memory.settled.has(seq)) return message.ack()
    const delivery = parseDelivery(message.subject, headerOf(headers))
    if (delivery === undefined) {
      run(Effect.logError("a message that is no delivery", { stream: memory.stream, seq }))
      return message.nak(suspicion.afterDefect({ place: { stream: memory.stream, seq } }))
    }
    working.add(seq)
    inHand.take(message)
    const key = endpointKey(delivery.tenant, delivery.endpoint)
    const held = holdMessage(memory.stream, message, delivery)
    lanes.enter(key, directory.find(key)?.config.maxInFlight ?? 1, { key, held })
  }

  const goBack = (jobs: ReadonlyArray<Job>, delay: (held: Held) => number) => {
    for (const { held } of jobs) {
      suspicion.clear(held)
      held.nak(delay(held))
      letGo(held)
    }
  }
  const [least, most] = goBackFor
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      setInterval(() => {
        if (!options.stopping())
          goBack(lanes.overdue(), ({ place }) => least + ((place.seq % 64) / 64) * (most - least))
      }, patience / 4)
    ),
    (timer) => Effect.sync(() => clearInterval(timer))
  )

  let asked = false
  const deliverAll = Effect.gen(function* () {
    yield* pull({
      name: memory.stream,
      stream: memory.stream,
      consumer: names.deliverConsumer,
      stopping: options.stopping,
      take,
      tooLarge: (wanted) => inHand.tooLarge(wanted),
      asked: () => {
        asked = true
      },
      room: Effect.gen(function* () {
        if (!settlement.isOpen()) {
          yield* Effect.race(settlement.ready, Effect.sleep("1 second"))
          return
        }
        yield* Effect.raceFirst(inHand.roomy, Effect.sleep("1 second"))
        if (options.mayAttempt()) return inHand.room
        yield* Effect.sleep(patience / 4)
        return
      })
    }).pipe(Effect.ensuring(Effect.sync(() => goBack(lanes.drain(), () => 1))))
    yield* FiberSet.awaitEmpty(fibers)
  })

  return {
    memory,
    deliverAll,
    /** Deliveries being considered, attempted or settled, and all that are in memory. */
    load: Effect.map(FiberSet.size(fibers), (inFlight) => ({ inFlight, inMemory: working.size })),
    /** Whether a request for messages has come to its end since this was asked last. */
    hasAsked: () => {
      const before = asked
      asked = false
      return before
    },
    /** Ends a waiting delivery that was found in the stream, unless it is in hand. */
    endWaiting: Effect.fnUntraced(function* (held: Held, reason: DeadReason) {
      const { seq } = held.place
      if (working.has(seq)) return held.nak(patience)
      if (memory.settled.has(seq)) return
      working.add(seq)
      yield* Effect.ensuring(
        Effect.gen(function* () {
          const waiting = yield* recall(held)
          const progress = waiting?.record.progress ?? held.delivery.progress
          yield* settlement.end(held, progress, reason)
        }),
        Effect.sync(() => letGo(held))
      )
    })
  }
})

export type Partition = Effect.Success<ReturnType<typeof makePartition>>

/** An attempt is next, and not too early. */
const isDue = ({ record: { decision }, told }: Waiting, now: number): boolean =>
  decision._tag === "Trying" || (told && decision._tag === "Nak" && decision.at - now <= early)

/** How often it was tried with caution, without anything coming of it. */
const trialsOf = (waiting: Waiting | undefined): number =>
  waiting?.record.decision._tag === "Trying" ? waiting.record.decision.times : 0

const endReason = (standing: Exclude<Standing, { readonly _tag: "Live" }>): DeadReason =>
  standing._tag === "Removed" ? "endpoint-removed" : "endpoint-disabled"
