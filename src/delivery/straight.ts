import { Effect, LogLevel, Option } from "effect"
import { Broker } from "../broker/connection.ts"
import type { Delivery, Progress } from "../domain/delivery.ts"
import { untried } from "../domain/delivery.ts"
import type { Fact, Plan } from "../domain/fact.ts"
import { plannedOtherwise } from "../domain/fact.ts"
import { Facts } from "../history/facts.ts"
import type { Sender, Sent } from "./attempt/sender.ts"
import { startSending } from "./attempt/sender.ts"
import { Checkpoint } from "./checkpoint.ts"
import { deliveredFact, logFact } from "./delivery-fact.ts"
import type { LiveEndpoint } from "./endpoints/directory.ts"
import { Directory } from "./endpoints/directory.ts"
import { disableWhereGone, judgeFailure } from "./failed-attempt.ts"
import type { HandlingOptions } from "./handling.ts"
import type { Held } from "./lanes/held.ts"
import type { PartitionMemory } from "./memory/partition-memory.ts"
import type { Settlement } from "./settlement.ts"
import type { Successes } from "./successes.ts"
import { readSurely } from "./successes.ts"
import type { Plain, Underway } from "./underway.ts"

/** What became of a delivery that was to be attempted from its event. */
export type StraightEnd =
  /** The history has its end. */
  | { readonly _tag: "Delivered" }
  /** No request was made. */
  | { readonly _tag: "Untried" }
  /** The history tells of an attempt that did not succeed. */
  | { readonly _tag: "Failed"; readonly progress: Progress }
  /** It was cut off: the history may tell of it, or not. */
  | { readonly _tag: "Unknown" }

/** The plan of an event that goes to one endpoint alone, where the history had none at first. */
export interface Untold {
  /** Under which the history takes the plan once. */
  readonly id: string
  /** For how long the history surely knows that id if it has it, ms. */
  readonly patience: number
  /** The plan, for the caller to tell it with the end of the delivery; undefined where nobody may. */
  readonly withEnd: () => Plan | undefined
  /** True where the history has it, by itself. */
  readonly isTold: boolean
  /** True where it may be another plan that counts. */
  readonly isUnsure: boolean
  /** Sees to it that the history has a plan of the event, and gives its sequence there. */
  readonly told: Effect.Effect<number>
  /** Called where the history turns out to have had a plan at a sequence. */
  readonly anotherCounts: (seq: number) => void
  /** Called where that is the one that was told with the end. */
  readonly isOwn: () => void
}

/** A delivery that is in no queue: its event is in hand until it has come to its end here. */
export interface Straight {
  readonly delivery: Delivery
  /** Of its endpoint. */
  readonly key: string
  readonly body: Uint8Array
  /** Where no plan was stored before. */
  readonly untold?: Untold | undefined
  /** Told when its request goes out; before that it stands in line. */
  begun(): void
  /** Told once what became of it. */
  ended(end: StraightEnd): void
}

export interface StraightOptions {
  readonly memory: PartitionMemory
  readonly sender: Sender
  readonly worker: string
  /** A new id for each request really made. */
  readonly nextId: () => string
  /** Of the queue, where it goes on if it does not succeed. */
  readonly settlement: Pick<Settlement, "asOwner" | "fence" | "isOpen" | "successes">
  /** No attempt begins while this is false. */
  readonly mayAttempt: () => boolean
  /** Told of each attempt that was made, before it is settled. */
  readonly answered: HandlingOptions["answered"]
}

const untriedEnd: StraightEnd = { _tag: "Untried" }
const delivered: StraightEnd = { _tag: "Delivered" }
const unknown: StraightEnd = { _tag: "Unknown" }

/** Whether two facts tell of the same attempt. */
const isSame = (one: Fact, other: Fact): boolean =>
  one.kind === other.kind &&
  one.delivery === other.delivery &&
  one.at === other.at &&
  one.worker === other.worker

/** A fact beside a plan, where that may not be the one by which the attempt was made. */
const beside = (fact: Fact, planned: Option.Option<Fact>): Fact =>
  Option.exists(planned, ({ eventAt, eventSeq, plan }) => {
    if (eventSeq !== fact.eventSeq || eventAt !== fact.eventAt) return false
    // Whose parts are many may name it in another one.
    const names = plan?.endpoints.some(({ id }) => id === fact.endpoint) === true
    return names || plan?.last === false
  })
    ? fact
    : { ...fact, reason: plannedOtherwise }

/** Gives it back without a request. */
export const leaveUntried = (straight: Straight) => straight.ended(untriedEnd)

/**
 * Makes what attempts a delivery from its event, once: what succeeds needs no message in a queue,
 * and what does not goes there with what is known of it then.
 */
export const makeStraights = Effect.fnUntraced(function* (options: StraightOptions) {
  const { memory, nextId, sender, settlement, worker } = options
  const { fence, successes } = settlement
  const { settled, straights } = memory
  const { clock } = sender
  const { names } = yield* Broker
  const directory = yield* Directory
  const facts = yield* Facts
  const reached = yield* Checkpoint
  const logsDeliveries = yield* LogLevel.isEnabled("Debug")

  const readyFor = ({ delivery, key }: Straight): LiveEndpoint | undefined =>
    settlement.isOpen() &&
    options.mayAttempt() &&
    clock.currentTimeMillisUnsafe() < delivery.deadline
      ? directory.liveNow(delivery, key)
      : undefined

  /**
   * Sends it where that may be done now, and says what came of it.
   *
   * @param left told, before that, that it is not under way any more.
   */
  const attempt = (straight: Straight, underway: Underway<Broker | Facts>, left: () => void) => {
    const { body, delivery, untold } = straight
    const endpoint = readyFor(straight)
    if (endpoint === undefined) {
      left()
      return leaveUntried(straight)
    }
    straight.begun()
    let end: StraightEnd = unknown
    const held = {
      delivery,
      body,
      place: { stream: names.events, seq: delivery.eventSeq, at: delivery.eventAt }
    }
    const attempted = straights.begin(delivery)
    const work = underway.begin(
      () => {
        straights.leave(attempted)
        left()
        straight.ended(end)
      },
      (defect) =>
        Effect.logError("a delivery met a defect as its event was routed", {
          seq: delivery.eventSeq,
          endpoint: delivery.endpoint,
          defect
        })
    )

    const succeed = (sent: Sent) => {
      const tell = (plan?: Plan) => deliveredFact(held, untried, sent, worker, plan)
      const stored = (fact: Fact, seq: number) => {
        settled.stored(seq)
        straights.add(endpoint.key, delivery)
        end = delivered
        reached("outcome-stored")
        return logsDeliveries ? logFact(fact) : Effect.void
      }
      // A former owner stores the plan by itself: another router's may count.
      const plan = fence.holds() ? untold?.withEnd() : undefined
      if (untold !== undefined && plan !== undefined) {
        const whole = tell(plan)
        const again = () => appendWithPlan(tell(), whole, untold)
        successes.appendPlainly(work, { fact: whole, id: untold.id, again, stored })
      } else if (untold === undefined || untold.isTold)
        successes.appendPlainly(work, { fact: tell(), id: nextId(), stored })
      else {
        const fact = tell()
        const mark = settled.open()
        work.goOn(
          Effect.ensuring(
            Effect.flatMap(appendBeside(fact, untold, successes.append), ({ fact, seq }) =>
              stored(fact, seq)
            ),
            Effect.sync(() => settled.close(mark))
          )
        )
      }
    }

    sendOnce(held, endpoint, work, (sent) => {
      reached("answered")
      options.answered(endpoint, delivery, sent, untried)
      if (sent.verdict === "delivered") succeed(sent)
      else
        work.goOn(
          fail(held, endpoint, sent, untold, (failed) => {
            end = failed
          })
        )
    })
  }

  /**
   * Appends the fact of a success that tells the plan, too, of which it is not known whether it was
   * stored. Where the history has had a plan of the event before, it is told without.
   */
  const appendWithPlan = Effect.fnUntraced(function* (fact: Fact, whole: Fact, untold: Untold) {
    const { id, patience } = untold
    const stored =
      patience > 0
        ? yield* Effect.option(facts.appendWhile(fence.stillOwner, patience, whole, id))
        : Option.none()
    if (Option.isSome(stored) && stored.value !== undefined) {
      const { duplicate, seq } = stored.value
      if (!duplicate) return { fact: whole, seq }
      untold.anotherCounts(seq)
    }
    return yield* appendBeside(fact, untold, successes.append)
  })

  /** Appends a fact of an attempt once the history has a plan, unless that tells of it, too. */
  const appendBeside = Effect.fnUntraced(function* (
    fact: Fact,
    untold: Untold,
    append: Successes["append"]
  ) {
    const seq = yield* untold.told
    if (!untold.isUnsure) return yield* append(fact, nextId())
    const planned = yield* readSurely(seq)
    if (Option.exists(planned, (there) => isSame(there, fact))) {
      untold.isOwn()
      return { fact, seq }
    }
    return yield* append(beside(fact, planned), nextId())
  })

  const appendFailure: Successes["append"] = (fact, id) =>
    Effect.map(facts.append(fact, id), ({ seq }) => ({ fact, seq }))

  /** @param told called once the history tells of it. */
  const fail = Effect.fnUntraced(function* (
    held: Pick<Held, "delivery" | "place">,
    endpoint: LiveEndpoint,
    sent: Sent,
    untold: Untold | undefined,
    told: (end: StraightEnd) => void
  ) {
    yield* settlement.asOwner
    const { fact, progress, step } = yield* judgeFailure(held, untried, sent, endpoint, worker)
    const ends = step._tag === "Dead" ? step.reason : undefined
    const whole = ends === undefined ? fact : { ...fact, reason: ends }
    const append =
      untold === undefined || untold.isTold
        ? appendFailure(whole, nextId())
        : appendBeside(whole, untold, appendFailure)
    settled.stored((yield* append).seq)
    reached("outcome-stored")
    const known = ends === undefined ? progress : { ...progress, ends }
    straights.failed(held.delivery, known)
    told({ _tag: "Failed", progress: known })
    yield* logFact(whole)
    yield* disableWhereGone(held, endpoint, sent, worker)
  })

  const sendOnce = (
    held: Pick<Held, "body" | "delivery">,
    endpoint: LiveEndpoint,
    work: Plain<Broker | Facts>,
    done: (sent: Sent) => void
  ) =>
    work.step(() => {
      const running = startSending(sender, held, endpoint, 1, (sent) => work.step(() => done(sent)))
      work.stopBy(() => running.interrupt())
    })

  return { attempt }
})
